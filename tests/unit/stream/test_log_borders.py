"""Which places of a log a reader may begin at, stand on and end at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tablestore_engine.log.followed_log import LogBorder
from tablestore_engine.stream.log_borders import BorderList, distance, farthest, is_at_or_behind


def border(snapshot_id: int, *offsets: int, exact: bool = True, begins: bool = False) -> LogBorder:
    """Offsets of partitions 0, 1, …"""
    return LogBorder(snapshot_id, dict(enumerate(offsets)), exact, begins)


CLAIM = border(0, 0, 0, begins=True)
KNOWN = (CLAIM, border(1, 4, 2), border(3, 9, 2, exact=False), border(5, 12, 7))


def quiet(_: int, __: int) -> bool:
    """No snapshot changed rows."""
    return False


def busy(after: int, until: int) -> bool:
    """Every snapshot did."""
    return after < until


def test_places() -> None:
    """A partition that is not named is at its beginning."""
    assert is_at_or_behind({0: 3}, {0: 3, 1: 0})
    assert not is_at_or_behind({0: 3}, {0: 3, 1: 1})
    assert farthest({0: 3, 1: 1}, {1: 0, 2: 5}) == {0: 3, 1: 1, 2: 5}
    assert distance({0: 3, 1: 9}, {0: 5, 1: 7, 2: 1}) == 3


def test_a_beginning_hides_what_lies_before() -> None:
    """Borders before it are no base and no start, and it has a name of its own."""
    borders = BorderList((*KNOWN, border(2, 20, 20, begins=True), border(3, 22, 20)))
    assert [one.snapshot_id for one in borders.exact] == [2, 3]
    assert borders.beginning != BorderList(KNOWN).beginning
    assert borders.find_base({0: 12, 1: 7}, lambda _: True) is None


def test_the_base_is_exact_and_there() -> None:
    """The newest at or before the place, of a snapshot that has not expired."""
    borders = BorderList(KNOWN)
    assert borders.find_base({0: 10, 1: 7}, lambda _: True) == KNOWN[1]
    assert borders.find_base({0: 12, 1: 7}, lambda _: True) == KNOWN[3]
    assert borders.find_base({0: 12, 1: 7}, lambda number: number < 5) == KNOWN[1]
    assert borders.find_base({0: 12, 1: 7}, lambda number: number > 5) is None


def test_a_start_behind_a_snapshot() -> None:
    """Of an ordered log at any snapshot, leaving out what is known; else only where nothing changed since a border."""
    borders = BorderList(KNOWN)
    ordered = borders.find_start(4, is_ordered=True, changes_between=busy)
    assert ordered is not None
    assert (ordered.place, ordered.after) == ({0: 4, 1: 2}, 4)
    assert borders.find_start(4, is_ordered=False, changes_between=busy) is None
    same = borders.find_start(4, is_ordered=False, changes_between=quiet)
    assert same is not None
    assert same.place == {0: 4, 1: 2}
    assert BorderList(KNOWN[2:]).find_start(4, is_ordered=True, changes_between=quiet) is None


def test_a_stop() -> None:
    """The border of the snapshot; one without changes ends at the border before; one without a border at the next."""
    borders = BorderList(KNOWN)
    assert borders.find_stop(5, changes_between=busy) == KNOWN[3]
    assert borders.find_stop(2, changes_between=busy) == KNOWN[3]
    assert borders.find_stop(2, changes_between=quiet) == KNOWN[1]
    assert borders.find_stop(6, changes_between=busy) is None
    assert borders.find_stop(6, changes_between=quiet) == KNOWN[3]


def test_a_step_on_the_way_to_a_place() -> None:
    """Over borders that are not exact too, as many as fit, the next one at least; then to the place; None there."""
    borders = BorderList(KNOWN)
    assert borders.find_step({}, {0: 20, 1: 7}, 100) == {0: 20, 1: 7}
    assert borders.find_step({}, {0: 20, 1: 7}, 11) == KNOWN[2].place
    assert borders.find_step({}, {0: 20, 1: 7}, 1) == KNOWN[1].place
    assert borders.find_step({}, {0: 3}, 1) == {0: 3}
    assert borders.find_step(KNOWN[3].place, {0: 20, 1: 7}, 1) == {0: 20, 1: 7}
    assert borders.find_step({0: 20, 1: 7}, {0: 20, 1: 7}, 1) is None


def test_messages_of_all_partitions_by_their_borders() -> None:
    """A message before a border has a smaller number than one behind it, also in a partition that came later."""
    borders = BorderList((*KNOWN, border(6, 13, 7, 2)))
    partitions, offsets = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([3, 4, 12, 1, 6, 0, 2])
    assert borders.snapshots_of(partitions, offsets).tolist() == [1, 3, 6, 1, 5, 6, 7]


def test_the_schema_of_messages() -> None:
    """That of the border behind them; today's where it does not say, and behind all borders."""
    said = (
        CLAIM,
        replace(border(1, 4, 2), schema_id=0),
        border(2, 6, 2),
        replace(border(3, 9, 9), schema_id=2),
    )
    partitions, offsets = np.array([0, 0, 0, 1, 1]), np.array([3, 5, 8, 1, 9])
    assert BorderList(said).schemas_of(partitions, offsets, 7).tolist() == [0, 7, 2, 0, 7]
    assert BorderList(said).schemas_of(partitions[:0], offsets[:0], 7).tolist() == []
