"""Whether a group's row always comes back to its key: told from the plans that this Spark makes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import ChangesBetween, Engine, OutputMode, SparkSettings, TableVersion, WriteSpec
from tablestore_engine.errors import Unsupported

STREAM = "demo__changes_start_to_now.orders"

STEADY = [
    ("select c, count(*) as n from {s} group by c", "c"),
    ("select c, id % 3 as part, count(*) as n from {s} group by id % 3, c", "c part"),
    ("select id % 3 as part, sum(id) as n from {s} group by 1", "part"),
    ("select upper(c) as k, n from (select c, count(*) as n from {s} group by c)", "k"),
    ("select concat(c, '-', id % 3) as k, count(*) as n from {s} group by c, id % 3", "k"),
    ("select 'all' as k, count(*) as n from {s}", "k"),
    ("select count(*) as n from {s}", ""),
    (
        "select window(ts, '1 hour').start as w, c, count(*) as n from {s} group by window(ts, '1 hour'), c",
        "w c",
    ),
    ("with a as (select c, count(*) as n from {s} group by c) select n, c as k from a", "k"),
    ("select distinct c from {s}", "c"),
    ("select distinct c, id from (select c, id, ts from {s})", "id c"),
    ("select c as k, 1 as n from {s} group by c union all select c, count(*) from {s} group by c", "k"),
    ("select c, count(*) as n from {s} group by c, 'x'", "C"),
]
LOOSE = [
    ("select c, max(id) as newest, count(*) as n from {s} group by c", "c newest", "newest of unique_key is a total"),
    ("select c, n * 2 as k from (select c, count(*) as n from {s} group by c)", "c k", "k of unique_key is a total"),
    ("select c, id, count(*) as n from {s} group by c, id", "c", "id is grouped by"),
    ("select c, count(*) as n from {s} group by c, id % 3", "c", "is grouped by"),
    ("select current_date() as day, c, count(*) as n from {s} group by c", "day c", "day of unique_key is another"),
    ("with a as (select c, max(id) as m from {s} group by c) select m as k from a", "k", "k of unique_key is a total"),
    (
        "select c as k, count(*) as n from {s} group by c union all select max(c), count(*) from {s} group by id",
        "k",
        "k of unique_key is a total",
    ),
    ("select distinct c, id from {s}", "c", "id is grouped by"),
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


@pytest.mark.parametrize(("sql", "key"), STEADY)
def test_a_key_of_what_is_grouped_by(engine: Engine, sql: str, key: str) -> None:
    """Whatever it is made of, behind CTEs, projections and unions; constants group nothing."""
    assert choose(engine, sql, key) is OutputMode.UPDATE


@pytest.mark.parametrize(("sql", "key", "said"), LOOSE)
def test_a_key_that_a_group_does_not_keep(engine: Engine, sql: str, key: str, said: str) -> None:
    """A total in it, a clock in it, or a group that stands nowhere in it."""
    with pytest.raises(Unsupported, match=said) as error:
        choose(engine, sql, key)
    assert error.value.code == "TS1454"
