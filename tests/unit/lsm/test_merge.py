"""merge: what is written, replaced, counted and told to the changelog."""

from __future__ import annotations

import numpy as np

from tablestore_engine.lsm.merge import changelog_rows, decide


def _mask(*bits: int) -> np.ndarray:
    return np.array(bits, dtype=bool)


def test_every_case_of_a_key() -> None:
    """Insert, update, delete, delete of an absent key: rows, replaced hits, counts and kinds in key order."""
    deletes, hits = _mask(0, 0, 1, 1), np.array([1, 2])
    made = decide(deletes, hits, stored_newer=None, identical=None)
    assert (made.written.tolist(), made.replaced.tolist()) == ([0, 1], [0, 1])
    assert (made.inserted, made.updated, made.deleted, made.unchanged) == (1, 1, 1, 0)
    log = changelog_rows(made, deletes, hits)
    told = list(zip(log.kinds.tolist(), log.from_old.tolist(), log.rows.tolist(), strict=True))
    assert told == [(0, False, 0), (1, True, 0), (2, False, 1), (3, True, 1)]


def test_newer_stored_row_stays() -> None:
    """An older incoming row, or an older delete, changes nothing and is counted as unchanged."""
    made = decide(_mask(0, 1), np.array([0, 1]), stored_newer=_mask(1, 1), identical=None)
    assert (made.written.tolist(), made.replaced.tolist(), made.unchanged) == ([], [], 2)


def test_identical_row_stays_but_a_delete_of_it_does_not() -> None:
    """A row equal to the stored one is left alone; a delete whose values equal the stored row still deletes."""
    made = decide(_mask(0, 1), np.array([0, 1]), stored_newer=None, identical=_mask(1, 1))
    assert (made.written.tolist(), made.replaced.tolist()) == ([], [1])
    assert (made.unchanged, made.deleted) == (1, 1)
