"""The start rule over any history: it begins within it, or refuses, and never leaves out what was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.stream.startup_mode import History, Start, StartupMode, StartupRequest, pick_start

NOW = 1_000
FACTS = st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=6)  # (time, is it a fold)


def history(first: int, facts: list[tuple[int, bool]]) -> History:
    """Snapshots from `first` on."""
    known = dict(enumerate(facts, first))
    return History(tuple(known), lambda number: known[number][0], lambda number: known[number][1])


def begun(request: StartupRequest, past: History) -> Start | str:
    """Where, or the code that it is refused with."""
    try:
        return pick_start(request, past, now_ms=NOW, table="t")
    except (FixRequest, NotFound) as refused:
        return refused.code


@given(first=st.integers(1, 9), facts=FACTS, mode=st.sampled_from(list(StartupMode)), at=st.integers(-2, 20))
def test_a_start_lies_in_the_history(
    first: int, facts: list[tuple[int, bool]], mode: StartupMode, at: int
) -> None:
    """Rows are of a snapshot that is there; changes begin with one that is there, or with the next."""
    past = history(first, facts)
    request = StartupRequest(
        mode, at if "snapshot" in mode else None, at if mode == "from-timestamp" else None
    )
    found = begun(request, past)
    if isinstance(found, str):
        assert found in ("TS1332", "TS1333")
        assert "from-" in mode
    elif found.is_full:
        assert found.snapshot in past.ids
    else:
        assert found.snapshot in (*past.ids, past.ids[-1] + 1 if past.ids else 1)


@given(first=st.integers(1, 9), facts=FACTS, at=st.integers(-2, 20), full=st.booleans())
def test_a_snapshot_is_that_one_or_refused(
    first: int, facts: list[tuple[int, bool]], at: int, full: bool
) -> None:
    """Never another one near it."""
    past = history(first, facts)
    mode = StartupMode.FROM_SNAPSHOT_FULL if full else StartupMode.FROM_SNAPSHOT
    found = begun(StartupRequest(mode, at), past)
    newest = past.ids[-1] if past.ids else 0
    if at < 1 or at > newest + (not full):
        assert found == "TS1332"
    elif past.ids and at < first:
        assert found == "TS1333"
    else:
        assert found == Start(at, full)


@given(first=st.integers(1, 9), facts=FACTS, time=st.integers(0, 70))
def test_nothing_of_that_time_is_left_out(first: int, facts: list[tuple[int, bool]], time: int) -> None:
    """All snapshots of that time or later come, whatever their clocks; where some may have expired: TS1333."""
    past = history(first, facts)
    found = begun(StartupRequest(StartupMode.FROM_TIMESTAMP, timestamp_ms=time), past)
    wanted = [number for number in past.ids if facts[number - first][0] >= time]
    if past.ids and wanted and wanted[0] == first and first > 1:
        assert found == "TS1333"
    else:
        assert isinstance(found, Start)
        assert all(number >= found.snapshot for number in wanted)
        assert found.snapshot in (*wanted[:1], past.ids[-1] + 1 if past.ids else 1)


@given(first=st.integers(1, 9), facts=FACTS)
def test_modes_that_say_no_number(first: int, facts: list[tuple[int, bool]]) -> None:
    """latest leaves all out, earliest nothing, the full ones begin with the rows of the newest (fold)."""
    past = history(first, facts)
    found = {
        mode: begun(StartupRequest(mode), past)
        for mode in ("latest", "earliest", "latest-full", "compacted-full")
    }  # type: ignore[arg-type]
    if not facts:
        assert set(found.values()) == {Start(1, False)}
        return
    last = past.ids[-1]
    folds = [number for number in past.ids if facts[number - first][1]]
    assert found == {
        "latest": Start(last + 1, False),
        "earliest": Start(first, first > 1),
        "latest-full": Start(last, True),
        "compacted-full": Start(folds[-1] if folds else last, True),
    }


@pytest.mark.parametrize("time", [NOW + 1, -1])
def test_a_time_that_is_not_over(time: int) -> None:
    """Seconds and microseconds taken for milliseconds are noticed on one side at least."""
    assert (
        begun(StartupRequest(StartupMode.FROM_TIMESTAMP, timestamp_ms=time), history(1, [(1, False)]))
        == "TS1332"
    )
