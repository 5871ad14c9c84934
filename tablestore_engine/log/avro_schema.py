"""The Avro schemas of a table's messages, as text: what a registry keeps under `<topic>-key` and `<topic>-value`.

CHANGE     the Avro schema of a table
Value      record <topic>.Envelope {before: [null, <topic>.Value], after: [null, <topic>.Value], op: string}
           as Flink's debezium-avro-confluent and Debezium have it; Value holds the columns, Key those of the key
Types      BOOLEAN boolean · TINYINT SMALLINT INT int · BIGINT long · FLOAT float · DOUBLE double · text string ·
           binary bytes · DECIMAL bytes/decimal · DATE int/date · TIME int/time-millis ·
           TIMESTAMP long/local-timestamp-{millis,micros,nanos} by precision 3, 6, 9 · LTZ long/timestamp-… ·
           ROW record · ARRAY array · MAP and MULTISET map; with a key that is no text an array of {key, value}, as
           Paimon's and Iceberg's Avro files have it · nullable [null, type], with default null in a record
INVARIANT  equal schemas have equal texts: a registry gives the same number again.
INVARIANT  every record has a name of its own: that of its place, since two types under one name are no schema.
EVOLUTION  a column that is added is nullable, so it has a default and readers of old and new messages agree (BACKWARD).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import timestamp_unit
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Mapping[str, str] = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    **dict.fromkeys(CHARACTER_ROOTS, "string"),
    **dict.fromkeys(BINARY_ROOTS, "bytes"),
}
_UNITS = {"ms": "millis", "us": "micros", "ns": "nanos"}
_COUNT = DataType("INT", nullable=False)  # of an element of a MULTISET


@dataclass(frozen=True)
class AvroSchemas:
    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class SchemaIds:
    """What stands in front of an Avro key or value; 0 where there is none."""

    key: int = 0
    value: int = 0


def avro_schemas(schema: TableSchema, topic: str, formats: LogFormats) -> AvroSchemas:
    """Raises FixRequest TS1763, Unsupported TS1764."""
    namespace = ".".join(_cleaned(part) for part in topic.split(".") if part) or "topic"
    key = value = None
    if schema.is_keyed and formats.key is KeyFormat.AVRO:
        key_fields = tuple(schema.field(name) for name in schema.primary_keys)
        key = _text(_record(key_fields, (namespace, "Key")))
    if formats.value is ValueFormat.AVRO:
        row = _record(schema.fields, (namespace, "Value"))
        ends = [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", f"{namespace}.Value"], "default": None},
            {"name": "op", "type": "string"},
        ]
        value = _text({"type": "record", "name": "Envelope", "namespace": namespace, "fields": ends})
    return AvroSchemas(key, value)


def subjects(schemas: AvroSchemas, topic: str) -> Mapping[str, str]:
    """Subject → schema text, by topic as Confluent's serializers do it unless told otherwise."""
    named = {f"{topic}-key": schemas.key, f"{topic}-value": schemas.value}
    return {subject: text for subject, text in named.items() if text is not None}


def is_array_map(kind: DataType) -> bool:
    """Whether a MAP or MULTISET is an array of entries: Avro's own maps have keys of text."""
    key, _ = entry_types(kind)
    return key.root not in CHARACTER_ROOTS


def entry_types(kind: DataType) -> tuple[DataType, DataType]:
    """Key and value of a MAP; of a MULTISET its element and a count. Keys are never null."""
    key, value = (kind.key, kind.value) if kind.root == "MAP" else (kind.element, _COUNT)
    if key is None or value is None:
        raise _no_avro(kind)
    return key.with_nullable(False), value


def _text(node: object) -> str:
    return json.dumps(node, separators=(",", ":"))


def _cleaned(text: str) -> str:
    """A part of a topic's name as a part of a namespace."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return plain if _NAME.fullmatch(plain) else f"_{plain}"


def _record(fields: tuple[DataField, ...], place: tuple[str, ...]) -> object:
    members: list[Mapping[str, object]] = []
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise FixRequest(
                "TS1763",
                f"column {field.name!r} cannot be published as Avro",
                why="a name in Avro has letters a-z A-Z, digits and _ only, and no digit in front",
                fix="rename the column, or take another 'log.format' ('log.key.format' for one of the key)",
            )
        member: dict[str, object] = {"name": field.name, "type": _type(field.type, (*place, field.name))}
        if field.type.nullable:
            member["default"] = None
        members.append(member)
    return {"type": "record", **_names(place), "fields": members}


def _names(place: tuple[str, ...]) -> Mapping[str, str]:
    return {"name": place[-1], "namespace": ".".join(place[:-1])}


def _type(kind: DataType, place: tuple[str, ...]) -> object:
    node = _not_null(kind, place)
    return ["null", node] if kind.nullable else node


def _not_null(kind: DataType, place: tuple[str, ...]) -> object:
    root = kind.root
    if root in _PLAIN:
        return _PLAIN[root]
    if root in TIMESTAMP_ROOTS:
        local = "local-" if root == "TIMESTAMP" else ""
        unit = _UNITS[timestamp_unit(kind.precision or 0)]
        return {"type": "long", "logicalType": f"{local}timestamp-{unit}"}
    match root:
        case "DECIMAL":
            digits = {"precision": kind.precision, "scale": kind.scale or 0}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case "DATE":
            return {"type": "int", "logicalType": "date"}
        case "TIME":
            return {"type": "int", "logicalType": "time-millis"}
        case "ROW":
            return _record(kind.fields, place)
        case "ARRAY" if kind.element is not None:
            return {"type": "array", "items": _type(kind.element, (*place, "element"))}
        case "MAP" | "MULTISET":
            return _map(kind, place)
        case _:
            raise _no_avro(kind)


def _map(kind: DataType, place: tuple[str, ...]) -> object:
    key, value = entry_types(kind)
    values = _type(value, (*place, "value"))
    if not is_array_map(kind):
        return {"type": "map", "values": values}
    members: list[object] = [
        {"name": "key", "type": _type(key, (*place, "key"))},
        {"name": "value", "type": values, **({"default": None} if value.nullable else {})},
    ]
    entry = {"type": "record", **_names(place), "fields": members}
    return {"type": "array", "items": entry, "logicalType": "map"}


def _no_avro(kind: DataType) -> Unsupported:
    return Unsupported(
        "TS1764",
        f"a column of type {type_to_text(kind)} cannot be published as Avro",
        why="Avro has no type for it",
        fix="leave the column out of the table, or take another 'log.format'",
    )
