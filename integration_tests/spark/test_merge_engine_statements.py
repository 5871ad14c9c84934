"""UPDATE, DELETE and MERGE replace rows whatever the merge engine is; INSERT is merged."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings

ENGINES = {
    "first-row": ("'merge-engine' = 'first-row'", 1),
    "aggregation": ("'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum'", 11),
    "partial-update": ("'merge-engine' = 'partial-update'", 10),
}


@pytest.mark.parametrize("name", ENGINES)
def test_statements_say_what_the_row_is(name: str, spark: SparkSession, tmp_path: Path) -> None:
    """A changed row has the values of the statement, a deleted one is gone."""
    properties, merged = ENGINES[name]
    with Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]")) as engine:
        _check(engine, properties, merged)


def _check(engine: Engine, properties: str, merged: int) -> None:
    engine.sql("create schema demo")
    engine.sql(
        f"create table demo.t (id int not null, n int, t string, primary key (id)) tblproperties ({properties})"
    )
    engine.sql("insert into demo.t values (1, 1, 'a'), (2, 2, 'a'), (3, 3, 'a')")
    engine.sql("insert into demo.t values (1, 10, null)")

    def shown() -> list[tuple[object, ...]]:
        found = engine.table("demo.t").scan().to_arrow().sort_by("id").to_pylist()
        return [(row["id"], row["n"], row["t"]) for row in found]

    assert shown()[0] == (1, merged, "a")
    engine.sql("update demo.t set n = 5, t = null where id = 1")
    engine.sql("delete from demo.t where id = 2")
    assert shown() == [(1, 5, None), (3, 3, "a")]
    engine.sql(
        "merge into demo.t using (select * from values (1, 7), (3, 0), (4, 4) as v(id, n)) s on t.id = s.id "
        "when matched and s.n = 0 then delete when matched then update set n = s.n "
        "when not matched then insert (id, n) values (s.id, s.n)"
    )
    assert shown() == [(1, 7, None), (4, 4, None)]
