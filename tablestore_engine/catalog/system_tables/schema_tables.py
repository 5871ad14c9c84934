"""`$schemas`, `$options`, `$aggregation_fields`, `$statistics`: how a table is declared, and what ANALYZE found.

CHANGE     the columns of $schemas, $options, $aggregation_fields and $statistics
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tablestore_engine.catalog.system_tables.system_table import Row, SystemState, SystemTable, moment
from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.type_text import field_to_json, type_to_text
from tablestore_engine.sql.scanner import quote_name


def _schemas(state: SystemState) -> Iterator[Row]:
    schemas = state.context.schemas
    for number in schemas.list_ids():
        one = schemas.get(number)
        yield (
            one.id,
            _flat([field_to_json(field) for field in one.fields]),
            _flat(list(one.partition_keys)),
            _flat(list(one.primary_keys)),
            _flat(dict(one.options)),
            one.comment,
            moment(one.time_millis),
        )


def _options(state: SystemState) -> Iterator[Row]:
    yield from sorted(state.context.latest_schema().options.items())


def _aggregation_fields(state: SystemState) -> Iterator[Row]:
    """`fields.NAME.…` options of each column, as Java prints lists: `[sum]`."""
    schema = state.context.latest_schema()
    named = [(key.split("."), key, value) for key, value in sorted(schema.options.items())]
    for field in schema.fields:
        own = [
            (key, value)
            for parts, key, value in named
            if len(parts) > 2 and parts[:2] == ["fields", field.name]
        ]
        functions, options = _listed([value for _, value in own]), _listed([key for key, _ in own])
        yield (field.name, _type_text(field.type), functions, options, field.description)


def _statistics(state: SystemState) -> Iterator[Row]:
    """Those of the snapshot; none when it has none. Raises FixData TS1347."""
    name = None if state.snapshot is None else state.snapshot.statistics
    if name is None:
        return
    path = state.context.layout.statistics_path(name)
    try:
        said = parse_object(state.context.fileio.read(path))
        yield (
            int(said["snapshotId"]),
            int(said["schemaId"]),
            said.get("mergedRecordCount"),
            said.get("mergedRecordSize"),
            _flat(said.get("colStats") or {}),
        )
    except DAMAGE as wrong:
        raise FixData(
            "TS1347",
            f"statistics of {state.context.layout.location} cannot be read",
            why=f"{path}: {type(wrong).__name__}: {wrong}",
            fix="run ANALYZE again in the engine that wrote them",
        ) from wrong


def _type_text(kind: DataType) -> str:
    """As Java writes a type in SQL: names of fields inside in backticks."""
    end = "" if kind.nullable else " NOT NULL"
    if kind.root == "ROW":
        inside = ", ".join(f"{quote_name(one.name)} {_type_text(one.type)}" for one in kind.fields)
        return f"ROW<{inside}>{end}"
    children = [one for one in (kind.element, kind.key, kind.value) if one is not None]
    if children and kind.root != "VECTOR":
        return f"{kind.root}<{', '.join(map(_type_text, children))}>{end}"
    return type_to_text(kind)


def _listed(texts: list[str]) -> str:
    return f"[{', '.join(texts)}]"


def _flat(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


SCHEMA_TABLES = (
    SystemTable(
        "schemas",
        (
            ("schema_id", "BIGINT"),
            ("fields", "STRING"),
            ("partition_keys", "STRING"),
            ("primary_keys", "STRING"),
            ("options", "STRING"),
            ("comment", "STRING?"),
            ("update_time", "TIMESTAMP(3)"),
        ),
        _schemas,
    ),
    SystemTable("options", (("key", "STRING"), ("value", "STRING")), _options),
    SystemTable(
        "aggregation_fields",
        (
            ("field_name", "STRING"),
            ("field_type", "STRING"),
            ("function", "STRING?"),
            ("function_options", "STRING?"),
            ("comment", "STRING?"),
        ),
        _aggregation_fields,
    ),
    SystemTable(
        "statistics",
        (
            ("snapshot_id", "BIGINT"),
            ("schema_id", "BIGINT"),
            ("mergedRecordCount", "BIGINT?"),
            ("mergedRecordSize", "BIGINT?"),
            ("colstat", "STRING?"),
        ),
        _statistics,
    ),
)
