"""Flink's own classes read what our log writes: each format, each kind, each type that Flink's format has."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from integration_tests.apicurio import Registry
from integration_tests.interop.flink import Flink
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.log.avro_schema import SchemaIds, avro_schemas
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.schema_registry import SchemaRegistry
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope
from tests.doses import cases

# column → Arrow type, Flink's type, a value; Flink's Avro has no finer times than milliseconds and no LTZ
_TYPES: dict[str, tuple[pa.DataType, str, Any]] = {
    "flag": (pa.bool_(), "BOOLEAN", True),
    "tiny": (pa.int8(), "TINYINT", -128),
    "small": (pa.int16(), "SMALLINT", 32767),
    "n": (pa.int32(), "INT", -(2**31)),
    "big": (pa.int64(), "BIGINT", 2**63 - 1),
    "f": (pa.float32(), "FLOAT", 0.10000000149011612),
    "g": (pa.float64(), "DOUBLE", 1e-7),
    "price": (pa.decimal128(38, 9), "DECIMAL(38, 9)", Decimal("-12345678901234567890123456789.000000001")),
    "cents": (pa.decimal128(5, 2), "DECIMAL(5, 2)", Decimal("-0.01")),
    "day": (pa.date32(), "DATE", dt.date(1582, 10, 4)),
    "clock": (pa.time32("ms"), "TIME(0)", dt.time(23, 59, 59)),
    "at": (pa.timestamp("ms"), "TIMESTAMP(3)", dt.datetime(1969, 12, 31, 23, 59, 59, 999000)),  # noqa: DTZ001
    "name": (pa.string(), "STRING", 'a "quoted" ☃ \\ \n text'),
    "raw": (pa.binary(), "BYTES", b"\x00\xff"),
    "tags": (pa.list_(pa.string()), "ARRAY<STRING>", ["x", None, ""]),
    "words": (pa.map_(pa.string(), pa.int64()), "MAP<STRING, BIGINT>", [("a", 1), ("b", None)]),
    "inner": (pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float64()))]), "ROW<a INT, b ARRAY<DOUBLE>>",
              {"a": None, "b": [1.5, None]}),
    "rows": (pa.list_(pa.struct([("x", pa.string())])), "ARRAY<ROW<x STRING>>", [{"x": "y"}, None]),
}  # fmt: skip
_FINER: dict[str, tuple[pa.DataType, str, Any]] = {
    "micro": (pa.timestamp("us"), "TIMESTAMP(6)", dt.datetime(2024, 1, 31, 1, 2, 3, 40)),  # noqa: DTZ001
    "nano": (pa.timestamp("ns"), "TIMESTAMP(9)", 1_706_662_923_123_456_789),
    "zoned": (
        pa.timestamp("us", "UTC"),
        "TIMESTAMP_LTZ(6)",
        dt.datetime(2024, 1, 31, 1, 2, 3, tzinfo=dt.UTC),
    ),
}
JSON_FORMATS = ["debezium-json", "canal-json", "maxwell-json"]


def _table(
    types: dict[str, tuple[pa.DataType, str, Any]], kinds: list[int]
) -> tuple[pa.Table, TableSchema, str]:
    """Rows in turn full and null with these kinds, their schema with a key, and Flink's type of a row."""
    fields = [
        pa.field("id", pa.int64(), nullable=False),
        *(pa.field(name, kind) for name, (kind, _, _) in types.items()),
    ]
    columns: list[pa.Array] = [pa.array(range(len(kinds)), pa.int64())]
    columns += [
        pa.array([value if n % 2 == 0 else None for n in range(len(kinds))], kind)
        for kind, _, value in types.values()
    ]
    rows = pa.table(columns, pa.schema(fields)).append_column("_ROW_KIND", pa.array(kinds, pa.int8()))
    texts = ["id BIGINT NOT NULL", *(f"`{name}` {text}" for name, (_, text, _) in types.items())]
    return rows, new_schema(pa.schema(fields), primary_keys=["id"]), f"ROW<{', '.join(texts)}>"


def _as_json(rows: pa.Table, schema: TableSchema) -> list[dict[str, Any]]:
    """Each row as our own json format has it, which is what Flink should write again."""
    at = rows.schema.get_field_index("_ROW_KIND")
    rows = rows.set_column(at, "_ROW_KIND", pa.array([0] * rows.num_rows, pa.int8()))  # it has inserts alone
    plain = plan_envelope(schema, ChangelogMode.ALL, LogFormats(ValueFormat.JSON))
    return [json.loads(value or b"", parse_float=Decimal) for value in encode_rows(rows, plain).values]


@pytest.mark.parametrize("value", cases(JSON_FORMATS, 2))
def test_flink_reads_every_type_and_kind_of_json(flink: Flink, value: str) -> None:
    """+I and +U are read as +I, -U and -D as -D, as Flink's own writers have it; all values are equal."""
    rows, schema, flinks = _table({**_TYPES, **_FINER}, [0, 2, 1, 3])
    encoded = encode_rows(rows, plan_envelope(schema, ChangelogMode.ALL, LogFormats(ValueFormat(value))))
    read = flink.read(value, flinks, encoded.values)
    assert [kind for kind, _ in read] == ["+I", "+I", "-D", "-D"]
    assert [row for _, row in read] == _as_json(rows, schema)


def test_flink_reads_plain_json(flink: Flink) -> None:
    """A row is a row."""
    rows, schema, flinks = _table({**_TYPES, **_FINER}, [0, 0])
    plain = LogFormats(ValueFormat.JSON, ignore_delete=True)
    encoded = encode_rows(rows, plan_envelope(schema, ChangelogMode.ALL, plain))
    assert [row for _, row in flink.read("json", flinks, encoded.values)] == _as_json(rows, schema)


@pytest.mark.parametrize("value", cases([*JSON_FORMATS, "avro"], 1))
def test_flink_passes_tombstones_by(flink: Flink, registry: Registry, value: str) -> None:
    """In a log of upserts a delete is a null value: Flink's formats skip it, its upsert-kafka reads the key."""
    rows, schema, flinks = _table({"n": _TYPES["n"]}, [0, 3])
    formats = LogFormats(ValueFormat(value))
    ids = _registered(registry, schema, formats)
    encoded = encode_rows(rows, plan_envelope(schema, ChangelogMode.UPSERT, formats, ids))
    assert [row["id"] for _, row in flink.read(value, flinks, encoded.values, registry.url)] == [0]


def test_flink_reads_every_type_and_kind_of_avro(flink: Flink, registry: Registry) -> None:
    """As debezium-avro-confluent, with the schema that a real registry has; keys as avro-confluent."""
    rows, schema, flinks = _table(_TYPES, [0, 2, 1, 3])
    formats = LogFormats(ValueFormat.AVRO, KeyFormat.AVRO)
    ids = _registered(registry, schema, formats)
    encoded = encode_rows(rows, plan_envelope(schema, ChangelogMode.ALL, formats, ids))
    read = flink.read("avro", flinks, encoded.values, registry.url)
    assert [kind for kind, _ in read] == ["+I", "+I", "-D", "-D"]
    assert [row for _, row in read] == _as_json(rows, schema)
    keys = flink.read_key("ROW<id BIGINT NOT NULL>", encoded.keys or [], registry.url)
    assert [row for _, row in keys] == [{"id": n} for n in range(4)]


def test_flink_reads_messages_of_an_older_schema_of_avro(flink: Flink, registry: Registry) -> None:
    """Columns that came later are null, a number that grew is read: Flink resolves by the schema of each message."""
    formats = LogFormats(ValueFormat.AVRO)
    values: list[bytes | None] = []
    for kind, more in ((pa.int32(), {}), (pa.int64(), {"name": (pa.string(), "STRING", "x")})):
        rows, schema, flinks = _table({"n": (kind, "BIGINT", 7), **more}, [0])
        ids = _registered(registry, schema, formats, topic="flink.grows")
        values += encode_rows(rows, plan_envelope(schema, ChangelogMode.ALL, formats, ids)).values
    read = flink.read("avro", flinks, values, registry.url)
    assert [row for _, row in read] == [{"id": 0, "n": 7, "name": None}, {"id": 0, "n": 7, "name": "x"}]


def _registered(
    registry: Registry, schema: TableSchema, formats: LogFormats, topic: str = "flink.all"
) -> SchemaIds:
    name = f"{topic}.{len(schema.fields) if topic == 'flink.all' else 0}"
    with SchemaRegistry(ClientConfig({}, {"url": registry.url})) as client:
        return client.register(avro_schemas(schema, name, formats), name)
