"""Change messages as the formats' own documentation has them, written without any code of ours.

Values     as Python has them: int, str, Decimal, datetime (naive), date, bool, bytes, float
"""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import fastavro

Row = Mapping[str, Any]
Message = tuple[bytes | None, bytes | None]
COLUMNS = {
    "id": "int",
    "name": "text",
    "price": "decimal",
    "at": "timestamp",
    "day": "date",
    "flag": "bool",
    "data": "bytes",
    "ratio": "double",
}
SQL = {
    "int": "INT",
    "long": "BIGINT",
    "text": "STRING",
    "decimal": "DECIMAL(10,2)",
    "timestamp": "TIMESTAMP(6)",
    "date": "DATE",
    "bool": "BOOLEAN",
    "bytes": "BYTES",
    "double": "DOUBLE",
}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock


@dataclass(frozen=True)
class Event:
    """`before` of an update and a delete, `after` of the others."""

    op: str
    before: Row | None
    after: Row | None


def _micros(value: dt.datetime) -> int:
    return (value - _EPOCH) // dt.timedelta(microseconds=1)


def _days(value: dt.date) -> int:
    return (value - _EPOCH.date()).days


def _unscaled(value: Decimal) -> bytes:
    """Two's complement, big-endian, as short as it can be."""
    number = int(value.scaleb(2))
    length = 1
    while not -(1 << (8 * length - 1)) <= number < 1 << (8 * length - 1):
        length += 1
    return number.to_bytes(length, "big", signed=True)


# Debezium ---------------------------------------------------------------------------------------------------------

_CONNECT: dict[str, dict[str, Any]] = {
    "int": {"type": "int32"},
    "long": {"type": "int64"},
    "text": {"type": "string"},
    "decimal": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "timestamp": {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
    "date": {"type": "int32", "name": "io.debezium.time.Date", "version": 1},
    "bool": {"type": "boolean"},
    "bytes": {"type": "bytes"},
    "double": {"type": "double"},
}


def _debezium_value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    match kind:
        case "decimal":
            return base64.b64encode(_unscaled(value)).decode()
        case "timestamp":
            return _micros(value)
        case "date":
            return _days(value)
        case "bytes":
            return base64.b64encode(value).decode()
    return value


def _struct(columns: Mapping[str, str], name: str, side: str | None) -> dict[str, Any]:
    fields = [{**_CONNECT[kind], "optional": one != "id", "field": one} for one, kind in columns.items()]
    made = {"type": "struct", "fields": fields, "optional": side is not None, "name": name}
    return made if side is None else {**made, "field": side}


def _envelope_schema(columns: Mapping[str, str]) -> dict[str, Any]:
    source = [{"type": "string", "optional": True, "field": one} for one in ("db", "schema", "table")]
    return {
        "type": "struct",
        "fields": [
            _struct(columns, "shop.public.orders.Value", "before"),
            _struct(columns, "shop.public.orders.Value", "after"),
            {"type": "struct", "fields": source, "optional": False, "field": "source"},
            {"type": "string", "optional": False, "field": "op"},
            {"type": "int64", "optional": True, "field": "ts_ms"},
        ],
        "optional": False,
        "name": "shop.public.orders.Envelope",
    }


def _debezium_payload(event: Event, columns: Mapping[str, str]) -> dict[str, Any]:
    def row(values: Row | None) -> dict[str, Any] | None:
        return (
            None if values is None else {one: _debezium_value(values[one], columns[one]) for one in columns}
        )

    return {
        "before": row(event.before),
        "after": row(event.after),
        "source": {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders", "lsn": 7},
        "op": event.op,
        "ts_ms": 1_700_000_000_000,
        "transaction": None,
    }


def _steps(event: Event) -> list[Event]:
    """Debezium tells an update of a key as a delete and an insert."""
    if event.op == "u" and event.before and event.after and event.before["id"] != event.after["id"]:
        return [Event("d", event.before, None), Event("c", None, event.after)]
    return [event]


def _id_of(event: Event) -> int:
    row = event.after if event.after is not None else event.before
    assert row is not None
    return int(row["id"])


def _dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def debezium_json(
    event: Event, columns: Mapping[str, str], *, schemas: bool, in_one: bool = False
) -> list[Message]:
    """A delete is followed by a tombstone. `in_one`: an update of the key is one message."""
    found: list[Message] = []
    for step in [event] if in_one else _steps(event):
        key: Any = {"id": _id_of(step)}
        value: Any = _debezium_payload(step, columns)
        if schemas:
            key = {"schema": _struct({"id": columns["id"]}, "shop.public.orders.Key", None), "payload": key}
            value = {"schema": _envelope_schema(columns), "payload": value}
        found.append((_dumped(key), _dumped(value)))
        if step.op == "d":
            found.append((_dumped(key), None))
    return found


_AVRO: dict[str, Any] = {
    "int": "int",
    "long": "long",
    "text": "string",
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2,
                "connect.name": "org.apache.kafka.connect.data.Decimal", "connect.version": 1,
                "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"}},
    "timestamp": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp", "connect.version": 1},
    "date": {"type": "int", "connect.name": "io.debezium.time.Date", "connect.version": 1},
    "bool": "boolean",
    "bytes": "bytes",
    "double": "double",
}  # fmt: skip


@dataclass
class Registry:
    """Numbers schemas as they come."""

    texts: list[str] = field(default_factory=list)

    def number(self, schema: object) -> int:
        """Of a schema."""
        text = json.dumps(schema)
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def find(self, number: int) -> str:
        """The text."""
        return self.texts[number - 1]


def _avro_row(columns: Mapping[str, str], name: str) -> dict[str, Any]:
    fields = [
        {"name": one, "type": _AVRO[kind] if one == "id" else ["null", _AVRO[kind]]}
        for one, kind in columns.items()
    ]
    return {"type": "record", "name": name, "namespace": "shop.public.orders", "fields": fields}


def _avro_value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    match kind:
        case "timestamp":
            return _micros(value)
        case "date":
            return _days(value)
    return value


def debezium_avro(event: Event, columns: Mapping[str, str], registry: Registry) -> list[Message]:
    """Confluent's wire format."""
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.public.orders",
        "fields": [
            {"name": "before", "type": ["null", _avro_row(columns, "Value")]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "op", "type": "string"},
        ],
    }
    key_schema = _avro_row({"id": columns["id"]}, "Key")

    def written(value: object, schema: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
        return b"\0" + registry.number(schema).to_bytes(4, "big") + out.getvalue()

    def row(values: Row | None) -> Any:
        return None if values is None else {one: _avro_value(values[one], columns[one]) for one in columns}

    found: list[Message] = []
    for step in _steps(event):
        key = written({"id": _id_of(step)}, key_schema)
        value = {"before": row(step.before), "after": row(step.after), "op": step.op}
        found.append((key, written(value, envelope)))
        if step.op == "d":
            found.append((key, None))
    return found


# the others ----------------------------------------------------------------------------------------------------------

_MYSQL = {
    "int": "int(11)",
    "long": "bigint(20)",
    "text": "varchar(255)",
    "decimal": "decimal(10,2)",
    "timestamp": "datetime(6)",
    "date": "date",
    "bool": "tinyint(1)",
    "bytes": "varbinary(255)",
    "double": "double",
}


def _text(value: Any, kind: str) -> str | None:
    """Canal: every value is a text."""
    if value is None:
        return None
    match kind:
        case "bool":
            return "1" if value else "0"
        case "bytes":
            return str(value.decode("latin-1"))
        case "timestamp":
            return str(value.isoformat(" ", "microseconds"))
        case "double":
            return repr(value)
    return str(value)


def _changed(before: Row, after: Row) -> list[str]:
    return [name for name in after if before.get(name) != after[name]]


def canal_json(event: Event, columns: Mapping[str, str]) -> list[Message]:
    """`old` has what changed, of an update alone."""

    def row(values: Row, names: Sequence[str]) -> dict[str, Any]:
        return {one: _text(values[one], columns[one]) for one in names}

    whole = event.after if event.after is not None else event.before
    assert whole is not None
    is_update = event.op == "u" and event.before is not None
    value = {
        "data": [row(whole, list(columns))],
        "database": "shop",
        "es": 1_700_000_000_000,
        "id": 5,
        "isDdl": False,
        "mysqlType": {one: _MYSQL[kind] for one, kind in columns.items()},
        "old": [row(event.before, _changed(event.before, whole))] if is_update and event.before else None,
        "pkNames": ["id"],
        "sql": "",
        "table": "orders",
        "ts": 1_700_000_000_001,
        "type": {"c": "INSERT", "r": "INSERT", "u": "UPDATE", "d": "DELETE"}[event.op],
    }
    return [(None, _dumped(value))]


def _plain(value: Any, kind: str) -> Any:
    """Numbers as numbers, times as texts, bytes as base64."""
    if value is None:
        return None
    match kind:
        case "decimal":
            return float(value)
        case "timestamp":
            return value.isoformat(" ", "microseconds")
        case "date":
            return value.isoformat()
        case "bytes":
            return base64.b64encode(value).decode()
    return value


def maxwell_json(event: Event, columns: Mapping[str, str]) -> list[Message]:
    """A row that is read at the start is a bootstrap-insert."""

    def row(values: Row, names: Sequence[str]) -> dict[str, Any]:
        return {one: _plain(values[one], columns[one]) for one in names}

    whole = event.after if event.after is not None else event.before
    assert whole is not None
    value = {
        "database": "shop",
        "table": "orders",
        "type": {"c": "insert", "r": "bootstrap-insert", "u": "update", "d": "delete"}[event.op],
        "ts": 1_700_000_000,
        "xid": 5,
        "commit": True,
        "data": row(whole, list(columns)),
    }
    if event.op == "u" and event.before is not None:
        value["old"] = row(event.before, _changed(event.before, whole))
    return [(_dumped({"database": "shop", "table": "orders", "pk.id": whole["id"]}), _dumped(value))]


def ogg_json(event: Event, columns: Mapping[str, str]) -> list[Message]:
    """After an update only the key and what changed."""

    def row(values: Row | None, names: Sequence[str]) -> dict[str, Any] | None:
        return None if values is None else {one: _plain(values[one], columns[one]) for one in names}

    after = list(columns)
    if event.op == "u" and event.before is not None and event.after is not None:
        after = list(dict.fromkeys(["id", *_changed(event.before, event.after)]))
    value = {
        "table": "SHOP.ORDERS",
        "op_type": {"c": "I", "r": "I", "u": "U", "d": "D"}[event.op],
        "op_ts": "2020-05-13 15:40:06.000000",
        "current_ts": "2020-05-13 15:40:07.000000",
        "pos": "00000000000000000000143",
        "primary_keys": ["id"],
        "after": row(event.after, after),
        "before": row(event.before, list(columns)),
    }
    return [(None, _dumped({name: one for name, one in value.items() if one is not None}))]


Encode = Callable[[Event, Mapping[str, str]], list[Message]]


def encoders(registry: Registry) -> dict[str, tuple[str, Encode]]:
    """name → (format, encoder)."""
    return {
        "debezium-json": ("debezium-json", lambda event, cols: debezium_json(event, cols, schemas=False)),
        "debezium-json with schemas": (
            "debezium-json",
            lambda event, cols: debezium_json(event, cols, schemas=True),
        ),
        "debezium-avro": ("debezium-avro", lambda event, cols: debezium_avro(event, cols, registry)),
        "canal-json": ("canal-json", canal_json),
        "maxwell-json": ("maxwell-json", maxwell_json),
        "ogg-json": ("ogg-json", ogg_json),
    }


TYPED = frozenset({"debezium-json with schemas", "debezium-avro", "canal-json"})
