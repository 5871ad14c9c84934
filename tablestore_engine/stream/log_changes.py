"""A reader's rows out of a table's log: the rows of a snapshot from files, then messages (decision 0038).

Steps      rows of the snapshot that the reader begins with (stream/change_source.py) → the boundary of the log behind
           them → a portion of messages → in an upsert log normalized (stream/normalize.py) → chunk
Order      transactional: snapshot after snapshot, a portion ends at a boundary or within one snapshot. Eventual: as
           messages come, those before a boundary first; rows that come before their snapshot have no _snapshot_id.
Base       what was known of a key before the first message: the table at the snapshot of an exact boundary, and all
           messages since, which are read again at a position and not told. The base moves with the reader.
INVARIANT  a gap is an error: messages that are gone (TS1358), a log that began anew (TS1357), a base that has expired
           and is needed (TS1337).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.followed_log import NO_SNAPSHOT, FollowedLog, LogBoundary, Messages, Place
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.read.key_lookup import find_rows
from tablestore_engine.store.read.row_cache import RowCache
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.stream.change_source import ChangelogFiles, Chunk, result_schema, told_rows
from tablestore_engine.stream.key_state import KeyState
from tablestore_engine.stream.log_boundaries import BoundaryList, farthest, is_at_or_behind
from tablestore_engine.stream.message_schemas import decode_by_boundaries
from tablestore_engine.stream.normalize import Decode, NormalizedChanges, Normalizer
from tablestore_engine.stream.position import LogPlace, Part, Position, Seen
from tablestore_engine.stream.snapshot_enumerator import SnapshotEnumerator

PORTION_ROWS = 131_072


@dataclass(frozen=True)
class _Standing:
    """What the reader knows: everything up to `place`, over the table at `base`."""

    place: Place
    base: LogBoundary
    normalizer: Normalizer
    schema_id: int


class LogChanges:
    """Of one reader. `normalizes` False: messages as they are, also of an upsert log."""

    def __init__(
        self,
        context: TableContext,
        log: FollowedLog,
        files: ChangelogFiles,
        *,
        normalizes: bool = True,
        folder: Path | None = None,
        portion_rows: int | None = None,
    ) -> None:
        """`files`: of the same table; its columns are told."""
        self._parts, self._log, self._files = context, log, files
        self._enumerator = SnapshotEnumerator(context)
        self._normalizes = normalizes and log.is_upsert
        self._state, self._kept = KeyState(folder), RowCache()
        self._portion_rows = portion_rows or PORTION_ROWS
        self._standing: _Standing | None = None
        self._boundaries: tuple[tuple[int, Sequence[LogBoundary]], BoundaryList] | None = None

    # where it may begin -------------------------------------------------------------------------------------

    def begin_behind(self, snapshot_id: int) -> Position:
        """Of a reader that has the table at this snapshot. Raises NotFound TS1356, TS1358."""
        boundaries = self._all_boundaries()
        start = boundaries.find_start(
            snapshot_id, is_ordered=not self._log.is_eventual, changes_between=self._changed_between
        )
        if start is None:
            raise _no_boundary(self._parts.guard.location, snapshot_id, boundaries)
        self._log.check_there(start.place)
        # behind a boundary of an eventual log any message counts, whatever snapshot it names: a row of an attempt that
        # failed or that was sent again, and what set it right, are one without the other a wrong table
        after = 0 if self._log.is_eventual and self._normalizes else start.after
        place = LogPlace(self._log.log_id, boundaries.beginning, start.place, after)
        return self._position(place, start.boundary)

    def begin_at_end(self) -> Position:
        """Only what comes from now on. Raises NotFound TS1356."""
        boundaries = self._all_boundaries()
        if not boundaries.exact:
            raise _no_boundary(self._parts.guard.location, boundaries.last_snapshot, boundaries)
        newest = boundaries.exact[-1]
        place = farthest(newest.place, self._log.ends()) if self._log.is_eventual else newest.place
        return self._position(LogPlace(self._log.log_id, boundaries.beginning, place), newest)

    def find_full_start(self, *, is_newest: bool) -> int | None:
        """The newest, or the oldest, snapshot whose rows a reader may begin with; 0: the log has everything.

        None: there is none. Raises what the log raises.
        """
        exact = self._all_boundaries().exact
        beginnings = self._log.beginnings()
        for boundary in reversed(exact) if is_newest else exact:
            if self._is_there(boundary.snapshot_id) and is_at_or_behind(boundary.place, beginnings):
                return boundary.snapshot_id
        return None

    def newest_snapshot(self) -> int:
        """Up to which snapshot the log has everything."""
        exact = self._all_boundaries().exact
        return exact[-1].snapshot_id if exact else 0

    # as ChangeSource ----------------------------------------------------------------------------------------

    def check(self, position: Position) -> None:
        """As ChangeSource. Raises FixRequest TS1357 as well."""
        if position.part is not Part.LOG:
            self._files.check(position)
            return
        self._enumerator.check_base(position)
        place = self._place(position, self._all_boundaries())
        self._log.check_there(place.following)

    def is_over(self, position: Position, until: int | None) -> bool:
        if until is None or position.log is None:
            return until is not None and position.snapshot > until
        stop = self._all_boundaries().find_stop(until, changes_between=self._changed_between)
        return stop is not None and is_at_or_behind(position.log.following, stop.place)

    def close(self) -> None:
        self._standing = None
        self._state.clear()
        self._log.close()

    def read_next(self, position: Position, until: int | None = None) -> Iterator[Chunk] | None:
        """As ChangeSource: a portion of messages, or the rows of the snapshot it begins with."""
        if position.part is Part.FULL:
            chunks = self._files.read_next(position, until)
            return None if chunks is None else map(partial(self._entered, position), chunks)
        if position.part is Part.CHANGES:
            return iter([self._empty(self.begin_behind(position.snapshot - 1))])
        self._enumerator.check_table(position)
        boundaries = self._all_boundaries()
        place = self._place(position, boundaries)
        target = self._find_target(place.following, boundaries, until)
        if target is None:
            return None
        return self._told(position, place, target, boundaries)

    def _entered(self, position: Position, chunk: Chunk) -> Chunk:
        """Behind the last row of the snapshot comes the log."""
        is_last = chunk.behind.part is not Part.FULL
        return replace(chunk, behind=self.begin_behind(position.snapshot)) if is_last else chunk

    def _empty(self, behind: Position) -> Chunk:
        return Chunk(self._files.schema.empty_table(), behind, lambda _: behind)

    # the log ------------------------------------------------------------------------------------------------

    def _all_boundaries(self) -> BoundaryList:
        known = self._log.boundaries()
        if self._boundaries is None or self._boundaries[0] != (len(known), known[-1:]):
            self._boundaries = (len(known), known[-1:]), BoundaryList(known)
        return self._boundaries[1]

    def _place(self, position: Position, boundaries: BoundaryList) -> LogPlace:
        """Raises FixRequest TS1357."""
        place = position.log
        assert place is not None
        if place.log_id != self._log.log_id or place.beginning != boundaries.beginning:
            raise FixRequest(
                "TS1357",
                f"the log of {self._parts.guard.location} was reset after its reader started",
                why="another log has its name now"
                if place.log_id != self._log.log_id
                else f"it was restarted after snapshot {boundaries.first_snapshot}: the changes between were not sent, "
                "or are sent again",
                fix="start again with latest-full: all rows first, then what the log has from there on",
            )
        return place

    def _find_target(self, place: Place, boundaries: BoundaryList, until: int | None) -> Place | None:
        stop = None
        if until is not None:
            stop = boundaries.find_stop(until, changes_between=self._changed_between)
        newest = boundaries.exact[-1].place if boundaries.exact else place
        ends = self._log.ends() if self._log.is_eventual else newest
        if stop is not None:
            ends = {one: min(end, stop.place.get(one, 0)) for one, end in ends.items()}
        return boundaries.find_step(place, ends, self._portion_rows)

    def _changed_between(self, after: int, until: int) -> bool:
        """What cannot be looked at may have."""
        for number in range(after + 1, until + 1):
            found = self._parts.snapshots.find(number)
            if found is None or ChangelogReader(self._parts).has_changes(found):
                return True
        return False

    def _is_there(self, snapshot_id: int) -> bool:
        return snapshot_id == 0 or self._parts.snapshots.find(snapshot_id) is not None

    def _position(self, place: LogPlace, base: LogBoundary) -> Position:
        found = self._parts.snapshots.find(base.snapshot_id)
        return Position(
            table=self._parts.guard.identity or "",
            snapshot=base.snapshot_id,
            part=Part.LOG,
            seen=None if found is None else Seen.of(found),
            log=place,
        )

    # a portion ----------------------------------------------------------------------------------------------

    def _told(
        self, position: Position, place: LogPlace, target: Place, boundaries: BoundaryList
    ) -> Iterator[Chunk]:
        try:
            standing = self._stand(place.following, boundaries) if self._normalizes else None
            messages = self._read(place.following, target, boundaries)
            schemas = self._schemas()
            decode = partial(decode_by_boundaries, self._log, schemas, boundaries)
            changes = (
                _as_they_are(messages, decode)
                if standing is None
                else standing.normalizer.apply(messages, decode)
            )
        except NotFound as error:
            raise self._enumerator.explain_base(position, error) from error
        base = self._moved(messages, boundaries, position)
        cutter = _Cutter(position, place, messages)
        keep = cutter.picks(changes.messages)
        rows = self._finished(changes, messages, keep, schemas[0])
        behind = replace(place, following=farthest(place.following, messages.reached), within=None)
        yield Chunk(rows, self._position(behind, base), partial(cutter.cut, changes.messages[keep]))

    def _read(
        self, place: Place, target: Place, boundaries: BoundaryList, *, is_told: bool = True
    ) -> Messages:
        """A portion, boundary after boundary: a key that moved to another partition has its older messages first.
        Headers only where they say what nothing else does.
        """
        is_ordered = not self._log.is_eventual
        with_headers = is_told and not (is_ordered and self._normalizes)
        messages = self._log.read(place, target, self._portion_rows, with_headers=with_headers)
        order = boundaries.snapshots_of(messages.partitions, messages.offsets)
        if is_ordered and with_headers:
            order = messages.snapshots
        elif is_ordered:
            messages = messages.with_snapshots(order)
        if len(messages) and bool((np.diff(order) < 0).any()):
            messages = messages.take(np.argsort(order, kind="stable"))
        return messages

    def _finished(
        self, changes: NormalizedChanges, messages: Messages, keep: Index, schema: TableSchema
    ) -> pa.Table:
        target = result_schema(schema, self._files.columns)
        rows = take_rows(changes.rows.select(target.names[:-2]), keep)
        ids = messages.snapshots[changes.messages[keep]]
        ids = pa.array(ids, pa.int64(), mask=ids == NO_SNAPSHOT)
        return told_rows(rows.cast(_columns_of(target)), pa.array(changes.kinds[keep]), ids, target)

    # what is known of keys ----------------------------------------------------------------------------------

    def _schemas(self) -> tuple[TableSchema, ...]:
        """Newest first."""
        newest, store = self._parts.latest_schema(), self._parts.schemas
        older = (store.get(number) for number in reversed(store.list_ids()) if number < newest.id)
        return (newest, *older)

    def _stand(self, place: Place, boundaries: BoundaryList) -> _Standing:
        """Know everything up to the place. Raises NotFound TS1337, TS1358."""
        known, schemas = self._standing, self._schemas()
        is_here = (
            known is not None and is_at_or_behind(known.place, place) and is_at_or_behind(place, known.place)
        )
        if known is not None and is_here:
            if known.schema_id != schemas[0].id:
                known = self._standing = self._at(place, known.base, schemas)
            return known
        base = boundaries.find_base(place, self._is_there)
        if base is None:
            raise self._enumerator.expired_base(boundaries.first_snapshot or 0)
        self._state.clear()
        known = self._at(place, base, schemas)
        at = dict(base.place)
        while (step := boundaries.find_step(at, place, self._portion_rows)) is not None:
            messages = self._read(at, step, boundaries, is_told=False)
            known.normalizer.learn(messages)
            at.update(messages.reached)
        self._standing = known
        return known

    def _at(self, place: Place, base: LogBoundary, schemas: Sequence[TableSchema]) -> _Standing:
        newest = schemas[0]
        if base.snapshot_id == 0:
            empty = newest.arrow_schema().empty_table()

            def find(_: pa.Table) -> pa.Table:
                return empty
        else:
            snapshot = self._parts.snapshots.get(base.snapshot_id)
            plan = self._parts.scanner.plan_told(snapshot, schema=newest)
            own = self._parts.schemas.get(snapshot.schema_id)  # it may have had fewer buckets
            find = partial(find_rows, self._parts.fileio, plan, routed_by=own, kept=self._kept)

        return _Standing(place, base, Normalizer(newest, self._state, find), newest.id)

    def _moved(self, messages: Messages, boundaries: BoundaryList, position: Position) -> LogBoundary:
        """The newest base; what lies before it need not be remembered."""
        reached, known = messages.reached, self._standing
        base = boundaries.find_base(reached, self._is_there)
        if known is None:
            return base or LogBoundary(position.snapshot, {})
        if base is None or base == known.base:
            known.normalizer.learn(messages)
            self._standing = replace(known, place=reached)
            return known.base
        if is_at_or_behind(base.place, reached):
            self._state.clear()
        else:
            known.normalizer.learn(messages)
            self._state.forget(base.place)
        self._standing = self._at(reached, base, self._schemas())
        return base


def _as_they_are(messages: Messages, decode: Decode) -> NormalizedChanges:
    rows = decode(messages)
    kinds = rows.column(ROW_KIND_COLUMN).to_numpy()
    return NormalizedChanges(rows.drop_columns([ROW_KIND_COLUMN]), kinds, np.arange(len(messages)))


def _columns_of(target: pa.Schema) -> pa.Schema:
    return pa.schema(list(target)[:-2])


@dataclass(frozen=True)
class _Cutter:
    """Positions within a portion of messages that begins at `place`."""

    position: Position
    place: LogPlace
    messages: Messages

    def picks(self, of_message: Index) -> Index:
        """Which rows are told: none of snapshots that the reader has, none that it got of the first message."""
        snapshots = self.messages.snapshots[of_message]
        keep = (snapshots == NO_SNAPSHOT) | (snapshots > self.place.after)
        mine = self._first()
        if mine is not None:
            keep[np.flatnonzero(of_message == mine)[: self.position.rows]] = False
        return np.flatnonzero(keep)

    def _first(self) -> int | None:
        """The message of which some rows were handed out before."""
        if self.place.within is None:
            return None
        mine = np.flatnonzero(self.messages.partitions == self.place.within)
        return int(mine[0]) if len(mine) else None

    def cut(self, of_message: Index, rows: int) -> Position:
        """Behind so many rows of those that are told."""
        last = int(of_message[rows - 1])
        is_within = rows < len(of_message) and int(of_message[rows]) == last
        begin = last if is_within else last + 1
        following = farthest(self.place.following, self.messages.reached)
        left = self.messages.partitions[begin:]
        for partition, number in zip(*np.unique(left, return_index=True), strict=True):
            following[int(partition)] = int(self.messages.offsets[begin + number])
        within, given = None, 0
        if is_within:
            within = int(self.messages.partitions[last])
            given = int((of_message[:rows] == last).sum()) + (
                self.position.rows if last == self._first() else 0
            )
        place = replace(self.place, following=following, within=within)
        return replace(self.position, rows=given, log=place)


def _no_boundary(table: str, snapshot_id: int, boundaries: BoundaryList) -> NotFound:
    known = ", ".join(str(one.snapshot_id) for one in boundaries.exact[-5:])
    return NotFound(
        "TS1356",
        f"a reader of {table} cannot go from snapshot {snapshot_id} into its log",
        why=f"the log has no place where this very state is complete; it has one of snapshots {known or 'none'}"
        + (f" (it has everything up to {boundaries.last_snapshot})" if boundaries.since else ""),
        fix="begin with latest-full, with one of these, or follow the table's files (read mode file); what is pending "
        "is sent by `tablestore publish`",
    )
