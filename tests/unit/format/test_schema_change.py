"""ALTER on the schema object: ids, options that name columns, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format import schema_change as change
from tablestore_engine.format.data_type import BIGINT, INT, STRING, DataField, DataType
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type

SCHEMA = new_schema(
    pa.schema([("id", pa.int64()), ("dt", pa.string()), ("a", pa.int32()), ("b", pa.string()), ("seq", pa.int64())]),
    partition_keys=["dt"],
    primary_keys=["dt", "id"],
    options={"bucket": "2", "bucket-key": "id", "sequence.field": "seq", "fields.a.aggregate-function": "sum",
             "fields.seq,b.sequence-group": "a,b"},
)  # fmt: skip


def _code(raised: pytest.ExceptionInfo[FixRequest]) -> str:
    return raised.value.code


def test_added_columns_get_new_ids() -> None:
    """A new column takes the next id, nested ones too, at the wanted place; the schema id goes up."""
    row = DataType("ROW", fields=(DataField(0, "x", INT), DataField(0, "y", INT)))
    schema = change.add_column(SCHEMA, "n", row, after="id", description="d")
    assert schema.id == 1
    assert schema.field_names == ("id", "n", "dt", "a", "b", "seq")
    assert (schema.field("n").id, [f.id for f in schema.field("n").type.fields], schema.highest_field_id) == (
        5,
        [6, 7],
        7,
    )
    assert change.add_column(SCHEMA, "z", INT).field_names[-1] == "z"
    assert change.add_column(SCHEMA, "z", INT, after=change.FIRST).field_names[0] == "z"


def test_ids_are_never_used_again() -> None:
    """A column that is dropped and added again is another column."""
    plain = change.set_options(SCHEMA, {"fields.seq,b.sequence-group": None})
    again = change.add_column(change.drop_column(plain, "b"), "b", STRING)
    assert again.field("b").id == 5 != SCHEMA.field("b").id
    assert again.highest_field_id == 5
    assert again.id == 3
    last = change.drop_column(again, "b")  # the highest id is gone from the columns, and still taken
    assert change.add_column(last, "b", STRING).field("b").id == 6


@pytest.mark.parametrize(
    ("name", "type_", "code"),
    [("a", INT, "TS1112"), ("_KEY_x", INT, "TS1112"), ("z", INT.with_nullable(False), "TS1125")],
)
def test_columns_that_cannot_be_added(name: str, type_: DataType, code: str) -> None:
    """Taken or reserved names and NOT NULL columns are refused."""
    with pytest.raises(FixRequest) as raised:
        change.add_column(SCHEMA, name, type_)
    assert _code(raised) == code


@pytest.mark.parametrize("name", ["id", "dt", "seq", "b"])
def test_columns_that_cannot_be_dropped(name: str) -> None:
    """Keys and columns that an option orders by stay."""
    with pytest.raises(FixRequest) as raised:
        change.drop_column(SCHEMA, name)
    assert _code(raised) == "TS1125"


def test_dropping() -> None:
    """A dropped column takes its own options along; the last column and unknown ones stay."""
    plain = change.set_options(SCHEMA, {"fields.seq,b.sequence-group": None})
    dropped = change.drop_column(plain, "a")
    assert "a" not in dropped.field_names
    assert "fields.a.aggregate-function" not in dropped.options
    single = new_schema(pa.schema([("a", pa.int8())]))
    with pytest.raises(FixRequest):
        change.drop_column(single, "a")
    with pytest.raises(NotFound):
        change.drop_column(SCHEMA, "nope")


def test_renaming_reaches_keys_and_options() -> None:
    """The new name stands in the primary key and in every option that names the column, and only there."""
    schema = change.rename_column(SCHEMA, "id", "key")
    assert schema.primary_keys == ("dt", "key")
    assert schema.options["bucket-key"] == "key"
    assert schema.field("key").id == SCHEMA.field("id").id
    schema = change.rename_column(change.rename_column(SCHEMA, "seq", "s2"), "a", "a2")
    assert schema.options == {"bucket": "2", "bucket-key": "id", "sequence.field": "s2",
                              "fields.a2.aggregate-function": "sum", "fields.s2,b.sequence-group": "a2,b"}  # fmt: skip
    for old, new, code in (("dt", "d2", "TS1125"), ("a", "b", "TS1112"), ("a", "_KEY_", "TS1112")):
        with pytest.raises(FixRequest) as raised:
            change.rename_column(SCHEMA, old, new)
        assert _code(raised) == code


def test_retyping_widens_only() -> None:
    """A wider type is taken, the id stays; a narrower one, a key, or a new NOT NULL is refused."""
    schema = change.retype_column(SCHEMA, "a", BIGINT)
    assert (schema.field("a").type, schema.field("a").id) == (BIGINT, 2)
    for name, type_ in (("a", parse_type("SMALLINT")), ("a", STRING), ("id", parse_type("DECIMAL(20,0)")),
                        ("a", BIGINT.with_nullable(False))):  # fmt: skip
        with pytest.raises(FixRequest) as raised:
            change.retype_column(SCHEMA, name, type_)
        assert _code(raised) == "TS1125"


def test_retyping_nested_columns_keeps_ids() -> None:
    """Children are matched by name and keep ids; new ones get fresh ids; lost children and other shapes are refused."""
    base = new_schema(pa.schema([("r", pa.struct([("x", pa.int8()), ("l", pa.list_(pa.int8()))]))]))
    wider = DataType("ROW", fields=(
        DataField(0, "x", INT), DataField(0, "new", STRING), DataField(0, "l", DataType("ARRAY", element=BIGINT)),
    ))  # fmt: skip
    row = change.retype_column(base, "r", wider).field("r").type
    assert [(f.name, f.id) for f in row.fields] == [("x", 1), ("new", 3), ("l", 2)]
    assert change.retype_column(base, "r", wider).highest_field_id == 3
    for bad in (DataType("ROW", fields=wider.fields[:1]), INT, DataType("ARRAY", element=INT)):
        with pytest.raises(FixRequest):
            change.retype_column(base, "r", bad)
    maps = new_schema(pa.schema([("m", pa.map_(pa.string(), pa.int8()))]))
    with pytest.raises(FixRequest, match="MAP"):
        change.retype_column(maps, "m", DataType("MAP", key=INT.with_nullable(False), value=INT))
    with pytest.raises(FixRequest, match=r"r\.x"):
        change.retype_column(
            base, "r", DataType("ROW", fields=(DataField(0, "x", STRING), *wider.fields[1:]))
        )


@pytest.mark.parametrize("name", ["_row_kind", "_Snapshot_ID"])
def test_no_column_gets_a_name_of_rows_of_changes(name: str) -> None:
    """A table of another engine may have one: it can be renamed, and other columns can be changed."""
    for refused in (
        lambda: change.add_column(SCHEMA, name, INT),
        lambda: change.rename_column(SCHEMA, "a", name),
    ):
        with pytest.raises(FixRequest, match="rows of changes") as raised:
            refused()
        assert _code(raised) == "TS1112"
    foreign = replace(SCHEMA, fields=(*SCHEMA.fields, DataField(90, name, INT)))
    assert change.add_column(foreign, "z", INT).field_names[-1] == "z"
    assert change.rename_column(foreign, "a", "z").field_names == tuple(
        "z" if one == "a" else one for one in foreign.field_names
    )
    assert change.rename_column(foreign, name, "z").field_names[-1] == "z"


def test_small_changes() -> None:
    """Descriptions, comments, options and nullability change one thing and the schema id."""
    assert change.describe_column(SCHEMA, "a", "d").field("a").description == "d"
    assert change.set_comment(SCHEMA, "c").comment == "c"
    assert change.set_options(SCHEMA, {"x": "1", "bucket": None}).options.get("bucket") is None
    strict = TableSchema(0, (DataField(0, "a", INT.with_nullable(False)),), 0)
    assert change.relax_column(strict, "a").field("a").type == INT
    with pytest.raises(FixRequest):
        change.relax_column(SCHEMA, "id")
    with pytest.raises(FixRequest):
        change.set_options(SCHEMA, {"bucket-key": "a"})
    assert SCHEMA.id == 0
