"""What the log of a table begins with that gets it later: its first snapshot, its rows of today, or nothing."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.warehouse.write.target_schema import AddedLog, plan_log_start

_FULL, _LATEST = {"tablestore.log-start": "latest-full"}, {"tablestore.log-start": "latest"}


@pytest.mark.parametrize("there", [(), (1,), (1, 2, 3)])
def test_a_whole_history_may_get_a_log(there: tuple[int, ...]) -> None:
    """A table without a snapshot too."""
    assert plan_log_start({}, there, "d.t") == AddedLog(0, {})


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ((3, 4), "2 of 4 snapshots do not exist any more (the first that is missing is 1)"),
        ((1, 3), "1 of 3 snapshots does not exist any more (the first that is missing is 2)"),
    ],
)
def test_a_missing_snapshot_is_named(there: tuple[int, ...], said: str) -> None:
    """Expired at the beginning, or deleted in the middle; the way out is named."""
    with pytest.raises(FixRequest, match="TS1083") as caught:
        plan_log_start({}, there, "d.t")
    assert said in str(caught.value)
    assert "latest-full" in str(caught.value)


@pytest.mark.parametrize("there", [(4,), (3, 4), (1, 2, 3, 4)])
def test_a_log_may_begin_today(there: tuple[int, ...]) -> None:
    """Whatever has expired: with the rows of the newest snapshot as its first messages, or with what comes next."""
    assert plan_log_start(_FULL, there, "d.t") == AddedLog(3, {"tablestore.log-start-snapshot": "4"})
    assert plan_log_start(_LATEST, there, "d.t") == AddedLog(4, {})


@pytest.mark.parametrize("start", [_FULL, _LATEST])
def test_an_empty_table_has_nothing_to_begin_with(start: dict[str, str]) -> None:
    """All its snapshots are to come."""
    assert plan_log_start(start, (), "d.t") == AddedLog(0, {})
