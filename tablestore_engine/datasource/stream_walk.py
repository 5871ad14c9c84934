"""Along the snapshots of a table: which of them make the next micro-batch, and what is in a planned one.

Steps      position → stream/snapshot_enumerator.py, snapshot after snapshot → admission.py → end
Schema     a stream has the columns of the table as it was when the query was started; rows are found by field id. A
           column that comes later is seen after a new start, one that is renamed keeps its name until then. One of the
           stream's columns that is dropped, or gets another type, ends the query (TS1447) behind the rows before it:
           NULLs and cut values would pass as data.
INVARIANT  the end of a batch is behind a whole snapshot, or at its begin.
INVARIANT  a planned batch is read whole or fails: the line from its begin has to lead to its end, snapshot by snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tablestore_engine.datasource.admission import Admission, Limits, Portion
from tablestore_engine.datasource.asked_columns import AskedColumns
from tablestore_engine.datasource.slices import Slice, plan_files, plan_snapshots
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.stream.position import Part, Position
from tablestore_engine.stream.snapshot_enumerator import SnapshotEnumerator


@dataclass(frozen=True)
class StreamWalk:
    """Of one table, in the columns `asked` of the schema `pinned`."""

    context: TableContext
    pinned: TableSchema
    asked: AskedColumns

    def next_end(self, begin: Position, limits: Limits, *, until: int | None = None) -> Position:
        """Behind the last snapshot that the batch takes, none after `until`; `begin` itself: nothing is there yet.

        Raises FixRequest TS1335, TS1338, TS1447, NotFound TS1336, TS1337.
        """
        taken, end = Admission(limits), begin
        for at, snapshot in self._line(begin):
            if until is not None and snapshot.id > until and at.part is not Part.FULL:
                break
            problem = check_pinned(self.pinned, self._schema_of(snapshot), self.asked, snapshot.id)
            if problem is not None:
                if end == begin:
                    raise problem
                break
            more = taken.take(self._portion(at, snapshot, limits))
            if more is None:
                break
            taken, end = more, at.after(snapshot)
        return end

    def slices(self, begin: Position, end: Position) -> list[Slice]:
        """What tasks read of a batch. Raises as next_end."""
        if begin == end:
            return []
        found: list[Slice] = []
        changed, at = [], begin
        for at, snapshot in self._line(begin):
            problem = check_pinned(self.pinned, self._schema_of(snapshot), self.asked, snapshot.id)
            if problem is not None:
                raise problem
            if at.part is Part.FULL:
                found += plan_files(self.context, snapshot, self.pinned, at)
            elif self._may_change(snapshot):
                changed.append((at, snapshot))
            if at.after(snapshot) == end:
                return [*found, *plan_snapshots(changed, self.pinned.id)]
            if snapshot.id >= end.snapshot:
                break
        raise SnapshotEnumerator(self.context).rolled_back(
            at, f"a batch was planned up to snapshot {end.snapshot - 1}"
        )

    def _line(self, begin: Position) -> Iterator[tuple[Position, Snapshot]]:
        """Positions with their snapshots, as far as they are there."""
        enumerator, at = SnapshotEnumerator(self.context), begin
        while (snapshot := enumerator.next_snapshot(at)) is not None:
            yield at, snapshot
            at = at.after(snapshot)

    def _schema_of(self, snapshot: Snapshot) -> TableSchema:
        return self.context.schemas.get(snapshot.schema_id)

    def _may_change(self, snapshot: Snapshot) -> bool:
        return ChangelogReader(self.context).has_changes(snapshot)

    def _portion(self, at: Position, snapshot: Snapshot, limits: Limits) -> Portion:
        """Only as much of it is looked up as the limits need."""
        if limits.are_none:
            return Portion(None, 0)
        if at.part is Part.FULL:
            entries = self.context.scanner.told_entries(snapshot, schema=self.pinned)
            return Portion(
                sum(entry.file.row_count for entry in entries), sum(entry.file.file_size for entry in entries)
            )
        reader = ChangelogReader(self.context)
        if not limits.need_sizes:
            return Portion(None if reader.has_changes(snapshot) else 0, 0)
        rows = reader.count(snapshot)
        return Portion(rows, reader.bytes(snapshot) if limits.bytes is not None else 0)


def check_pinned(
    pinned: TableSchema, later: TableSchema, asked: AskedColumns, snapshot_id: int
) -> FixRequest | None:
    """TS1447, unless rows of `later` have all that is asked for. Pure."""
    if later.id <= pinned.id:
        return None
    there = {field.id: field for field in later.fields}
    for field in asked.fields:
        now = there.get(field.id)
        if now is None:
            return _changed(field.name, snapshot_id, "dropped")
        if now.type.with_nullable(True) != field.type.with_nullable(True):
            return _changed(field.name, snapshot_id, f"made {type_to_text(now.type)}")
    return None


def _changed(name: str, snapshot_id: int, what: str) -> FixRequest:
    return FixRequest(
        "TS1447",
        f"column {name!r} of a stream was {what} while it ran, with snapshot {snapshot_id}",
        why="the stream has the columns that the table had when the query was started; everything before was delivered",
        fix="load the table again and start the query again on its checkpoint, without the column where it was dropped",
    )
