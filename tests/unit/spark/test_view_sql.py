"""The SQL of views and the deletion map, without Spark."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap
from pyspark.sql import types as spark_types

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import STRING, DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.spark.spark_types import fields_from_spark, from_spark_type, spark_type
from tablestore_engine.spark.type_ddl import spark_ddl
from tablestore_engine.spark.view_sql import (
    ROWS,
    FileGroup,
    first_words,
    group_files,
    select_group,
    view_query,
    words_table,
)

_SCHEMA = TableSchema(0, (DataField(0, "a", DataType("INT")), DataField(1, "b c", DataType("BIGINT"))), 1)


def _file(name: str, rows: int, deleted: set[int], schema: TableSchema = _SCHEMA) -> Any:
    meta = SimpleNamespace(file_name=name, row_count=rows)
    return SimpleNamespace(
        path=f"/{name}", meta=meta, schema=schema, deleted=BitMap(deleted) if deleted else None
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300), st.sets(st.integers(0, 299))), min_size=1, max_size=4))
def test_words_of_a_group(parts: list[tuple[int, set[int]]]) -> None:
    """From a file's first word on, bit i of word w is set exactly for its dead row 64 w + i; every row has a bit."""
    files = tuple(_file(f"f{i}", rows, {p for p in dead if p < rows}) for i, (rows, dead) in enumerate(parts))
    (words,) = words_table(FileGroup(_SCHEMA, True, files)).column("m").to_pylist()
    starts = first_words(files)
    assert len(words) == sum(-(-rows // 64) for rows, _ in parts)
    for file, (rows, dead) in zip(files, parts, strict=True):
        first = starts[file.meta.file_name]
        bits = [(words[first + (row >> 6)] >> (row & 63)) & 1 for row in range(rows)]
        assert {row for row, bit in enumerate(bits) if bit} == {p for p in dead if p < rows}


@pytest.mark.parametrize(
    ("names", "column"),
    [
        (("a",), "__tablestore_word"),
        (("__TABLESTORE_WORD", "__tablestore_word_"), "__tablestore_word__"),
    ],
)
def test_the_column_of_a_files_first_word_is_none_of_the_tables(names: tuple[str, ...], column: str) -> None:
    """Spark tells names apart without looking at their case: a column in a folder's name would hide the file's."""
    fields = tuple(DataField(at, name, DataType("INT")) for at, name in enumerate(names))
    assert FileGroup(TableSchema(0, fields, len(fields)), True, ()).word_column == column


@pytest.mark.parametrize("name", ["a", "_TMP_metadata_row_index"])
def test_row_numbers_have_a_column_of_their_own(name: str) -> None:
    """Spark's own column of row numbers is declared and read; a table's column of that name is not read."""
    shared = DataField(1, "b", DataType("INT"))
    group = FileGroup(TableSchema(0, (DataField(0, name, DataType("INT")), shared), 2), True, ())
    declared = "`a` int, " if name == "a" else ""
    assert group.columns_ddl == f"{declared}`b` int, _tmp_metadata_row_index bigint, __tablestore_word int"
    text = select_group(group, group.schema, "h", "m")
    assert f"shiftright(coalesce({ROWS}._tmp_metadata_row_index, cast(raise_error(" in text
    assert (f"TS1575 column {name} of type INT" in text) == (name != "a")


def test_groups_and_selects() -> None:
    """Unchanged columns pass untouched, changed ones are cast, groups are apart by schema and deletions."""
    newer = TableSchema(
        1, (DataField(0, "z", DataType("BIGINT")), _SCHEMA.fields[1], DataField(2, "n", DataType("DATE"))), 2
    )
    plan = SimpleNamespace(
        schema=newer, files=(_file("x", 9, {1}), _file("y", 9, set()), _file("z", 9, set(), newer))
    )
    groups = group_files(plan)
    assert [(group.key, len(group.files)) for group in groups] == [("0", 1), ("0d", 1), ("1", 1)]
    assert select_group(groups[0], newer, "h", None) == (
        f"select cast({ROWS}.`a` as bigint) as `z`, {ROWS}.`b c` as `b c`, cast(null as date) as `n` from h as {ROWS}"
    )
    assert (
        select_group(groups[2], newer, "h", None)
        == f"select {ROWS}.`z` as `z`, {ROWS}.`b c` as `b c`, {ROWS}.`n` as `n` from h as {ROWS}"
    )
    assert " where getbit(" in select_group(groups[1], newer, "h", "m")
    assert view_query(["s1", "s2"], newer) == "s1 union all s2"
    assert (
        view_query([], _SCHEMA)
        == "select cast(null as int) as `a`, cast(null as bigint) as `b c` where false"
    )


@pytest.mark.parametrize(("clean", "expected"), [(20, [("0d", 3)]), (21, [("0", 2), ("0d", 1)])])
def test_few_clean_rows_share_the_scan(clean: int, expected: list[tuple[str, int]]) -> None:
    """Up to a quarter of the filtered rows, clean files join the filtered scan; beyond, they have their own."""
    plan = SimpleNamespace(
        schema=_SCHEMA, files=(_file("a", 80, {1}), _file("b", 1, set()), _file("c", clean - 1, set()))
    )
    assert [(group.key, len(group.files)) for group in group_files(plan)] == expected


_NESTED = DataType(
    "ROW",
    fields=(
        DataField(0, "a", DataType("INT")),
        DataField(1, "b", DataType("ARRAY", element=DataType("DATE"))),
    ),
)


@pytest.mark.parametrize(
    ("type_", "ddl"),
    [
        (DataType("BOOLEAN"), "boolean"),
        (DataType("DECIMAL", precision=20, scale=3), "decimal(20,3)"),
        (DataType("VARCHAR", length=9), "string"),
        (DataType("TIMESTAMP", precision=3), "timestamp_ntz"),
        (DataType("TIMESTAMP_LTZ", precision=6), "timestamp"),
        (DataType("MAP", key=STRING, value=_NESTED), "map<string,struct<`a`:int,`b`:array<date>>>"),
        (DataType("MULTISET", element=STRING), "map<string,int>"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_types(type_: DataType, ddl: str) -> None:
    """Each type has its Spark form, and comes back as a type with the same Spark form."""
    assert spark_ddl(type_) == ddl
    assert spark_ddl(from_spark_type(spark_type(type_))) == ddl


def test_types_without_counterpart() -> None:
    """What Spark or the format does not have is refused by name."""
    with pytest.raises(Unsupported, match="TS1508"):
        spark_ddl(parse_type("TIME(3)"))
    with pytest.raises(FixRequest, match="TS1509"):
        from_spark_type(spark_types.DayTimeIntervalType())


_SPAN = spark_types.DayTimeIntervalType()


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        (_SPAN, "'v'"),
        (spark_types.StructType().add("b", spark_types.ArrayType(_SPAN)), "'v.b[]'"),
        (spark_types.MapType(spark_types.StringType(), _SPAN), "'v (value)'"),
    ],
)
def test_a_column_without_a_counterpart_is_named(type_: spark_types.DataType, column: str) -> None:
    """Also the one inside a struct, an array or a map."""
    with pytest.raises(FixRequest, match=re.escape(column)):
        fields_from_spark(spark_types.StructType().add("id", spark_types.IntegerType()).add("v", type_))
