"""Schemas of Kafka Connect, in JSON and in Avro → what the values of a row mean.

CHANGE     the types of Kafka Connect
Types      names of org.apache.kafka.connect.data and of io.debezium.time, .data: a name says more than the type under
           it, which is taken where the name is unknown
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tablestore_engine.ingest.wire_types import (
    BINARY,
    DAYS,
    INSTANT,
    MICROS_OF_DAY,
    MILLIS_OF_DAY,
    NANOS_OF_DAY,
    SCALED,
    TEXT,
    WireType,
    array_of,
    decimals,
    map_of,
    moments,
    row_of,
    scalar,
)
from tablestore_engine.log.avro_decode import AvroRecord, node_of, record_fields

_DIGITS_MAX = 38
_UNSAID = 64  # the digits that Avro's converter writes where nobody has said how many there are
_NAMED: Mapping[str, WireType] = {
    "org.apache.kafka.connect.data.Date": DAYS,
    "org.apache.kafka.connect.data.Time": MILLIS_OF_DAY,
    "org.apache.kafka.connect.data.Timestamp": moments("ms"),
    "io.debezium.time.Date": DAYS,
    "io.debezium.time.Time": MILLIS_OF_DAY,
    "io.debezium.time.MicroTime": MICROS_OF_DAY,
    "io.debezium.time.NanoTime": NANOS_OF_DAY,
    "io.debezium.time.Timestamp": moments("ms"),
    "io.debezium.time.MicroTimestamp": moments("us"),
    "io.debezium.time.NanoTimestamp": moments("ns"),
    "io.debezium.time.ZonedTimestamp": INSTANT,
    "io.debezium.data.VariableScaleDecimal": SCALED,
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_CONNECT: Mapping[str, WireType] = {
    "int8": scalar("TINYINT"),
    "int16": scalar("SMALLINT"),
    "int32": scalar("INT"),
    "int64": scalar("BIGINT"),
    "float": scalar("FLOAT"),
    "float32": scalar("FLOAT"),
    "double": scalar("DOUBLE"),
    "float64": scalar("DOUBLE"),
    "boolean": scalar("BOOLEAN"),
    "string": TEXT,
    "bytes": BINARY,
}
_AVRO: Mapping[str, WireType] = {
    "int": scalar("INT"),
    "long": scalar("BIGINT"),
    "float": scalar("FLOAT"),
    "double": scalar("DOUBLE"),
    "boolean": scalar("BOOLEAN"),
    "string": TEXT,
    "enum": TEXT,
    "bytes": BINARY,
    "fixed": BINARY,
}
_SMALL: Mapping[str, WireType] = {"int8": scalar("TINYINT"), "int16": scalar("SMALLINT")}
_LOGICAL: Mapping[str, WireType] = {
    "date": DAYS,
    "time-millis": MILLIS_OF_DAY,
    "time-micros": MICROS_OF_DAY,
    "timestamp-millis": moments("ms"),
    "timestamp-micros": moments("us"),
    "timestamp-nanos": moments("ns"),
    "local-timestamp-millis": moments("ms"),
    "local-timestamp-micros": moments("us"),
    "local-timestamp-nanos": moments("ns"),
}


def connect_row(node: Mapping[str, Any]) -> Mapping[str, WireType]:
    """Column → what it means. Raises KeyError, ValueError, TypeError for what is no struct."""
    if node["type"] != "struct":
        raise TypeError(f"a row of type {node['type']!r}")
    return {one["field"]: _connect(one) for one in node["fields"]}


def _connect(node: Mapping[str, Any]) -> WireType:
    name, kind = str(node.get("name")), node["type"]
    if name == _DECIMAL:
        told = node.get("parameters") or {}
        return decimals(int(told.get("connect.decimal.precision", _DIGITS_MAX)), int(told["scale"]))
    if name in _NAMED:
        return _NAMED[name]
    if kind == "array":
        return array_of(_connect(node["items"]))
    if kind == "map":
        return map_of(_connect(node["keys"]), _connect(node["values"]))
    if kind == "struct":
        return row_of(connect_row(node))
    if kind not in _CONNECT:
        raise ValueError(f"unknown type {kind!r}")
    return _CONNECT[kind]


def avro_row(record: AvroRecord) -> Mapping[str, WireType]:
    """Column → what it means. Raises ValueError, TypeError."""
    return {name: _avro(node, record.types) for name, node in record.fields.items()}


def _avro(node: Any, types: Mapping[str, Any]) -> WireType:  # noqa: ANN401 - parsed JSON
    node = node_of(node, types)
    if isinstance(node, str):
        return _primitive(node)
    found = _avro_named(node)
    if found is not None:
        return found
    kind = node["type"]
    nested = _AVRO_NESTED.get(kind) if isinstance(kind, str) else None
    if nested is not None:
        return nested(node, types)
    return _avro(kind, types) if isinstance(kind, dict | list) else _primitive(kind)


def _avro_named(node: Mapping[str, Any]) -> WireType | None:
    """Connect's name for it, or Avro's logical type."""
    name, logical = str(node.get("connect.name")), str(node.get("logicalType"))
    if logical == "decimal" or name == _DECIMAL:
        told = node.get("connect.parameters") or {}
        written = int(node.get("precision", _UNSAID))
        digits = told.get("connect.decimal.precision", _DIGITS_MAX if written == _UNSAID else written)
        return decimals(int(digits), int(node.get("scale", told.get("scale", 0))))
    if name in _NAMED:
        return _NAMED[name]
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    return _SMALL.get(str(node.get("connect.type")))


def _primitive(kind: str) -> WireType:
    if kind not in _AVRO:
        raise ValueError(f"unknown type {kind!r}")
    return _AVRO[kind]


def _avro_array(node: Mapping[str, Any], types: Mapping[str, Any]) -> WireType:
    """An array; of entries, as Connect writes a map whose keys are no texts, it is a map."""
    items = node_of(node["items"], types)
    is_entry = isinstance(items, dict) and items.get("connect.internal.type") == "MapEntry"
    if is_entry:
        fields = record_fields(items)
        return map_of(_avro(fields["key"], types), _avro(fields["value"], types))
    return array_of(_avro(items, types))


_AVRO_NESTED: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], WireType]] = {
    "array": _avro_array,
    "map": lambda node, types: map_of(TEXT, _avro(node["values"], types)),
    "record": lambda node, types: row_of(
        {name: _avro(one, types) for name, one in record_fields(node).items()}
    ),
}
