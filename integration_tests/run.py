"""`make test`: every suite, each in a process of its own, then one closing line.

Steps      1 the checks of `make check`   2 tests/ (no services)   3 each suite below, one after the other
           4 a table of results and `N passed, N failed, N skipped`
INVARIANT  a suite that runs no test has failed; a JVM belongs to one suite, so memory is given back between them.
Usage      python -m integration_tests.run [suite ...]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CHECKS: dict[str, list[str]] = {
    "format": ["ruff", "format", "--quiet", "--check", "."],
    "lint": ["ruff", "check", "--quiet", "."],
    "types": ["mypy"],
    "layers": ["python", "-m", "tests.house.layers"],
}
SUITES: dict[str, list[str]] = {
    "unit": ["tests"],
    "spark": ["integration_tests/spark"],
    "kafka": ["integration_tests/kafka"],
    "docs": ["integration_tests/docs"],
    "adapter": ["integration_tests/adapter"],
    "conformance": ["integration_tests/conformance"],
    "interop": ["integration_tests/interop"],
    "demo": ["integration_tests/demo"],
    "kills": ["integration_tests/kills"],
    "soak": ["integration_tests/soak"],
}


@dataclass(frozen=True)
class Outcome:
    """What one suite did; `passed`, `failed`, `skipped` are tests, `seconds` wall time."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float


def _run_check(name: str, command: list[str]) -> Outcome:
    """One check counts as one test."""
    started = time.monotonic()
    tool = Path(sys.executable).parent / command[0]
    done = subprocess.run([str(tool), *command[1:]], cwd=ROOT, check=False)
    ok = done.returncode == 0
    return Outcome(name, int(ok), int(not ok), 0, time.monotonic() - started)


def _run_suite(name: str, paths: list[str]) -> Outcome:
    """One pytest process; its counts come from the JUnit file it writes."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", *paths, f"--junitxml={report}", "--durations=5"]
        done = subprocess.run(command, cwd=ROOT, check=False)
        seconds = time.monotonic() - started
        if not report.exists():
            return Outcome(name, 0, 1, 0, seconds)
        suite = ET.parse(report).getroot().find("testsuite")
        assert suite is not None
        total, skipped = int(suite.get("tests", "0")), int(suite.get("skipped", "0"))
        failed = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        if done.returncode != 0 and failed == 0:
            failed = 1
        return Outcome(name, max(total - skipped - failed, 0), failed, skipped, seconds)


def main(wanted: list[str]) -> int:
    """Run everything, or the named suites; 0 when nothing failed."""
    outcomes: list[Outcome] = []
    for name, command in CHECKS.items():
        if not wanted or name in wanted:
            outcomes.append(_run_check(name, command))
    for name, paths in SUITES.items():
        if (not wanted or name in wanted) and all((ROOT / path).exists() for path in paths):
            print(f"\n=== {name}", flush=True)
            outcomes.append(_run_suite(name, paths))
    print("\nsuite          passed  failed  skipped  seconds")
    for row in outcomes:
        print(f"{row.name:<14} {row.passed:>6}  {row.failed:>6}  {row.skipped:>7}  {row.seconds:>7.0f}")
    passed, failed, skipped = (
        sum(getattr(row, key) for row in outcomes) for key in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
