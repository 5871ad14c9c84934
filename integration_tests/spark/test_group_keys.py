"""Whether a group's row always comes back to its key: told from the plans that this Spark makes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableVersion, WriteSpec
from tablestore_engine.errors import Unsupported
from tablestore_engine.spi import OutputMode
from tests.doses import case_rows

STREAM = "demo__changes_start_to_now.orders"

STEADY = [
    ("select c, count(*) as n from {s} group by c", "c"),
    ("select c, id % 3 as part, count(*) as n from {s} group by id % 3, c", "c part"),
    ("select id % 3 as part, sum(id) as n from {s} group by 1", "part"),
    ("select cast(id as string) as k, n from (select id, count(*) as n from {s} group by id)", "k"),
    ("select lower(c) as k, c, count(*) as n from {s} group by c", "c k"),
    ("select lower(c) as k, count(*) as n from {s} group by lower(c)", "k"),
    ("select c, count(*) as n from {s} group by c, upper(c)", "c"),
    ("select 'all' as k, count(*) as n from {s}", "k"),
    ("select count(*) as n from {s}", ""),
    (
        "select window(ts, '1 hour').start as w, c, count(*) as n from {s} group by window(ts, '1 hour'), c",
        "w c",
    ),
    (("select w.end as k, c, n from (select window(ts, '1 hour', '20 minutes') as w, c, count(*) as n from {s} "
     "group by 1, 2)"), "k c"),
    ("with a as (select c, count(*) as n from {s} group by c) select n, c as k from a", "k"),
    ("select distinct c from {s}", "c"),
    ("select distinct c, id from (select c, id, ts from {s})", "id c"),
    ("select 'a' as t, c, 1 as n from {s} group by c union all select 'b', c, count(*) from {s} group by c", "t c"),
    ("select c, count(*) as n from {s} group by c, 'x'", "C"),
]  # fmt: skip
LOOSE = [
    ("select c, max(id) as newest, count(*) as n from {s} group by c", "c newest", "newest of unique_key is a total"),
    ("select c, n * 2 as k from (select c, count(*) as n from {s} group by c)", "c k", "k of unique_key is a total"),
    ("select c, id, count(*) as n from {s} group by c, id", "c", "id is grouped by"),
    ("select c, count(*) as n from {s} group by c, id % 3", "c", "is grouped by"),
    ("select current_date() as day, c, count(*) as n from {s} group by c", "day c", "day of unique_key is another"),
    ("select date'today' as day, c, count(*) as n from {s} group by c", "day c", "day of unique_key is another"),
    ("select c, count(*) as n from {s} group by c, current_date()", "c", "is grouped by"),
    ("select (select max(c) from demo.orders) as k, c, count(*) as n from {s} group by c", "k c", "k of unique_key is"),
    ("with a as (select c, max(id) as m from {s} group by c) select m as k from a", "k", "k of unique_key is a total"),
    (
        "select c as k, count(*) as n from {s} group by c union all select max(c), count(*) from {s} group by id",
        "k",
        "k of unique_key is a total",
    ),
    ("select distinct c, id from {s}", "c", "id is grouped by"),
    ("select date(window(ts, '1 hour').start) as d, count(*) as n from {s} group by window(ts, '1 hour')", "d", "win"),
    (("select w.start as k, count(*) as n from (select s.w as w from (select named_struct('w', window(ts, '1 hour')) s "
     "from {s})) group by w"), "k", "w is grouped by"),
    ("select date_format(window(ts, '1 hour').start, 'HH') as d, count(*) as n from {s} group by window(ts, '1 hour')",
     "d", "window is grouped by"),
    ("select lower(c) as k, count(*) as n from {s} group by c", "k", "c is grouped by"),
    ("select cast(id / 10 as int) as k, count(*) as n from {s} group by id", "k", "id is grouped by"),
    ("select cast(id as int) as k, count(*) as n from {s} group by id", "k", "id is grouped by"),
    ("select cast(ts as string) as k, count(*) as n from {s} group by ts", "k", "ts is grouped by"),
    ("select substr(c, 1, 1) as k, count(*) as n from {s} group by substr(c, 1, 1), c", "k", "c is grouped by"),
    ("select upper(c) as k, n from (select c, count(*) as n from {s} group by c)", "k", "c is grouped by"),
    ("select concat(c, '-', id % 3) as k, count(*) as n from {s} group by c, id % 3", "k", "is grouped by"),
    ("select s.start as k, count(*) as n from (select named_struct('start', id, 'end', c) as s from {s}) group by s",
     "k", "s is grouped by"),
    (("select w.start as k, count(*) as n from (select window(ts, '1 hour') as w from {s} union all "
     "select window(ts, '2 hours') from {s}) group by w"), "k", "w is grouped by"),
    ("select c as k, 1 as n from {s} group by c union all select c, count(*) from {s} group by c", "k", "UNION"),
    ("select c collate UTF8_LCASE as k, count(*) as n from {s} group by c collate UTF8_LCASE", "k", "collate|group"),
]  # fmt: skip


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """One table."""
    del spark
    made = Engine(str(tmp_path_factory.mktemp("keys")), spark=SparkSettings("local[2]"))
    made.create_database("demo")
    orders = pa.table({"id": [1], "c": ["a"], "ts": pa.array([0], pa.timestamp("us", "UTC"))})
    made.write("demo.orders", orders, WriteSpec())
    return made


def choose(engine: Engine, sql: str, key: str) -> OutputMode:
    """In update mode, or not at all."""
    versions = {STREAM: TableVersion(changes=ChangesBetween(None))}
    text, wanted = sql.format(s=STREAM), [OutputMode.UPDATE]
    return engine.stateful.choose_mode(text, [STREAM], wanted=wanted, key=key.split(), versions=versions)


@pytest.mark.parametrize(("sql", "key"), case_rows(STEADY, 6))
def test_key_that_identifies_groups_is_accepted(engine: Engine, sql: str, key: str) -> None:
    """As columns, lossless casts, starts of windows and functions beside them; behind CTEs, projections and unions."""
    assert choose(engine, sql, key) is OutputMode.UPDATE


@pytest.mark.parametrize(("sql", "key", "said"), case_rows(LOOSE, 6))
def test_key_that_does_not_identify_groups_is_refused(engine: Engine, sql: str, key: str, said: str) -> None:
    """A total or a clock in it, a grouping expression that is not in it, or only by a function that equates values."""
    with pytest.raises(Unsupported, match=said) as error:
        choose(engine, sql, key)
    assert error.value.code == "TS1454"
