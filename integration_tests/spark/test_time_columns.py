"""SQL on tables with columns that Spark cannot read: it works as long as their values are not asked for."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import Unsupported
from tests.doses import cases

CLOCK = pa.array([time(1, 2, 3), None, time(4)], pa.time32("ms"))
ROWS = pa.table(
    {
        "clock": CLOCK,
        "id": [1, 2, 3],
        "v": ["a", "b", "c"],
        "part": pa.array([{"at": time(1)}, None, {"at": None}], pa.struct([("at", pa.time32("ms"))])),
    }
)
KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    """A warehouse of its own in the shared session, a table with a key, one without, and one of one column."""
    del spark
    engine = Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]"))
    engine.write("demo.keyed", ROWS, KEYED)
    engine.write("demo.keyed", ROWS.slice(0, 1), KEYED)
    engine.write("demo.plain", ROWS, WriteSpec(mode=WriteMode.APPEND))
    engine.write("demo.only", pa.table({"clock": CLOCK}), WriteSpec(mode=WriteMode.APPEND))
    return engine


@pytest.mark.parametrize("table", ["demo.keyed", "demo.plain"])
def test_query_without_time_column_returns_rows(engine: Engine, table: str) -> None:
    """Columns, conditions, counts, joins and views beside a TIME column are answered."""
    assert engine.sql(f"select id, v from {table} where v > 'a' order by id").rows == ((2, "b"), (3, "c"))
    assert engine.sql(f"select count(*) from {table} a join {table} b using (id)").rows == ((3,),)
    engine.create_view("demo.v", f"select id as number from {table}")
    assert engine.sql("select sum(number) from demo.v").rows == ((6,),)
    assert engine.sql("select count(*) from demo.only").rows == ((3,),)
    changes = engine.sql("select count(*) from demo__changes_start_to_now.keyed").rows
    assert changes == ((3,),)


@pytest.mark.parametrize("column", cases(["clock", "part", "*", "max(clock)", "count(clock)"], 2))
def test_query_with_time_column_is_refused(engine: Engine, column: str) -> None:
    """Asking for the values, alone, inside a struct or by *, is TS1575 and names a column: never rows without it."""
    for table in ("demo.keyed", "demo.plain", "demo__changes_start_to_now.keyed"):
        with pytest.raises(Unsupported, match=r"TS1575 column (clock|part) of type"):
            engine.sql(f"select {column} from {table}")


def test_statements_on_a_table_with_time_column(engine: Engine) -> None:
    """INSERT of other columns and DELETE by key work, with a changelog that has the stored TIME; an UPDATE, which needs
    the whole row, and a DELETE that writes all rows again are refused and change nothing.
    """
    engine.sql("insert into demo.keyed (id, v) values (4, 'd')")
    engine.sql("delete from demo.keyed where v = 'b' or id = 3")
    stored = engine.table("demo.keyed").scan().to_arrow().sort_by("id")
    assert stored.column("id").to_pylist() == [1, 4]
    assert stored.column("clock").to_pylist() == [time(1, 2, 3), None]
    for statement in ("update demo.keyed set v = 'x' where id = 1", "delete from demo.plain where id = 1"):
        with pytest.raises(Unsupported, match="TS1575"):
            engine.sql(statement)
    assert engine.table("demo.plain").scan().to_arrow().num_rows == 3
    engine.sql("alter table demo.keyed add column w int")
    assert engine.sql("select id, w from demo.keyed order by id").rows == ((1, None), (4, None))


def test_describe_shows_time_column(engine: Engine) -> None:
    """DESCRIBE and columns() name the type as the format does."""
    described = engine.sql("describe table demo.keyed").rows
    assert ("clock", "time(3)") in [row[:2] for row in described]
    assert engine.columns("demo.keyed")[0].type_text == "time(3)"
