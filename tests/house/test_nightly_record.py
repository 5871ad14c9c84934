"""The record of the nightly run: a part at a time, with the commit that it ran on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from docs.nightly_table import nightly_lines
from integration_tests import nightly_record
from integration_tests.run import Outcome, run_suites


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


def test_a_run_replaces_its_own_part_only(tmp_path: Path) -> None:
    """A run that ends early leaves the parts before it."""
    path = tmp_path / "nightly.json"
    for name, passed in (("unit", 1), ("kafka", 2), ("unit", 3)):
        nightly_record.keep(name, passed=passed, failed=0, skipped=0, seconds=90.4, seed="7", path=path)
    record = json.loads(path.read_text())
    assert {name: one["passed"] for name, one in record.items()} == {"unit": 3, "kafka": 2}


def test_a_part_is_kept_as_soon_as_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when the whole run ends."""
    kept: list[str] = []
    seen: list[tuple[str, list[str]]] = []

    def run(name: str, arguments: list[str], together: bool) -> Outcome:
        seen.append((name, list(kept)))
        return Outcome(name, 1, 0, 0, 1.0)

    monkeypatch.setattr("integration_tests.run._run_suite", run)
    run_suites({"a": [], "b": []}, 1, lambda outcome: kept.append(outcome.name))
    assert seen == [("a", []), ("b", ["a"])]


def test_the_commit_says_whether_files_differ(tmp_path: Path) -> None:
    """A figure of changed code is no figure of the commit."""
    assert nightly_record.ran_on(tmp_path) == "unknown"
    _git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1")
    _git(tmp_path, "add", "code.py")
    _git(tmp_path, "commit", "-qm", "one")
    clean = nightly_record.ran_on(tmp_path)
    (tmp_path / "code.py").write_text("2")
    assert len(clean) == 8
    assert nightly_record.ran_on(tmp_path) == f"{clean}+"


def test_each_part_of_the_run_has_a_line() -> None:
    """One without a run says so; one that is no part any more stops the page."""
    run = {
        "commit": "abc",
        "day": "2026-11-30",
        "seed": "7",
        "passed": 1200,
        "failed": 0,
        "skipped": 1,
        "seconds": 90,
    }
    lines = nightly_lines({"unit": run}, ("unit", "kafka"))
    assert lines[-3:-1] == [
        "| unit | abc | 2026-11-30 | 7 | 1,200 | 0 | 1 | 2 |",
        "| kafka | not run | | | | | | |",
    ]
    with pytest.raises(ValueError, match="'unit'"):
        nightly_lines({"unit": run}, ("kafka",))
