"""The schema of a keyed table of another engine once this engine can write it.

CHANGE     the options that `tablestore convert` sets
INVARIANT  columns, keys and all other options stay; a table that is written here already stays as it is.
"""

from __future__ import annotations

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.store.alter import SchemaChange
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.write.target_schema import KEYED_DEFAULTS

_SET = ("deletion-vectors.enabled", "changelog-producer", "write-only", "num-levels")


def plan_conversion(store: TableStore, buckets: int | None, new_uuid: str) -> SchemaChange:
    """The change of the schema. `buckets` None: as many as the table has; of dynamic ones as its largest partition has.

    `new_uuid`: the identity of the table, if it has none. Raises FixRequest TS1577.
    """
    if buckets is not None and buckets < 1:
        raise FixRequest(
            "TS1577",
            f"{store.location} cannot get {buckets} buckets",
            why="a converted table has a fixed number of buckets",
            fix="give a number of at least 1, or leave it out",
        )
    snapshot = store.latest()
    entries = () if snapshot is None else store.context.scanner.live_entries(snapshot)
    used = 1 + max((entry.bucket for entry in entries), default=0)

    def change(schema: TableSchema) -> TableSchema:
        if _is_written_here(schema):
            return schema
        count = buckets or (schema.bucket_count if schema.bucket_count > 0 else used)
        wanted: dict[str, str | None] = {key: KEYED_DEFAULTS[key] for key in _SET}
        if TableTraits(schema).merge_engine.keeps_stored:  # which Paimon refuses beside vectors
            del wanted["deletion-vectors.enabled"]
        uuid = schema.options.get("tablestore.table-uuid", new_uuid)
        return set_options(schema, {**wanted, "bucket": str(count), "tablestore.table-uuid": uuid})

    return change


def _is_written_here(schema: TableSchema) -> bool:
    producer = schema.options.get("changelog-producer", "none")
    return (
        TableTraits(schema).has_inbox and producer in ("none", "lookup", "input") and schema.bucket_count > 0
    )
