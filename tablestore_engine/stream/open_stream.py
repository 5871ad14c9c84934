"""Begin a reader: from a stored position, from a consumer's progress, or by a mode.

Names      StreamRequest   all that can be asked of a reader
           open_stream     a table and a request → a TableStream
           NOW             `until`: the newest snapshot when the reader begins
Steps      position, else progress (unless it is to be ignored), else the start rule → checked against the table
INVARIANT  what cannot be read from its beginning is refused here, before the first row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.capability import check_readable
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.branch_stores import Parts
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.stream.change_source import ChangelogFiles
from tablestore_engine.stream.consumer_progress import ConsumerProgress
from tablestore_engine.stream.position import Part, Position, Seen, decode_position
from tablestore_engine.stream.snapshot_line import SnapshotLine
from tablestore_engine.stream.start_rule import History, Start, StartRequest, parse_request, pick_start
from tablestore_engine.stream.table_stream import Pace, TableStream

NOW = "now"


@dataclass(frozen=True)
class StreamRequest:
    """`start` None: as the table's `scan.mode` says; `ignore_progress` None: as the table says.

    `position` goes before a consumer's progress, and that before `start`.
    """

    start: StartRequest | None = None
    position: str | None = None
    consumer_id: str | None = None
    ignore_progress: bool | None = None
    until: int | str | None = None
    columns: Sequence[str] | None = None
    batch_rows: int | None = None
    pace: Pace = field(default_factory=Pace)


def open_stream(parts: Parts, request: StreamRequest) -> TableStream:
    """Raises TS1332, TS1333 (start), TS1334 to TS1338 (position), FixRequest TS1353 (bounds), TS1107 (consumer id),
    NotFound TS1110 (columns), TS1310 without a table, Unsupported TS1126.
    """
    check_readable(parts.latest_schema())
    line = SnapshotLine(parts)
    source = ChangelogFiles(parts, request.columns)
    progress = None
    if request.consumer_id is not None:
        progress = ConsumerProgress(parts.consumers, line, request.consumer_id)
    position = _begin(parts, request, progress)
    line.next_snapshot(position)
    _check_bounds(request, position)
    return TableStream(
        source,
        position,
        pace=request.pace,
        until=_until(parts, request.until, position),
        batch_rows=request.batch_rows,
        progress=progress,
    )


def _begin(parts: Parts, request: StreamRequest, progress: ConsumerProgress | None) -> Position:
    if request.position is not None:
        return decode_position(request.position)
    traits = TableTraits(parts.latest_schema())
    ignores = traits.ignores_progress if request.ignore_progress is None else request.ignore_progress
    known = None if progress is None or ignores else progress.find()
    if known is not None:
        return known
    start = request.start or parse_request(traits.scan_mode)
    while True:  # again where the snapshot expires, or is rolled back, at this very moment
        picked = pick_start(start, _history(parts), now_ms=parts.runtime.now_ms(), table=parts.guard.location)
        position = _position_of(parts, picked)
        if position is not None:
            return position


def _history(parts: Parts) -> History:
    @cache
    def known() -> dict[int, Snapshot]:
        return {one.id: one for one in parts.snapshots.list_all()}

    def time_of(number: int) -> int | None:
        return known()[number].time_millis if number in known() else None

    def is_compaction(number: int) -> bool | None:
        return number in known() and known()[number].commit_kind is CommitKind.COMPACT

    return History(parts.snapshots.list_ids(), time_of, is_compaction)


def _position_of(parts: Parts, start: Start) -> Position | None:
    """It knows the snapshot that it stands on; None when its rows are to be read and it is not there any more."""
    stands_on = start.snapshot if start.is_full else start.snapshot - 1
    found = parts.snapshots.find(stands_on)
    if found is None and start.is_full:
        return None
    return Position(
        table=parts.guard.identity or "",
        snapshot=start.snapshot,
        part=Part.FULL if start.is_full else Part.CHANGES,
        seen=None if found is None else Seen.of(found),
    )


def _until(parts: Parts, until: int | str | None, position: Position) -> int | None:
    """Raises FixRequest TS1353."""
    if until is None:
        return None
    if until == NOW:
        newest = parts.snapshots.find_latest_id() or 0
        return max(newest, position.snapshot if position.part is Part.FULL else 0)
    if isinstance(until, str) or until < position.snapshot - (position.part is Part.CHANGES):
        raise FixRequest(
            "TS1353",
            f"a reader cannot end at {until!r}",
            why=f"it begins at snapshot {position.snapshot}",
            fix=f"give a snapshot from there on, or {NOW!r}",
        )
    return until


def _check_bounds(request: StreamRequest, position: Position) -> None:
    rows, seconds = request.batch_rows, request.pace.interval_s
    if (rows is not None and rows < 1) or seconds < 0:
        raise FixRequest(
            "TS1353",
            f"a reader cannot read from snapshot {position.snapshot} like that",
            why=f"batch_rows is {rows}, interval_s is {seconds}",
            fix="a batch has 1 row or more, an interval is 0 or more seconds",
        )
