"""Rows of dbt's docs catalog, from table metadata alone: no Spark, no query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import agate
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.clients.agate_helper import DEFAULT_TYPE_TESTER

from tablestore_engine.api import ColumnInfo, Engine, FixRequest, NotFound, TableFacts
from tablestore_engine.spi import DAMAGED, RelationInfo, describe_damage, moment_text

logger = AdapterLogger("Tablestore")

_FACTS = (
    ("snapshot_id", "Snapshot", "Current snapshot of the table"),
    ("rows", "Rows", "Visible rows of the current snapshot"),
    ("files", "Files", "Data files of the current snapshot"),
    ("bytes", "Bytes", "Size of the data files"),
    ("last_commit", "Last commit", "When the current snapshot was committed (UTC)"),
    ("buckets", "Buckets", "Buckets per partition; -1 without a key"),
    ("primary_key", "Primary key", "Columns that identify a row"),
    ("partition_by", "Partitioned by", "Columns that split the table into folders"),
    ("log_topic", "Kafka topic", "Where the changelog is published"),
)
_BASE = (
    "table_database", "table_schema", "table_name", "table_type", "table_comment", "table_owner",
    "column_name", "column_index", "column_type", "column_comment",
)  # fmt: skip
_PARTS = ("label", "value", "description", "include")
CATALOG_COLUMNS = (*_BASE, *(f"stats:{key}:{part}" for key, _, _ in _FACTS for part in _PARTS))


def _values(facts: TableFacts | None) -> Mapping[str, object]:
    if facts is None:
        return {}
    committed = facts.committed_at_ms
    return {
        "snapshot_id": facts.snapshot_id,
        "rows": facts.rows,
        "files": facts.files,
        "bytes": facts.bytes,
        "last_commit": None if committed is None else moment_text(committed),
        "buckets": facts.buckets,
        "primary_key": ", ".join(facts.primary_key) or None,
        "partition_by": ", ".join(facts.partition_by) or None,
        "log_topic": facts.log,
    }


def catalog_rows(
    relation: RelationInfo, columns: Iterable[ColumnInfo], facts: TableFacts | None, owner: str | None
) -> list[tuple[object, ...]]:
    """One row per column, in the order of CATALOG_COLUMNS."""
    values = _values(facts)
    stats: list[object] = []
    for key, label, description in _FACTS:
        value = values.get(key)
        stats += [label, value, description, value is not None]
    identifier = relation.identifier
    head = (None, identifier.database, identifier.name, relation.kind, relation.comment, owner)
    return [
        (*head, column.name, index, column.type_text, column.comment, *stats)
        for index, column in enumerate(columns, start=1)
    ]


def read_catalog_rows(engine: Engine, relation: RelationInfo, owner: str | None) -> list[tuple[object, ...]]:
    """Rows of one relation. One that cannot be read is left out, by name: the catalog of the others is made."""
    name = str(relation.identifier)
    try:
        facts = engine.table(name).facts() if relation.kind == "table" else None
        return catalog_rows(relation, engine.columns(name), facts, owner)
    except (*DAMAGED, FixRequest) as damage:  # a view that reads what is gone is a request to correct it
        logger.warning(f"{name} is not in the catalog: {describe_damage(damage)}")
        return []


def read_schema_rows(
    engine: Engine, schema: str, names: set[str] | None, owner: str | None
) -> list[tuple[object, ...]]:
    """Rows of a schema's relations, or of some (in lower case); none of a schema that is not there."""
    try:
        infos = engine.relations(schema)
    except NotFound:
        return []
    rows: list[tuple[object, ...]] = []
    for info in infos:
        if names is None or info.identifier.name.lower() in names:
            rows += read_catalog_rows(engine, info, owner)
    return rows


def catalog_table(rows: Sequence[tuple[object, ...]]) -> agate.Table:
    """In dbt's columns."""
    return agate.Table(rows, column_names=CATALOG_COLUMNS, column_types=DEFAULT_TYPE_TESTER)


def list_last_modified(engine: Engine, names: Iterable[tuple[str, str]]) -> list[tuple[str, str, int | None]]:
    """(schema, identifier, epoch ms of the last commit); None for what is no table."""
    result = []
    for schema, identifier in names:
        table = engine.find_table(f"{schema}.{identifier}")
        result.append((schema, identifier, None if table is None else table.facts().committed_at_ms))
    return result
