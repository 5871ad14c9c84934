"""Where the browser comes from: the distribution, installed by apt as root; else one line says how."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration_tests.ui import chromium


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The whole PATH: no browser is in it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(chromium, "_ON_MACOS", tmp_path / "none")
    return tmp_path


def put(folder: Path, name: str, script: str) -> None:
    """A program."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_browser_of_the_distribution_is_found(bin_folder: Path) -> None:
    """Under the names that distributions use."""
    put(bin_folder, "google-chrome", "exit 0")
    put(bin_folder, "chromium-browser", "exit 0")
    assert chromium.get_chromium() == str(bin_folder / "chromium-browser")


def test_root_installs_it(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists first, then the package without what it recommends."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    log = bin_folder / "log"
    install = f"printf '#!/bin/sh\\n' > {bin_folder}/chromium; /bin/chmod 755 {bin_folder}/chromium"
    put(bin_folder, "apt-get", f'echo "$@" >> {log}; case "$*" in *install*) {install};; esac')
    assert chromium.get_chromium() == str(bin_folder / "chromium")
    update, install = log.read_text().splitlines()
    assert update.endswith("update")
    assert install.endswith("install --yes --no-install-recommends chromium fonts-dejavu-core")


def test_failed_installation_is_one_line(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what apt said last."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    put(bin_folder, "apt-get", "echo first >&2; echo E: no network >&2; exit 100")
    with pytest.raises(RuntimeError, match=r"apt-get update && apt-get install.*E: no network") as raised:
        chromium.get_chromium()
    assert "\n" not in str(raised.value)


def test_without_rights_one_line_says_how(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is run."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    put(bin_folder, "apt-get", "exit 1")
    with pytest.raises(RuntimeError) as raised:
        chromium.get_chromium()
    assert str(raised.value) == chromium.HOW
