"""Avro bytes of whole columns against fastavro, row by row: an encoder and a reader that know nothing of ours."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData, FixRequest, Unsupported
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import new_schema
from tablestore_engine.format.type_arrow import type_from_arrow
from tablestore_engine.log.avro_schema import avro_schemas
from tablestore_engine.log.avro_values import column_parts, join_parts
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat
from tests.doses import examples
from tests.unit.log.format_world import EVERY, KEY, rows

AVRO = LogFormats(ValueFormat.AVRO, KeyFormat.AVRO)


def encoded(array: pa.Array | pa.ChunkedArray, *, nullable: bool = True) -> list[bytes]:
    """Bytes of each value."""
    kind = type_from_arrow(array.type).with_nullable(nullable)
    return join_parts(column_parts(array, kind), len(array)).to_pylist()


def written(value: object, schema: object) -> bytes:
    """What fastavro makes of it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


_CASES = {
    "int8": (pa.int8(), "int", st.integers(-128, 127)),
    "int32": (pa.int32(), "int", st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), "long", st.integers(-(2**63), 2**63 - 1)),
    "bool": (pa.bool_(), "boolean", st.booleans()),
    "double": (pa.float64(), "double", st.floats()),
    "float": (pa.float32(), "float", st.floats(width=32)),
    "text": (pa.string(), "string", st.text()),
    "bytes": (pa.binary(), "bytes", st.binary()),
    "list": (pa.list_(pa.int64()), {"type": "array", "items": ["null", "long"]},
             st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=4)),
    "lists": (pa.list_(pa.list_(pa.string())),
              {"type": "array", "items": ["null", {"type": "array", "items": ["null", "string"]}]},
              st.lists(st.none() | st.lists(st.none() | st.text(max_size=2), max_size=3), max_size=3)),
}  # fmt: skip


@pytest.mark.parametrize("name", _CASES)
@settings(max_examples=examples(20, 60), deadline=None)
@given(data=st.data())
def test_bytes_are_those_of_another_encoder(name: str, data: st.DataObject) -> None:
    """Nulls, slices and chunks included, each value has the bytes that fastavro gives it."""
    arrow, node, values = _CASES[name]
    raw = data.draw(st.lists(st.none() | values, max_size=12))
    begin, cut = data.draw(st.integers(0, len(raw))), data.draw(st.integers(0, len(raw)))
    array = pa.array(raw, arrow)
    chunks = pa.chunked_array([array.slice(0, cut), array.slice(cut)], arrow).slice(begin)
    assert encoded(chunks) == [written(value, ["null", node]) for value in raw[begin:]]
    assert encoded(array.slice(begin)) == encoded(chunks)


@settings(max_examples=examples(40, 100), deadline=None)
@given(data=st.data())
def test_decimals_are_the_shortest_twos_complement(data: st.DataObject) -> None:
    """Of any precision: the bytes that Java's BigInteger.toByteArray gives, which is as short as can be."""
    precision = data.draw(st.integers(1, 38))
    most = 10**precision - 1
    raw = data.draw(
        st.lists(st.none() | st.integers(-most, most) | st.sampled_from([0, -1, 1, most, -most]), max_size=9)
    )
    edges = [value for n in (7, 8, 15, 16, 63, 64, 127) for value in (2**n, 2**n - 1, -(2**n), -(2**n) - 1)]
    raw += [value for value in edges if abs(value) <= most]
    array = pa.array([None if n is None else Decimal(n) for n in raw], pa.decimal128(precision, 0))
    for value, got in zip(raw, encoded(array), strict=True):
        if value is None:
            assert got == b"\0"
            continue
        size = ((value if value >= 0 else ~value).bit_length()) // 8 + 1
        assert got == written(value.to_bytes(size, "big", signed=True), ["null", "bytes"])


@settings(max_examples=examples(20, 40), deadline=None)
@given(rows())
def test_a_row_of_every_type_is_read_by_another_reader(table: pa.Table) -> None:
    """fastavro reads each row to its last byte with the schema that a registry gets."""
    schema = new_schema(EVERY, primary_keys=list(KEY))
    node = json.loads(avro_schemas(schema, "t", AVRO).value or "")["fields"][0]["type"][1]
    parsed = fastavro.parse_schema(node)
    parts = [part for field in schema.fields for part in column_parts(table[field.name], field.type)]
    for row, data in zip(table.to_pylist(), join_parts(parts, table.num_rows).to_pylist(), strict=True):
        rest = io.BytesIO(data)
        back = fastavro.schemaless_reader(rest, parsed, None)
        assert rest.read() == b""
        assert set(back) == set(EVERY.names)
        for name in (
            "k",
            "part",
            "flag",
            "tiny",
            "n",
            "f",
            "g",
            "price",
            "coin",
            "day",
            "name",
            "raw",
            "tags",
            "rows",
        ):
            assert back[name] == row[name]
        assert back["counts"] == (
            None if row["counts"] is None else [{"key": key, "value": value} for key, value in row["counts"]]
        )
        assert back["words"] == (None if row["words"] is None else dict(row["words"]))
        assert back["inner"] == row["inner"]


def test_what_lies_under_a_null_is_not_written() -> None:
    """Null lists and structs whose children have values give one byte, and their neighbours keep theirs."""
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3]), mask=pa.array([True, False])
    )
    assert encoded(lists) == [b"\0", written([3], ["null", {"type": "array", "items": ["null", "long"]}])]
    structs = pa.StructArray.from_arrays(
        [pa.array(["a", "b"])],
        fields=[pa.field("x", pa.string(), nullable=False)],
        mask=pa.array([True, False]),
    )
    assert encoded(structs) == [b"\0", b"\2\2b"]


def test_a_null_where_none_may_be_is_an_error() -> None:
    """It would shift every byte behind it: TS1765, for a column and for a member of a struct."""
    with pytest.raises(FixData, match="TS1765"):
        encoded(pa.array([1, None]), nullable=False)
    member = pa.field("x", pa.string(), nullable=False)
    structs = pa.StructArray.from_arrays([pa.array(["a", None])], fields=[member])
    with pytest.raises(FixData, match="TS1765"):
        encoded(structs)


def test_a_value_that_the_schema_cannot_hold_is_an_error() -> None:
    """A moment in seconds that has no milliseconds in 64 bits: TS1765."""
    with pytest.raises(FixData, match="TS1765"):
        column_parts(pa.array([2**62], pa.timestamp("s")), DataType("TIMESTAMP", precision=3))


def test_times_have_the_logical_types_of_the_specification() -> None:
    """A wall clock is local, a moment is not; the unit is that of the precision; each value is its count."""
    fields = {
        "a": DataType("TIMESTAMP", precision=0), "b": DataType("TIMESTAMP", precision=6),
        "c": DataType("TIMESTAMP", precision=9), "d": DataType("TIMESTAMP_LTZ", precision=3),
    }  # fmt: skip
    columns = pa.schema([(name, pa.timestamp("us")) for name in fields])
    schema = new_schema(columns)
    schema = type(schema)(**{
        **vars(schema), "fields": tuple(DataField(n, name, kind) for n, (name, kind) in enumerate(fields.items()))
    })  # fmt: skip
    node = json.loads(avro_schemas(schema, "t", AVRO).value or "")["fields"][0]["type"][1]
    found = [one["type"][1]["logicalType"] for one in node["fields"]]
    assert found == [
        "local-timestamp-millis",
        "local-timestamp-micros",
        "local-timestamp-nanos",
        "timestamp-millis",
    ]
    assert encoded(pa.array([-3], pa.timestamp("ns"))) == [b"\2\5"]


def test_two_records_never_share_a_name() -> None:
    """Columns a_b {x} and a {b {x}} both have a record; Avro's own parser takes the schema."""
    inner = pa.struct([("x", pa.int32())])
    columns = pa.schema([
        ("a_b", inner), ("a", pa.struct([("b", inner), ("a", inner)])), ("b", pa.list_(inner)),
        ("m", pa.map_(pa.int32(), inner)), ("value", pa.map_(pa.string(), inner)),
    ])  # fmt: skip
    text = avro_schemas(new_schema(columns), "8-shop.orders", AVRO).value or ""
    parsed = fastavro.parse_schema(json.loads(text))
    assert parsed["name"] == "_8_shop.orders.Envelope"
    assert [one.get("default", "none") for one in json.loads(text)["fields"]] == [None, None, "none"]
    names: list[str] = []

    def collect(node: object) -> None:
        if isinstance(node, dict):
            if node.get("type") == "record":
                names.append(f"{node['namespace']}.{node['name']}")
            for one in node.values():
                collect(one)
        elif isinstance(node, list):
            for one in node:
                collect(one)

    collect(json.loads(text))
    assert len(names) == len(set(names)) == 10


@pytest.mark.parametrize("name", ["größe", "a-b", "1st", "a b", "a.b"])
def test_a_column_without_an_avro_name_is_refused(name: str) -> None:
    """TS1763 names it; a key that is JSON does not mind."""
    schema = new_schema(pa.schema([pa.field(name, pa.int64(), nullable=False)]), primary_keys=[name])
    with pytest.raises(FixRequest, match="TS1763") as caught:
        avro_schemas(schema, "t", AVRO)
    assert name in str(caught.value)
    with pytest.raises(FixRequest, match="TS1763"):
        avro_schemas(schema, "t", LogFormats(key=KeyFormat.AVRO))
    assert avro_schemas(schema, "t", LogFormats()).value is None


def test_a_type_without_avro_is_refused() -> None:
    """TS1764."""
    schema = new_schema(pa.schema([("x", pa.int64())]))
    odd = type(schema)(**{**vars(schema), "fields": (DataField(0, "x", DataType("VARIANT")),)})
    with pytest.raises(Unsupported, match="TS1764"):
        avro_schemas(odd, "t", AVRO)


def test_many_rows() -> None:
    """Varints of all ten lengths beside each other, in a column of a hundred thousand."""
    numbers = np.random.default_rng(7).integers(-(2**63), 2**63, 100_000, dtype=np.int64)
    numbers >>= np.random.default_rng(8).integers(0, 64, 100_000)
    data = b"".join(encoded(pa.array(numbers), nullable=False))
    rest, parsed = io.BytesIO(data), fastavro.parse_schema("long")
    assert [fastavro.schemaless_reader(rest, parsed, None) for _ in numbers] == numbers.tolist()
    assert rest.read() == b""
