"""Where a reader's rows come from: the port, and changelog files behind it.

Names      ChangeSource     read_next(position) → chunks of rows, or None when nothing is there yet
           Chunk            some rows of one snapshot, and the position behind them
           ChangelogFiles   the table's own files: rows of a snapshot, then the changes of one after the other
           result_schema    columns that readers see
Columns    those of the newest schema when the reader began, found by field id; a snapshot of a newer schema brings
           its columns, from there on
INVARIANT  chunks of one snapshot come in an order that never varies (store.changelog, store.read.scan): a position is a
           number of rows, whatever the columns, the size of a batch or the process that reads.
Memory     a step of rows (store.files.row_budget).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import NotFound
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.branch_stores import Parts
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.difference import with_kind
from tablestore_engine.store.read.scan_rows import read_batches
from tablestore_engine.stream.position import Part, Position
from tablestore_engine.stream.snapshot_line import SnapshotLine

ROW_KIND, SNAPSHOT_ID = "_row_kind", "_snapshot_id"
_KINDS = pa.array([RowKind(number).short_string for number in range(4)])


@dataclass(frozen=True)
class Chunk:
    """`rows` as result_schema has them (maybe none); `behind`: where their reader is then, if it got them all.

    `at`: where it is before the first one, so that a part of them has a position too.
    """

    rows: pa.Table
    snapshot: Snapshot
    at: Position
    behind: Position


class ChangeSource(Protocol):
    """Where changes come from."""

    def read_next(self, position: Position) -> Iterator[Chunk] | None:
        """What lies behind the position, of one snapshot; the last chunk ends it. None: nothing is there yet.

        Raises TS1335 to TS1338, also while the chunks are read.
        """


def result_schema(schema: TableSchema, columns: Sequence[str] | None = None) -> pa.Schema:
    """The table's columns (or some), _row_kind, _snapshot_id; all may be NULL: a delete has the key alone at times."""
    fields = schema.fields if columns is None else schema.fields_of(columns)
    full = schema.arrow_schema()
    named = [full.field(field.name) for field in fields]
    target = [*named, pa.field(ROW_KIND, pa.string()), pa.field(SNAPSHOT_ID, pa.int64())]
    return pa.schema([field.with_nullable(True) for field in target])


class ChangelogFiles:
    """A ChangeSource over the files of one table; `columns` None: all."""

    def __init__(self, parts: Parts, columns: Sequence[str] | None = None) -> None:
        """Raises NotFound TS1110 for columns that the table does not have."""
        self._parts, self._columns = parts, columns
        self._line = SnapshotLine(parts)
        self._reader = ChangelogReader(parts)
        self._schema = parts.latest_schema()
        result_schema(self._schema, columns)

    @property
    def schema(self) -> pa.Schema:
        """Of the rows that come next."""
        return result_schema(self._schema, self._columns)

    def read_next(self, position: Position) -> Iterator[Chunk] | None:
        """As ChangeSource."""
        snapshot = self._line.next_snapshot(position)
        if snapshot is None:
            return None
        if snapshot.schema_id > self._schema.id:
            self._schema = self._parts.latest_schema()
        return self._guarded(position, snapshot)

    def _guarded(self, position: Position, snapshot: Snapshot) -> Iterator[Chunk]:
        try:
            yield from self._chunks(position, snapshot)
        except NotFound as error:
            known = self._line.explain(position, error)
            if known is error:
                raise
            raise known from error

    def _chunks(self, at: Position, snapshot: Snapshot) -> Iterator[Chunk]:
        """The end of the snapshot is known from metadata where it says how many rows there are."""
        total, tables = self._open(at, snapshot)
        for table in tables:
            behind = at.moved(table.num_rows, snapshot)
            is_last = total is not None and behind.rows >= total
            rows = _finished(table, snapshot, self.schema)
            yield Chunk(rows, snapshot, at, behind.after(snapshot) if is_last else behind)
            at = behind
        yield Chunk(self.schema.empty_table(), snapshot, at, at.after(snapshot))

    def _open(self, at: Position, snapshot: Snapshot) -> tuple[int | None, Iterable[pa.Table]]:
        if at.part is Part.FULL:
            plan = self._parts.scanner.plan_told(snapshot, schema=self._schema)
            batches = read_batches(self._parts.fileio, plan, self._columns, skip=at.rows)
            tables = (with_kind(pa.Table.from_batches([one]), RowKind.INSERT) for one in batches)
            return plan.visible_rows, tables
        found = self._reader.read(snapshot, self._schema, self._columns, skip=at.rows)
        return self._reader.count(snapshot), (batch.rows for batch in found)


def _finished(table: pa.Table, snapshot: Snapshot, target: pa.Schema) -> pa.Table:
    """Kinds as text, and the snapshot's number."""
    kinds = table.column(ROW_KIND_COLUMN).combine_chunks()
    rows = table.drop_columns([ROW_KIND_COLUMN]).append_column(ROW_KIND, _KINDS.take(kinds))
    rows = rows.append_column(SNAPSHOT_ID, pa.array(np.full(rows.num_rows, snapshot.id), pa.int64()))
    return pa.Table.from_arrays(rows.columns, schema=target)
