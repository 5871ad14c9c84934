"""versions: which rows meet and in which order; with deduplicate, one row per key or the keys that are ties."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.key_order import order_frame
from tablestore_engine.lsm.key_versions import sort_versions, without_update_before
from tablestore_engine.lsm.merge import merge_versions
from tablestore_engine.lsm.merge_engine_registry import Deduplicate
from tablestore_engine.lsm.sequence_field import SequenceOrder, stored_newer


def _keys(*values: object):
    return order_frame([pa.array(values)])


def _sequence(*values: object, descending: bool = False) -> SequenceOrder:
    return SequenceOrder.of(order_frame([pa.array(values, pa.int64())]), descending=descending)


def _resolved(keys, sequence: SequenceOrder | None) -> tuple[list[int], list[int]]:
    """Row numbers of the winners and of the ties."""
    versions = sort_versions(keys, np.zeros(keys.height, dtype=bool), sequence)
    winners = merge_versions(Deduplicate(), versions).winners
    return winners.tolist(), Deduplicate().find_ties(versions).tolist()


def test_unique_rows_are_only_sorted() -> None:
    """Without repeats the winners are all rows in key order."""
    assert _resolved(_keys(3, 1, 2), None) == ([1, 2, 0], [])


def test_repeats_without_order_are_ties() -> None:
    """Each repeated key is named once when nothing orders its rows."""
    _, tied = _resolved(_keys(2, 1, 2, 2, 3, 3), None)
    assert sorted(tied) == [3, 5]


def test_the_last_to_arrive_is_the_newest() -> None:
    """Where nothing else orders rows of a key, the one given last wins."""
    assert _resolved(_keys(2, 1, 2, 2), None)[0] == [1, 3]


def test_sequence_picks_the_newest() -> None:
    """The largest sequence value wins whatever the arrival; NULL loses."""
    assert _resolved(_keys(1, 1, 1, 2, 2), _sequence(5, 9, None, None, 0)) == ([1, 4], [])


def test_descending_sequence_picks_the_smallest() -> None:
    """With descending order the smallest value is newest, and NULL still loses."""
    assert _resolved(_keys(1, 1, 1), _sequence(5, 9, None, descending=True))[0] == [0]


def test_only_ties_for_the_first_place_count() -> None:
    """Two losers with equal sequence are no tie; two winners are."""
    assert _resolved(_keys(1, 1, 1), _sequence(1, 1, 2))[1] == []
    assert _resolved(_keys(1, 1, 1), _sequence(1, 2, 2))[1] == [2]


def test_newer_stored_rows() -> None:
    """A stored row is newer only if strictly so; NULL is older than everything in both directions."""
    mine, theirs = (1, 2, None, 3, None), (2, 2, 1, None, None)
    assert stored_newer(_sequence(*mine), _sequence(*theirs)).tolist() == [True, False, True, False, False]
    down = stored_newer(_sequence(*mine, descending=True), _sequence(*theirs, descending=True))
    assert down.tolist() == [False, False, True, False, False]


def test_second_sequence_column_decides_ties_of_the_first() -> None:
    """Several sequence columns compare in order."""
    mine = SequenceOrder.of(order_frame([pa.array([1, 1]), pa.array(["b", "a"])]), descending=False)
    theirs = SequenceOrder.of(order_frame([pa.array([1, 1]), pa.array(["a", "b"])]), descending=False)
    assert stored_newer(mine, theirs).tolist() == [False, True]


def test_update_before_rows() -> None:
    """A -U row beside another row of its key is dropped; alone it stays and deletes."""
    keep = without_update_before(_keys(1, 1, 2), np.array([1, 2, 1], dtype=np.int8))
    assert keep.tolist() == [False, True, True]
