"""Changes between snapshots as rows and as counts.

Names      read_changes_table   changelog rows of (since, until] with _row_kind and _snapshot_id
           read_change_batches  the same as a stream, some of the columns if wanted; changes_schema: its columns
           ChangeCounts, count_changes   net inserted, updated, deleted keys between two states
           NetKinds             first and last kind of each key
Steps      each file's columns are found by id, so that renamed, dropped and added columns mean what they mean today
           counts: the first and last row kind of each key decide; a key that came and went counts as nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.store.table_store import TableStore

ROW_KIND, SNAPSHOT_ID = "_row_kind", "_snapshot_id"


@dataclass(frozen=True)
class ChangeCounts:
    """Net changes: `updated` keys existed before and after with at least one change."""

    inserted: int
    updated: int
    deleted: int


def read_changes_table(store: TableStore, since: int, until: int | None) -> pa.Table:
    """All rows of read_change_batches. Raises TS1016, TS1302."""
    batches = read_change_batches(store, since, until)
    parts = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(parts) if parts else changes_schema(store).empty_table()


def changes_schema(store: TableStore, columns: Sequence[str] | None = None) -> pa.Schema:
    """Columns of changes: those of the newest schema (or some), _row_kind, _snapshot_id."""
    full = store.schema.arrow_schema()
    fields = list(full) if columns is None else [full.field(name) for name in columns]
    target = pa.schema([*fields, (ROW_KIND, pa.string()), (SNAPSHOT_ID, pa.int64())])
    return pa.schema([field.with_nullable(True) for field in target])


def read_change_batches(
    store: TableStore, since: int, until: int | None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows in order, a step at a time: see changes_schema; kinds are +I -U +U -D. Raises TS1016, TS1302."""
    last = until if until is not None else store.snapshots.find_latest_id() or since
    if last < since:
        raise FixRequest(
            "TS1016",
            "changes are read forward",
            why=f"from snapshot {since} to {last}",
            fix="swap the two snapshots",
        )
    return _change_batches(store, range(since + 1, last + 1), columns)


def _change_batches(
    store: TableStore, snapshots: range, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    schema, target = store.schema, changes_schema(store, columns)
    texts = pa.array([RowKind(number).short_string for number in range(4)])
    for snapshot_id in snapshots:
        for batch in store.read_changes(store.snapshots.get(snapshot_id), schema, columns):
            kinds = batch.rows.column(ROW_KIND_COLUMN)
            rows = batch.rows.drop_columns([ROW_KIND_COLUMN])
            rows = rows.append_column(ROW_KIND, texts.take(kinds.combine_chunks()))
            rows = rows.append_column(SNAPSHOT_ID, pa.array(np.full(rows.num_rows, snapshot_id), pa.int64()))
            yield from pa.Table.from_arrays(rows.columns, schema=target).to_batches()


def count_changes(store: TableStore, since: int, until: int) -> ChangeCounts:
    """Net counts between two snapshots, in either order; append-only tables count rows."""
    if until < since:
        back = count_changes(store, until, since)
        return ChangeCounts(back.deleted, back.updated, back.inserted)
    keys = list(store.schema.primary_keys)
    batches = read_change_batches(store, since, until, keys or store.schema.field_names[:1])
    if not keys:
        came = went = 0
        for batch in batches:
            kinds = batch.column(ROW_KIND)
            came, went = came + _count(kinds, "+I"), went + _count(kinds, "-D")
        return ChangeCounts(came, 0, went)
    ends = NetKinds()
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        ends.add(
            order_columns(rows, keys), rows.column(ROW_KIND)
        )  # groups as keys do: -0.0 is another than 0.0
    return ends.count()


def _count(kinds: pa.Array, kind: str) -> int:
    return int(pc.sum(pc.equal(kinds, kind)).as_py() or 0)


class NetKinds:
    """The first and the last kind of each key, of changes that come in order. Holds keys and two flags, no rows."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._settled = 0

    def add(self, keys: pl.DataFrame, kinds: pa.ChunkedArray) -> None:
        """The next changes; now and then what came is settled, so that at most twice the keys are held."""
        first = pl.Series("#came", np.asarray(pc.equal(kinds, "+I")))
        last = pl.Series("#stays", np.asarray(pc.is_in(kinds, pa.array(["+I", "+U"]))))
        self._parts.append(keys.with_columns(first, last))
        if sum(part.height for part in self._parts[1:]) > self._settled:
            self._settle()

    def count(self) -> ChangeCounts:
        """Keys that came, that changed, that went."""
        if not self._parts:
            return ChangeCounts(0, 0, 0)
        self._settle()
        came, stays = pl.col("#came"), pl.col("#stays")
        counted = (
            self._parts[0]
            .select(
                (came & stays).sum().alias("inserted"),
                (~came & stays).sum().alias("updated"),
                (~came & ~stays).sum().alias("deleted"),
            )
            .row(0)
        )
        return ChangeCounts(*(int(value) for value in counted))

    def _settle(self) -> None:
        rows = pl.concat(self._parts)
        keys = [name for name in rows.columns if not name.startswith("#")]
        ends = rows.group_by(keys, maintain_order=True).agg(pl.col("#came").first(), pl.col("#stays").last())
        self._parts, self._settled = [ends], ends.height
