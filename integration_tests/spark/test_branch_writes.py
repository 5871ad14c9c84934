"""SQL statements and Spark's sink write into a branch of a table; main stays as it is until a fast-forward."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from integration_tests.branch_world import main_files
from tablestore_engine.api import Engine, TablestoreError, TablestoreSource

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
KEYED, PLAIN = "d.`orders$branch_dev`", "d.`events$branch_dev`"
WHEN = "when matched then update set v = s.v when not matched then insert *"
# each statement, and the rows of the branch after it
STATEMENTS = (
    (f"insert into {KEYED} select id + 10, v from d.orders where id = 1", {1: "a", 2: "b", 3: "c", 11: "a"}),
    (f"update {KEYED} set v = upper(v) where `orders$branch_dev`.id > 2", {1: "a", 2: "b", 3: "C", 11: "A"}),
    (f"delete from {KEYED} as o where o.id = 11", {1: "a", 2: "b", 3: "C"}),
    (
        f"merge into {KEYED} t using (select 2 id, 'z' v union all select 9, 'n') s on t.id = s.id {WHEN}",
        {1: "a", 2: "z", 3: "C", 9: "n"},
    ),
    (f"insert overwrite {KEYED} select id, v from {KEYED} where id > 1", {2: "z", 3: "C", 9: "n"}),
    (f"restore table {KEYED} to version as of 1", {1: "a", 2: "b", 3: "c"}),
    (f"alter table {KEYED} set tblproperties ('file.compression' = 'gzip')", {1: "a", 2: "b", 3: "c"}),
    (f"analyze table {KEYED} compute statistics for columns v, id", {1: "a", 2: "b", 3: "c"}),
    (f"truncate table {KEYED}", {}),
    (f"insert into {KEYED} (v, id) values ('q', 7)", {7: "q"}),
)
ON_PLAIN = (
    (f"insert into {PLAIN} values (4, 'd')", {1: "a", 2: "b", 3: "c", 4: "d"}),
    (f"update {PLAIN} set v = 'x' where id = 4", {1: "a", 2: "b", 3: "c", 4: "x"}),
    (f"delete from {PLAIN} where id < 3", {3: "c", 4: "x"}),
)


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """d.orders, keyed, and d.events, each with three rows and a branch dev of them."""
    spark.dataSource.register(TablestoreSource)
    made = Engine(str(tmp_path_factory.mktemp("branches")))
    made.create_database("d")
    for name, key in (("d.orders", "id"), ("d.events", ())):
        table = made.create_table(name, ROWS.schema, primary_key=key)
        (table.upsert if key else table.append)(ROWS)
        table.create_branch("dev", snapshot=1)
    return made


def rows_of(engine: Engine, table: str) -> dict[int, str]:
    """Of the branch."""
    found = engine.table(table).branch("dev").to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


@pytest.mark.parametrize(("name", "statements"), [("d.orders", STATEMENTS), ("d.events", ON_PLAIN)])
def test_statements_change_the_branch_alone(
    engine: Engine, name: str, statements: tuple[tuple[str, dict[int, str]], ...]
) -> None:
    """After each statement the branch has its rows; main has the same bytes, and gets all of it by a fast-forward."""
    table = engine.table(name)
    before = main_files(table)
    for text, expected in statements:
        engine.sql(text)
        assert rows_of(engine, name) == expected, text
        assert main_files(table) == before, text
    newest = table.branch("dev").snapshots()[-1].id
    assert table.fast_forward("dev").added == tuple(range(2, newest + 1))
    assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == statements[-1][1]
    assert table.verify() == ()
    if name == "d.orders":  # ANALYZE on the branch: its statistics came along
        assert table.system_table("statistics")["mergedRecordCount"].to_pylist() == [3]
        engine.sql(f"analyze table {name} compute statistics")
        assert table.system_table("statistics").to_pylist()[0]["mergedRecordCount"] == 1


def test_statements_on_branches_that_are_none_change_nothing(engine: Engine) -> None:
    """No such branch, no such table, a system table, names: refused by name."""
    before = main_files(engine.table("d.orders"))
    for text, code in (
        ("insert into d.`orders$branch_no` values (1, 'x')", "TS1346"),
        ("delete from d.`nothing$branch_dev` where id = 1", "TS1522"),
        ("insert into d.`orders$files` values (1)", "TS1401"),
        ("drop table d.`orders$branch_dev`", "TS1401"),
    ):
        with pytest.raises(TablestoreError, match=code):
            engine.sql(text)
    assert main_files(engine.table("d.orders")) == before


@pytest.mark.nightly  # by day test_sink.py, and the statements of this file
def test_the_sink_writes_batches_and_streams_into_a_branch(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """format("tablestore") with option branch: written, read and followed there; an unknown branch is refused."""
    table = engine.create_table("d.sink", ROWS.schema, primary_key="id")
    table.upsert(ROWS)
    table.create_branch("dev", snapshot=1)
    before = main_files(table)
    options = {"warehouse": engine.warehouse, "table": "d.sink", "branch": "dev"}
    frame = spark.createDataFrame([(4, "d")], "id bigint, v string")
    frame.write.format("tablestore").mode("append").options(**options).save()
    stream = spark.readStream.format("tablestore").options(**options, startingVersion="2").load()
    target = stream.selectExpr("id + 100 id", "v").writeStream.format("tablestore").options(**options)
    query = target.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert rows_of(engine, "d.sink") == {1: "a", 2: "b", 3: "c", 4: "d", 104: "d"}
    assert spark.read.format("tablestore").options(**options).load().count() == 5
    assert main_files(table) == before
    with pytest.raises(Exception, match="TS1346"):
        frame.write.format("tablestore").mode("append").options(**{**options, "branch": "no"}).save()
