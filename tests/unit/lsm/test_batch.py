"""batch: one row per key, by sequence field, or the keys that are ties."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.batch import SequenceOrder, newest_wins, resolve_batch, without_update_before
from tablestore_engine.lsm.key_order import order_frame


def _keys(*values: object):
    return order_frame([pa.array(values)])


def _sequence(*values: object, descending: bool = False) -> SequenceOrder:
    return SequenceOrder.of(order_frame([pa.array(values, pa.int64())]), descending=descending)


def test_unique_rows_are_only_sorted() -> None:
    """Without repeats the winners are all rows in key order."""
    found = resolve_batch(_keys(3, 1, 2), None)
    assert (found.winners.tolist(), found.tied.tolist()) == ([1, 2, 0], [])


def test_repeats_without_order_are_ties() -> None:
    """Each repeated key is named once when nothing orders its rows."""
    found = resolve_batch(_keys(2, 1, 2, 2, 3, 3), None)
    assert sorted(found.tied.tolist()) == [3, 5]


def test_last_wins_on_request() -> None:
    """With last_wins the row that arrived last is kept and nothing is a tie."""
    found = resolve_batch(_keys(2, 1, 2, 2), None, last_wins=True)
    assert (found.winners.tolist(), found.tied.tolist()) == ([1, 3], [])


def test_sequence_picks_the_newest() -> None:
    """The largest sequence value wins whatever the arrival; NULL loses."""
    found = resolve_batch(_keys(1, 1, 1, 2, 2), _sequence(5, 9, None, None, 0))
    assert (found.winners.tolist(), found.tied.tolist()) == ([1, 4], [])


def test_descending_sequence_picks_the_smallest() -> None:
    """With descending order the smallest value is newest, and NULL still loses."""
    found = resolve_batch(_keys(1, 1, 1), _sequence(5, 9, None, descending=True))
    assert found.winners.tolist() == [0]


def test_only_ties_for_the_first_place_count() -> None:
    """Two losers with equal sequence are no tie; two winners are."""
    assert resolve_batch(_keys(1, 1, 1), _sequence(1, 1, 2)).tied.tolist() == []
    assert resolve_batch(_keys(1, 1, 1), _sequence(1, 2, 2)).tied.tolist() == [2]


def test_newer_stored_rows() -> None:
    """A stored row is newer only if strictly so; NULL is older than everything in both directions."""
    mine, theirs = (1, 2, None, 3, None), (2, 2, 1, None, None)
    assert newest_wins(_sequence(*mine), _sequence(*theirs)).tolist() == [True, False, True, False, False]
    down = newest_wins(_sequence(*mine, descending=True), _sequence(*theirs, descending=True))
    assert down.tolist() == [False, False, True, False, False]


def test_second_sequence_column_decides_ties_of_the_first() -> None:
    """Several sequence columns compare in order."""
    mine = SequenceOrder.of(order_frame([pa.array([1, 1]), pa.array(["b", "a"])]), descending=False)
    theirs = SequenceOrder.of(order_frame([pa.array([1, 1]), pa.array(["a", "b"])]), descending=False)
    assert newest_wins(mine, theirs).tolist() == [False, True]


def test_update_before_rows() -> None:
    """A -U row beside another row of its key is dropped; alone it stays and deletes."""
    keep = without_update_before(_keys(1, 1, 2), np.array([1, 2, 1], dtype=np.int8))
    assert keep.tolist() == [False, True, True]
