"""Begin a reader: from a stored position, from a consumer's progress, or by a mode; over files or over the log.

CHANGE     which source of changes a stream reads, and from where (option consumer.ignore-progress)
Steps      position, else progress (unless it is to be ignored), else the start rule → checked against the table
Source     a position says what it was taken from; else `read_mode`, the table's `streaming-read-mode`, log for an
           eventual log (its changes are there before their snapshot), file for all others (theirs are there with it)
INVARIANT  what cannot be read from its beginning is refused here, before the first row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.capability import check_readable
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.log.followed_log import FollowedLog
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.stream.change_source import ChangelogFiles, check_change_columns
from tablestore_engine.stream.consumer_progress import ConsumerProgress
from tablestore_engine.stream.log_changes import LogChanges
from tablestore_engine.stream.position import Part, Position, Seen, decode_position
from tablestore_engine.stream.snapshot_enumerator import SnapshotEnumerator
from tablestore_engine.stream.startup_mode import (
    History,
    Start,
    StartupMode,
    StartupRequest,
    parse_request,
    pick_start,
)
from tablestore_engine.stream.table_stream import Pace, TableStream

NOW = "now"
FindLog = Callable[[], FollowedLog | None]


class ReadMode(StrEnum):
    FILE = "file"
    LOG = "log"


@dataclass(frozen=True)
class StreamRequest:
    """`start` None: as the table's `scan.mode` says; `ignore_progress`, `read_mode`, `normalizes` None: as it says.

    `position` goes before a consumer's progress, and that before `start`.
    """

    start: StartupRequest | None = None
    position: str | None = None
    consumer_id: str | None = None
    ignore_progress: bool | None = None
    until: int | str | None = None
    columns: Sequence[str] | None = None
    batch_rows: int | None = None
    read_mode: str | None = None
    normalizes: bool | None = None
    pace: Pace = field(default_factory=Pace)


def open_stream(
    context: TableContext, request: StreamRequest, find_log: FindLog = lambda: None
) -> TableStream:
    """`find_log`: opens the table's log, None when it has none.

    Raises TS1332, TS1333, TS1356 (start), TS1334 to TS1338, TS1357, TS1358 (position), FixRequest TS1353 (bounds),
    TS1339 (read mode), TS1362 (columns), TS1107 (consumer id), NotFound TS1110 (columns), TS1310 without a table,
    Unsupported TS1126.
    """
    schema = context.latest_schema()
    check_readable(schema)
    check_change_columns(schema, request.columns)
    if request.columns is not None:
        request = replace(request, columns=schema.spelled(request.columns))
    traits, progress = TableTraits(schema), None
    if request.consumer_id is not None:
        progress = ConsumerProgress(context.consumers, SnapshotEnumerator(context), request.consumer_id)
    known = _known(request, progress, traits)
    _check_bounds(request, context.guard.location)
    source = _open_source(context, request, traits, known, find_log)
    try:
        position = known or _begin(context, request.start or parse_request(traits.scan_mode), source)
        source.check(position)
        until = _until(request.until, position, source)
    except BaseException:
        source.close()
        raise
    return TableStream(
        source,
        position,
        pace=request.pace,
        until=until,
        batch_rows=request.batch_rows,
        progress=progress,
    )


def _known(request: StreamRequest, progress: ConsumerProgress | None, traits: TableTraits) -> Position | None:
    if request.position is not None:
        return decode_position(request.position)
    ignores = traits.ignores_progress if request.ignore_progress is None else request.ignore_progress
    return None if progress is None or ignores else progress.find()


def _reads_log(known: Position | None, request: StreamRequest, traits: TableTraits) -> bool:
    """Raises FixRequest TS1339."""
    if request.read_mode not in (None, *ReadMode):
        raise _no_read_mode(
            f"read mode {request.read_mode!r} is none", f"expected one of {', '.join(ReadMode)}", "write one"
        )
    if known is not None and known.part is not Part.FULL:
        is_log = known.part is Part.LOG
        if request.read_mode is not None and is_log is not (request.read_mode == ReadMode.LOG):
            raise _no_read_mode(
                f"a reader cannot go on in read mode {request.read_mode}",
                f"its position was taken in read mode {ReadMode.LOG if is_log else ReadMode.FILE}, and says nothing of "
                "the other",
                "leave the read mode out, or begin anew with a mode",
            )
        return is_log
    said = request.read_mode or traits.read_mode or (ReadMode.LOG if traits.is_eventual else ReadMode.FILE)
    return said == ReadMode.LOG


def _no_read_mode(what: str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1339", what, why=why, fix=fix)


def _open_source(
    context: TableContext,
    request: StreamRequest,
    traits: TableTraits,
    known: Position | None,
    find_log: FindLog,
) -> ChangelogFiles | LogChanges:
    """Brokers are asked last. Raises FixRequest TS1339."""
    files = ChangelogFiles(context, request.columns)
    if not _reads_log(known, request, traits):
        return files
    log = find_log()
    if log is None:
        raise _no_read_mode(
            f"a reader of {context.guard.location} cannot follow a log",
            "the table has none: its option log.system is none",
            "leave the read mode out: its files have every change",
        )
    normalizes = traits.normalizes if request.normalizes is None else request.normalizes
    return LogChanges(context, log, files, normalizes=normalizes)


def _begin(context: TableContext, start: StartupRequest, source: ChangelogFiles | LogChanges) -> Position:
    if isinstance(source, LogChanges):
        found = _begin_in_log(context, start, source)
        if found is not None:
            return found
        while True:  # again where the snapshot expires, or is rolled back, at this very moment
            picked = _pick(context, start)
            behind = source.begin_behind(picked.snapshot if picked.is_full else picked.snapshot - 1)
            position = _position_of(context, picked) if picked.is_full else behind
            if position is not None:
                return position
    return begin_in_files(context, start)


def begin_in_files(context: TableContext, start: StartupRequest | None) -> Position:
    """`start` None: as the table's `scan.mode` says. Raises FixRequest TS1332, NotFound TS1333."""
    if start is None:
        start = parse_request(TableTraits(context.latest_schema()).scan_mode)
    while True:  # again, as above
        position = _position_of(context, _pick(context, start))
        if position is not None:
            return position


def _pick(context: TableContext, start: StartupRequest) -> Start:
    return pick_start(start, _history(context), now_ms=context.runtime.now_ms(), table=context.guard.location)


def _begin_in_log(context: TableContext, start: StartupRequest, source: LogChanges) -> Position | None:
    """Modes that name no snapshot: the log says which; None leaves it to the rule."""
    if start.mode is StartupMode.LATEST:
        return source.begin_at_end()
    if start.mode not in (StartupMode.LATEST_FULL, StartupMode.EARLIEST):
        return None
    number = source.find_full_start(is_newest=start.mode is StartupMode.LATEST_FULL)
    if number is None:
        return None
    return source.begin_behind(0) if number == 0 else _position_of(context, Start(number, is_full=True))


def _history(context: TableContext) -> History:
    @cache
    def known() -> dict[int, Snapshot]:
        return {one.id: one for one in context.snapshots.list_all()}

    def time_of(number: int) -> int | None:
        return known()[number].time_millis if number in known() else None

    def is_compaction(number: int) -> bool | None:
        return number in known() and known()[number].commit_kind is CommitKind.COMPACT

    return History(context.snapshots.list_ids(), time_of, is_compaction)


def _position_of(context: TableContext, start: Start) -> Position | None:
    """It knows the snapshot that it stands on; None when its rows are to be read and it is not there any more."""
    stands_on = start.snapshot if start.is_full else start.snapshot - 1
    found = context.snapshots.find(stands_on)
    if found is None and start.is_full:
        return None
    return Position(
        table=context.guard.identity or "",
        snapshot=start.snapshot,
        part=Part.FULL if start.is_full else Part.CHANGES,
        seen=None if found is None else Seen.of(found),
    )


def _until(until: int | str | None, position: Position, source: ChangelogFiles | LogChanges) -> int | None:
    """Raises FixRequest TS1353."""
    if until is None:
        return None
    if until == NOW:
        return max(source.newest_snapshot(), position.snapshot if position.part is Part.FULL else 0)
    if isinstance(until, str) or until < position.snapshot - (position.part is Part.CHANGES):
        raise FixRequest(
            "TS1353",
            f"a reader cannot end at {until!r}",
            why=f"it begins at snapshot {position.snapshot}",
            fix=f"give a snapshot from there on, or {NOW!r}",
        )
    return until


def _check_bounds(request: StreamRequest, table: str) -> None:
    """Raises FixRequest TS1353."""
    rows, seconds = request.batch_rows, request.pace.interval_s
    if (rows is not None and rows < 1) or seconds < 0:
        raise FixRequest(
            "TS1353",
            f"a reader of {table} cannot read like that",
            why=f"batch_rows is {rows}, interval_s is {seconds}",
            fix="a batch has 1 row or more, an interval is 0 or more seconds",
        )
