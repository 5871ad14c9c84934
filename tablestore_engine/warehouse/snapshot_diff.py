"""Changes between snapshots as rows and as counts.

Names      read_changes_table   changelog rows of (since, until] with _row_kind and _snapshot_id
           ChangeCounts, count_changes   net inserted, updated, deleted keys between two states
Steps      each file's columns are found by id, so that renamed, dropped and added columns mean what they mean today
           counts: the first and last row kind of each key decide; a key that came and went counts as nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

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
    """Rows in order: the columns of the newest schema, _row_kind (+I -U +U -D), _snapshot_id. Raises TS1016, TS1302."""
    last = until if until is not None else store.snapshots.find_latest_id() or since
    if last < since:
        raise FixRequest(
            "TS1016",
            "changes are read forward",
            why=f"from snapshot {since} to {last}",
            fix="swap the two snapshots",
        )
    schema = store.schema
    target = pa.schema([*schema.arrow_schema(), (ROW_KIND, pa.string()), (SNAPSHOT_ID, pa.int64())])
    target = pa.schema([field.with_nullable(True) for field in target])
    texts = pa.array([RowKind(number).short_string for number in range(4)])
    parts = []
    for snapshot_id in range(since + 1, last + 1):
        for batch in store.read_changes(store.snapshots.get(snapshot_id), schema):
            kinds = batch.rows.column(ROW_KIND_COLUMN)
            rows = batch.rows.drop_columns([ROW_KIND_COLUMN])
            rows = rows.append_column(ROW_KIND, texts.take(kinds.combine_chunks()))
            rows = rows.append_column(SNAPSHOT_ID, pa.array([snapshot_id] * rows.num_rows, pa.int64()))
            parts.append(pa.Table.from_arrays(rows.columns, schema=target))
    return pa.concat_tables(parts) if parts else target.empty_table()


def count_changes(store: TableStore, since: int, until: int) -> ChangeCounts:
    """Net counts between two snapshots, in either order; append-only tables count rows."""
    if until < since:
        back = count_changes(store, until, since)
        return ChangeCounts(back.deleted, back.updated, back.inserted)
    rows = read_changes_table(store, since, until)
    keys = list(store.schema.primary_keys)
    kinds = pl.Series(ROW_KIND, rows.column(ROW_KIND).to_pylist(), dtype=pl.String)
    if not keys:
        return ChangeCounts(int((kinds == "+I").sum()), 0, int((kinds == "-D").sum()))
    frame = order_columns(rows, keys)  # groups as keys do: -0.0 is another key than 0.0
    ends = (
        frame.with_columns(kinds)
        .group_by(frame.columns, maintain_order=True)
        .agg(pl.col(ROW_KIND).first().alias("first"), pl.col(ROW_KIND).last().alias("last"))
    )
    came, stays = pl.col("first") == "+I", pl.col("last").is_in(["+I", "+U"])
    counted = ends.select(
        (came & stays).sum().alias("inserted"),
        (~came & stays).sum().alias("updated"),
        (~came & ~stays).sum().alias("deleted"),
    ).row(0)
    return ChangeCounts(*(int(value) for value in counted))
