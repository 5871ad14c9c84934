"""Columns of rows that Python users write: a typing error never empties a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, OnSchemaChange, Table, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import FixData, FixRequest

KEYED = TableSpec(primary_key=("id",))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A keyed table with one row."""
    with Engine(str(tmp_path)) as opened:
        opened.create_database("d")
        opened.write("d.t", pa.table({"id": [1], "amount": [10], "name": ["a"]}), WriteSpec(table=KEYED))
        yield opened


def _rows(engine: Engine) -> list[dict[str, object]]:
    return list(engine.table("d.t").scan().to_arrow().to_pylist())


def test_an_unknown_column_is_refused(engine: Engine) -> None:
    """`amuont` is no column: the nearest one is named, the row stays; on request it is left out, as in SQL before."""
    rows = pa.table({"id": [1], "amuont": [20], "name": ["b"]})
    with pytest.raises(FixRequest, match="'amount'") as refused:
        engine.write("d.t", rows, WriteSpec())
    assert refused.value.code == "TS1062"
    assert _rows(engine) == [{"id": 1, "amount": 10, "name": "a"}]
    engine.write("d.t", rows, WriteSpec(on_schema_change=OnSchemaChange.IGNORE))
    assert _rows(engine) == [{"id": 1, "amount": None, "name": "b"}]


def test_a_missing_column_of_an_upsert_is_refused(engine: Engine) -> None:
    """An upsert replaces whole rows: a column that is left out would become NULL; `missing_columns` asks for that."""
    rows = pa.table({"ID": [1], "name": ["b"]})
    with pytest.raises(FixRequest, match="amount") as refused:
        engine.table("d.t").write(rows)
    assert refused.value.code == "TS1063"
    assert _rows(engine) == [{"id": 1, "amount": 10, "name": "a"}]
    engine.table("d.t").write(rows, WriteSpec(missing_columns="null"))
    assert _rows(engine) == [{"id": 1, "amount": None, "name": "b"}]


def test_rows_that_only_delete_need_their_key(engine: Engine) -> None:
    """A delete has no values to give."""
    engine.write("d.t", pa.table({"id": [1], "_ROW_KIND": [3]}), WriteSpec())
    assert _rows(engine) == []


def test_appends_and_overwrites_may_leave_columns_out(engine: Engine) -> None:
    """Nothing is replaced by them column by column; a new table has the columns of its first rows."""
    whole = WriteSpec(mode=WriteMode.OVERWRITE_TABLE)
    engine.write("d.t", pa.table({"id": [2], "name": ["b"]}), whole)
    assert _rows(engine) == [{"id": 2, "amount": None, "name": "b"}]
    append = WriteSpec(mode=WriteMode.APPEND)
    engine.write("d.log", pa.table({"a": [1], "b": [2]}), append)
    engine.write("d.log", pa.table({"a": [2]}), append)
    with pytest.raises(FixRequest, match="TS1062"):
        engine.write("d.log", pa.table({"a": [2], "c": [3]}), append)


@pytest.mark.parametrize(
    "mode", [WriteMode.UPSERT, WriteMode.OVERWRITE_TABLE, WriteMode.OVERWRITE_PARTITIONS]
)
@pytest.mark.parametrize("rows", [pl.DataFrame(), pa.table({}), []])
def test_rows_without_columns_are_refused(engine: Engine, mode: WriteMode, rows: object) -> None:
    """A frame that was read wrongly is one: an overwrite would empty the table. A handle takes [] as no rows."""
    for missing in ("refuse", "null"):
        for rule in (OnSchemaChange.SAME_COLUMNS, OnSchemaChange.IGNORE, OnSchemaChange.APPEND_NEW_COLUMNS):
            with pytest.raises(FixRequest, match="have no columns") as refused:
                engine.write(
                    "d.t", rows, WriteSpec(mode=mode, missing_columns=missing, on_schema_change=rule)
                )
            assert refused.value.code == "TS1063"
    assert _rows(engine) == [{"id": 1, "amount": 10, "name": "a"}]
    engine.table("d.t").overwrite([])
    assert _rows(engine) == []


def test_words_of_missing_columns() -> None:
    """Anything but refuse and null is refused."""
    with pytest.raises(FixRequest, match="missing_columns"):
        WriteSpec(missing_columns="fill")


STRUCT = {"x": "a", "y": 1}
KINDS = {
    "struct": ("s", lambda one: one),
    "list": ("s.element", lambda one: [one]),
    "struct in a struct": ("s.in", lambda one: {"in": one}),
}
Shape = Callable[[dict[str, object]], object]


def _nested(engine: Engine, shape: Shape) -> Table:
    table = engine.create_table("d.n", [{"id": 1, "s": shape(STRUCT)}], primary_key="id")
    table.upsert([{"id": 1, "s": shape(STRUCT)}])
    return table


def _values(table: Table) -> list[object]:
    return list(table.scan().to_arrow().sort_by("id").column("s").to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_a_struct_lacks_is_refused(engine: Engine, kind: str) -> None:
    """`z` is no field of the struct: its path and the nearest name are said, and nothing changes."""
    path, shape = KINDS[kind]
    table = _nested(engine, shape)
    with pytest.raises(
        FixRequest, match=f"'{path}.yy'\n.*fields of {path} are x, y; the nearest is 'y'"
    ) as refused:
        table.upsert([{"id": 1, "s": shape({"x": "q", "y": 2, "yy": 5})}])
    assert refused.value.code == "TS1062"
    assert _values(table) == [shape(STRUCT)]
    table.write(
        [{"id": 1, "s": shape({"x": "q", "y": 2, "z": 5})}], WriteSpec(on_schema_change=OnSchemaChange.IGNORE)
    )
    assert _values(table) == [shape({"x": "q", "y": 2})]


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_the_rows_lack_is_refused(engine: Engine, kind: str) -> None:
    """A struct without `y` would make it NULL; `missing_columns` asks for that, also of a write that drops fields."""
    path, shape = KINDS[kind]
    table = _nested(engine, shape)
    rows = [{"id": 1, "s": shape({"x": "q"})}]
    for rule in (OnSchemaChange.SAME_COLUMNS, OnSchemaChange.IGNORE):
        with pytest.raises(FixRequest, match=rf"lack {path}\.y") as refused:
            table.write(rows, WriteSpec(on_schema_change=rule))
        assert refused.value.code == "TS1063"
        assert _values(table) == [shape(STRUCT)]
    table.write(rows, WriteSpec(missing_columns="null"))
    assert _values(table) == [shape({"x": "q", "y": None})]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_field_of_a_struct_is_added(engine: Engine, kind: str) -> None:
    """append_new_columns adds it, whatever order the fields have; rows from before have NULL in it."""
    _, shape = KINDS[kind]
    table = _nested(engine, shape)
    append = WriteSpec(on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS)
    table.write([{"id": 2, "s": shape({"z": {"w": 5}, "Y": 2, "x": "q"})}], append)
    table.write([{"id": 3, "s": shape({"x": "r"})}], append)
    assert _values(table) == [
        shape(STRUCT | {"z": None}),
        shape({"x": "q", "y": 2, "z": {"w": 5}}),
        shape({"x": "r", "y": None, "z": None}),
    ]


def test_a_new_field_of_a_map_key_is_refused(engine: Engine) -> None:
    """Keys of a map never change."""
    kind = pa.map_(pa.struct([("a", pa.int64())]), pa.int64())
    wider = pa.map_(pa.struct([("a", pa.int64()), ("b", pa.int64())]), pa.int64())
    table = engine.create_table("d.m", pa.schema({"id": pa.int64(), "m": kind}), primary_key="id")
    rows = pa.table({"id": [1], "m": pa.array([[({"a": 1, "b": 2}, 3)]], wider)})
    append = WriteSpec(on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS)
    for spec, code in ((WriteSpec(), "TS1062"), (append, "TS1125")):
        with pytest.raises(FixRequest, match=r"m\.key\.b") as refused:
            table.write(rows, spec)
        assert refused.value.code == code


def test_two_fields_of_one_name_are_not_one(engine: Engine) -> None:
    """Of `x` and `X` one would be lost."""
    table = _nested(engine, lambda one: one)
    with pytest.raises(FixRequest, match=r"'s\.X'"):
        table.upsert([{"id": 1, "s": {"X": "b", "x": "a", "y": 1}}])


def test_dicts_of_a_column_have_the_same_keys(engine: Engine) -> None:
    """As rows have: Arrow would fill the gap of one with NULL."""
    table = _nested(engine, lambda one: [one])
    with pytest.raises(FixData, match=r"row 0 and row 1 differ in the keys s\[\]\.y") as refused:
        table.upsert([{"id": 1, "s": [STRUCT]}, {"id": 2, "s": [None, {"x": "b"}]}])
    assert refused.value.code == "TS1607"


VOIDS = {
    "an empty list": ([1], []),
    "a list of NULL": ([1], [None]),
    "a field without values": (STRUCT, {"x": None, "y": 2}),
    "an empty list in a struct": ({"l": [{"a": 1}], "n": 1}, {"l": [], "n": 2}),
    "fields in another order": ({"a": "x", "b": "y"}, {"B": None, "a": None}),
}


@pytest.mark.parametrize("name", VOIDS)
def test_parts_without_values_have_the_type_of_the_table(engine: Engine, name: str) -> None:
    """A batch of empty lists has no element to tell the type by, and needs none."""
    first, second = VOIDS[name]
    table = engine.create_table("d.v", [{"id": 1, "v": first}], primary_key="id")
    table.upsert([{"id": 1, "v": first}])
    before = table.schema
    for rule in (
        OnSchemaChange.SAME_COLUMNS,
        OnSchemaChange.APPEND_NEW_COLUMNS,
        OnSchemaChange.SYNC_ALL_COLUMNS,
    ):
        if rule is OnSchemaChange.SYNC_ALL_COLUMNS and "order" in name:
            continue  # the order of the rows would be that of the table
        table.write([{"id": 2, "v": second}], WriteSpec(on_schema_change=rule))
        found = table.scan(filter="id = 2").to_arrow().column("v").to_pylist()
        assert found == [
            {key.lower(): one for key, one in second.items()} if isinstance(second, dict) else second
        ]
        assert table.schema == before


def test_parts_without_a_type_make_no_column(engine: Engine) -> None:
    """Nothing says what the elements of a new column would be; the part that lacks a type is named."""
    for rows, path in (([{"id": 1, "v": []}], "v.element"), ([{"id": 1, "v": {"a": None}}], "v.a")):
        with pytest.raises(FixRequest, match=f"'{path}' has no type") as refused:
            engine.create_table("d.v", rows, primary_key="id")
        assert refused.value.code == "TS1026"


def test_unsigned_integers_of_64_bits_are_written(engine: Engine) -> None:
    """As DECIMAL(20, 0), which keeps them all."""
    rows = pl.DataFrame({"id": [1, 2], "u": pl.Series([7, 2**64 - 1], dtype=pl.UInt64)})
    engine.write("d.u", rows, WriteSpec(table=KEYED))
    assert engine.table("d.u").scan().to_arrow().column("u").to_pylist() == [7, 2**64 - 1]
