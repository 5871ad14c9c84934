"""Markers of the shards of a log → its boundaries, as those need them who follow the table. Pure.

Rule       the log is at snapshot S where each shard is: behind its newest whole marker up to S. That is a boundary when
           every shard has got so far, since whatever comes behind such a marker is of a later snapshot: each shard
           writes a marker for every snapshot that changed rows, also where none of them are its own.
INVARIANT  nothing from before the newest beginning of a shard counts. Shards that begin at different snapshots (a reset
           that died in between) have no boundary before the latest of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from tablestore_engine.log.followed_log import LogBoundary
from tablestore_engine.log.kafka.commit_marker import CommitMarker, plan_progress


def to_boundaries(markers: Iterable[CommitMarker], topic_id: str) -> tuple[LogBoundary, ...]:
    """Of the markers of this very topic; a chunk of a snapshot is none."""
    return tuple(
        LogBoundary(
            snapshot_id=marker.snapshot_id,
            place={partition: following for partition, (_, following) in marker.offsets.items()},
            is_exact=not marker.unchecked,
            begins=not marker.commit,
            schema_id=marker.schema_id if marker.commit else None,
        )
        for marker in markers
        if marker.last and marker.topic_id == topic_id
    )


def merge_shards(shards: Sequence[Sequence[CommitMarker]], topic_id: str) -> tuple[LogBoundary, ...]:
    """The markers of each shard, oldest first → boundaries since the newest beginning, in the order of snapshots."""
    parts = [to_boundaries(_since_beginning(markers), topic_id) for markers in shards]
    if not all(parts):
        return ()
    first = max(boundaries[0].snapshot_id for boundaries in parts)
    reached = min(plan_progress(markers[-1]).published for markers in shards)
    ids = {boundary.snapshot_id for boundaries in parts for boundary in boundaries}
    return tuple(
        LogBoundary(
            number,
            _place_of(parts, number),
            begins=number == first,
            schema_id=None if number == first else _schema_of(parts, number),
        )
        for number in sorted(ids)
        if first <= number <= reached
    )


def _since_beginning(markers: Sequence[CommitMarker]) -> Sequence[CommitMarker]:
    starts = [number for number, one in enumerate(markers) if one.last and not one.commit]
    return markers[starts[-1] :] if starts else markers


def _schema_of(parts: Sequence[Sequence[LogBoundary]], snapshot_id: int) -> int | None:
    said = (one.schema_id for boundaries in parts for one in boundaries if one.snapshot_id == snapshot_id)
    return next((one for one in said if one is not None), None)


def _place_of(parts: Sequence[Sequence[LogBoundary]], snapshot_id: int) -> dict[int, int]:
    place: dict[int, int] = {}
    for boundaries in parts:
        at = bisect_right([one.snapshot_id for one in boundaries], snapshot_id)
        place |= boundaries[at - 1].place
    return place
