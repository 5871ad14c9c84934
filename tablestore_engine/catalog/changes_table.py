"""What changed between two states of a table, as a table of its own: its columns, `_row_kind` and `_snapshot_id`.

CHANGE     the grammar of names like `demo__changes_5_to_9.orders`
INVARIANT  columns are those of the state at the end, found by field id in files of every age.
INVARIANT  the same range is the same rows for ever: snapshots are immutable. One that is gone is an error
           (stream/changes_plan.py).
"""

from __future__ import annotations

from dataclasses import replace

from tablestore_engine.catalog.resolved_names import NO_SNAPSHOT, ResolvedTable, SnapshotRef
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.sql.table_version import ChangesBetween
from tablestore_engine.store.metadata.commit_history import rows_version
from tablestore_engine.store.stage.staging import find_stage_name
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID
from tablestore_engine.stream.changes_plan import plan_changes_between


def resolve_changes(store: TableStore, between: ChangesBetween) -> ResolvedTable:
    """Raises NotFound TS1472 (a snapshot is gone), TS1302, TS1317, FixRequest TS1473 (names, order)."""
    end = store if between.branch is None else store.on_staged(between.branch)
    last = end.latest() if between.until is None else end.snapshots.get(between.until)
    schema = end.schema if last is None else end.context.schema_at(last)
    _check_names(store, schema)
    if last is not None and between.since is not None and between.since > last.id:
        raise FixRequest(
            "TS1473",
            f"changes of {store.location} cannot go from snapshot {between.since} back to {last.id}",
            why="changes are read forward",
            fix="swap the two snapshots, or look whether the table was rolled back",
        )
    pinned = NO_SNAPSHOT if last is None else SnapshotRef(last.id, last.unique)
    label = f"{store.branch}@changes@{between}@{pinned.unique}"
    return ResolvedTable(
        version=f"{store.location}@{label}@{schema.id}",
        label=f"changes_{between}",
        schema=_with_columns(schema),
        load_plan=lambda **_: plan_changes_between(store, end, between, schema),
        snapshot=pinned,
        stage=find_stage_name(end.branch),
        commit=rows_version(end.snapshots, last),
    )


def _with_columns(schema: TableSchema) -> TableSchema:
    highest = max((field.id for field in schema.fields), default=-1)
    more = (
        DataField(highest + 1, ROW_KIND, parse_type("STRING NOT NULL")),
        DataField(highest + 2, SNAPSHOT_ID, parse_type("BIGINT NOT NULL")),
    )
    return replace(schema, fields=(*schema.fields, *more))


def _check_names(store: TableStore, schema: TableSchema) -> None:
    taken = [name for name in schema.field_names if name.lower() in (ROW_KIND, SNAPSHOT_ID)]
    if taken:
        raise FixRequest(
            "TS1473",
            f"changes of {store.location} cannot be read as a table",
            why=f"it has a column {taken[0]!r} of its own, which changes have too",
            fix="rename the column",
        )
