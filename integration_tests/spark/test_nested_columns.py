"""ALTER TABLE on fields of structs: SQL and Arrow read rows of before and after with today's fields."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings, WriteSpec
from tablestore_engine.errors import FixRequest, NotFound, TablestoreError
from tablestore_engine.spark import write
from tests.doses import case_rows


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    """A table with a struct, an array of structs and a map of structs, and one row."""
    del spark
    engine = Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]"))
    engine.create_database("demo")
    engine.sql(
        "create table demo.t (id bigint not null, r struct<a:int,b:string>, many array<struct<a:int>>, "
        "named map<string,struct<a:int>>, primary key (id))"
    )
    engine.sql(
        "insert into demo.t select 1, named_struct('a', 1, 'b', 'x'), array(named_struct('a', 1)), "
        "map('k', named_struct('a', 1))"
    )
    return engine


def _both(engine: Engine) -> list[dict[str, object]]:
    """The rows by Arrow, which have to be those that SQL returns."""
    rows = engine.table("demo.t").scan().to_arrow().sort_by("id").to_pylist()
    found = engine.query("select * from demo.t order by id").toArrow().to_pylist()
    assert found == rows
    return rows


def test_fields_of_structs_are_added_renamed_retyped_and_dropped(engine: Engine) -> None:
    """Each change is of the field inside the column; rows of before have NULL in a new field and keep the others."""
    for change in (
        "add column r.z int comment 'new'",
        "add columns (many.element.z int, named.value.z string)",
        "rename column R.B to c",
        "alter column r.a type bigint",
        "alter column many.element.a comment 'said'",
    ):
        engine.sql(f"alter table demo.t {change}")
    assert engine.table("demo.t").schema.field_names == ("id", "r", "many", "named")
    assert _both(engine) == [
        {
            "id": 1,
            "r": {"a": 1, "c": "x", "z": None},
            "many": [{"a": 1, "z": None}],
            "named": [("k", {"a": 1, "z": None})],
        }
    ]
    engine.sql(
        "insert into demo.t select 2, named_struct('a', 5000000000, 'c', 'y', 'z', 7), "
        "array(named_struct('a', 2, 'z', 3)), map('k', named_struct('a', 2, 'z', 'v'))"
    )
    engine.sql("alter table demo.t drop column r.z")
    engine.sql("alter table demo.t add column r.z int")
    first, second = _both(engine)
    assert first["r"] == {"a": 1, "c": "x", "z": None}
    assert second["r"] == {
        "a": 5000000000,
        "c": "y",
        "z": None,
    }  # a new field, not the dropped one of that name
    assert second["named"] == [("k", {"a": 2, "z": "v"})]
    engine.sql("alter table demo.t drop columns (many.element.z, named.value.z)")
    assert [row["many"] for row in _both(engine)] == [[{"a": 1}], [{"a": 2}]]


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    case_rows(
        [
            ("add column id.z int", FixRequest, "TS1125"),
            ("add column r.A int", FixRequest, "TS1125"),
            ("add column r.z int not null", FixRequest, "TS1125"),
            ("add column r.z int default 1", TablestoreError, "TS1061"),
            ("add column nothing.z int", NotFound, "TS1574"),
            ("add column many.z int", FixRequest, "TS1125"),
            ("rename column r.a to B", FixRequest, "TS1125"),
            ("rename column r.nothing to z", NotFound, "TS1574"),
            ("alter column r.b type int", FixRequest, "TS1125"),
            ("alter column r.b set not null", FixRequest, "TS1020"),
            ("drop column named.value.a", FixRequest, "TS1125"),
            ("drop column r.nothing", NotFound, "TS1574"),
        ],
        6,
    ),
)
def test_change_of_a_field_that_is_not_possible_changes_nothing(
    engine: Engine, change: str, kind: type[TablestoreError], code: str
) -> None:
    """It is refused by name, and the schema stays as it was."""
    before = engine.table("demo.t").schema
    with pytest.raises(kind) as caught:
        engine.sql(f"alter table demo.t {change}")
    assert caught.value.code == code
    assert engine.table("demo.t").schema == before
    engine.sql("alter table demo.t drop column if exists r.nothing")
    assert engine.table("demo.t").schema.fields == before.fields


def test_create_table_with_a_dotted_column_is_refused(engine: Engine) -> None:
    """A dot in CREATE TABLE names no field; in quotes it belongs to the column's name."""
    with pytest.raises(FixRequest, match="without a dot"):
        engine.sql("create table demo.u (r.z int)")
    engine.sql("create table demo.u (id int, `r.z` int)")
    engine.sql("alter table demo.u rename column `r.z` to z")
    assert engine.table("demo.u").schema.field_names == ("id", "z")
    assert engine.query("select * from demo.u").toArrow().schema.names == ["id", "z"]
    assert pa.types.is_int32(engine.table("demo.u").schema.arrow_schema().field("z").type)


@pytest.mark.parametrize(
    "value",
    [
        "named_struct('a', 1, 'b', named_struct('c', 'x'))",
        "array(named_struct('a', 1))",
        "map('k', named_struct('a', 1))",
        "named_struct('l', array(1, 2))",
    ],
)
def test_null_around_parts_that_are_never_null(value: str, tmp_path: Path) -> None:
    """A literal's fields are NOT NULL; a row without the literal has a NULL around them. Small and large inputs."""
    text = f"select id, if(id % 2 = 0, {value}, null) as p from range({{}})"
    with Engine(str(tmp_path)) as engine:
        engine.create_database("demo")
        engine.sql(f"create table demo.t as {text.format(3)}")
        assert engine.sql("select count(*), count(p) from demo.t").rows == ((3, 2),)
        engine.write("demo.t", text.format(4), WriteSpec())
        if not value.startswith("map"):  # which Spark does not compare
            assert engine.sql(f"select count(*) from demo.t where p = {value}").rows == ((4,),)
        rows = engine.query(f"select * from ({text.format(6)}) distribute by id")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(write, "SMALL_ROWS", 2)
            engine.write("demo.t", rows, WriteSpec())
        assert engine.sql("select count(*), count(p) from demo.t").rows == ((13, 7),)
