"""Laws of types and schemas: text, JSON and Arrow round trips; ids stay unique under any change."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.format import schema_change as change
from tablestore_engine.format.data_type import INT, DataField, DataType
from tablestore_engine.format.evolution import evolve
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema, new_schema
from tablestore_engine.format.type_arrow import type_from_arrow, type_to_arrow
from tablestore_engine.format.type_text import parse_type, type_from_json, type_to_json, type_to_text
from tests.laws.strategies_format import atomic_types, data_types


@given(atomic_types(), st.booleans(), st.randoms())
def test_text_is_read_back_in_any_case_and_spacing(type_: DataType, nullable: bool, random: object) -> None:
    """Printing and parsing are inverse, and parsing does not see case or extra spaces."""
    type_ = type_.with_nullable(nullable)
    text = type_to_text(type_)
    assert parse_type(text) == type_
    loose = "".join(c.swapcase() if random.random() < 0.5 else c for c in text)  # type: ignore[attr-defined]
    assert parse_type("  " + loose.replace("(", " ( ").replace(",", " ,  ").replace(" ", "  ")) == type_


@given(data_types())
def test_json_is_read_back(type_: DataType) -> None:
    """Any type survives the JSON of a schema file."""
    assert type_from_json(json.loads(json.dumps(type_to_json(type_)))) == type_


@given(data_types())
def test_arrow_keeps_shape_and_nullability(type_: DataType) -> None:
    """Types that have an Arrow form come back with the same Arrow form."""
    if any(t.root == "BLOB" for t in type_.walk()):
        return
    arrow = type_to_arrow(type_)
    back = type_from_arrow(arrow, type_.nullable)
    assert type_to_arrow(back) == arrow
    assert back.nullable == type_.nullable


def _ids(schema: TableSchema) -> list[int]:
    nested = [f.id for field in schema.fields for t in field.type.walk() for f in t.fields]
    return [f.id for f in schema.fields] + nested


@given(st.lists(data_types(), min_size=1, max_size=4))
def test_schemas_survive_their_file_and_ids_are_dense(types: list[DataType]) -> None:
    """A new schema has the ids 0 … highest, each once, and its file gives it back."""
    schema = new_schema([DataField(0, f"c{i}", t) for i, t in enumerate(types)], options={"k": "v"})
    assert sorted(_ids(schema)) == list(range(schema.highest_field_id + 1))
    assert decode_schema(encode_schema(schema)) == schema


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "drop", "rename", "widen"]), st.sampled_from("abcd"), st.sampled_from("abcd")
    ),
    max_size=12,
)


def _apply(schema: TableSchema, step: tuple[str, str, str]) -> TableSchema:
    kind, name, other = step
    try:
        if kind == "add":
            return change.add_column(schema, name, INT)
        if kind == "drop":
            return change.drop_column(schema, name)
        if kind == "rename":
            return change.rename_column(schema, name, other)
        return change.retype_column(schema, name, parse_type("BIGINT"))
    except FixRequest:
        return schema


@given(_STEPS)
def test_ids_are_never_used_twice_and_old_rows_stay_with_their_column(
    steps: list[tuple[str, str, str]],
) -> None:
    """After any ALTERs a file of the first schema shows exactly the values of the columns that survived."""
    first = new_schema(pa.schema([("a", pa.int8()), ("b", pa.int8()), ("key", pa.int8())]))
    schema, seen = first, set(_ids(first))
    for step in steps:
        before = set(_ids(schema))
        schema = _apply(schema, step)
        fresh = set(_ids(schema)) - before
        assert not fresh & seen
        seen |= fresh
    table = evolve(pa.table({"a": [1], "b": [2], "key": [3]}, schema=first.arrow_schema()), first, schema)
    assert table.schema == schema.arrow_schema()
    by_id = {f.id: table.column(f.name)[0].as_py() for f in schema.fields}
    assert by_id == {f.id: {0: 1, 1: 2, 2: 3}.get(f.id) for f in schema.fields}
