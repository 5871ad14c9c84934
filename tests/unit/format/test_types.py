"""Types: exact text, JSON of the schema file, Arrow forms and Parquet field ids."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.errors import FixData, FixRequest, Unsupported
from tablestore_engine.format.data_type import BYTES, STRING, DataField, DataType
from tablestore_engine.format.type_arrow import field_with_ids, type_from_arrow, type_to_arrow
from tablestore_engine.format.type_text import (
    field_from_json,
    field_to_json,
    parse_type,
    type_from_json,
    type_to_json,
    type_to_text,
)


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("boolean", "BOOLEAN"),
        ("INT NOT NULL", "INT NOT NULL"),
        ("integer null", "INT"),
        (" bigint  not   null ", "BIGINT NOT NULL"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("decimal( 38 , 38 )", "DECIMAL(38, 38)"),
        ("DECIMAL(5)", "DECIMAL(5, 0)"),
        ("numeric(20,2) NOT NULL", "DECIMAL(20, 2) NOT NULL"),
        ("VARCHAR", "VARCHAR(1)"),
        ("char", "CHAR(1)"),
        ("varchar(2147483647)", "STRING"),
        ("STRING NOT NULL", "STRING NOT NULL"),
        ("VARBINARY(2147483647)", "BYTES"),
        ("binary( 7 )", "BINARY(7)"),
        ("bytes", "BYTES"),
        ("TIME", "TIME(0)"),
        ("time(3)", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("timestamp(3) without time zone", "TIMESTAMP(3)"),
        ("TIMESTAMP(9) with local time zone not null", "TIMESTAMP(9) WITH LOCAL TIME ZONE NOT NULL"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("double precision", "DOUBLE"),
        ("variant", "VARIANT"),
        ("BLOB", "BLOB"),
    ],
)
def test_text_is_read_in_any_case_and_printed_exactly(text: str, exact: str) -> None:
    """Case and spaces do not matter on reading, and printing gives Paimon's own text."""
    assert type_to_text(parse_type(text)) == exact
    assert parse_type(exact) == parse_type(text)


@pytest.mark.parametrize(
    "text",
    ["", "NOT NULL", "TEXT", "INT(3)", "DECIMAL(39, 0)", "DECIMAL(5, 6)", "DECIMAL(0)", "DECIMAL(1,2,3)", "CHAR(0)",
     "VARCHAR(2147483648)", "TIME(10)", "TIMESTAMP(6", "TIMESTAMP()", "TIMESTAMP(6) WITH TIME ZONE", "INT NOT",
     "BIGINT WITH LOCAL TIME ZONE", "DECIMAL(a)", "INT;", "DECIMAL(10 2)"],
)  # fmt: skip
def test_text_that_is_no_type_is_refused(text: str) -> None:
    """A wrong name, parameter or tail gives TS1101 instead of a guess."""
    with pytest.raises(FixRequest) as raised:
        parse_type(text)
    assert raised.value.code == "TS1101"


def test_nested_json_is_the_one_of_the_schema_file() -> None:
    """ARRAY, MAP, MULTISET, ROW and VECTOR are objects with upper-case types and nested nullability."""
    value = {
        "type": "ROW NOT NULL",
        "fields": [
            {"id": 3, "name": "a", "type": {"type": "ARRAY", "element": "INT NOT NULL"}, "description": "d"},
            {
                "id": 4,
                "name": "m",
                "type": {"type": "MAP NOT NULL", "key": "STRING NOT NULL", "value": "BYTES"},
            },
            {"id": 5, "name": "s", "type": {"type": "MULTISET", "element": "DATE"}, "defaultValue": "1"},
            {"id": 6, "name": "v", "type": {"type": "VECTOR", "element": "FLOAT", "length": 3}},
        ],
    }
    parsed = type_from_json(value)
    assert not parsed.nullable
    assert parsed.fields[0].type.element == DataType("INT", nullable=False)
    assert type_to_json(parsed) == value
    assert [t.root for t in parsed.walk()][:3] == ["ROW", "ARRAY", "INT"]


@pytest.mark.parametrize(
    "value",
    [7, None, {}, {"type": 5}, {"type": "ARRAY"}, {"type": "INT"}, {"type": "ARRAY NULLABLE", "element": "INT"},
     {"type": "ROW", "fields": 3}, {"type": "MAP", "key": "INT"}],
)  # fmt: skip
def test_json_that_is_no_type_is_refused(value: object) -> None:
    """A damaged type object gives TS1102."""
    with pytest.raises(FixData) as raised:
        type_from_json(value)
    assert raised.value.code == "TS1102"


def test_field_json_needs_id_name_and_type() -> None:
    """A column without id is refused, one with all parts survives the round trip."""
    with pytest.raises(FixData):
        field_from_json({"name": "a", "type": "INT"})
    with pytest.raises(FixData):
        field_from_json("a INT")
    field = DataField(1, "a", STRING, "text", "'x'")
    assert field_from_json(field_to_json(field)) == field
    assert field_to_json(DataField(1, "a", STRING)) == {"id": 1, "name": "a", "type": "STRING"}


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("BOOLEAN", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT", pa.int32()),
        ("BIGINT", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("DECIMAL(38, 9)", pa.decimal128(38, 9)),
        ("STRING", pa.string()),
        ("BYTES", pa.binary()),
        ("DATE", pa.date32()),
        ("TIME(3)", pa.time32("ms")),
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(3)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP(6)", pa.timestamp("us")),
        ("TIMESTAMP(7)", pa.timestamp("ns")),
        ("TIMESTAMP_LTZ(3)", pa.timestamp("ms", "UTC")),
        ("TIMESTAMP_LTZ(6)", pa.timestamp("us", "UTC")),
        ("CHAR(3)", pa.string()),
        ("VARBINARY(9)", pa.binary()),
    ],
)
def test_arrow_form_of_each_scalar(text: str, arrow: pa.DataType) -> None:
    """Each scalar type travels in exactly one Arrow type, the one Parquet readers need (format.md#data-files)."""
    assert type_to_arrow(parse_type(text)) == arrow


def test_arrow_form_of_nested_types_keeps_nullability() -> None:
    """Nested types keep names, nullability and order both ways."""
    arrow = pa.struct([
        pa.field("l", pa.list_(pa.field("element", pa.int8(), nullable=False))),
        pa.field("m", pa.map_(pa.string(), pa.field("value", pa.date32(), nullable=False)), nullable=False),
    ])  # fmt: skip
    type_ = type_from_arrow(arrow, nullable=False)
    assert not type_.nullable
    assert type_.fields[0].type == DataType("ARRAY", element=DataType("TINYINT", nullable=False))
    assert type_.fields[1].type.value == DataType("DATE", nullable=False)
    assert type_to_arrow(type_) == arrow
    assert type_to_arrow(DataType("MULTISET", element=STRING)) == pa.map_(
        pa.string(), pa.field("value", pa.int32(), nullable=False)
    )


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        (pa.uint8(), "SMALLINT"),
        (pa.uint16(), "INT"),
        (pa.uint32(), "BIGINT"),
        (pa.uint64(), "DECIMAL(20, 0)"),
        (pa.float16(), "FLOAT"),
        (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"),
        (pa.large_binary(), "BYTES"),
        (pa.binary(4), "BINARY(4)"),
        (pa.date64(), "DATE"),
        (pa.time32("s"), "TIME(0)"),
        (pa.time32("ms"), "TIME(3)"),
        (pa.timestamp("s"), "TIMESTAMP(0)"),
        (pa.timestamp("ns", "Europe/Berlin"), "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.decimal128(2, -3), "DECIMAL(5, 0)"),
        (pa.decimal256(20, 2), "DECIMAL(20, 2)"),
    ],
)
def test_foreign_arrow_types_take_the_next_type_that_keeps_all_values(arrow: pa.DataType, text: str) -> None:
    """Arrow types without an exact counterpart are widened, never narrowed."""
    assert type_to_text(type_from_arrow(arrow)) == text


@pytest.mark.parametrize("arrow", [pa.null(), pa.duration("s"), pa.time64("us"), pa.decimal256(50, 2)])
def test_arrow_types_that_would_lose_values_are_refused(arrow: pa.DataType) -> None:
    """Types that no column can keep give TS1104."""
    with pytest.raises(FixRequest) as raised:
        type_from_arrow(arrow)
    assert raised.value.code == "TS1104"


def test_blob_has_no_arrow_form() -> None:
    """BLOB is parsed but named as unsupported when data should move."""
    with pytest.raises(Unsupported, match="BLOB"):
        type_to_arrow(DataType("BLOB"))


def test_variant_is_a_marked_struct_of_two_binaries() -> None:
    """Both ways; a struct of these names without the mark, as a user may have, stays a struct."""
    arrow = type_to_arrow(DataType("VARIANT"))
    assert arrow == pa.struct(
        [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
    )
    assert type_from_arrow(arrow) == DataType("VARIANT")
    assert type_from_arrow(pa.list_(arrow)) == DataType("ARRAY", element=DataType("VARIANT"))
    plain = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    assert type_from_arrow(plain).root == "ROW"


def test_parquet_ids_of_a_variant_are_java_s() -> None:
    """`value` is 0 and `metadata` 1 in each VARIANT, as Java 1.4.2 writes them."""
    (value, metadata) = field_with_ids(DataField(8, "v", DataType("VARIANT"))).type
    assert (value.metadata, metadata.metadata) == ({b"PARQUET:field_id": b"0"}, {b"PARQUET:field_id": b"1"})


def test_parquet_ids_of_nested_fields() -> None:
    """Elements, keys, values and ROW children carry their ids, all the way into a Parquet file."""
    element = DataType("ROW", fields=(DataField(9, "x", DataType("INT")),))
    field = DataField(8, "l", DataType("ARRAY", element=DataType("MAP", key=STRING, value=element)))
    arrow = field_with_ids(field)
    base, step = 536870911, 1024
    inner = arrow.type.value_field
    assert arrow.metadata == {b"PARQUET:field_id": b"8"}
    assert inner.metadata == {b"PARQUET:field_id": str(base + 8 * step + 1).encode()}
    assert inner.type.key_field.metadata == {b"PARQUET:field_id": str(base - 8 * step - 2).encode()}
    assert inner.type.item_field.metadata == {b"PARQUET:field_id": str(base + 8 * step + 2).encode()}
    assert inner.type.item_type.field("x").metadata == {b"PARQUET:field_id": b"9"}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, pa.schema([arrow])) as writer:
        writer.write_table(pa.table([pa.array([[[("k", {"x": 1})]]], arrow.type)], schema=pa.schema([arrow])))
    back = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema_arrow.field("l")
    assert back.metadata[b"PARQUET:field_id"] == b"8"
    assert back.type.value_type.item_type.field("x").metadata[b"PARQUET:field_id"] == b"9"


def test_nested_text_is_for_people() -> None:
    """Messages show nested types in SQL form."""
    row = DataType("ROW", fields=(DataField(0, "a", BYTES),))
    assert type_to_text(DataType("MAP", key=STRING, value=row)) == "MAP<STRING, ROW<a BYTES>>"
    assert type_to_text(DataType("VECTOR", element=DataType("FLOAT"), length=3)) == "VECTOR<FLOAT, 3>"
