"""Which strategy a run takes: deltas, affected keys or all rows, by sizes and by what earlier runs took."""

from __future__ import annotations

import pytest

from dbt.adapters.tablestore.config.changed_keys_config import Way
from dbt.adapters.tablestore.plan.run_costs import (
    AGE,
    PastRun,
    RowCounts,
    RunHistory,
    most_keys,
)

DELTAS, KEYS, WHOLE = Way
FOLLOWING = (KEYS, WHOLE)
FIRST = (WHOLE, 1_000_000, 2.0)
Ran = tuple[Way, int, float]


def _history(*runs: Ran, keys: int = 0) -> RunHistory:
    """Runs one after the other, each by its begin and its end."""
    history, now = RunHistory(), 1_000
    for way, work, seconds in runs:
        begun = RunHistory.read(history.beginning(way, work, now, keys).text())
        now += round(seconds * 1000)
        history = begun.ended(now)
    return history


def _way(
    history: RunHistory, changed: int, total: int = 1_000_000, possible: tuple[Way, ...] = FOLLOWING
) -> Way:
    return history.choose(possible, RowCounts(changed, total, joined=0, groups=1_000)).way


def test_changes_are_followed_until_that_was_slow() -> None:
    """RowCounts say what nobody has tried."""
    slow = (KEYS, 500, 90.0)
    assert _way(_history(FIRST), 500) == KEYS
    assert _way(_history(FIRST, (KEYS, 500, 0.5)), 500) == KEYS
    assert _way(_history(FIRST, slow, slow), 500) == WHOLE


def test_deltas_are_followed_until_another_strategy_is_cheaper() -> None:
    """A strategy that nobody has tried is tried as soon as its sizes say that it is cheaper."""
    slow, slower = (DELTAS, 500, 0.6), (DELTAS, 500, 30.0)
    assert _way(_history(FIRST), 500, possible=tuple(Way)) == DELTAS
    assert _way(_history(FIRST, slow, slow), 500, possible=tuple(Way)) == DELTAS
    assert _way(_history(FIRST, FIRST, slower, slower), 500, possible=tuple(Way)) != DELTAS
    assert _way(_history(FIRST, slower, slower), 500, possible=(DELTAS, KEYS)) == DELTAS  # by its config
    tried = _history(FIRST, slower, slower, *[(KEYS, 500, 9.0)] * 2)
    assert _way(tried, 500, possible=tuple(Way)) == WHOLE


def test_deltas_of_a_large_join_are_estimated_by_the_tables_that_they_read() -> None:
    """A join with nearly all rows takes nearly what all rows take."""
    few, many = (RowCounts(10, 1_000_000, joined) for joined in (1_000, 990_000))
    seconds = [_history(FIRST).choose(tuple(Way), sizes).seconds[DELTAS] for sizes in (few, many)]
    assert seconds[0] < 0.25 < 1.4 < seconds[1]


def test_keys_that_follow_from_parts_of_the_query_are_estimated_by_their_tables() -> None:
    """A total that is evaluated before and after its changes reads its table."""
    few, many = (RowCounts(10, 1_000_000, evaluated=rows) for rows in (0, 900_000))
    seconds = [_history(FIRST).choose(FOLLOWING, sizes).seconds[KEYS] for sizes in (few, many)]
    assert seconds[0] < 1.5 * seconds[0] < seconds[1]


def test_the_faster_strategy_is_taken_where_both_have_run() -> None:
    """Also where it is faster by a fifth alone."""
    assert _way(_history(FIRST, *[(WHOLE, 1_000_000, 1.0), (KEYS, 500, 0.8)] * 2), 500) == KEYS
    assert _way(_history(FIRST, *[(WHOLE, 1_000_000, 0.8), (KEYS, 500, 1.0)] * 2), 500) == WHOLE


def test_a_busy_machine_does_not_change_the_order_of_strategies() -> None:
    """Runs are compared with those made at about the same time: half of the seconds say nothing here."""
    quiet = [(WHOLE, 1_000_000, 1.0), (KEYS, 500, 1.4)] * 2
    busy = [(WHOLE, 1_000_000, 3.0), (KEYS, 500, 4.2)]
    assert _way(_history(FIRST, *quiet, *busy), 500) == WHOLE


def test_all_rows_grow_with_the_inputs() -> None:
    """The first build of a table of a thousand rows says little of one of a billion."""
    history = _history(FIRST, FIRST, (KEYS, 500, 9.0), (KEYS, 500, 9.0))
    assert _way(history, 500, total=1_000_000) == WHOLE
    assert _way(history, 500, total=10_000_000) == KEYS


def test_runs_with_many_changed_rows_say_nothing_of_few() -> None:
    """Fewer rows may be much faster: that is tried."""
    history = _history(FIRST, FIRST, (KEYS, 90_000, 9.0), (KEYS, 90_000, 9.0))
    assert _way(history, 50_000) == WHOLE
    assert _way(history, 50) == KEYS


def test_runs_with_few_changed_rows_are_a_lower_bound_of_many() -> None:
    """More rows are not faster."""
    assert _way(_history(FIRST, FIRST, (KEYS, 50, 9.0), (KEYS, 50, 9.0)), 50_000) == WHOLE


def test_an_old_run_is_forgotten_so_that_its_strategy_is_tried_again() -> None:
    """What was slow on a busy day is not avoided for ever."""
    slow = [(KEYS, 500, 90.0)] * 2
    young, old = _history(*slow, *[FIRST] * (AGE - 1)), _history(*slow, *[FIRST] * AGE)
    assert (_way(young, 500), _way(old, 500)) == (WHOLE, KEYS)


def test_a_slow_run_does_not_count_beside_a_faster_one() -> None:
    """The first run of a session loads classes."""
    assert _way(_history(FIRST, FIRST, (KEYS, 500, 20.0), (KEYS, 500, 1.0)), 500) == KEYS


def test_one_slow_run_is_repeated_where_sizes_say_that_it_should_be_fast() -> None:
    """A first build that waited for Spark to start does not keep a small table from being computed in full."""
    build, keys = (WHOLE, 1_000, 9.0), (KEYS, 1, 3.0)
    assert _way(_history(build, keys, keys), 1, total=1_000) == WHOLE
    assert _way(_history(build, build, keys, keys), 1, total=1_000) == KEYS


def test_strategies_that_would_affect_too_many_keys_are_not_tried_again() -> None:
    """Runs remember how many keys were affected when they computed all rows."""
    stopped = (KEYS, 500, 1.0)
    many, few = (_history(FIRST, stopped, keys=keys).choose(FOLLOWING, RowCounts(500, 1_000_000, 0, 1_000))
                 for keys in (most_keys(1_000) + 1, 10))  # fmt: skip
    assert (many.way, many.keys, few.way, few.keys) == (WHOLE, 601, KEYS, 10)


def test_the_reason_says_what_the_choice_is_based_on() -> None:
    """RowCounts, runs, both, or nothing to choose from; six words at most."""
    sizes = RowCounts(500, 1_000_000)
    both = _history(FIRST, (KEYS, 500, 0.5))
    found = [
        RunHistory().choose(FOLLOWING, sizes).reason,
        _history(FIRST).choose(FOLLOWING, sizes).reason,
        both.choose(FOLLOWING, sizes).reason,
        both.choose((KEYS,), sizes).reason,
        both.choose((DELTAS, KEYS), sizes).reason,
    ]
    assert found == [
        "cheapest by sizes", "cheapest by earlier runs and sizes", "cheapest by earlier runs",
        "the only strategy that it has", "as its config asks",
    ]  # fmt: skip


def test_the_history_stays_small() -> None:
    """It is a property of every commit."""
    history = _history(*[(KEYS, 10**digits, 1.0) for _ in range(100) for digits in range(9)])
    assert len(history.runs) <= 3 * 9
    assert len(history.text()) < 1_000


def test_a_killed_run_leaves_no_seconds() -> None:
    """Its commit never came: the next run reads the history of the commit before."""
    before = RunHistory.read(_history((WHOLE, 10, 2.0)).beginning(KEYS, 5, 50_000).text())
    assert before.ended(51_000).beginning(KEYS, 5, 90_000).begun == PastRun(KEYS, 5, 0.0, 3)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "[]",
        "[[],null]",
        "[[[1]],null,0]",
        '[[],["x"],0]',
        "[3,null,0]",
        "[[[0,5,1.5,2]],null,7]",
    ],
)
def test_what_cannot_be_read_is_no_history(text: str | None) -> None:
    """A property of another version, or of a hand."""
    assert RunHistory.read(text) == RunHistory()


def test_a_run_reads_back_as_it_was_written() -> None:
    """Also the one that has begun."""
    history = _history((WHOLE, 10, 2.0), (DELTAS, 5, 0.25), keys=3).beginning(KEYS, 7, 123, 4)
    assert RunHistory.read(history.text()) == history
