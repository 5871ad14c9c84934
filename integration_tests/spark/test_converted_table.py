"""A table of another engine, after `tablestore convert`: Spark reads it as before, and writes it in every way."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.errors import Unsupported
from tablestore_engine.spark.read_way import ReadWay
from tests.unit.store.table_world import row
from tests.unit.store.test_changelog import foreign_level_zero
from tests.unit.store.test_conversion import LEFT, merged_table
from tests.unit.store.test_merged_copies import sums_table

SETTINGS = SparkSettings("local[2]", {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"})
MERGE = (
    "merge into demo.t t using (select * from values (4L, 'merged'), (5L, 'merged') s(id, name)) s on t.id = s.id "
    "when matched then update set name = s.name when not matched then insert (id, name) values (s.id, s.name)"
)


def test_spark_writes_a_converted_table(tmp_path: Path) -> None:
    """Rows are those before; statements are refused before and then work; `verify` finds nothing."""
    merged_table(tmp_path)
    with Engine(str(tmp_path), spark=SETTINGS) as engine:

        def names() -> dict[int, str]:
            return {one["id"]: one["name"] for one in engine.query("select * from demo.t").collect()}

        before = {one["id"]: one["name"] for one in LEFT}
        assert names() == before
        with pytest.raises(Unsupported, match="tablestore convert"):
            engine.sql("update demo.t set name = 'no' where id = 1")
        engine.table("demo.t").convert()
        assert names() == before
        engine.sql("update demo.t set name = 'updated' where id = 1")
        engine.sql("delete from demo.t where id = 3")
        engine.sql(MERGE)
        engine.sql("insert into demo.t (id, name) values (6, 'inserted')")
        assert names() == {1: "updated", 4: "merged", 5: "merged", 6: "inserted"}
        assert engine.table("demo.t").verify() == ()


def test_spark_reads_merged_rows_of_another_engine(tmp_path: Path) -> None:
    """Sums of versions in level 0, by SQL with a filter, also of a past snapshot while newer ones are read; where Spark
    reads without links they are refused by name.
    """
    store = sums_table(tmp_path)
    with Engine(str(tmp_path), spark=SETTINGS) as engine:

        def found(text: str) -> list[tuple[object, ...]]:
            return [tuple(one) for one in engine.query(text).collect()]

        assert found("select id, name, n from demo.t order by id") == [(1, "c", 6), (2, None, 0), (9, "z", 1)]
        held = engine.query("select n from demo.t where id = 9")
        foreign_level_zero(store, [row(9, "y", 1)], [0])
        assert found("select n from demo.t where id = 9") == [(2,)]
        assert found("select n from demo.t version as of 3 where id = 9") == [(1,)]
        gc.collect()
        assert [tuple(one) for one in held.collect()] == [(1,)]
        with pytest.raises(Unsupported, match="TS1669"):
            found("select * from demo__changes_1_to_2.t")
    with Engine(str(tmp_path), spark=replace(SETTINGS, read_way=ReadWay.PORTABLE)) as engine:
        with pytest.raises(Unsupported, match="TS1656"):
            engine.query("select * from demo.t").collect()
        assert engine.table("demo.t").scan().to_arrow().num_rows == 3
