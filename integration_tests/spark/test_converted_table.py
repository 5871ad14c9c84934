"""A table of another engine, after `tablestore convert`: Spark reads it as before, and writes it in every way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.errors import Unsupported
from tests.unit.store.test_conversion import LEFT, merged_table

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
