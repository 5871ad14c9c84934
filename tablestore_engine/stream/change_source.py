"""The port of a reader's source of changes, and its implementation over changelog files.

CHANGE     the port of a source of changes beside files and logs
Columns    those of the newest schema when the reader began, found by field id; a snapshot of a newer schema brings
           its columns, from there on
INVARIANT  chunks of one snapshot come in an order that never varies (store.changelog, store.read.scan): a position is a
           number of rows, whatever the columns, the size of a batch or the process that reads.
Memory     a step of rows (store.files.row_budget).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind, short_strings
from tablestore_engine.format.schema import CHANGE_COLUMNS, TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.difference import with_kind
from tablestore_engine.store.read.scan import check_told
from tablestore_engine.store.read.scan_rows import read_batches
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.stream.position import Part, Position
from tablestore_engine.stream.snapshot_enumerator import SnapshotEnumerator

ROW_KIND, SNAPSHOT_ID = CHANGE_COLUMNS


@dataclass(frozen=True)
class Chunk:
    """`rows` as result_schema has them (maybe none); `behind`: where their reader is then, if it got them all;
    `cut(n)`: where it is behind the first n of them.
    """

    rows: pa.Table
    behind: Position
    cut: Callable[[int], Position]


class ChangeSource(Protocol):
    def read_next(self, position: Position, until: int | None) -> Iterator[Chunk] | None:
        """What lies behind the position, a part of it; None: nothing is there yet. Nothing behind snapshot `until`.

        Raises TS1335 to TS1338, TS1356 to TS1359, also while the chunks are read.
        """

    def check(self, position: Position) -> None:
        """Whether it can be gone on from there. Raises as read_next."""

    def newest_snapshot(self) -> int:
        """Everything up to it can be read now; 0 for nothing."""

    def is_over(self, position: Position, until: int | None) -> bool:
        """Whether everything up to this snapshot lies before the position."""

    def close(self) -> None:
        """Give up what is held; the next call takes it again."""


def result_schema(schema: TableSchema, columns: Sequence[str] | None = None) -> pa.Schema:
    """The table's columns (or some), _row_kind, _snapshot_id; all may be NULL: a delete has the key alone at times."""
    fields = schema.fields if columns is None else schema.fields_of(columns)
    full = schema.arrow_schema()
    named = [full.field(field.name) for field in fields]
    target = [*named, pa.field(ROW_KIND, pa.string()), pa.field(SNAPSHOT_ID, pa.int64())]
    return pa.schema([field.with_nullable(True) for field in target])


def check_change_columns(schema: TableSchema, columns: Sequence[str] | None = None) -> None:
    """Raises FixRequest TS1362 for a column of the table that has the name of one that result_schema adds."""
    for name in schema.field_names if columns is None else columns:
        if name.lower() in CHANGE_COLUMNS:
            raise FixRequest(
                "TS1362",
                f"changes cannot be read with column {name!r} of the table",
                why=f"rows of changes have columns {' and '.join(CHANGE_COLUMNS)} of their own",
                fix=f"rename the column: ALTER TABLE … RENAME COLUMN {name} TO …; or read other columns",
            )


class ChangelogFiles:
    """A ChangeSource over the files of one table; `columns` None: all."""

    def __init__(
        self,
        context: TableContext,
        columns: Sequence[str] | None = None,
        *,
        pinned: TableSchema | None = None,
    ) -> None:
        """`pinned`: the schema of all rows, also of later ones. Raises NotFound TS1110 for columns that it lacks."""
        self._parts, self.columns = context, columns
        self._enumerator = SnapshotEnumerator(context)
        self._reader = ChangelogReader(context)
        self._is_pinned = pinned is not None
        self._schema = pinned or context.latest_schema()
        result_schema(self._schema, columns)

    @property
    def schema(self) -> pa.Schema:
        """Of the rows that come next."""
        return result_schema(self._schema, self.columns)

    def check(self, position: Position) -> None:
        self._enumerator.next_snapshot(position)

    def newest_snapshot(self) -> int:
        return self._parts.snapshots.find_latest_id() or 0

    def is_over(self, position: Position, until: int | None) -> bool:
        return until is not None and position.snapshot > until

    def close(self) -> None:
        """As ChangeSource: files are not held."""

    def read_next(
        self,
        position: Position,
        until: int | None = None,  # noqa: ARG002 - a snapshot at a time: it is never passed
    ) -> Iterator[Chunk] | None:
        """As ChangeSource; chunks of one snapshot, the last one ends it."""
        snapshot = self._enumerator.next_snapshot(position)
        if snapshot is None:
            return None
        if snapshot.schema_id > self._schema.id and not self._is_pinned:
            self._schema = self._parts.latest_schema()
        return self._guarded(position, snapshot)

    def _guarded(self, position: Position, snapshot: Snapshot) -> Iterator[Chunk]:
        try:
            yield from self._chunks(position, snapshot)
        except NotFound as error:
            known = self._enumerator.explain(position, error)
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
            yield Chunk(rows, behind.after(snapshot) if is_last else behind, partial(_moved, at, snapshot))
            at = behind
        yield Chunk(self.schema.empty_table(), at.after(snapshot), partial(_moved, at, snapshot))

    def _open(self, at: Position, snapshot: Snapshot) -> tuple[int | None, Iterable[pa.Table]]:
        if at.part is Part.FULL:
            check_told(self._parts.scanner, snapshot)
            plan = self._parts.scanner.plan_told(snapshot, schema=self._schema)
            batches = read_batches(self._parts.fileio, plan, self.columns, skip=at.rows)
            tables = (with_kind(pa.Table.from_batches([one]), RowKind.INSERT) for one in batches)
            return plan.visible_rows, tables
        found = self._reader.read(snapshot, self._schema, self.columns, skip=at.rows)
        return self._reader.count(snapshot), (batch.rows for batch in found)


def _moved(at: Position, snapshot: Snapshot, rows: int) -> Position:
    return at.moved(rows, snapshot)


def _finished(table: pa.Table, snapshot: Snapshot, target: pa.Schema) -> pa.Table:
    """Kinds as text, and the snapshot's number."""
    kinds = table.column(ROW_KIND_COLUMN).combine_chunks()
    ids = pa.array(np.full(table.num_rows, snapshot.id), pa.int64())
    return told_rows(table.drop_columns([ROW_KIND_COLUMN]), kinds, ids, target)


def told_rows(rows: pa.Table, kinds: pa.Array, snapshot_ids: pa.Array, target: pa.Schema) -> pa.Table:
    """Rows of the target's columns as readers see them; `kinds`: numbers of RowKind."""
    columns = [*rows.columns, short_strings().take(kinds), snapshot_ids]
    return pa.Table.from_arrays(columns, schema=target)
