"""Primary keys across partitions by SQL and by Spark tasks: a key has one row, whichever partition its rows name."""

from __future__ import annotations

import random

import pytest

from tablestore_engine.api import Engine, FixData, SparkSettings, WriteMode, WriteSpec
from tablestore_engine.spark import task_placement, write
from tests.doses import case_rows
from tests.doubles.key_model import KeyModel, Row

COLUMNS = ("id", "dt", "name", "n")
TYPES = "id bigint, dt string, name string, n int"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """One session for all tests here."""
    made = Engine(str(tmp_path_factory.mktemp("moved")), spark=SparkSettings("local[2]"))
    made.create_database("demo")
    return made


def create(engine: Engine, name: str, **properties: str) -> None:
    """Keyed by `id`, partitioned by `dt`."""
    listed = ", ".join(f"'{key.replace('_', '-')}' = '{text}'" for key, text in properties.items())
    engine.sql(
        f"CREATE TABLE demo.{name} ({TYPES}) PARTITIONED BY (dt) TBLPROPERTIES ('primary-key' = 'id', {listed})"
    )


def rows_of(engine: Engine, name: str) -> list[tuple[object, ...]]:
    """Sorted by key."""
    return sorted(engine.table(f"demo.{name}").scan(columns=list(COLUMNS)).to_polars().rows())


def test_statements_of_sql_move_keys(engine: Engine) -> None:
    """INSERT, UPDATE of the partition column, MERGE, DELETE and INSERT OVERWRITE of a partition."""
    create(engine, "s", bucket="2")
    engine.sql("INSERT INTO demo.s VALUES (1, 'p', 'a', 1), (2, 'p', 'a', 2), (3, 'q', 'a', 3)")
    engine.sql("INSERT INTO demo.s VALUES (1, 'q', 'b', 1)")
    engine.sql("UPDATE demo.s SET dt = 'r' WHERE id = 2")
    assert rows_of(engine, "s") == [(1, "q", "b", 1), (2, "r", "a", 2), (3, "q", "a", 3)]
    engine.sql(
        "MERGE INTO demo.s t USING (SELECT * FROM VALUES (1, 'z'), (4, 'z') AS v(id, dt)) c ON t.id = c.id"
        " WHEN MATCHED THEN UPDATE SET dt = c.dt WHEN NOT MATCHED THEN INSERT (id, dt) VALUES (c.id, c.dt)"
    )
    engine.sql("DELETE FROM demo.s WHERE id = 3")
    assert rows_of(engine, "s") == [(1, "z", "b", 1), (2, "r", "a", 2), (4, "z", None, None)]
    engine.sql("INSERT OVERWRITE demo.s PARTITION (dt = 'z') SELECT 2L, 'o', 9")
    assert rows_of(engine, "s") == [(2, "z", "o", 9)]
    assert engine.table("demo.s").verify() == ()


@pytest.mark.parametrize(
    ("merge_engine", "buckets"), case_rows([("partial-update", "3"), ("deduplicate", "-1")], 1)
)
def test_spark_tasks_move_keys(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, merge_engine: str, buckets: str
) -> None:
    """Rows of a key meet in one task, and each bucket gets one change: the rows are a dictionary's."""
    monkeypatch.setattr(write, "SMALL_ROWS", 0)
    monkeypatch.setattr(task_placement, "SMALL_BYTES", 0)
    name, draw, model = merge_engine.replace("-", "_"), random.Random(1), KeyModel(merge_engine)
    create(engine, name, bucket=buckets, merge_engine=merge_engine)
    table = engine.table(f"demo.{name}")

    def batch(keys: int) -> list[Row]:
        found = draw.sample(range(60), keys)
        return [{"id": one, "dt": draw.choice("pqrs"), "name": draw.choice("ab"), "n": one} for one in found]

    def frame(rows: list[Row]) -> object:
        values = [tuple(row[one] for one in COLUMNS) for row in rows]
        return engine.spark.createDataFrame(values, TYPES)

    for _ in range(2):
        rows = batch(30)
        table.upsert(frame(rows))
        for row in rows:
            model.put(0, row)
        assert rows_of(engine, name) == sorted(
            tuple(row[one] for one in COLUMNS) for row in model.rows.values()
        )
    if merge_engine == "deduplicate":
        rows = [{**row, "dt": "p"} for row in batch(20)]
        engine.write(f"demo.{name}", frame(rows), WriteSpec(mode=WriteMode.OVERWRITE_PARTITIONS))
        model.overwrite({"p"}, rows)
    else:
        with pytest.raises(FixData, match="TS1150"):  # found by a task
            table.upsert(frame([{"id": 99, "dt": one, "name": "a", "n": 1} for one in "pq"]))
    assert rows_of(engine, name) == sorted(tuple(row[one] for one in COLUMNS) for row in model.rows.values())
    assert table.verify() == ()
