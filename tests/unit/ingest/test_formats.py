"""What the formats' documentation shows, as it stands there, and what each value means."""

# ruff: noqa: E501 - a case is a row

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_text import parse_type, type_to_text
from tablestore_engine.ingest.canal_maxwell_ogg import CanalJson, MaxwellJson, OggJson, mysql_row
from tablestore_engine.ingest.change_event import UNREADABLE
from tablestore_engine.ingest.connect_types import avro_row, connect_row
from tablestore_engine.ingest.debezium import DebeziumJson
from tablestore_engine.ingest.plain_values import inferred_type, plain_column
from tablestore_engine.ingest.wire_types import WireType, wire_column
from tablestore_engine.log.avro_decode import AvroRecord
from tests.unit.ingest.histories import MemorySource, engine_at, ingest, spec_of, table_of

DAY = dt.date(2020, 1, 31)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock


LONG = int("9" * 50).to_bytes(21, "big")
LONG_TEXT = "9" * 40 + "." + "9" * 10


def b64(data: bytes) -> str:
    """As Connect's JSON has bytes."""
    return base64.b64encode(data).decode()


TIME = {"type": "int32", "name": "io.debezium.time.Time"}
NANOS = {"type": "int64", "name": "io.debezium.time.NanoTimestamp"}
CONNECT = [
    ({"type": "int8"}, 5, "TINYINT", 5),
    ({"type": "int16"}, 5, "SMALLINT", 5),
    ({"type": "int32"}, 5, "INT", 5),
    ({"type": "int64"}, 5, "BIGINT", 5),
    ({"type": "float"}, 1.5, "FLOAT", 1.5),
    ({"type": "double"}, 1.5, "DOUBLE", 1.5),
    ({"type": "boolean"}, True, "BOOLEAN", True),
    ({"type": "string"}, "x", "STRING", "x"),
    ({"type": "bytes"}, b64(b"\0\1"), "BYTES", b"\0\1"),
    ({"type": "int32", "name": "io.debezium.time.Date"}, 18292, "DATE", DAY),
    ({"type": "int32", "name": "org.apache.kafka.connect.data.Date"}, 18292, "DATE", DAY),
    ({"type": "int32", "name": "io.debezium.time.Time"}, 1500, "TIME(3)", dt.time(0, 0, 1, 500_000)),
    ({"type": "int32", "name": "org.apache.kafka.connect.data.Time"}, 1500, "TIME(3)", dt.time(0, 0, 1, 500_000)),
    ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 1_500_001, "STRING", "00:00:01.500001"),
    ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 86_400_000_000, "STRING", "24:00:00"),
    ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 3_020_399_500_000, "STRING", "838:59:59.5"),
    ({"type": "int64", "name": "io.debezium.time.MicroTime"}, -3_600_000_000, "STRING", "-01:00:00"),
    ({"type": "int64", "name": "io.debezium.time.NanoTime"}, 43_200_000_000_001, "STRING", "12:00:00.000000001"),
    ({"type": "int64", "name": "io.debezium.time.Timestamp"}, 1, "TIMESTAMP(3)", _EPOCH.replace(microsecond=1000)),
    ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, 1, "TIMESTAMP(6)", _EPOCH.replace(microsecond=1)),
    ({"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}, -1, "TIMESTAMP(3)",
     _EPOCH - dt.timedelta(milliseconds=1)),
    ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, "2020-01-31T12:00:00.5+02:00",
     "TIMESTAMP(6) WITH LOCAL TIME ZONE", dt.datetime(2020, 1, 31, 10, 0, 0, 500_000, dt.UTC)),
    ({"type": "string", "name": "io.debezium.data.Json"}, '{"a":1}', "STRING", '{"a":1}'),
    ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}, "A3g=",
     "DECIMAL(38, 2)", Decimal("8.88")),
    ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
      "parameters": {"scale": "2", "connect.decimal.precision": "10"}}, b64(b"\xff"), "DECIMAL(10, 2)", Decimal("-0.01")),
    ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
      "parameters": {"scale": "10", "connect.decimal.precision": "50"}}, b64(LONG), "STRING", LONG_TEXT),
    ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
      "parameters": {"scale": "5", "connect.decimal.precision": "2"}}, b64(b"\x0c"), "DECIMAL(5, 5)", Decimal("0.00012")),
    ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
      "parameters": {"scale": "-2", "connect.decimal.precision": "5"}}, b64(b"\x0c"), "DECIMAL(7, 0)", Decimal(1200)),
    ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
      "parameters": {"scale": "40"}}, b64(b"\xf4"), "STRING", "-0." + 38 * "0" + "12"),
    ({"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []},
     {"scale": 2, "value": b64(int("7" * 1500).to_bytes(630, "big"))}, "STRING", "7" * 1498 + ".77"),
    ({"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []},
     {"scale": 1, "value": b64(b"\x7b")}, "STRING", "12.3"),
    ({"type": "array", "items": {"type": "int32"}}, [1, None], "ARRAY<INT>", [1, None]),
    ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}}, {"a": 1},
     "MAP<STRING NOT NULL, INT>", [("a", 1)]),
    ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}, [[1, 2]],
     "MAP<INT NOT NULL, INT>", [(1, 2)]),
    ({"type": "struct", "fields": [{"type": "int32", "name": "io.debezium.time.Date", "field": "d"}]}, {"d": 0},
     "ROW<d DATE>", {"d": _EPOCH.date()}),
]  # fmt: skip


@pytest.mark.parametrize(("node", "raw", "kind", "value"), CONNECT, ids=lambda one: str(one)[:60])
def test_types_of_connect(node: dict[str, Any], raw: Any, kind: str, value: Any) -> None:
    """Each type and each name: the column that it makes, and a value of it; null is NULL."""
    wire = connect_row({"type": "struct", "fields": [{**node, "field": "v"}]})["v"]
    assert type_to_text(wire.type).replace(" ", "") == kind.replace(" ", "")
    assert wire_column([raw, None], wire).to_pylist() == [value, None]


AVRO = [
    ("int", 5, "INT", 5),
    (["null", "long"], 5, "BIGINT", 5),
    ({"type": "int", "connect.type": "int16"}, 5, "SMALLINT", 5),
    ({"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}, b"\x03\x78", "DECIMAL(38, 2)", Decimal("8.88")),
    ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 10}, LONG, "STRING", LONG_TEXT),
    ({"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 10,
      "connect.parameters": {"connect.decimal.precision": "64"}}, LONG, "STRING", LONG_TEXT),
    ({"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 40}, b"\xf4", "STRING",
     "-0." + 38 * "0" + "12"),
    ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, 1, "TIMESTAMP(6)", _EPOCH.replace(microsecond=1)),
    ({"type": "long", "logicalType": "timestamp-millis"}, 0, "TIMESTAMP(3)", _EPOCH),
    ({"type": "int", "logicalType": "date"}, 18292, "DATE", DAY),
    ({"type": {"type": "string", "avro.java.string": "String"}}, "x", "STRING", "x"),
    ({"type": "array", "items": "int"}, [1], "ARRAY<INT>", [1]),
    ({"type": "map", "values": "int"}, {"a": 1}, "MAP<STRING NOT NULL, INT>", [("a", 1)]),
    ({"type": "array", "items": {"type": "record", "name": "E", "connect.internal.type": "MapEntry",
      "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "int"}]}}, [{"key": 1, "value": 2}],
     "MAP<INT NOT NULL, INT>", [(1, 2)]),
    ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {"a": 1}, "ROW<a INT>", {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("node", "raw", "kind", "value"), AVRO, ids=lambda one: str(one)[:60])
def test_types_of_avro(node: Any, raw: Any, kind: str, value: Any) -> None:
    """Connect's names, Avro's logical types, plain ones."""
    wire = avro_row(AvroRecord(1, "", {"v": node}, {}))["v"]
    assert type_to_text(wire.type).replace(" ", "") == kind.replace(" ", "")
    assert wire_column([raw, None], wire).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("text", "kind", "raw", "value"),
    [
        ("int(11)", "INT", "-5", -5), ("int(10) unsigned", "BIGINT", "5", 5), ("tinyint(3) unsigned", "SMALLINT", "255", 255),
        ("mediumint unsigned", "INT", "5", 5), ("bigint(20) unsigned", "DECIMAL(20, 0)", str(2**64 - 1), Decimal(2**64 - 1)),
        ("decimal(10,2)", "DECIMAL(10, 2)", "1.50", Decimal("1.50")), ("decimal", "DECIMAL(10, 0)", "1", Decimal(1)),
        ("float", "FLOAT", "1.5", 1.5), ("double", "DOUBLE", "1.5", 1.5), ("varchar(255)", "STRING", "x", "x"),
        ("datetime", "TIMESTAMP(3)", "2020-01-31 00:00:01", _EPOCH.replace(2020, 1, 31, second=1)),
        ("timestamp(6)", "TIMESTAMP(6)", "2020-01-31 00:00:01.000001", _EPOCH.replace(2020, 1, 31, second=1, microsecond=1)),
        ("date", "DATE", "2020-01-31", DAY), ("time", "STRING", "-838:59:59", "-838:59:59"), ("year", "INT", "2020", 2020),
        ("blob", "BYTES", "\xff\x00", b"\xff\x00"), ("enum('a','b')", "STRING", "1", "1"), ("json", "STRING", "{}", "{}"),
        ("bit(1)", "BIGINT", "1", 1), ("", "STRING", "x", "x"),
    ],
)  # fmt: skip
def test_types_of_mysql(text: str, kind: str, raw: str, value: Any) -> None:
    """As Canal tells them beside texts."""
    wire = mysql_row({"v": text})["v"]
    assert type_to_text(wire.type) == kind
    assert wire_column([raw, None], wire).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("wire", "raw"),
    [
        (connect_row({"type": "struct", "fields": [{"type": "int32", "field": "v"}]})["v"], 1.5),
        (connect_row({"type": "struct", "fields": [{"type": "int32", "field": "v"}]})["v"], True),
        (connect_row({"type": "struct", "fields": [{"type": "int32", "field": "v"}]})["v"], 2**31),
        (mysql_row({"v": "int"})["v"], "1_0"), (mysql_row({"v": "int"})["v"], 5), (mysql_row({"v": "date"})["v"], "0000-00-00"),
        (connect_row({"type": "struct", "fields": [TIME | {"field": "v"}]})["v"], -1),
        (connect_row({"type": "struct", "fields": [TIME | {"field": "v"}]})["v"], 86_400_000),
        (connect_row({"type": "struct", "fields": [NANOS | {"field": "v"}]})["v"], 1_500),
        (connect_row({"type": "struct", "fields": [CONNECT[8][0] | {"field": "v"}]})["v"], "no base64"),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_are_none(wire: WireType, raw: Any) -> None:
    """Nothing is cut or guessed."""
    with pytest.raises(UNREADABLE):
        wire_column([raw], wire)


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("DATE", 18292, DAY), ("DATE", "2020-01-31", DAY), ("TIMESTAMP(3)", 1, _EPOCH.replace(microsecond=1000)),
        ("TIMESTAMP(6)", 1, _EPOCH.replace(microsecond=1)), ("TIMESTAMP(6)", "1970-01-01 00:00:00.000001",
                                                             _EPOCH.replace(microsecond=1)),
        ("TIME(3)", 1500, dt.time(0, 0, 1, 500_000)), ("TIME(6)", 1_500_000, dt.time(0, 0, 1, 500_000)),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "1970-01-01T02:00:00+02:00", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("DECIMAL(10,2)", Decimal("1.5"), Decimal("1.50")), ("BYTES", "AAE=", b"\0\1"), ("STRING", "x", "x"),
        ("DOUBLE", 1, 1.0), ("BOOLEAN", True, True), ("STRING", 1, "1"), ("STRING", ["a", "b"], '["a", "b"]'),
        ("STRING", {"a": [Decimal("1.50"), None]}, '{"a": [1.50, null]}'),
    ],
)  # fmt: skip
def test_values_without_a_schema(kind: str, raw: Any, value: Any) -> None:
    """The column says what they mean; numbers of a time have the units of its precision."""
    assert plain_column([raw, None], parse_type(kind)).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("kind", "raw"),
    [("INT", 1.5), ("INT", True), ("INT", "1"), ("TIME(3)", -1), ("TIME(6)", 1_500_001), ("TIME(6)", 86_400_000_000),
     ("TIME(3)", "-01:00:00"), ("TIME(3)", "12:00:00.1239"), ("DOUBLE", True), ("DOUBLE", Decimal("1e400")), ("DECIMAL(10,2)", "1"),
     ("DECIMAL(10,2)", Decimal("1.234")), ("DATE", True), ("BOOLEAN", 1), ("BYTES", "é")],
)  # fmt: skip
def test_values_without_a_schema_that_do_not_fit(kind: str, raw: Any) -> None:
    """Refused, one by one."""
    with pytest.raises(UNREADABLE):
        plain_column([raw], parse_type(kind))


def test_inferred_types() -> None:
    """Whole numbers and others are DOUBLE together, documents are texts; kinds that do not go together are refused."""
    assert inferred_type([None, 1]) == DataType("BIGINT")
    assert inferred_type([1, Decimal("1.5")]) == DataType("DOUBLE")
    assert inferred_type([True]) == DataType("BOOLEAN")
    assert inferred_type([None]) is None
    assert inferred_type(["x", [1], {"a": 1}]) == DataType("VARCHAR", length=2147483647)
    for wrong in ([1, "x"], [1, {"a": 1}], [True, 1]):
        with pytest.raises(TypeError):
            inferred_type(wrong)


# messages as the documentation shows them --------------------------------------------------------------------------

_CANAL = {
    "data": [{"id": "111", "name": "scooter", "description": "Big 2-wheel scooter", "weight": "5.18"},
             {"id": "112", "name": "car", "description": None, "weight": "5.19"}],
    "database": "inventory", "es": 1589373560000, "id": 9, "isDdl": False,
    "mysqlType": {"id": "INTEGER", "name": "VARCHAR(255)", "description": "VARCHAR(512)", "weight": "FLOAT"},
    "old": [{"weight": "5.15"}, {"id": "110"}], "pkNames": ["id"], "sql": "",
    "sqlType": {"id": 4, "name": 12, "description": 12, "weight": 7},
    "table": "products", "ts": 1589373560798, "type": "UPDATE",
}  # fmt: skip


def test_a_message_of_canal_has_several_rows(tmp_path: Path) -> None:
    """Each with what it was; the second one got another key."""
    told = CanalJson().read(None, json.dumps(_CANAL).encode(), ("id",))
    assert [(one.is_put, one.row["id"]) for one in told.changes] == [
        (True, "111"),
        (False, "110"),
        (True, "112"),
    ]
    assert (told.table, told.key) == ("inventory.products", ("id",))
    engine, source = engine_at(tmp_path), MemorySource()
    source.put([(None, json.dumps(_CANAL).encode())])
    ingest(engine, source, spec_of("canal-json", key=()))
    assert table_of(engine)[112] == {
        "id": 112,
        "name": "car",
        "description": None,
        "weight": pytest.approx(5.19),
    }


_MAXWELL = {
    "database": "test", "table": "product", "type": "insert", "ts": 1596684883, "xid": 7201, "commit": True,
    "data": {"id": 111, "name": "scooter", "description": "Big 2-wheel scooter ", "weight": 5.18},
    "primary_key_columns": ["id"],
}  # fmt: skip


def test_a_message_of_maxwell(tmp_path: Path) -> None:
    """Its types are inferred when asked for, its key comes from the message; a tombstone takes by its key."""
    engine, source = engine_at(tmp_path), MemorySource()
    source.put([(None, json.dumps(_MAXWELL).encode())])
    ingest(engine, source, spec_of("maxwell-json", key=(), infer=True))
    assert table_of(engine)[111]["weight"] == 5.18
    source.put([(b'{"database":"test","table":"product","pk.id":111}', None)])
    ingest(engine, source, spec_of("maxwell-json"))
    assert table_of(engine) == {}


def test_a_message_of_goldengate() -> None:
    """What an update leaves out is taken from the row before."""
    value = {"table": "OGG.T", "op_type": "U", "op_ts": "2020-05-13 13:39:35.766000", "pos": "0",
             "primary_keys": ["id"], "before": {"id": 1, "name": "a", "w": 5}, "after": {"id": 1, "w": 6}}  # fmt: skip
    told = OggJson().read(None, json.dumps(value).encode(), ("id",))
    assert [dict(one.row) for one in told.changes] == [{"id": 1, "name": "a", "w": 6}]
    assert (told.table, told.key) == ("OGG.T", ("id",))


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (CanalJson(), {"type": "UPSERT", "data": [{}]}), (CanalJson(), {"type": "INSERT", "data": None}),
        (CanalJson(), {"type": "UPDATE", "data": [{}], "old": [{}, {}]}), (CanalJson(), {"data": [{}]}),
        (MaxwellJson(), {"type": "replace", "data": {}}), (MaxwellJson(), {"type": "insert"}),
        (OggJson(), {"op_type": "X"}), (OggJson(), {"op_type": "D"}), (OggJson(), []),
        (DebeziumJson(), {"op": "c"}), (DebeziumJson(), {"op": "d"}), (DebeziumJson(), {"id": 1}),
        (DebeziumJson(), {"schema": 5, "payload": {}}),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_message_of_the_format(reader: Any, value: Any) -> None:
    """An error, never a guess."""
    with pytest.raises(UNREADABLE):
        reader.read(None, json.dumps(value).encode(), ("id",))


@pytest.mark.parametrize(
    ("reader", "value", "is_truncate"),
    [
        (CanalJson(), {"type": "TRUNCATE", "isDdl": True, "data": None}, True),
        (MaxwellJson(), {"type": "table-drop"}, False), (OggJson(), {"op_type": "T", "table": "a"}, True),
        (MaxwellJson(), {"type": "bootstrap-complete", "data": {}}, False), (DebeziumJson(), {"op": "t"}, True),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_row(reader: Any, value: Any, is_truncate: bool) -> None:
    """A truncate, or something that is ignored and counted."""
    told = reader.read(None, json.dumps(value).encode(), ("id",))
    assert told.changes == ()
    assert told.is_truncate == is_truncate
    assert (told.ignored is None) == is_truncate


@pytest.mark.parametrize(
    ("precision", "scale", "raw", "value"),
    [("50", "10", b64(LONG), LONG_TEXT), ("5", "-2", b64(b"\x0c"), Decimal(1200)), ("2", "5", b64(b"\x0c"), Decimal("0.00012"))],
)  # fmt: skip
def test_numbers_among_many(tmp_path: Path, precision: str, scale: str, raw: str, value: Any) -> None:
    """Where messages are read at once: the same digits."""
    number = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "field": "v",
              "parameters": {"scale": scale, "connect.decimal.precision": precision}}  # fmt: skip
    row = {"type": "struct", "fields": [{"field": "id", "type": "int32"}, number]}
    fields = [{**row, "field": "before"}, {**row, "field": "after"}, {"field": "op", "type": "string"}]
    schema = {"type": "struct", "fields": fields}
    engine, source = engine_at(tmp_path), MemorySource()
    for key in range(600):
        payload = {"before": None, "after": {"id": key, "v": raw}, "op": "c"}
        source.put(
            [(None, json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode())]
        )
    ingest(engine, source, spec_of("debezium-json"))
    assert {row["v"] for row in table_of(engine).values()} == {value}
