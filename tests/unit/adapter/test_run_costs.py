"""Whether a run follows its changes or computes all rows, by what earlier runs took."""

from __future__ import annotations

import pytest

from dbt.adapters.tablestore.plan.run_costs import AGE, FACTOR, MARGIN_SECONDS, PastRun, RunHistory

WHOLE, CHANGES = True, False
FIRST = (WHOLE, 1_000_000, 2.0)


def _history(*runs: tuple[bool, int, float]) -> RunHistory:
    """Runs one after the other, each by its begin and its end."""
    history, now = RunHistory(), 1_000
    for is_whole, work, seconds in runs:
        begun = RunHistory.read(history.beginning(work, now, is_whole=is_whole).text())
        now += round(seconds * 1000)
        history = begun.ended(now)
    return history


def _is_whole(history: RunHistory, changed: int, total: int = 1_000_000) -> bool:
    return history.estimate(changed, total).is_whole_cheaper


def test_changes_are_followed_until_that_was_slow() -> None:
    """Nothing is known of the first run after the first build."""
    assert not _is_whole(_history(FIRST), 500)
    assert not _is_whole(_history(FIRST, (CHANGES, 500, 0.5)), 500)
    assert _is_whole(_history(FIRST, (CHANGES, 500, 9.0)), 500)


def test_all_rows_are_computed_where_they_save_more_than_the_margin() -> None:
    """Noise of a machine does not change the way."""
    limit = 2.0 * FACTOR + MARGIN_SECONDS
    assert not _is_whole(_history(FIRST, (CHANGES, 500, limit)), 500)
    assert _is_whole(_history(FIRST, (CHANGES, 500, limit + 0.01)), 500)


def test_all_rows_grow_with_the_inputs() -> None:
    """The first build of a table of a thousand rows says little of one of a billion."""
    history = _history(FIRST, (CHANGES, 500, 9.0))
    assert _is_whole(history, 500, total=1_000_000)
    assert not _is_whole(history, 500, total=10_000_000)


def test_runs_with_many_changed_rows_say_nothing_of_few() -> None:
    """Fewer rows may be much faster: that is tried."""
    history = _history(FIRST, (CHANGES, 90_000, 9.0))
    assert _is_whole(history, 50_000)
    assert not _is_whole(history, 50)


def test_runs_with_few_changed_rows_are_a_lower_bound_of_many() -> None:
    """More rows are not faster."""
    assert _is_whole(_history(FIRST, (CHANGES, 50, 9.0)), 50_000)


def test_an_old_run_is_forgotten_so_that_its_way_is_tried_again() -> None:
    """What was slow on a busy day is not avoided for ever."""
    young = _history(FIRST, (CHANGES, 500, 9.0), *[FIRST] * (AGE - 1))
    old = _history(FIRST, (CHANGES, 500, 9.0), *[FIRST] * AGE)
    assert (_is_whole(young, 500), _is_whole(old, 500)) == (True, False)


def test_a_slow_run_does_not_count_beside_a_faster_one() -> None:
    """The first run of a session loads classes."""
    assert not _is_whole(_history(FIRST, (CHANGES, 500, 20.0), (CHANGES, 500, 1.0)), 500)


def test_the_history_stays_small() -> None:
    """It is a property of every commit."""
    history = _history(*[(CHANGES, 10**digits, 1.0) for _ in range(100) for digits in range(9)])
    assert len(history.runs) <= 3 * 9
    assert len(history.text()) < 1_000


def test_a_killed_run_leaves_no_seconds() -> None:
    """Its commit never came: the next run reads the history of the commit before."""
    before = RunHistory.read(_history((WHOLE, 10, 2.0)).beginning(5, 50_000, is_whole=False).text())
    assert before.ended(51_000).beginning(5, 90_000, is_whole=False).begun == PastRun(CHANGES, 5, 0.0, 3)


@pytest.mark.parametrize(
    "text", [None, "", "{}", "[]", "[[],null]", "[[[1]],null,0]", '[[],["x"],0]', "[3,null,0]"]
)
def test_what_cannot_be_read_is_no_history(text: str | None) -> None:
    """A property of another version, or of a hand."""
    assert RunHistory.read(text) == RunHistory()


def test_a_run_reads_back_as_it_was_written() -> None:
    """Also the one that has begun."""
    history = _history((WHOLE, 10, 2.0), (CHANGES, 5, 0.25)).beginning(7, 123, is_whole=False)
    assert RunHistory.read(history.text()) == history
