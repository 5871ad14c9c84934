"""A query over few rows in one task: the same rows, one job, and settings of the session that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.spark import single_task
from tablestore_engine.spark.single_task import in_one_task

ROWS = 200


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`a` and `b` of two files each, as temporary views."""
    folder = tmp_path_factory.mktemp("single")
    for name, factor in (("a", 3), ("b", 7)):
        (folder / name).mkdir()
        for part in range(2):
            ids = list(range(part, ROWS, 2))
            rows = {
                "id": ids,
                "g": [one * factor % 11 for one in ids],
                "v": [None if one % 5 == 0 else one * factor % 50 for one in ids],
                "t": [f"t{one % factor}" for one in ids],
            }
            pq.write_table(pa.table(rows), folder / name / f"{part}.parquet")
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    yield folder
    for name in ("a", "b"):
        spark.catalog.dropTempView(name)


SHAPES = {
    "group": "select g, count(*) n, sum(v) s, count(distinct t) d from a group by g",
    "window": "select id, row_number() over (partition by g order by id) r, lead(v) over (order by id) l from a",
    "window over a union": (
        "select id, sum(v) over (partition by g order by id, s) w from "
        "(select id, g, v, 1 s from a union all select id, g, v, 2 s from b union all select id, g, v, 3 s from a)"
    ),
    "union over a union": (
        "select g, count(*) n from (select g from a union all select g from "
        "(select g, count(*) n from (select g from a union all select g from b) group by g)) group by g"
    ),
    "common table": "with c as (select g, count(*) n from a group by g) select a.id, c.n from a join c on c.g = a.g "
    "join c d on d.n = c.n",
    "common table below": (
        "select * from (with c as (select g, max(v) n from a group by g) select a.id, c.n from a join c on c.g = a.g) "
        "where n > 3"
    ),
    "joins": "select a.id, b.v, c.t from a join b on b.g = a.g left join b c on c.id = a.v and c.v > a.id",
    "full join": "select a.id, b.id i, coalesce(a.v, b.v) v from a full join b on a.v <=> b.v and a.g = b.g",
    "semi and anti subqueries": (
        "select id from a where g in (select v from b) and not exists (select 1 from b where b.id = a.v)"
    ),
    "subqueries": "select id, (select max(v) from b where b.g = a.g) m from a where v > (select max(v) from b)",
    "cross join with a total": "select a.id, b.m from a cross join (select max(v) m from b) b",
    "sets": "select g, t from a except select g, t from b union select g, t from b intersect select g, t from a",
    "sets of groups": "select g, t, count(*) n from a group by grouping sets ((g), (t), (g, t))",
    "values": "select a.id, x.k from a join values (1, 'one'), (2, 'two') x (k, t) on x.k = a.v",
    "limit": "select id from a order by v desc nulls last, id limit 7",
}

ONE_STAGE = {"group", "window", "window over a union"}


def _rows(frame: DataFrame) -> list[Any]:
    return sorted(map(tuple, frame.collect()), key=str)


def _jobs(spark: SparkSession, act: Callable[[], object]) -> int:
    scheduler: Any = spark.sparkContext._jsc.sc().dagScheduler()
    before = int(scheduler.numTotalJobs())
    act()
    return int(scheduler.numTotalJobs()) - before


@pytest.mark.parametrize("name", SHAPES)
def test_in_one_task_gives_the_rows_of_the_query(spark: SparkSession, tables: Path, name: str) -> None:
    """The rows are those of the session, in one job without a subquery as a value. A group or a window is one stage."""
    frame = spark.sql(SHAPES[name])
    single = in_one_task(frame, has_ties=False)
    assert single is not frame
    assert single.columns == frame.columns
    assert _rows(single) == _rows(frame)
    plan = str(single._jdf.queryExecution().executedPlan())
    assert "*(" not in plan  # generated code
    if name != "subqueries":
        assert _jobs(spark, single.toArrow) == 1
    if name in ONE_STAGE:
        assert "Exchange" not in plan


def test_in_one_task_leaves_the_settings_of_the_session(spark: SparkSession, tables: Path) -> None:
    """The session has its settings after it, and a query has those that the session has then."""
    before = {row["key"]: row["value"] for row in spark.sql("set").collect()}
    text = "select cast(max(timestamp_seconds(v)) as string) s from a"
    assert in_one_task(spark.sql(text), has_ties=False).first()[0].endswith("00:00:49")  # type: ignore[index]
    assert {row["key"]: row["value"] for row in spark.sql("set").collect()} == before
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert in_one_task(spark.sql(text), has_ties=False).first()[0].endswith("09:00:49")  # type: ignore[index]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert in_one_task(spark.sql(text), has_ties=False).first()[0].endswith("00:00:49")  # type: ignore[index]


def test_in_one_task_keeps_one_session(spark: SparkSession, tables: Path) -> None:
    """Spark keeps sessions for ever, so queries under the same settings share one."""
    first, second = (in_one_task(spark.sql(SHAPES[name]), has_ties=False) for name in ("group", "window"))
    assert first.sparkSession is second.sparkSession is not spark


REFUSED = {
    "a join without an equality": "select count(*) n from a join b on a.v < b.v",
    "rows that are made": "select count(*) n from a lateral view explode(sequence(1, id)) as s",
    "one scan": "select id, upper(t) t from a where v > 3",
    "a cross join": "select count(*) n from a cross join b",
    "the database of the session": "select current_database() d, count(*) n from a",
    "a sum of doubles": "select a.g, sum(cast(a.v as double)) s from a join b on a.id = b.id group by a.g",
    "a sum of quotients": "select sum(v / 3) s from a",
    "an average of integers": "select g, avg(v) s from a group by g",
    "an extreme of floats": "select max(cast(v as float)) m from a group by g",
    "a list": "select g, collect_list(id) s from a group by g",
    "the first value": "select g, first(id) s from a group by g",
    "an unknown function": "select g, approx_count_distinct(id) s from a group by g",
    "a sum of doubles in a window": "select id, sum(cast(v as double)) over (partition by g order by id) s from a",
    "a sum of doubles in a subquery": "select id from a where v > (select sum(cast(v as double)) from b)",
    "texts with a collation": "select distinct t collate utf8_lcase as t from a",
    "a function in Python": "select lengthen(t) l from a",
}


@pytest.mark.parametrize("name", REFUSED)
def test_in_one_task_leaves_slow_queries(spark: SparkSession, tables: Path, name: str) -> None:
    """What may take long over few rows, asks the session, or is one job anyway, is the very frame."""
    spark.udf.register("lengthen", lambda text: f"{text}!")
    frame = spark.sql(REFUSED[name])
    assert in_one_task(frame, has_ties=False) is frame


def test_in_one_task_leaves_large_tables(
    spark: SparkSession, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes of all files count together, also those that a subquery reads."""
    frame = spark.sql("select id from a where v > (select max(v) from b)")
    size = sum(one.stat().st_size for one in tables.rglob("*.parquet"))
    monkeypatch.setattr(single_task, "SMALL_BYTES", size)
    assert in_one_task(frame, has_ties=False) is not frame
    monkeypatch.setattr(single_task, "SMALL_BYTES", size - 1)
    assert in_one_task(frame, has_ties=False) is frame
