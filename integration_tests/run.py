"""`make test` and `make test-nightly`: every suite, each in a process of its own, then one closing line.

Steps      1 the suites below, one more at a time than cores, as far as memory allows; beside them, one by one, those
           that mostly wait for brokers (WAITING), and the checks of `make check`
           2 a table of results, each failed test with its error, and `N passed, N failed, N skipped`; at night each
             part also in docs/nightly.json
INVARIANT  a suite that runs no test has failed; a JVM belongs to one suite, so memory is given back after it.
INVARIANT  the tests' folders lie in memory where there is room (SHARED_MEMORY), and go when the run ends: nothing
           here loses power, and a tenth of the processor time went into the disk.
INVARIANT  what a suite prints stands together: side by side, it is shown when the suite is done.
INVARIANT  one seed decides the order of tests, the examples of Hypothesis and the random histories: a fixed one in
           `make test`, that of the day with `--nightly`, and TABLESTORE_SEED where it is set.
Usage      python -m integration_tests.run [--nightly] [suite ...]     TABLESTORE_TEST_JOBS=1 for one at a time
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from integration_tests import durations, nightly_record
from tests.doses import NIGHTLY_VARIABLE
from tests.processor_time import machine_seconds

ROOT = Path(__file__).resolve().parent.parent

CHECKS: dict[str, list[str]] = {
    "format": ["ruff", "format", "--quiet", "--check", "."],
    "lint": ["ruff", "check", "--quiet", "."],
    # a clone without a cache fills none: no run after it would use it
    "types": ["mypy", *(() if (ROOT / ".mypy_cache").exists() else ("--cache-dir=/dev/null",))],
    "layers": ["python", "-m", "tests.house.layers"],
    "spelling": ["codespell"],
}
TOGETHER = ("pipelines", "conformance", "docs", "kills", "demo", "soak", "ingest", "packaging")
# Longest first, as in a quiet run; once durations are kept, by them. What stands after the path is pytest's.
SUITES: dict[str, list[str]] = {
    "unit": ["tests", "-m", "not nightly"],
    "adapter": ["integration_tests/adapter", "-m", "not nightly"],
    "spark": ["integration_tests/spark", "-m", "not nightly"],
    "kafka": ["integration_tests/kafka", "-m", "not nightly"],
    # one process, one JVM, one broker and one start of pytest for suites that need little of each (decision 0174)
    "together": [
        *(f"integration_tests/{name}" for name in TOGETHER),
        *("-m", "not whole and not nightly"),
    ],
    "interop": ["integration_tests/interop", "-m", "not nightly"],
    # its first run on a machine compiles the server: minutes
    "s3": ["integration_tests/s3", "-m", "not nightly"],
    "cluster": ["integration_tests/cluster", "-m", "not nightly"],
    # a real browser; as root on Debian it installs Chromium
    "ui": ["integration_tests/ui", "-m", "not nightly"],
}
STATEMENTS = "integration_tests/soak/test_statement_attack.py"
TWO_HUNDRED_DAYS = (
    "integration_tests/pipelines/test_pipelines.py::test_tpcdi_models_are_right_over_two_hundred_days"
)
NIGHTLY: dict[str, list[str]] = {
    "interop": ["integration_tests/interop", "-m", "nightly"],
    "packaging": ["integration_tests/packaging"],
    # every test, also those of the day: here Spark runs as users run it (conftest.py)
    **{
        name: [f"integration_tests/{name}"]
        for name in ("kafka", "adapter", "spark", "ingest", "s3", "ui", "cluster", "docs", "demo")
    },
    # hours in all: parts that each end within two
    "soak": ["integration_tests/soak", f"--ignore={STATEMENTS}"],
    "statements": [STATEMENTS],
    "pipelines": ["integration_tests/pipelines", "-k", "not two_hundred_days"],
    **{
        f"pipelines {target}": [f"{TWO_HUNDRED_DAYS}[{target}]"]
        for target in ("dev", "deltas", "affected_keys")
    },
    "kills": ["integration_tests/kills", "--ignore=integration_tests/kills/test_killed_writers.py"],
    "killed writers": ["integration_tests/kills/test_killed_writers.py"],
    "unit": ["tests/unit"],
    "laws": ["tests", "--ignore=tests/unit"],
    "store unit": [
        *("tests/unit/store", "tests/unit/api", "tests/unit/catalog", "tests/unit/ingest", "tests/unit/log"),
        *(
            "tests/unit/sql",
            "tests/unit/stream",
            "tests/crash",
            "tests/laws",
            "tests/model",
            "-m",
            "not nightly",
        ),
    ],
    "store adapter": ["integration_tests/adapter", "-m", "not nightly"],
    "store conformance": ["integration_tests/conformance", "-m", "not whole"],
    "store cluster": ["integration_tests/cluster"],
    "store kills": ["integration_tests/kills/test_killed_build.py"],
}
# It uses less than half of a core: as one of the suites at a time it would leave a core idle.
WAITING = {"kafka"}
OVER_STORE = "store "  # suites of this name run over an S3 server, with the doses of the day
SEED_VARIABLE, FIXED_SEED = "TABLESTORE_SEED", "20261125"
KEPT = ROOT / "build" / "test-durations.json"
JOBS_MAX = 4
MEMORY_PER_JOB = 5 << 30  # a driver of 2 GiB, its workers, a broker and two readers in Java
SHARED_MEMORY, FOLDERS_MEMORY = Path("/dev/shm"), 6 << 30
TEMPORARY_ROOT = "PYTEST_DEBUG_TEMPROOT"  # pytest's name
LINE, LAST_LINES = 200, 12  # of an error in the closing summary
_SHOW = threading.Lock()


@dataclass(frozen=True)
class Outcome:
    """What one suite did; `passed`, `failed`, `skipped` are tests, `seconds` wall time.

    `failures`: each failed test with the beginning and the end of its error; `waited`: seconds until a job was free
    for the suite; `tests`: seconds of each; `processor`: seconds of all processes that the suite started.
    """

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    failures: tuple[str, ...] = ()
    waited: float = 0.0
    tests: Mapping[str, float] = field(default_factory=dict)
    processor: float = 0.0


def _run_check(name: str, command: list[str]) -> Outcome:
    """One check counts as one test."""
    started = time.monotonic()
    tool = Path(sys.executable).parent / command[0]
    done = subprocess.run(
        [str(tool), *command[1:]], cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    ok = done.returncode == 0
    with _SHOW:
        print(f"\n=== {name}\n{done.stdout.decode(errors='replace')}", end="", flush=True)
    failures = () if ok else (f"{name}: what it says stands above",)
    return Outcome(name, int(ok), int(not ok), 0, time.monotonic() - started, failures)


def pick_jobs(asked: str | None, cores: int, memory: int) -> int:
    """Suites at a time: what was asked for, else one more than `cores`, since the suites with brokers mostly wait.

    At most JOBS_MAX, each with MEMORY_PER_JOB bytes; one on a single core.
    """
    if asked:
        return max(1, int(asked))
    return max(1, min(cores + 1, JOBS_MAX, memory // MEMORY_PER_JOB)) if cores > 1 else 1


@contextmanager
def _folders(jobs: int, memory: int) -> Iterator[None]:
    """pytest's folders in memory while the suites run, unless the user has named a place for them."""
    has_room = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= FOLDERS_MEMORY
    if not has_room or memory < jobs * MEMORY_PER_JOB + FOLDERS_MEMORY or TEMPORARY_ROOT in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY, ignore_cleanup_errors=True) as folder:
        os.environ[TEMPORARY_ROOT] = folder
        try:
            yield
        finally:
            del os.environ[TEMPORARY_ROOT]


def _run_suite(name: str, arguments: list[str], together: bool) -> Outcome:
    """One pytest process; its counts come from the JUnit file it writes, its output in one piece if `together`."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report, log, used = (Path(folder) / one for one in ("report.xml", "output.txt", "processor"))
        counted = [sys.executable, "-m", "tests.processor_time", str(used)]
        command = [*counted, *_runner(name), *arguments, f"--junitxml={report}", "--durations=5"]
        environment = dict(os.environ)
        if name.startswith(OVER_STORE):
            environment.pop(NIGHTLY_VARIABLE, None)
        run = partial(subprocess.run, command, cwd=ROOT, check=False, env=environment)
        if together:
            with log.open("wb") as output:
                done = run(stdout=output, stderr=subprocess.STDOUT)
        else:
            print(f"\n=== {name}", flush=True)
            done = run()
        outcome = _read_outcome(name, report, done.returncode, time.monotonic() - started)
        if used.exists():  # a suite that was killed from outside has none
            outcome = replace(outcome, processor=float(used.read_text()))
        if together:
            with _SHOW:
                print(f"\n=== {name}\n{log.read_text(errors='replace')}", flush=True)
    return outcome


def _runner(name: str) -> list[str]:
    over = ["integration_tests.s3.store_mode"] if name.startswith(OVER_STORE) else []
    return [sys.executable, "-m", *over, "pytest"]


def _read_outcome(name: str, report: Path, code: int, seconds: float) -> Outcome:
    """Counts of a JUnit file; none, or an exit code without a failed test, is one failure."""
    if not report.exists():
        return Outcome(name, 0, 1, 0, seconds)
    suite = ET.parse(report).getroot().find("testsuite")
    assert suite is not None
    total, skipped = int(suite.get("tests", "0")), int(suite.get("skipped", "0"))
    failed = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
    if code != 0 and failed == 0:
        failed = 1
    passed = max(total - skipped - failed, 0)
    tests = durations.read_durations(suite)
    return Outcome(name, passed, failed, skipped, seconds, _failures(suite), tests=tests)


def _failures(suite: ET.Element) -> tuple[str, ...]:
    """The log is long and may be cut; what failed has to stand at its end."""
    found = []
    for case in suite.iter("testcase"):
        for wrong in (*case.findall("failure"), *case.findall("error")):
            why = _shortened(wrong.get("message") or "", wrong.text or "")
            found.append(f"{case.get('classname')}::{case.get('name')}: {why}")
    return tuple(found)


def _shortened(message: str, report: str) -> str:
    """The first line, and the last lines: a command that failed says why at the end of its output. pytest cuts the
    end off a long message, and marks the lines of errors in its report.
    """
    first, *rest = [line[1:].strip() for line in report.splitlines() if line.startswith("E ")] or [message]
    shown = [f"\n    {line[:LINE]}" for line in rest[-LAST_LINES:]]
    left = [f"\n    … {len(rest) - LAST_LINES} lines"] if len(rest) > LAST_LINES else []
    return "".join([first[:LINE], *left, *shown])


def run_suites(
    suites: Mapping[str, list[str]], jobs: int, keep: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """All of them, `jobs` at a time, in the order given, and beside these one of WAITING; outcomes come in that order
    too. `keep`: one that is done.
    """
    together = jobs > 1 and len(suites) > 1
    if together:
        print(f"\n{jobs} suites at a time; each is shown when it is done", flush=True)
    begun = time.monotonic()

    def run(name: str, arguments: list[str]) -> Outcome:
        waited = time.monotonic() - begun
        outcome = replace(_run_suite(name, arguments, together), waited=waited)
        with _SHOW:
            keep(outcome)
        return outcome

    with ThreadPoolExecutor(max_workers=jobs) as pool, ThreadPoolExecutor(max_workers=1) as waiting:
        running = [
            (waiting if together and name in WAITING else pool).submit(run, name, arguments)
            for name, arguments in suites.items()
        ]
        return [suite.result() for suite in running]


def pick_suites(wanted: Collection[str], seed: str, *, is_nightly: bool) -> dict[str, list[str]]:
    """The named ones, or all, of `make test` or of the nightly run."""
    seeds = [f"--randomly-seed={seed}", f"--hypothesis-seed={seed}"]
    known = NIGHTLY if is_nightly else SUITES
    picked = tuple(name for name in known if not wanted or name in wanted)
    ordered = picked if is_nightly else durations.order_of(picked, durations.read_kept(KEPT))
    return {name: [*known[name], *seeds] for name in ordered}


def _settle_seed(*, is_nightly: bool) -> str:
    """At night the histories take it too, from the environment; in `make test` each has a fixed one of its own."""
    if is_nightly:
        today = str(dt.datetime.now(dt.UTC).date().toordinal())
        print(f"{SEED_VARIABLE}={os.environ.setdefault(SEED_VARIABLE, today)}", flush=True)
    return os.environ.get(SEED_VARIABLE, FIXED_SEED)


def main(arguments: list[str]) -> int:
    """Run everything, or the named suites; 0 when nothing failed."""
    is_nightly = "--nightly" in arguments
    if is_nightly:
        os.environ[NIGHTLY_VARIABLE] = "1"
    # hundreds of processes start from here: each would compile the engine again
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    wanted = [one for one in arguments if one != "--nightly"]
    checks = [name for name in CHECKS if name in wanted or not (wanted or is_nightly)]
    seed = _settle_seed(is_nightly=is_nightly)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    jobs = pick_jobs(os.environ.get("TABLESTORE_TEST_JOBS"), os.cpu_count() or 1, memory)
    suites = pick_suites(wanted, seed, is_nightly=is_nightly)
    before = machine_seconds()
    with ThreadPoolExecutor(max_workers=1) as beside, _folders(jobs, memory):
        checked = beside.submit(lambda: [_run_check(name, CHECKS[name]) for name in checks])
        ran = run_suites(suites, jobs, partial(_keep_nightly, seed) if is_nightly else lambda _: None)
        outcomes = checked.result() + ran
    if not is_nightly:
        durations.keep(KEPT, {one.name: (one.seconds, one.processor, one.tests) for one in ran})
    _show(outcomes, before)
    failed = sum(row.failed for row in outcomes)
    return 1 if failed or not any(row.passed for row in outcomes) else 0


def _keep_nightly(seed: str, outcome: Outcome) -> None:
    nightly_record.keep(
        outcome.name,
        passed=outcome.passed, failed=outcome.failed, skipped=outcome.skipped,
        seconds=outcome.seconds, seed=seed,
    )  # fmt: skip


def _show(outcomes: Sequence[Outcome], before: tuple[float, float]) -> None:
    """`before`: what the machine had done before the run."""
    print("\nThe tests that took longest")
    print("\n".join(durations.slowest({name: s for row in outcomes for name, s in row.tests.items()})))
    print("\nsuite          passed  failed  skipped  seconds  waited  processor")
    for row in outcomes:
        counts = f"{row.passed:>6}  {row.failed:>6}  {row.skipped:>7}"
        print(f"{row.name:<14} {counts}  {row.seconds:>7.0f}  {row.waited:>6.0f}  {row.processor:>9.0f}")
    busy, idle = (after - first for first, after in zip(before, machine_seconds(), strict=True))
    suites = sum(row.processor for row in outcomes)
    print(f"processor time of the suites: {suites:.0f} s; of the whole machine meanwhile: {busy:.0f} s")
    print(f"seconds in which a core had nothing to do: {idle:.0f}")
    for row in outcomes:
        print("".join(f"FAILED {one}\n" for one in row.failures), end="")
    passed, failed, skipped = (
        sum(getattr(row, key) for row in outcomes) for key in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
