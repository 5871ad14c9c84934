"""A log that a table gets later begins with its first snapshot, or not at all."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.warehouse.write.target_schema import check_history


@pytest.mark.parametrize("there", [(), (1,), (1, 2, 3)])
def test_a_whole_history_may_get_a_log(there: tuple[int, ...]) -> None:
    """A table without a snapshot too."""
    check_history(there, "d.t")


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ((3, 4), "2 of 4 snapshots do not exist any more (the first that is missing is 1)"),
        ((1, 3), "1 of 3 snapshots does not exist any more (the first that is missing is 2)"),
    ],
)
def test_a_missing_snapshot_is_named(there: tuple[int, ...], said: str) -> None:
    """Expired at the beginning, or deleted in the middle."""
    with pytest.raises(FixRequest, match="TS1083") as caught:
        check_history(there, "d.t")
    assert said in str(caught.value)
