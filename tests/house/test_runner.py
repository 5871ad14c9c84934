"""What `make test` runs side by side, and that it says what happened."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest

from integration_tests import run
from integration_tests.conftest import java_options
from integration_tests.durations import keep, order_of, read_kept
from integration_tests.run import (
    MEMORY_PER_JOB,
    NIGHTLY,
    SUITES,
    TOGETHER,
    Outcome,
    pick_jobs,
    pick_suites,
    run_suites,
)

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("asked", "cores", "memory", "jobs"),
    [
        (None, 2, 4 * MEMORY_PER_JOB, 3),
        (None, 2, 3 * MEMORY_PER_JOB - 1, 2),
        (None, 1, 2 * MEMORY_PER_JOB, 1),
        (None, 8, 2 * MEMORY_PER_JOB - 1, 1),
        (None, 8, 0, 1),
        (None, 8, 8 * MEMORY_PER_JOB, 4),
        ("1", 8, 8 * MEMORY_PER_JOB, 1),
        ("3", 1, 0, 3),
        ("", 2, 2 * MEMORY_PER_JOB, 2),
    ],
)
def test_suites_run_side_by_side_where_they_fit(
    asked: str | None, cores: int, memory: int, jobs: int
) -> None:
    """Two JVMs on a machine that has room for one would make every suite slow; the user's word wins."""
    assert pick_jobs(asked, cores, memory) == jobs


def folders_of(arguments: list[str]) -> set[str]:
    """Folders of integration_tests that a suite runs."""
    return {Path(one).name for one in arguments if one.startswith("integration_tests/") and "." not in one}


def test_every_folder_of_tests_is_a_suite() -> None:
    """A folder with tests that no suite names would never run."""
    with_tests = {path.parent.name for path in (ROOT / "integration_tests").glob("*/test_*.py")}
    in_suites = [folder for arguments in SUITES.values() for folder in folders_of(arguments)]
    assert sorted(with_tests) == sorted(in_suites)


def test_every_nightly_test_is_in_a_nightly_suite() -> None:
    """What make test leaves out is not lost: each folder with a mark `nightly` or `whole` has a suite at night."""
    marked = {
        path.parent.name
        for path in (ROOT / "integration_tests").glob("*/test_*.py")
        if re.search(
            r"mark\.(nightly|whole)|from tests\.doses import .*(cases|case_rows|pairs)", path.read_text()
        )
    }
    assert marked
    assert marked <= {Path(arguments[0]).name for arguments in NIGHTLY.values()}
    of_marked = [one for one in SUITES.values() if folders_of(one) & marked]
    assert all("not nightly" in arguments[-1] for arguments in of_marked)


def test_each_test_is_in_the_daily_or_the_nightly_run() -> None:
    """Whatever marks a test has, a suite of its folder picks it; all of dbt's classes are a command of their own."""
    at_night = [*NIGHTLY.values(), ["integration_tests/conformance"]]
    assert (
        "test-conformance"
        in (ROOT / "Makefile").read_text().partition("\ntest-nightly:")[2].partition("\n\n")[0]
    )
    for folder in {"tests"}.union(*map(folders_of, SUITES.values())):
        suites = [one for one in (*SUITES.values(), *at_night) if folder in {*folders_of(one), one[0]}]
        for marks in product((False, True), repeat=3):
            of_test = dict(zip(("nightly", "whole", "slow"), marks, strict=True))
            assert any(_picks(arguments, of_test) for arguments in suites), (folder, of_test)


def _picks(arguments: list[str], marks: Mapping[str, bool]) -> bool:
    """Whether pytest's -m of a suite lets a test with these marks run."""
    asked = arguments[arguments.index("-m") + 1] if "-m" in arguments else "True"
    return bool(eval(asked, {}, dict(marks)))


@pytest.mark.parametrize(
    ("paths", "nightly", "interpreted"),
    [
        (["adapter"], False, True),
        (["spark/test_source.py", "kafka"], False, True),
        (["adapter"], True, False),
        (["docs"], False, True),
        ([*TOGETHER], False, True),
        (["adapter", "interop"], False, False),
        (["interop"], False, False),
        ([""], False, False),
        ([], False, False),
    ],
)
def test_plans_are_interpreted_in_suites_of_results_by_day(
    paths: list[str], *, nightly: bool, interpreted: bool
) -> None:
    """A process that also runs other engines has the settings of users, and so has the whole night."""
    options = java_options([ROOT / "integration_tests" / one for one in paths], nightly=nightly)
    assert ("codegen" in " ".join(options)) is interpreted


def test_suites_by_name_get_the_seed() -> None:
    """Names pick among the suites of their own run; order and examples come from its seed."""
    seeds = ["--randomly-seed=7", "--hypothesis-seed=7"]
    assert set(pick_suites(["interop", "together"], "7", is_nightly=False)) == {"interop", "together"}
    assert list(pick_suites(["kills", "together"], "7", is_nightly=True)) == ["kills"]
    assert pick_suites([], "7", is_nightly=True) == {name: [*one, *seeds] for name, one in NIGHTLY.items()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_counts_and_output_of_each_suite(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], jobs: int
) -> None:
    """A failed test, a skipped one and a suite without tests are counted; what a suite says stands in one piece; a
    suite's processor time is read.
    """
    (tmp_path / "test_a.py").write_text(
        "import pytest\ndef test_x(): pass\n@pytest.mark.skip\ndef test_s(): pass\n"
    )
    (tmp_path / "test_b.py").write_text("def test_y(): assert 0, 'why it failed'\n")
    (tmp_path / "test_c.py").write_text("")
    plain = ["-p", "no:randomly", "-p", "no:cacheprovider"]
    suites = {name: [str(tmp_path / f"test_{name}.py"), *plain] for name in "abc"}
    outcomes = run_suites(suites, jobs)
    assert [(o.name, o.passed, o.failed, o.skipped) for o in outcomes] == [
        ("a", 1, 0, 1), ("b", 0, 1, 0), ("c", 0, 1, 0)
    ]  # fmt: skip
    assert outcomes[0].processor > 0
    (failure,) = outcomes[1].failures
    assert "test_b::test_y: AssertionError: why it failed" in failure
    shown = capfd.readouterr().out.split("\n=== ")
    assert sorted(piece[0] for piece in shown[1:]) == ["a", "b", "c"]
    assert "why it failed" in next(piece for piece in shown if piece.startswith("b"))


def test_suites_that_wait_run_one_by_one_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two suites with brokers among three at a time would leave a core idle."""
    begun, both_compute = [], threading.Barrier(2)

    def run_suite(name: str, arguments: list[str], together: bool) -> Outcome:
        assert together
        assert not arguments
        assert not {"kafka g-z", "kafka a-f"} <= set(begun), "both at a time"
        begun.append(name)
        if name in {"adapter", "unit"}:
            both_compute.wait(60)
        begun.remove(name)
        return Outcome(name, 1, 0, 0, 0.0)

    monkeypatch.setattr(run, "_run_suite", run_suite)
    names = ["kafka g-z", "kafka a-f", "adapter", "unit"]
    assert [one.name for one in run_suites({name: [] for name in names}, 2)] == names


def test_a_failed_command_is_shown_by_the_end_of_its_output(tmp_path: Path) -> None:
    """Its message begins with what went well; the summary is all that a cut log shows."""
    lines = "\\n".join(["as it began", *(f"step {number}" for number in range(100)), "why it failed"])
    (tmp_path / "test_long.py").write_text(f'def test_x():\n    assert False, "{lines}"\n')
    (outcome,) = run_suites({"long": [str(tmp_path), "-p", "no:randomly"]}, 1)
    (failure,) = outcome.failures
    first, *rest = failure.splitlines()
    assert first.endswith("test_x: AssertionError: as it began")
    assert rest[0].strip() == "… 90 lines"
    assert rest[-2].strip() == "why it failed"
    assert len(rest) == 13


def test_kept_durations_decide_the_order_of_suites(tmp_path: Path) -> None:
    """By hand while a suite has no figure; suites that did not run keep theirs; a damaged file costs the order."""
    path = tmp_path / "build" / "durations.json"
    names = ("a", "b", "c")
    assert order_of(names, read_kept(path)) == names
    keep(path, {"a": (1.0, 2.0, {"t": 0.5}), "b": (3.0, 0.0, {})})
    assert order_of(names, read_kept(path)) == names
    assert order_of(names[:2], read_kept(path)) == ("b", "a")
    keep(path, {"c": (2.0, 9.0, {})})
    assert order_of(names, read_kept(path)) == ("b", "c", "a")
    for damaged in ("{", "[]", '{"a": 1}'):
        path.write_text(damaged)
        assert read_kept(path) == {}
        keep(path, {"b": (3.0, 0.0, {})})
        assert json.loads(path.read_text())["b"]["seconds"] == 3.0
