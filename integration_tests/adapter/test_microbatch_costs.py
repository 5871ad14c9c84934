"""What a microbatch without input costs in jobs of Spark and snapshots, and that the shortcut never changes a row."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.queryplan.empty_result import parse_bound
from tablestore_engine.sql.interval_bounds import HIGH, LOW
from tests.doses import cases, examples, is_nightly

FIRST = date(2026, 1, 1)
NO_INPUT = "no input, by file statistics"
Rows = list[tuple[int, date, str]]  # id, day, value


def days(first: int, last: int) -> tuple[str, ...]:
    """Options of dbt for the batches from one day on up to before another one, counted from FIRST."""
    ends = (FIRST + timedelta(days=number) for number in (first, last))
    start, end = (str(one) for one in ends)
    return ("--event-time-start", start, "--event-time-end", end)


def write_feed(shop: Shop, rows: Rows, kind: str = "timestamp", more: str = "") -> None:
    """A table of the warehouse with an event time, in one file."""
    values = ", ".join(f"({number}, cast('{day} 10:00:00' as {kind}), '{v}')" for number, day, v in rows)
    values = values or f"(0, cast('2020-01-01' as {kind}), '-')"
    sql = f"select * from values {values} as t(id, at, v)"
    shop.write("models/feed.sql", f"{{{{ config(materialized='table', event_time='at'{more}) }}}} {sql}")


def write_model(shop: Shop, body: str, name: str = "m", more: str = "") -> None:
    """A microbatch model of days."""
    config = (
        "materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', "
        f"begin='{FIRST}'{more}"
    )
    shop.write(f"models/{name}.sql", f"{{{{ config({config}) }}}}\n{body}")


def feed_of(*numbers: int) -> Rows:
    """One row on each of these days."""
    return [(number, FIRST + timedelta(days=number), f"v{number}") for number in numbers]


def jobs(shop: Shop) -> int:
    """Jobs that Spark has run so far."""
    return int(shop.engine.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def ids(shop: Shop) -> list[int]:
    """Of the rows that readers see."""
    return [int(row[0]) for row in shop.rows("select id from demo.m order by id")]


def snapshots(shop: Shop, table: str = "demo.m") -> list[int]:
    """Ids of the table's snapshots."""
    return [one.id for one in shop.engine.table(table).snapshots()]


def test_empty_batches_run_no_job_and_commit_nothing(shop: Shop) -> None:
    """Eight empty days between two with rows: no job of Spark, no snapshot, and the log says why."""
    write_feed(shop, feed_of(0, 9))
    write_model(shop, "select id, at, v from {{ ref('feed') }}")
    shop.dbt("run", "--select", "feed", "m", *days(0, 10))
    assert (ids(shop), snapshots(shop)) == ([0, 9], [1, 2])
    assert sum(NO_INPUT in line for line in shop.shown) == 8
    before = jobs(shop)
    shop.dbt("run", "--select", "m", *days(1, 9))
    assert jobs(shop) == before
    assert (ids(shop), snapshots(shop)) == ([0, 9], [1, 2])


def test_single_empty_batch_runs_no_job(shop: Shop) -> None:
    """Also a run of one batch, which is the first of its text."""
    write_feed(shop, feed_of(0, 9))
    write_model(shop, "with a as (select * from {{ ref('feed') }}) select v, max(at) as at from a group by v")
    shop.dbt("run", "--select", "feed", "m", *days(0, 1))
    before = jobs(shop)
    shop.dbt("run", "--select", "m", *days(3, 4))
    assert (jobs(shop), snapshots(shop)) == (before, [1])


def test_first_batch_without_input_creates_the_table(shop: Shop) -> None:
    """The table is there with its columns, as if the query had been run."""
    write_feed(shop, feed_of(5))
    write_model(shop, "select id, at, upper(v) as v, 1.5 as x from {{ ref('feed') }}")
    shop.dbt("run", "--select", "feed", "m", *days(0, 2))
    columns = [(one.name, one.type_text) for one in shop.engine.columns("demo.m")]
    assert columns == [("id", "int"), ("at", "timestamp"), ("v", "string"), ("x", "decimal(2,1)")]
    shop.dbt("run", "--select", "m", *days(4, 6))
    assert ids(shop) == [5]


@pytest.mark.parametrize("key", cases(["", ", unique_key='id'"], 1))
def test_batch_whose_input_became_empty_deletes_its_rows(shop: Shop, key: str) -> None:
    """The rows of that day go, those of other days stay, and no job of Spark is needed for it."""
    write_feed(shop, feed_of(0, 1, 2))
    write_model(shop, "select id, at, v from {{ ref('feed') }}", more=key)
    shop.dbt("run", "--select", "feed", "m", *days(0, 3))
    write_feed(shop, feed_of(0, 2))
    shop.dbt("run", "--select", "feed")
    before = jobs(shop)
    shop.dbt("run", "--select", "m", *days(1, 2))
    assert jobs(shop) == before
    assert ids(shop) == [0, 2]
    changes = shop.engine.table("demo.m").changes(since=snapshots(shop)[-2]).to_pylist()
    assert [(one["_row_kind"], one["id"]) for one in changes] == [("-D", 1)]


def test_view_over_a_table_is_seen_through(shop: Shop) -> None:
    """A staging view that renames the event time and filters."""
    write_feed(shop, feed_of(0, 9))
    view = "select id, at as happened, v from {{ ref('feed') }} where id >= 0"
    shop.write("models/w.sql", "{{ config(materialized='view', event_time='happened') }} " + view)
    write_model(shop, "select id, happened as at, v from {{ ref('w') }}")
    shop.dbt("run", "--select", "feed", "w", "m", *days(0, 10))
    assert sum(NO_INPUT in line for line in shop.shown) == 8
    assert ids(shop) == [0, 9]


def test_view_that_is_replaced_between_two_batches_is_read_anew(shop: Shop) -> None:
    """What was proven of its old text does not count for the new one, which gives other rows."""
    write_feed(shop, feed_of(0))
    view = "{{ config(materialized='view', event_time='at') }} select id, at, v from {{ ref('feed') }}"
    shop.write("models/w.sql", view)
    write_model(shop, "select id, at, v from {{ ref('w') }}")
    shop.dbt("run", "--select", "feed", "w")
    done: list[bool] = []

    def somebody(line: str) -> None:
        if "START" in line and "Batch 3 of 5" in line.replace("batch", "Batch") and not done:
            done.append(True)
            sql = "select id, at, v from demo.feed union all select 7, timestamp '2026-01-04 01:00:00', 'new'"
            shop.engine.create_view("demo.w", sql)

    shop.on_line = somebody
    shop.dbt("run", "--select", "m", *days(0, 5))
    assert done
    assert ids(shop) == [0, 7]


def test_gated_batches_without_input_are_staged_with_the_others(shop: Shop) -> None:
    """The two days with rows are one staged snapshot, published by its test; later empty days change nothing."""
    write_feed(shop, feed_of(1, 5))
    write_model(shop, "select id, at, v from {{ ref('feed') }}", more=", concurrent_batches=true")
    shop.write("models/m.yml", "models: [{name: m, columns: [{name: id, data_tests: [unique]}]}]")
    shop.dbt("build", "--select", "feed", "m", *days(0, 8))
    assert (ids(shop), snapshots(shop), shop.engine.staged("demo")) == ([1, 5], [1], ())
    shop.dbt("build", "--select", "m", *days(2, 5))
    assert NO_INPUT in shop.log
    assert (ids(shop), snapshots(shop), shop.engine.staged("demo")) == ([1, 5], [1], ())


def test_staged_input_is_looked_at_not_the_published_one(shop: Shop) -> None:
    """The parent's staged rows have a day that its published rows lack: the batch of that day is no empty one."""
    write_feed(shop, feed_of(0))
    write_model(shop, "select id, at, v from {{ ref('feed') }}")
    shop.dbt("run", "--select", "feed", "m", *days(0, 4))
    write_feed(shop, feed_of(0, 2), more=", publish='manual'")
    shop.dbt("build", "--select", "feed", "m", *days(0, 4))
    assert ids(shop) == [0]
    (staged,) = [one for one in shop.engine.staged("demo") if str(one.table) == "demo.m"]
    assert shop.rows(f"select id from `demo__at_branch_{staged.name}`.m order by id") == [(0,), (2,)]
    assert NO_INPUT in shop.log


@pytest.mark.parametrize("zone", cases(["America/New_York", "UTC", "Asia/Tokyo"], 1))
def test_bounds_are_what_spark_casts_them_to(shop: Shop, zone: str) -> None:
    """Whatever the zone of the session: the offset counts for a timestamp alone."""
    shop.output["spark"]["conf"]["spark.sql.session.timeZone"] = zone
    spark = shop.engine.spark
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for text in (
            "2026-01-01 00:00:00+00:00",
            "2026-07-01 23:59:59.25+00:00",
            "1999-12-31 05:00:00+00:00",
        ):
            found = spark.sql(
                f"select unix_micros(cast('{text}' as timestamp)), unix_date(cast('{text}' as date)), "
                f"cast(cast('{text}' as timestamp_ntz) as string)"
            ).first()
            assert found is not None
            clock = datetime.fromtimestamp(0, UTC) + timedelta(
                microseconds=parse_bound(text, "timestamp_ntz") or 0
            )
            assert tuple(found[:2]) == (parse_bound(text, "timestamp"), parse_bound(text, "date"))
            assert datetime.fromisoformat(found[2] + "+00:00") == clock
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


# X: the input, of this batch alone. S: the begin of the batch, which is a value of its interval. T: the type of `at`.
BODIES = {
    "plain": "select id, at, v from X",
    "cte": "with a as (select * from X), b as (select id, at, v from a where id > 0) select * from b",
    "grouped": "select max(id) as id, at, max(v) as v from X group by at",
    "distinct": "select distinct 1 as id, at, 'd' as v from X",
    "count": "select cast(count(*) as int) as id, cast('S' as T) as at, 'n' as v from X",
    "having": "select cast(count(*) as int) as id, cast('S' as T) as at, 'n' as v from X having count(*) = 0",
    "rollup": "select cast(count(*) as int) as id, coalesce(at, cast('S' as T)) as at, 'r' as v "
    "from X group by rollup(at)",
    "left": "select x.id, x.at, o.v from X x left join O o on x.id = o.id",
    "left_of_other": "select o.id, coalesce(x.at, cast('S' as T)) as at, o.v from O o left join X x on x.id = o.id",
    "right": "select o.id, coalesce(x.at, cast('S' as T)) as at, o.v from X x right join O o on x.id = o.id",
    "full": "select coalesce(x.id, o.id) as id, coalesce(x.at, cast('S' as T)) as at, o.v "
    "from X x full join O o on x.id = o.id",
    "inner": "select x.id, x.at, o.v from O o join X x on x.id = o.id",
    "union_other": "select id, at, v from X union all select id, cast('S' as T), v from O",
    "union_input": "select id, at, v from X union all select id + 100, at, v from X where id > 3",
    "exists": "select o.id, cast('S' as T) as at, o.v from O o where exists (select 1 from X x where x.id = o.id)",
    "not_exists": "select o.id, cast('S' as T) as at, o.v from O o "
    "where not exists (select 1 from X x where x.id = o.id)",
    "in": "select id, at, v from X where id in (select id from O)",
    "except": "select id, at, v from X except select id, at, v from X where id > 4",
    "except_of_other": "select id, cast('S' as T) as at, v from O except select id, at, v from X",
    "intersect": "select id, cast('S' as T) as at, v from O intersect select id, cast('S' as T), v from X",
    "scalar": "select o.id, cast('S' as T) as at, cast((select count(*) from X) as string) as v from O o",
    "correlated": "select o.id, cast('S' as T) as at, "
    "cast((select count(*) from X x where x.id = o.id) as string) as v from O o",
    "window": "select id, at, cast(row_number() over (order by id) as string) as v from X",
    "exploded": "select id, at, e as v from X lateral view explode(array('p', 'q')) t as e",
    "limited": "select id, at, v from X order by id limit 1",
    "outer_filter": "select id, at, v from (select f.id, f.at, f.v from O o left join X f on o.id = f.id) "
    "where at is not null",
    "values": "select x.id, x.at, c.v from X x cross join (values ('p'), ('q')) c(v)",
    "shifted": "select id, at, v from (select id, cast('S' as T) as at, v from O) y "
    "where y.at >= 'S' and id in (select id from X)",
}  # fmt: skip
PROVEN = {
    *(
        "plain",
        "cte",
        "grouped",
        "distinct",
        "rollup",
        "left",
        "inner",
        "union_input",
        "exists",
        "in",
        "except",
    ),
    *("intersect", "window", "exploded", "limited", "values", "shifted"),
}
FEW = ("plain", "grouped", "count", "left", "union_other", "scalar")


def expected_rows(shop: Shop, body: str, kind: str, span: tuple[int, int]) -> Counter[tuple[object, ...]]:
    """What the batches give by plain SQL."""
    found: Counter[tuple[object, ...]] = Counter()
    for number in range(*span):
        start, end = (f"{FIRST + timedelta(days=one)} 00:00:00+00:00" for one in (number, number + 1))
        batch = f"(select * from demo.feed where at >= '{start}' and at < '{end}')"
        found.update(shop.rows(filled(body, batch, "demo.other", start, kind)))
    return found


def filled(body: str, batch: str, other: str, start: str, kind: str) -> str:
    """A body with its names."""
    words = {"X": batch, "O": other, "T": kind, "S": start}
    return re.sub(r"\b[XOTS]\b", lambda found: words[found[0]], body)


def test_shapes_that_give_no_rows_without_input_are_proven(shop: Shop) -> None:
    """Those and no others."""
    engine = shop.engine
    engine.create_database("demo")
    engine.sql("create table demo.feed (id int, at timestamp, v string)")
    engine.sql("create table demo.other (id int, v string)")
    batch = f"(select * from demo.feed where at >= '{LOW}' and at < '{HIGH}')"
    texts = {name: filled(body, batch, "demo.other", LOW, "timestamp") for name, body in BODIES.items()}
    batches = engine.empty_batches()
    assert {name for name, text in texts.items() if batches.prove(text, versions={})} == PROVEN
    hours = f"case when typeof(at) = 'date' then false else at >= '{LOW}' and at < '{HIGH}' end"
    assert batches.prove(f"select id from demo.feed where {hours}", versions={})
    assert not batches.prove(
        f"select id from demo.feed where {hours.replace('date', 'timestamp')}", versions={}
    )


@pytest.mark.parametrize("kind", cases(["timestamp", "date", "timestamp_ntz"], 1))
def test_random_batches_have_the_rows_of_plain_sql(shop: Shop, kind: str) -> None:
    """Models of all shapes, days with and without rows, then other days: each table has what its SQL gives by day."""
    chance, span = random.Random(f"batches of {kind}"), (0, 4)
    shop.output["threads"] = 4
    is_whole = kind == "timestamp" and is_nightly()
    bodies = BODIES if is_whole else {name: BODIES[name] for name in FEW}
    shop.write("models/other.sql", "{{ config(materialized='table') }} select id, v from values "
               "(1, 'a'), (2, 'b'), (9, 'z') as t(id, v)")  # fmt: skip
    for name, body in bodies.items():
        start = "{{ model.batch.event_time_start }}"
        text = filled(body, "{{ ref('feed') }}", "{{ ref('other') }}", start, kind)
        write_model(shop, text, f"m_{name}")
    names = [f"m_{name}" for name in bodies]
    for _ in range(examples(1, 2)):
        chosen = chance.sample(range(*span), 2)
        rows = [(n, FIRST + timedelta(days=chance.choice(chosen)), chance.choice("abc")) for n in range(1, 6)]
        write_feed(shop, rows, kind)
        shop.dbt("run", "--select", "feed", "other", *names, *days(*span))
        assert sum(NO_INPUT in line for line in shop.shown) >= 2 * 3
        for name, body in bodies.items():
            found = Counter(shop.rows(f"select id, at, v from demo.m_{name}"))
            assert found == expected_rows(shop, body, kind, span), name
