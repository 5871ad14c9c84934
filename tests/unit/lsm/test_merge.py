"""merge: what is written, replaced, counted and told to the changelog when a batch meets the stored rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.merge import changelog_rows, decide, merge_with_stored
from tablestore_engine.lsm.merge_engine_registry import Deduplicate
from tablestore_engine.lsm.merge_records import IncomingRecords, MergeResult, StoredRecords


def _mask(*bits: int) -> np.ndarray:
    return np.array(bits, dtype=bool)


def _result(
    deletes: np.ndarray, hits: list[int], newer: np.ndarray | None = None, gives_way: int = 0
) -> MergeResult:
    """A batch of so many rows against the stored rows of these; the first `gives_way` of them are no versions."""
    rows = pa.table({"v": list(range(len(deletes)))})
    stored = StoredRecords(np.array(hits), None, newer, np.arange(len(hits)) < gives_way)
    return merge_with_stored(Deduplicate(), IncomingRecords(rows, deletes), stored)


def test_every_case_of_a_key() -> None:
    """Insert, update, delete, delete of an absent key: rows, replaced hits, counts and kinds in key order."""
    result = _result(_mask(0, 0, 1, 1), [1, 2])
    made = decide(result)
    assert (made.written.tolist(), made.replaced.tolist()) == ([0, 1], [0, 1])
    assert (made.inserted, made.updated, made.deleted, made.unchanged) == (1, 1, 1, 0)
    log = changelog_rows(result, made)
    told = list(zip(log.kinds.tolist(), log.from_old.tolist(), log.rows.tolist(), strict=True))
    assert told == [(0, False, 0), (1, True, 0), (2, False, 1), (3, True, 1)]


def test_newer_stored_row_stays() -> None:
    """An older incoming row, or an older delete, changes nothing and is counted as unchanged."""
    made = decide(_result(_mask(0, 1), [0, 1], _mask(1, 1)))
    assert (made.written.tolist(), made.replaced.tolist(), made.unchanged) == ([], [], 2)


def test_a_newer_stored_row_that_gives_way_does_not_stay() -> None:
    """What an overwrite takes is no version: the sequence field protects only the second row."""
    made = decide(_result(_mask(0, 0), [0, 1], _mask(1, 1), gives_way=1))
    assert (made.written.tolist(), made.replaced.tolist(), made.unchanged) == ([0], [0], 1)


def test_identical_row_stays_but_a_delete_of_it_does_not() -> None:
    """A row equal to the stored one is left alone; a delete whose values equal the stored row still deletes."""
    made = decide(_result(_mask(0, 1), [0, 1]), identical=_mask(1, 1))
    assert (made.written.tolist(), made.replaced.tolist()) == ([], [1])
    assert (made.unchanged, made.deleted) == (1, 1)
