"""Which queries over changes may be asked range by range: told from the plans that this Spark makes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec

STREAM = "demo__changes_start_to_now.orders"
OTHER = "demo__changes_start_to_now.names"

ROW_BY_ROW = [
    "select id from {s} where id > 1",
    "select id, _row_kind, _snapshot_id from {s}",
    "with a as (select * from {s}), b as (select a.id from a where id > 0) select * from b",
    "with a as (select * from {s}) select a.id, n.name from a left join demo.names n on a.c = n.c",
    "select o.id, n.name from {s} o join demo.names n on o.c = n.c",
    "select o.id from demo.names n right join {s} o on o.c = n.c",
    "select o.id from {s} o left semi join demo.names n on o.c = n.c",
    "select o.id from {s} o left anti join demo.names n on o.c = n.c",
    "select o.id from {s} o where o.c in (select c from demo.names)",
    "select o.id from {s} o where not exists (select 1 from demo.names n where n.c = o.c)",
    "select o.id, (select max(name) from demo.names n where n.c = o.c) as name from {s} o",
    "select o.id, x.name from {s} o, lateral (select name from demo.names n where n.c = o.c) x",
    "select o.id, t.x from {s} o lateral view explode(array(1, 2)) t as x",
    "select o.id from {s} o cross join (select count(*) as n from demo.names) x",
    "select id from {s} where c = 'a' union all select id from {s} where c = 'b'",
    "select c from {s} union all select c from {t}",
    "select /*+ repartition(3) */ id from {s}",
    "select id, 'two\nlines' as note from {s}",
    "with recent as (select count(*) as n from demo.names) select o.id from {s} o, recent where n > 0",
]
REFUSED = [
    ("select c, count(*) from {s} group by c", "aggregate"),
    ("select max(id) from {s}", "aggregate"),
    ("with a as (select * from {s}), b as (select c, count(*) as n from a group by c) select * from b", "aggregate"),
    ("select window(ts, '1 minute') as w, count(*) from {s} group by 1", "aggregate"),
    ("select c from {s} group by c having count(*) > 1", "aggregate"),
    ("select * from (select c, id from {s}) pivot (count(id) for c in ('a', 'b'))", "aggregate"),
    ("select distinct c from {s}", "DISTINCT"),
    ("select c from {s} union select c from {t}", "DISTINCT"),
    ("select *, row_number() over (partition by c order by id) as r from {s}", "window function"),
    ("select id from {s} qualify row_number() over (partition by c order by id) = 1", "window function"),
    ("select * from {s} order by id", "ORDER BY"),
    ("select * from {s} limit 3", "LIMIT"),
    ("select * from {s} offset 3", "OFFSET"),
    ("select id from {s} intersect select id from {s}", "INTERSECT"),
    ("select c from {s} except select c from demo.names", "EXCEPT"),
    ("select a.id from {s} a join {t} b on a.c = b.c", "two streams"),
    ("with a as (select * from {s}) select x.id from a x join a y on x.id = y.id", "two streams"),
    ("select n.c from demo.names n left join {s} o on o.c = n.c", "LeftOuter"),
    ("select o.c from {s} o full join demo.names n on o.c = n.c", "FullOuter"),
    ("select o.c from {s} o right join demo.names n on o.c = n.c", "RightOuter"),
    ("select n.c from demo.names n left semi join {s} o on o.c = n.c", "LeftSemi"),
    ("select n.c from demo.names n left anti join {s} o on o.c = n.c", "LeftAnti"),
    ("select c from demo.names where c in (select c from {s})", "subquery"),
    ("select c from demo.names n where exists (select 1 from {s} o where o.c = n.c)", "subquery"),
    ("select c, (select max(id) from {s}) as newest from demo.names", "aggregate"),
    ("select id from {s} where id = (select max(id) from {s})", "aggregate"),
    ("select c from {s} union all select c from demo.names", "come again"),
    ("select c from demo.names", "no row of a stream"),
    ("select 'two\n+- Project lines' as note, count(*) from {s}", "aggregate"),
]  # fmt: skip


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Two tables."""
    del spark
    made = Engine(str(tmp_path_factory.mktemp("outline")), spark=SparkSettings("local[2]"))
    made.create_database("demo")
    orders = pa.table({"id": [1], "c": ["a"], "ts": pa.array([0], pa.timestamp("us", "UTC"))})
    made.write("demo.orders", orders, WriteSpec(table=TableSpec(primary_key=("id",))))
    made.write("demo.names", pa.table({"c": ["a"], "name": ["ann"]}), WriteSpec())
    return made


def clause(engine: Engine, sql: str) -> str | None:
    """What stands in the way."""
    return engine.stateful_clause(sql.format(s=STREAM, t=OTHER), {STREAM, OTHER})


@pytest.mark.parametrize("sql", ROW_BY_ROW)
def test_what_looks_at_one_row_at_a_time_goes_through(engine: Engine, sql: str) -> None:
    """Filters, projections, unfolding, joins that keep the stream's rows, streams one behind the other."""
    assert clause(engine, sql) is None


@pytest.mark.parametrize(("sql", "named"), REFUSED)
def test_what_needs_earlier_rows_is_named(engine: Engine, sql: str, named: str) -> None:
    """In SQL's words, also behind a CTE and beside a part that is fine."""
    found = clause(engine, sql)
    assert found is not None
    assert named in found


def test_changes_to_now(engine: Engine) -> None:
    """The name means all rows, as inserts, of the newest state; behind a snapshot its changes."""
    table = engine.table("demo.orders")
    newest = table.latest_snapshot_id()
    table.write(pa.table({"id": [2], "c": ["b"], "ts": pa.array([0], pa.timestamp("us", "UTC"))}))
    rows = engine.sql(f"select id, _row_kind from {STREAM} order by id").rows
    assert [tuple(row) for row in rows] == [(1, "+I"), (2, "+I")]
    rows = engine.sql(f"select id, _row_kind from demo__changes_{newest}_to_now.orders").rows
    assert [tuple(row) for row in rows] == [(2, "+I")]
