"""Keys and values in Confluent's wire format → Arrow columns: the other direction of log/avro_values.py.

Wire       a byte 0 · four bytes, big-endian: the number of the writer's schema · the value
Steps      1 fastavro reads what is there, without logical types: its decimals and times are Python's, which have fewer
           years and digits 2 whole columns get their meaning from the writer's type, then the table's type
INVARIANT  a message is read with the schema that it names: columns are found by name, whatever the table has now.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.type_arrow import type_to_arrow

FindSchema = Callable[[int], str]
_MAGIC = 0
_ID_BYTES = 4
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_EXACT = Context(prec=100)  # more digits than any DECIMAL has


@dataclass(frozen=True)
class AvroRecord:
    """A record type of a writer: number of its schema, and `name` in it; `types`: the named types of the schema."""

    number: int
    name: str
    fields: Mapping[str, Any]
    types: Mapping[str, Any]


@dataclass(frozen=True)
class _Writer:
    parsed: Any
    record: AvroRecord
    members: dict[str, AvroRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class AvroReader:
    """Asks for each schema once."""

    find_schema: FindSchema
    _writers: dict[int, _Writer] = field(default_factory=dict)

    def read(self, data: bytes | None) -> tuple[dict[str, Any], AvroRecord]:
        """A record and its type. Raises ValueError, TypeError for what is none."""
        if data is None:
            raise ValueError("neither key nor value")
        if len(data) <= _ID_BYTES or data[0] != _MAGIC:
            raise ValueError(
                "not in the wire format of a schema registry: a byte 0 and four of a schema's number"
            )
        writer = self._writer(int.from_bytes(data[1 : 1 + _ID_BYTES], "big"))
        rest = io.BytesIO(data[1 + _ID_BYTES :])
        try:
            record = fastavro.schemaless_reader(rest, writer.parsed, None)
        except (EOFError, IndexError, OverflowError) as error:
            raise ValueError(f"the bytes do not fit the schema: {error!r}") from error
        if rest.read(1):
            raise ValueError("more bytes than the schema needs")
        if not isinstance(record, dict):
            raise TypeError("not a record")
        return record, writer.record

    def member(self, record: AvroRecord, name: str) -> AvroRecord:
        """The type of a field that is a record, or null. Raises TypeError."""
        members = self._writers[record.number].members
        if name not in members:
            node = node_of(record.fields.get(name), record.types)
            members[name] = AvroRecord(record.number, name, record_fields(node), record.types)
        return members[name]

    def _writer(self, number: int) -> _Writer:
        if number not in self._writers:
            node = json.loads(self.find_schema(number))
            types: dict[str, Any] = {}
            _collect(node, "", types)
            record = AvroRecord(number, "", record_fields(node), types)
            self._writers[number] = _Writer(fastavro.parse_schema(_without_logic(node)), record)
        return self._writers[number]


def record_fields(node: Any) -> Mapping[str, Any]:  # noqa: ANN401 - parsed JSON
    """Field → its type. Raises TypeError for what is no record."""
    if not isinstance(node, dict) or node.get("type") != "record":
        raise TypeError("not a record")
    return {one["name"]: one["type"] for one in node["fields"]}


def avro_column(raw: Sequence[Any], node: Any, types: Mapping[str, Any], kind: DataType) -> pa.Array:  # noqa: ANN401
    """`node`: the writer's type, None where it had no such column. Raises ArrowException, ValueError, TypeError."""
    node, arrow = node_of(node, types), type_to_arrow(kind)
    if node is None:
        return pa.nulls(len(raw), arrow)
    logical = str(node.get("logicalType", "")) if isinstance(node, dict) else ""
    if kind.root in ("ARRAY", "MAP", "MULTISET", "ROW"):
        return _nested(raw, node, types, kind)
    if kind.root in TIMESTAMP_ROOTS:
        unit = _UNITS[logical.rpartition("-")[2]]
        return pa.array(raw, pa.int64()).cast(pa.timestamp(unit, arrow.tz)).cast(arrow)
    if kind.root == "DECIMAL" and logical == "decimal":
        scale = node.get("scale", 0)
        return pa.array([None if one is None else _decimal(one, scale) for one in raw], arrow)
    if kind.root in ("DATE", "TIME"):
        return pa.array(raw, pa.int32()).cast(arrow)
    return pa.array(raw, arrow)


def _nested(raw: Sequence[Any], node: Any, types: Mapping[str, Any], kind: DataType) -> pa.Array:  # noqa: ANN401
    arrow = type_to_arrow(kind)
    valid = np.array([one is not None for one in raw], dtype=bool)
    if kind.root == "ROW":
        written = record_fields(node)
        children = [
            avro_column([one and one.get(f.name) for one in raw], written.get(f.name), types, f.type)
            for f in kind.fields
        ]
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(~valid))
    offsets = np.zeros(len(raw) + 1, dtype=np.int32)
    np.cumsum([0 if one is None else len(one) for one in raw], out=offsets[1:])
    mask = None if valid.all() else pa.array(~valid)
    inner = [item for one in raw if one is not None for item in _items(one)]
    if kind.root == "ARRAY":
        assert kind.element is not None  # type_to_arrow has refused it
        items = avro_column(inner, node["items"], types, kind.element)
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow, mask=mask)
    count = DataType("INT", nullable=False)
    key, value = (kind.key, kind.value) if kind.root == "MAP" else (kind.element, count)
    assert key is not None
    assert value is not None
    key_node, value_node = _entry(node, types)
    keys = avro_column([one for one, _ in inner], key_node, types, key)
    values = avro_column([one for _, one in inner], value_node, types, value)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values, type=arrow, mask=mask)


def _items(value: Any) -> Sequence[Any]:  # noqa: ANN401
    """Items of an array, (key, value) of a map or of an array of entries."""
    if isinstance(value, dict):
        return list(value.items())
    return [
        (one["key"], one["value"]) if isinstance(one, dict) and set(one) == {"key", "value"} else one
        for one in value
    ]


def _entry(node: Any, types: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401
    if node["type"] == "map":
        return "string", node["values"]
    fields = record_fields(node_of(node["items"], types))
    return fields["key"], fields["value"]


def _decimal(unscaled: bytes, scale: int) -> Decimal:
    return Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, _EXACT)


def node_of(node: Any, types: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """A union's type that is not null; a name's type."""
    if isinstance(node, list):
        others = [one for one in node if one != "null"]
        if len(others) != 1:
            raise TypeError(f"a union of {len(others)} types besides null")
        node = others[0]
    return types.get(node, node) if isinstance(node, str) else node


def _collect(node: Any, namespace: str, types: dict[str, Any]) -> None:  # noqa: ANN401
    """Named types by full name, and by short name where that is all that is said."""
    if isinstance(node, list):
        for one in node:
            _collect(one, namespace, types)
    if not isinstance(node, dict):
        return
    if "name" in node and node.get("type") in ("record", "enum", "fixed"):
        inner, _, short = node["name"].rpartition(".")
        namespace = inner or node.get("namespace", namespace)
        types[f"{namespace}.{short}" if namespace else short] = node
        types.setdefault(short, node)
        for one in node.get("fields", ()):
            _collect(one["type"], namespace, types)
        return
    for part in ("items", "values", "type"):
        _collect(node.get(part), namespace, types)


def _without_logic(node: Any) -> Any:  # noqa: ANN401
    if isinstance(node, list):
        return [_without_logic(one) for one in node]
    if isinstance(node, dict):
        return {
            key: _without_logic(one) for key, one in node.items() if key not in ("logicalType", "default")
        }
    return node
