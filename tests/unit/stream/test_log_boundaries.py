"""Which places of a log a reader may begin at, stand on and end at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tablestore_engine.log.followed_log import LogBoundary
from tablestore_engine.stream.log_boundaries import BoundaryList, distance, farthest, is_at_or_behind


def boundary(snapshot_id: int, *offsets: int, exact: bool = True, begins: bool = False) -> LogBoundary:
    """Offsets of partitions 0, 1, …"""
    return LogBoundary(snapshot_id, dict(enumerate(offsets)), exact, begins)


CLAIM = boundary(0, 0, 0, begins=True)
KNOWN = (CLAIM, boundary(1, 4, 2), boundary(3, 9, 2, exact=False), boundary(5, 12, 7))


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
    """Boundaries before it are no base and no start, and it has a name of its own."""
    boundaries = BoundaryList((*KNOWN, boundary(2, 20, 20, begins=True), boundary(3, 22, 20)))
    assert [one.snapshot_id for one in boundaries.exact] == [2, 3]
    assert boundaries.beginning != BoundaryList(KNOWN).beginning
    assert boundaries.find_base({0: 12, 1: 7}, lambda _: True) is None


def test_the_base_is_exact_and_there() -> None:
    """The newest at or before the place, of a snapshot that has not expired."""
    boundaries = BoundaryList(KNOWN)
    assert boundaries.find_base({0: 10, 1: 7}, lambda _: True) == KNOWN[1]
    assert boundaries.find_base({0: 12, 1: 7}, lambda _: True) == KNOWN[3]
    assert boundaries.find_base({0: 12, 1: 7}, lambda number: number < 5) == KNOWN[1]
    assert boundaries.find_base({0: 12, 1: 7}, lambda number: number > 5) is None


def test_a_start_behind_a_snapshot() -> None:
    """Of an ordered log at any snapshot, without what is known; else only where nothing changed since a boundary."""
    boundaries = BoundaryList(KNOWN)
    ordered = boundaries.find_start(4, is_ordered=True, changes_between=busy)
    assert ordered is not None
    assert (ordered.place, ordered.after) == ({0: 4, 1: 2}, 4)
    assert boundaries.find_start(4, is_ordered=False, changes_between=busy) is None
    same = boundaries.find_start(4, is_ordered=False, changes_between=quiet)
    assert same is not None
    assert same.place == {0: 4, 1: 2}
    assert BoundaryList(KNOWN[2:]).find_start(4, is_ordered=True, changes_between=quiet) is None


def test_a_stop() -> None:
    """At the snapshot's boundary; without changes at the one before; without a boundary at the next one."""
    boundaries = BoundaryList(KNOWN)
    assert boundaries.find_stop(5, changes_between=busy) == KNOWN[3]
    assert boundaries.find_stop(2, changes_between=busy) == KNOWN[3]
    assert boundaries.find_stop(2, changes_between=quiet) == KNOWN[1]
    assert boundaries.find_stop(6, changes_between=busy) is None
    assert boundaries.find_stop(6, changes_between=quiet) == KNOWN[3]


def test_a_step_on_the_way_to_a_place() -> None:
    """Over boundaries that are not exact too, as many as fit, the next one at least; then to the place; None there."""
    boundaries = BoundaryList(KNOWN)
    assert boundaries.find_step({}, {0: 20, 1: 7}, 100) == {0: 20, 1: 7}
    assert boundaries.find_step({}, {0: 20, 1: 7}, 11) == KNOWN[2].place
    assert boundaries.find_step({}, {0: 20, 1: 7}, 1) == KNOWN[1].place
    assert boundaries.find_step({}, {0: 3}, 1) == {0: 3}
    assert boundaries.find_step(KNOWN[3].place, {0: 20, 1: 7}, 1) == {0: 20, 1: 7}
    assert boundaries.find_step({0: 20, 1: 7}, {0: 20, 1: 7}, 1) is None


def test_messages_of_all_partitions_by_their_boundaries() -> None:
    """A message before a boundary has a smaller number than one behind it, also in a partition that came later."""
    boundaries = BoundaryList((*KNOWN, boundary(6, 13, 7, 2)))
    partitions, offsets = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([3, 4, 12, 1, 6, 0, 2])
    assert boundaries.snapshots_of(partitions, offsets).tolist() == [1, 3, 6, 1, 5, 6, 7]


def test_the_schema_of_messages() -> None:
    """That of the boundary behind them; today's where it does not say, and behind all boundaries."""
    said = (
        CLAIM,
        replace(boundary(1, 4, 2), schema_id=0),
        boundary(2, 6, 2),
        replace(boundary(3, 9, 9), schema_id=2),
    )
    partitions, offsets = np.array([0, 0, 0, 1, 1]), np.array([3, 5, 8, 1, 9])
    assert BoundaryList(said).schemas_of(partitions, offsets, 7).tolist() == [0, 7, 2, 0, 7]
    assert BoundaryList(said).schemas_of(partitions[:0], offsets[:0], 7).tolist() == []
