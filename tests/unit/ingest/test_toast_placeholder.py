"""Values that PostgreSQL did not log (TOAST, unchanged): every form that Debezium gives its placeholder is noticed."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.errors import FixData
from tests.unit.ingest.histories import MemorySource, engine_at, ingest, spec_of, table_of

HIDDEN = "__debezium_unavailable_value"
CODES = [ord(one) for one in HIDDEN]
ISO = [f"{dt.date(1970, 1, 1) + dt.timedelta(days=one)}Z" for one in CODES]
B64 = base64.b64encode(HIDDEN.encode()).decode()
POINT = base64.b64encode(bytes.fromhex("0101000020E6100000000000FC83D797C1000000FC83D797C1")).decode()


def array(items: dict[str, Any]) -> dict[str, Any]:
    """A list of these."""
    return {"type": "array", "items": {**items, "optional": True}}


TEXT, BYTES = {"type": "string"}, {"type": "bytes"}
DATE = {"type": "int32", "name": "io.debezium.time.Date"}
GEOMETRY = {"type": "struct", "name": "io.debezium.data.geometry.Geometry", "fields": [
    {"type": "bytes", "field": "wkb"}, {"type": "int32", "optional": True, "field": "srid"},
]}  # fmt: skip
HSTORE = {"type": "map", "keys": TEXT, "values": {**TEXT, "optional": True}}
FORMS: list[tuple[dict[str, Any], Any, Any]] = [
    (TEXT, HIDDEN, "long"),
    (BYTES, B64, "AAE="),
    (TEXT, HIDDEN.encode().hex(), "00ff"),
    (array({"type": "int32"}), CODES, [1, 2]),
    (array({"type": "int64"}), CODES, [1, 2]),
    (array(DATE), CODES, [1, 2]),
    (array(TEXT), [HIDDEN], ["a"]),
    (array(BYTES), [B64], ["AAE="]),
    (array({"type": "string", "name": "io.debezium.data.Uuid"}), ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"], ["a"]),
    (array({"type": "string", "name": "io.debezium.time.IsoDate"}), ISO, ["1970-01-02Z"]),
    (HSTORE, {HIDDEN: HIDDEN}, {"a": "b"}),
    (TEXT, json.dumps({HIDDEN: HIDDEN}, separators=(",", ":")), "{}"),
    (GEOMETRY, {"wkb": POINT, "srid": 4326}, {"wkb": "AAE=", "srid": 4326}),
]  # fmt: skip
BLANK: list[tuple[dict[str, Any], Any]] = [
    (array({"type": "double"}), [1.5]),
    (array({"type": "float"}), [1.5]),
    (array({"type": "boolean"}), [True]),
    (array({"type": "int16"}), [1]),
    (array({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "0"}}), ["AQ=="]),
    (array({"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []}),
     [{"scale": 0, "value": "AQ=="}]),
    (array({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}), [1]),
    (array({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}), ["2020-01-01T00:00:00Z"]),
    (GEOMETRY, {"wkb": "AAE=", "srid": None}),
]  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """On a warehouse of its own."""
    return engine_at(tmp_path / "w")


def told(
    node: dict[str, Any], op: str, before: Any, after: Any, connector: str = "postgresql"
) -> tuple[None, bytes]:
    """With its schema."""
    fields = [{"field": "id", "type": "int32"}, {**node, "optional": True, "field": "v"}]
    row = {"type": "struct", "fields": fields, "optional": True}
    sides = [{**row, "field": "before"}, {**row, "field": "after"}, {"field": "op", "type": "string"}]
    payload = {"before": before, "after": after, "op": op, "source": {"connector": connector}}
    return None, json.dumps({"schema": {"type": "struct", "fields": sides}, "payload": payload}).encode()


@pytest.mark.parametrize(("node", "hidden", "value"), FORMS, ids=lambda one: str(one)[:50])
def test_a_form_of_the_placeholder(engine: Engine, node: dict[str, Any], hidden: Any, value: Any) -> None:
    """Of every type: taken from the row before; where that lacks it, or has one too, the message cannot be read."""
    source = MemorySource()
    source.put([told(node, "c", None, {"id": 1, "v": value})])
    ingest(engine, source, spec_of("debezium-json"))
    was = table_of(engine)
    source.put([told(node, "u", {"id": 1, "v": value}, {"id": 1, "v": hidden})])
    ingest(engine, source, spec_of("debezium-json"))
    assert table_of(engine) == was
    for before in (None, {"id": 1, "v": hidden}):
        lacking = MemorySource([*source.messages, (0, told(node, "u", before, {"id": 1, "v": hidden}))])
        with pytest.raises(FixData, match=r"TS1421[\s\S]*REPLICA IDENTITY FULL"):
            ingest(engine, lacking, spec_of("debezium-json"))
    assert table_of(engine) == was


def test_forms_of_texts_among_many(engine: Engine) -> None:
    """Where messages are read at once too."""
    for hidden in (HIDDEN, HIDDEN.encode().hex(), json.dumps({HIDDEN: HIDDEN}, separators=(",", ":"))):
        source = MemorySource()
        source.put([told(TEXT, "c", None, {"id": key, "v": "x"}) for key in range(600)])
        source.put([told(TEXT, "u", None, {"id": 5, "v": hidden})])
        with pytest.raises(FixData, match=r"TS1421[\s\S]*offset 600"):
            ingest(engine, source, spec_of("debezium-json"))


@pytest.mark.parametrize(("node", "value"), BLANK, ids=lambda one: str(one)[:60])
def test_types_without_a_form(engine: Engine, node: dict[str, Any], value: Any) -> None:
    """Debezium makes NULL of them. An update that has no row before it may mean both, so that it cannot be read."""
    source = MemorySource()
    source.put([told(node, "c", None, {"id": 1, "v": value}), told(node, "c", None, {"id": 2, "v": None})])
    ingest(engine, source, spec_of("debezium-json"))
    was = table_of(engine)
    assert was[2]["v"] is None
    blank = told(node, "u", None, {"id": 1, "v": None})
    with pytest.raises(FixData, match=r"TS1421[\s\S]*column v[\s\S]*REPLICA IDENTITY FULL"):
        ingest(engine, MemorySource([*source.messages, (0, blank)]), spec_of("debezium-json"))
    assert table_of(engine) == was
    source.put([told(node, "u", {"id": 1, "v": value}, {"id": 1, "v": None})])
    ingest(engine, source, spec_of("debezium-json"))
    assert table_of(engine)[1]["v"] is None, "with the row before Debezium would have taken it from there"


def test_a_null_of_another_database_is_one(engine: Engine) -> None:
    """And of a type that has a form."""
    source = MemorySource()
    source.put([
        told(array({"type": "double"}), "u", None, {"id": 1, "v": None}, connector="mongodb"),
    ])  # fmt: skip
    ingest(engine, source, spec_of("debezium-json"))
    source.put([told(array({"type": "double"}), "r", None, {"id": 2, "v": None})])
    ingest(engine, source, spec_of("debezium-json"))
    texts = MemorySource([(0, told(array(TEXT), "u", None, {"id": 1, "v": None}))])
    ingest(engine, texts, spec_of("debezium-json", into="d.u"))
    assert [row["v"] for row in table_of(engine).values()] == [None, None]


def avro_message(items: Any, value: Any) -> bytes:
    """An update without a row before, in Confluent's wire format."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(avro_schema(items))),
                               {"before": None, "after": {"id": 1, "v": value}, "op": "u"})  # fmt: skip
    return b"\0\0\0\0\1" + out.getvalue()


def avro_schema(items: Any) -> str:
    """Of an envelope."""
    row = {"type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "int"}, {"name": "v", "type": ["null", items]},
    ]}  # fmt: skip
    return json.dumps({"type": "record", "name": "Envelope", "fields": [
        {"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ]})  # fmt: skip


@pytest.mark.parametrize(
    ("items", "hidden"),
    [
        ("bytes", HIDDEN.encode()),
        ({"type": "array", "items": ["null", "int"]}, CODES),
        ({"type": "array", "items": ["null", "bytes"]}, [HIDDEN.encode()]),
        ({"type": "map", "values": ["null", "string"]}, {HIDDEN: HIDDEN}),
        ({"type": "array", "items": {"type": "record", "name": "E", "connect.internal.type": "MapEntry",
          "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "string"}]}},
         [{"key": HIDDEN, "value": HIDDEN}]),
    ],
    ids=str,
)  # fmt: skip
def test_forms_of_avro(engine: Engine, items: Any, hidden: Any) -> None:
    """Bytes as they are."""
    source = MemorySource([(0, (None, avro_message(items, hidden)))])
    with pytest.raises(FixData, match=r"TS1421[\s\S]*REPLICA IDENTITY FULL"):
        ingest(engine, source, spec_of("debezium-avro"), lambda _: avro_schema(items))


def test_messages_of_tables_that_are_not_meant(engine: Engine) -> None:
    """They may hide what they like."""
    value = {
        "before": None,
        "after": {"id": 1, "v": HIDDEN},
        "op": "u",
        "source": {"schema": "s", "table": "other"},
    }
    source = MemorySource([(0, (None, json.dumps(value).encode()))])
    report = ingest(engine, source, spec_of("debezium-json", source_table="s.orders"))
    assert (report.dead, report.ignored["other tables"]) == (0, 1)
