"""Kafka messages → changelog rows: the other direction of the envelope, for our readers and tests.

Names      LogMessage      one message with its headers read
           decode_rows()   messages of one table → Arrow rows with `_ROW_KIND`
Kinds      header `k` when it is there; else by the value: null -D, op c, r and u +I (u is +U), op d -D
INVARIANT  a tombstone gives a row with the key columns set and all others null.
INVARIANT  decode(encode(rows)) = rows: no value loses digits (decimals never pass through a float).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import BINARY_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow

_KIND_OF_OP = {
    "c": RowKind.INSERT,
    "r": RowKind.INSERT,
    "u": RowKind.UPDATE_AFTER,
    "d": RowKind.DELETE,
}


@dataclass(frozen=True)
class LogMessage:
    """One message; what a header would say is None where the message does not have it (foreign producers)."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    snapshot_id: int | None = None
    commit: str | None = None
    kind: RowKind | None = None
    sequence: int | None = None
    timestamp_ms: int = 0


def decode_rows(messages: Sequence[LogMessage], schema: TableSchema) -> pa.Table:
    """All columns of the table and `_ROW_KIND`, one row per message, in order. Raises FixData TS1718."""
    pairs = [_decode_one(message) for message in messages]
    columns: dict[str, pa.Array] = {}
    for column in schema.fields:
        raw = [row.get(column.name) for _, row in pairs]
        try:
            columns[column.name] = _to_arrow(raw, column.type)
        except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
            raise FixData(
                "TS1718",
                f"messages of column {column.name!r} cannot be read",
                why=f"expected {column.type.root}, got {error}",
                fix="read the topic with the schema it was written with",
            ) from error
    columns[ROW_KIND_COLUMN] = pa.array([int(kind) for kind, _ in pairs], pa.int8())
    return pa.table(columns)


def _decode_one(message: LogMessage) -> tuple[RowKind, dict[str, Any]]:
    try:
        if message.value is None:
            return RowKind.DELETE, _parse(message.key)
        envelope = _parse(message.value)
        kind = message.kind if message.kind is not None else _KIND_OF_OP[envelope["op"]]
        row = envelope["before"] if envelope["op"] == "d" else envelope["after"]
        if not isinstance(row, dict):
            raise TypeError(f"op {envelope['op']!r} without a row")
    except (ValueError, KeyError, TypeError) as error:
        raise FixData(
            "TS1718",
            f"the message at offset {message.offset} of partition {message.partition} cannot be read",
            why=f"expected debezium-json with before, after and op: {error!r}",
            fix="give the table a topic that nothing else writes to",
        ) from error
    return kind, row


def _parse(data: bytes | None) -> dict[str, Any]:
    if data is None:
        raise ValueError("neither key nor value")
    parsed = json.loads(data, parse_float=Decimal)
    if not isinstance(parsed, dict):
        raise TypeError("not a JSON object")
    return parsed


def _to_arrow(raw: Sequence[Any], kind: DataType) -> pa.Array:
    """Parsed JSON values of one column as an Arrow array of the column's type."""
    arrow = type_to_arrow(kind)
    if kind.root in ("ARRAY", "MAP", "MULTISET", "ROW"):
        return _nested_to_arrow(raw, kind, arrow)
    if kind.root in TIMESTAMP_ROOTS:
        return pa.array(raw, pa.string()).cast(arrow)
    convert = _CONVERT.get(kind.root)
    if convert is not None:
        raw = [None if value is None else convert(value) for value in raw]
    if kind.root == "DATE":
        return pa.array(raw, pa.string()).cast(arrow)
    if kind.root == "TIME":
        return pa.array(raw, pa.int32()).cast(arrow)
    return pa.array(raw, arrow)


def _nested_to_arrow(raw: Sequence[Any], kind: DataType, arrow: pa.DataType) -> pa.Array:
    valid = np.array([value is not None for value in raw], dtype=bool)
    if kind.root == "ROW":
        children = [_to_arrow([v and v.get(f.name) for v in raw], f.type) for f in kind.fields]
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(~valid))
    offsets = np.zeros(len(raw) + 1, dtype=np.int32)
    np.cumsum([0 if value is None else len(value) for value in raw], out=offsets[1:])
    mask = pa.array(~valid) if not valid.all() else None
    if kind.root == "ARRAY":
        assert kind.element is not None
        items = _to_arrow([item for value in raw if value is not None for item in value], kind.element)
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow, mask=mask)
    entries = [pair for value in raw if value is not None for pair in value.items()]
    key, value = (
        (kind.key, kind.value) if kind.root == "MAP" else (kind.element, DataType("INT", nullable=False))
    )
    assert key is not None
    assert value is not None
    keys = _to_arrow([_key_value(text, key) for text, _ in entries], key)
    values = _to_arrow([item for _, item in entries], value)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values, type=arrow, mask=mask)


def _key_value(text: str, kind: DataType) -> object:
    """A map key is always text in JSON; numbers and booleans are parsed again."""
    if kind.root in ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT"):
        return json.loads(text)
    return text


def _time_ms(text: str) -> int:
    clock, _, fraction = text.partition(".")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((fraction + "000")[:3])


_CONVERT: dict[str, Callable[[Any], object]] = {
    "FLOAT": float,
    "DOUBLE": float,
    "DECIMAL": Decimal,
    "TIME": _time_ms,
    **dict.fromkeys(BINARY_ROOTS, base64.b64decode),
}
