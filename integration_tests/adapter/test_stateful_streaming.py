"""materialized='streaming' over SQL that needs earlier rows: totals, windows of time, joins of streams, DISTINCT."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec
from tests.doses import case_rows, examples

BEGIN = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - columns are without a zone
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: clicks}, {name: buys}, {name: pages}]}]"
KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
ADDED = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
TOTALS = """
{{ config(materialized='streaming', unique_key='page') }}
select page, count(*) as clicks, max(id) as newest from {{ stream(source('raw', 'clicks')) }} group by page
"""
WINDOWS = """
{{ config(materialized='streaming', unique_key=['began', 'page'] @more@) }}
select window(moment, '10 seconds').start as began, page, count(*) as clicks
from (select *, cast(at as timestamp) as moment from {{ stream(source('raw', 'clicks')) }})
watermark moment delay of interval 5 seconds
group by window(moment, '10 seconds'), page
"""
WINDOWS_READ = "select date_format(began, 'HH:mm:ss') as began, page, clicks from demo.windows"
Click = tuple[int, str, int]  # id, page, seconds


@pytest.fixture
def clicks(shop: Shop) -> Shop:
    """A shop with an append-only table that others write."""
    shop.write("models/clicks.yml", SOURCES)
    click(shop, (1, "a", 1), (2, "b", 2))
    return shop


def click(shop: Shop, *rows: Click, table: str = "clicks", spec: WriteSpec = ADDED) -> None:
    """Somebody's commit."""
    made = pa.table({
        "id": pa.array([one for one, _, _ in rows], pa.int64()),
        "page": [page for _, page, _ in rows],
        "at": pa.array([BEGIN + dt.timedelta(seconds=seconds) for _, _, seconds in rows], pa.timestamp("us")),
    })  # fmt: skip
    shop.engine.write(f"demo.{table}", made, spec)


def run(shop: Shop, model: str, *more: str, ok: bool = True) -> None:
    """`dbt run` of one model."""
    shop.dbt("run", "--select", model, *more, ok=ok)


def totals_of(rows: Sequence[Click]) -> list[tuple[object, ...]]:
    """What the model `totals` has to be."""
    counts = Counter(page for _, page, _ in rows)
    return sorted((page, n, max(one for one, p, _ in rows if p == page)) for page, n in counts.items())


def totals(shop: Shop) -> list[tuple[object, ...]]:
    """What it is."""
    return sorted(shop.rows("select page, clicks, newest from demo.totals"))


def states(shop: Shop, model: str = "totals") -> list[str]:
    """Files of what a model remembers."""
    return sorted(one.name for one in (shop.folder / f"warehouse/.tablestore/states/demo.{model}").glob("*"))


def test_running_totals_go_on(clicks: Shop) -> None:
    """Totals of everything so far, by key, each row counted once; without news nothing runs and nothing is committed.
    The answer says what is remembered.
    """
    clicks.write("models/totals.sql", TOTALS)
    rows = [(1, "a", 1), (2, "b", 2)]
    run(clicks, "totals")
    assert totals(clicks) == totals_of(rows)
    before = states(clicks)
    run(clicks, "totals")
    assert states(clicks) == before
    assert clicks.engine.table("demo.totals").latest_snapshot_id() == 1
    more = [(3, "a", 3), (4, "c", 4)]
    click(clicks, *more[:1])
    click(clicks, *more[1:])
    run(clicks, "totals")
    assert totals(clicks) == totals_of(rows + more)
    answer = clicks.response("totals")
    assert (answer["rows_read"], answer["state_rows"], answer["groups_late"]) == (2, 3, 0)
    assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_out"]) == (1, 1, 2)
    assert "clicks 1→3 · 3 rows remembered" in clicks.log


def test_late_rows_are_told(clicks: Shop) -> None:
    """Windows of time with a watermark: a row within the delay still counts, one behind it does not and is told,
    with the others of its group.
    """
    clicks.write("models/windows.sql", WINDOWS.replace("@more@", ""))
    run(clicks, "windows")
    click(clicks, (3, "a", 14), (4, "a", 3))
    run(clicks, "windows")
    click(clicks, (5, "a", 4), (6, "b", 31))
    run(clicks, "windows")
    assert clicks.response("windows")["groups_late"] == 0
    click(clicks, (7, "a", 5), (8, "b", 15), (9, "b", 32), (10, "a", 6))
    run(clicks, "windows")
    assert clicks.response("windows")["groups_late"] == 2
    assert "2 groups late" in clicks.log
    assert sorted(clicks.rows(WINDOWS_READ)) == [
        ("00:00:00", "a", 3), ("00:00:00", "b", 1), ("00:00:10", "a", 1), ("00:00:30", "b", 2),
    ]  # fmt: skip


@pytest.mark.nightly  # by day late rows of windows
def test_only_final_windows_in_append_mode(clicks: Shop) -> None:
    """output_mode='append': a window comes out once, when no row of it can come any more."""
    clicks.write("models/windows.sql", WINDOWS.replace("@more@", ", output_mode='append'"))
    run(clicks, "windows")
    assert clicks.rows("select * from demo.windows") == []
    click(clicks, (3, "a", 3), (4, "a", 16))
    run(clicks, "windows")
    assert sorted(clicks.rows(WINDOWS_READ)) == [
        ("00:00:00", "a", 2), ("00:00:00", "b", 1),
    ]  # fmt: skip
    before = clicks.engine.table("demo.windows").latest_snapshot_id()
    run(clicks, "windows")
    assert clicks.engine.table("demo.windows").latest_snapshot_id() == before


@pytest.mark.nightly  # by day spark/test_product_settings.py: two streams joined
def test_two_streams_joined(clicks: Shop) -> None:
    """A row of either stream meets rows of the other that came in earlier runs, once; a table joined to them is read as
    it is.
    """
    click(clicks, (1, "a", 9), table="buys")
    clicks.engine.write("demo.pages", pa.table({"page": ["a", "b", "x"], "name": ["A", "B", "X"]}), ADDED)
    clicks.engine.sql("delete from demo.pages where page = 'x'")
    clicks.write(
        "models/met.sql",
        """
        {{ config(materialized='streaming') }}
        select clicks.id, b.at as bought, p.name from {{ stream(source('raw', 'clicks')) }}
        join {{ stream(source('raw', 'buys')) }} b on b.id = clicks.id
        join {{ source('raw', 'pages') }} p on p.page = clicks.page
    """,
    )
    run(clicks, "met")
    assert [one[::2] for one in clicks.rows("select * from demo.met")] == [(1, "A")]
    click(clicks, (3, "b", 1))
    click(clicks, (2, "b", 9), table="buys")
    run(clicks, "met")
    click(clicks, (3, "b", 9), (3, "b", 10), table="buys")
    run(clicks, "met")
    assert sorted(one[::2] for one in clicks.rows("select * from demo.met")) == [
        (1, "A"), (2, "B"), (3, "B"), (3, "B"),
    ]  # fmt: skip


@pytest.mark.nightly  # by day totals with the same state; spark/test_product_settings.py
def test_distinct_rows(clicks: Shop) -> None:
    """DISTINCT with a key: a row that was there before is put again and changes nothing."""
    clicks.write(
        "models/pages_seen.sql",
        """
        {{ config(materialized='streaming', unique_key='page') }}
        select distinct page from {{ stream(source('raw', 'clicks')) }}
    """,
    )
    run(clicks, "pages_seen")
    click(clicks, (3, "a", 1), (4, "c", 1))
    run(clicks, "pages_seen")
    assert sorted(clicks.rows("select page from demo.pages_seen")) == [("a",), ("b",), ("c",)]
    assert clicks.response("pages_seen")["rows_inserted"] == 1


@pytest.mark.parametrize(
    ("sql", "reason"),
    case_rows(
        [
            ("select page, count(*) as n from @ group by page having count(*) < 3", "HAVING"),
            (
                "select * from (select page, count(*) as n from @ group by page) where n < 3",
                "HAVING, or WHERE",
            ),
            ("select page, count(distinct id) as n from @ group by page", "Distinct aggregations"),
            ("select page, row_number() over (partition by page order by id) as n from @", "NON_TIME_WINDOW"),
            ("select page, id as n from @ order by id", "Sorting"),
            ("select max(page) as page, id % 2 as n from @ group by id % 2", "page of unique_key is a total"),
            (
                "select page, id as n from (select page, id, count(*) from @ group by page, id)",
                "id is grouped by",
            ),
            ("select distinct page, id as n from @", "n is grouped by"),
            ("select lower(page) as page, count(*) as n from @ group by page", "page is grouped by"),
            (
                "select substr(page, 1, 1) as page, count(*) as n from @ group by substr(page, 1, 1), page",
                "is grouped by",
            ),
            (
                (
                    "select cast(window(cast(at as timestamp), '1 hour').start as date) as page, count(*) as n "
                    "from @ group by window(cast(at as timestamp), '1 hour')"
                ),
                "window is grouped by",
            ),
            ("select page, 1 as n from @ except select page, 1 from {{ source('raw', 'pages') }}", "EXCEPT"),
            (
                "select page, 1 as n from @ except all select page, 1 from {{ source('raw', 'pages') }}",
                "EXCEPT",
            ),
            (
                "select page, 1 as n from @ intersect select page, 1 from {{ source('raw', 'pages') }}",
                "Intersect",
            ),
            ("with x as (select page, id as n from @ limit 2) select * from x", "LIMIT"),
            ("select page, grouping_id() as n, count(*) as m from @ group by rollup(page)", "GROUPING SETS"),
            ("select a.page, b.id as n from @ a join @ b on a.id < b.id", "without an equality"),
            (
                (
                    "with recursive r as (select 1 as n, page from @ union all select n + 1, page from r where n < 3) "
                    "select page, n from r"
                ),
                "recursive CTE",
            ),
            ("select page, max(_row_kind) as _row_kind, 1 as _snapshot_id from @ group by page", "_row_kind"),
            ("select page, id as n from @ where id in (select max(id) from @)", "subquery"),
            (
                "select page, count(*) as n from @ watermark at delay of interval 1 second group by page",
                "TIMESTAMP_NTZ",
            ),
        ],
        4,
    ),
)
def test_what_spark_cannot_stream_is_refused(clicks: Shop, sql: str, reason: str) -> None:
    """Each by name, before anything is made, and without a trace of Spark."""
    clicks.engine.write("demo.pages", pa.table({"page": ["a"]}), ADDED)
    stream = "{{ stream(source('raw', 'clicks')) }}"
    clicks.write(
        "models/bad.sql",
        "{{ config(materialized='streaming', unique_key='page') }}\n" + sql.replace("@", stream),
    )
    run(clicks, "bad", ok=False)
    assert reason in clicks.log
    assert "TS1844" in clicks.log
    assert "JVM" not in clicks.log
    assert clicks.engine.find_table("demo.bad") is None


def test_totals_without_a_key_are_refused(clicks: Shop) -> None:
    """A table that rows are only added to cannot have totals that change."""
    clicks.write("models/totals.sql", TOTALS.replace(", unique_key='page'", ""))
    run(clicks, "totals", ok=False)
    assert "TS1844" in clicks.log
    clicks.write("models/totals.sql", TOTALS.replace("unique_key='page'", "output_mode='update'"))
    run(clicks, "totals", ok=False)
    assert "TS1842" in clicks.log


@pytest.mark.nightly  # by day test_streaming.py: kinds are never counted by mistake
def test_updates_of_an_input_need_a_word(clicks: Shop) -> None:
    """A total counts a changed row as a new one: the run ends (TS1845), unless the query says what kinds mean."""
    click(clicks, (1, "a", 1), table="buys", spec=KEYED)
    model = TOTALS.replace("'clicks'", "'buys'").replace("count(*)", "sum(@)")
    clicks.write("models/totals.sql", model.replace("@", "1"))
    run(clicks, "totals")
    click(clicks, (1, "b", 2), (2, "b", 1), table="buys", spec=KEYED)
    run(clicks, "totals", ok=False)
    assert "TS1845" in clicks.log
    signed = model.replace("@", "if(_row_kind in ('+I', '+U'), 1, -1)")
    clicks.write("models/totals.sql", signed.replace("unique_key", "row_kinds='all', unique_key"))
    run(clicks, "totals", "--full-refresh")
    click(clicks, (1, "a", 3), table="buys", spec=KEYED)
    run(clicks, "totals")
    assert sorted(clicks.rows("select page, clicks from demo.totals")) == [("a", 1), ("b", 1)]


@pytest.mark.nightly  # by day adapter/test_stream_positions.py: the query, its views and functions
def test_other_sql_needs_a_full_refresh(clicks: Shop) -> None:
    """What is remembered is of one query: TS1860, `continue` leaves all as it is, a full refresh begins anew; the same
    for a query that remembered nothing before.
    """
    clicks.write("models/totals.sql", TOTALS)
    run(clicks, "totals")
    other = TOTALS.replace("max(id)", "min(id)")
    clicks.write("models/totals.sql", other)
    click(clicks, (3, "a", 3))
    run(clicks, "totals", ok=False)
    assert "TS1860" in clicks.log
    clicks.write(
        "models/totals.sql", other.replace("unique_key", "on_configuration_change='continue', unique_key")
    )
    run(clicks, "totals")
    assert totals(clicks) == totals_of([(1, "a", 1), (2, "b", 2)])
    clicks.write("models/totals.sql", other)
    run(clicks, "totals", "--full-refresh")
    assert totals(clicks) == [("a", 2, 1), ("b", 1, 2)]
    plain = TOTALS.partition("select")[0] + "select page, 1 as clicks, id as newest from @ where id = 2"
    clicks.write("models/totals.sql", plain.replace("@", "{{ stream(source('raw', 'clicks')) }}"))
    run(clicks, "totals", "--full-refresh")
    clicks.write("models/totals.sql", TOTALS)
    click(clicks, (4, "c", 3))
    run(clicks, "totals", ok=False)
    assert "TS1860" in clicks.log
    run(clicks, "totals", "--full-refresh")
    assert totals(clicks) == totals_of([(1, "a", 1), (2, "b", 2), (3, "a", 3), (4, "c", 3)])


@pytest.mark.nightly  # by day the random runs below, which are rolled back
@pytest.mark.folders
def test_a_rollback_takes_the_state_with_it(clicks: Shop) -> None:
    """Rows, place and state are one: behind a rollback the next run counts the same rows again, each once. Where the
    state has gone the run says so.
    """
    clicks.write("models/totals.sql", TOTALS)
    rows = [(1, "a", 1), (2, "b", 2)]
    run(clicks, "totals")
    for number in (3, 4):
        click(clicks, (number, "a", number))
        rows.append((number, "a", number))
        run(clicks, "totals")
    clicks.engine.table("demo.totals").rollback(2)
    run(clicks, "totals")
    assert totals(clicks) == totals_of(rows)
    for one in (clicks.folder / "warehouse/.tablestore/states/demo.totals").iterdir():
        one.unlink()
    click(clicks, (9, "z", 9))
    run(clicks, "totals", ok=False)
    assert "TS1455" in clicks.log
    run(clicks, "totals", "--full-refresh")
    assert totals(clicks) == totals_of([*rows, (9, "z", 9)])


@pytest.mark.nightly  # by day test_clone.py; totals that go on
def test_a_clone_goes_on_beside_its_source(clicks: Shop) -> None:
    """From the same state, in the same run: Spark would end a query where another one of its id begins."""
    clicks.write("models/totals.sql", TOTALS)
    run(clicks, "totals")
    clicks.engine.clone("demo.totals", "demo.twin")
    clicks.write("models/twin.sql", TOTALS)
    click(clicks, (3, "a", 3))
    clicks.dbt("run", "--select", "totals", "twin")
    expected = totals_of([(1, "a", 1), (2, "b", 2), (3, "a", 3)])
    assert totals(clicks) == expected
    assert sorted(clicks.rows("select page, clicks, newest from demo.twin")) == expected


@pytest.mark.nightly  # by day the staged inputs below; test_streaming.py: tests hold a stream back
def test_a_red_test_holds_rows_place_and_state_back(clicks: Shop) -> None:
    """dbt build: what a red test holds back is read again, from the state of the rows that are out."""
    clicks.write("models/totals.sql", TOTALS)
    run(clicks, "totals")
    clicks.write("tests/few.sql", "select * from {{ ref('totals') }} where clicks > 1")
    click(clicks, (3, "a", 3))
    clicks.dbt("build", "--select", "totals", ok=False)
    assert totals(clicks) == totals_of([(1, "a", 1), (2, "b", 2)])
    click(clicks, (4, "b", 3))
    clicks.write("tests/few.sql", "select * from {{ ref('totals') }} where clicks > 2")
    clicks.dbt("build", "--select", "totals")
    rows = [(1, "a", 1), (2, "b", 2), (3, "a", 3), (4, "b", 3)]
    assert totals(clicks) == totals_of(rows)
    click(clicks, (5, "c", 3))
    clicks.dbt("build", "--select", "totals")
    assert totals(clicks) == totals_of([*rows, (5, "c", 3)])


@pytest.mark.nightly  # by day test_staged_parents.py; test_streaming.py: tests hold a stream back
def test_staged_inputs_are_followed(clicks: Shop) -> None:
    """In one dbt build the totals are made of what is staged of their input, and both go out together."""
    clicks.write(
        "models/clean.sql",
        "{{ config(materialized='streaming') }}\nselect * from {{ stream(source('raw', 'clicks')) }}",
    )
    clicks.write("models/totals.sql", TOTALS.replace("source('raw', 'clicks')", "ref('clean')"))
    clicks.write("tests/known.sql", "select * from {{ ref('totals') }} where page = 'bad'")
    rows = [(1, "a", 1), (2, "b", 2)]
    clicks.dbt("build", "--select", "clean totals")
    assert totals(clicks) == totals_of(rows)
    click(clicks, (3, "bad", 3))
    clicks.dbt("build", "--select", "clean totals", ok=False)
    assert totals(clicks) == totals_of(rows)
    clicks.write("tests/known.sql", "select * from {{ ref('totals') }} where page = 'worse'")
    clicks.dbt("build", "--select", "clean totals")
    assert totals(clicks) == totals_of([*rows, (3, "bad", 3)])


@pytest.mark.parametrize("seed", [7])
def test_random_runs_equal_one_query(clicks: Shop, seed: int) -> None:
    """Whatever comes between runs, in steps, with rollbacks and full refreshes: totals are those of all rows, and no
    more than a few states are kept.
    """
    chosen = random.Random(seed)
    clicks.write("models/totals.sql", TOTALS.replace("unique_key", "max_snapshots_per_batch=2, unique_key"))
    rows: list[Click] = [(1, "a", 1), (2, "b", 2)]
    for _ in range(examples(3, 7)):
        for _ in range(chosen.randrange(3)):
            new = [(chosen.randrange(1000), chosen.choice("abcde"), 1) for _ in range(chosen.randrange(1, 9))]
            rows += new
            click(clicks, *new)
        run(clicks, "totals", *(["--full-refresh"] if chosen.random() < 0.15 else []))
        assert totals(clicks) == totals_of(rows)
        table = clicks.engine.table("demo.totals")
        newest = table.latest_snapshot_id() or 1
        if newest > 2 and chosen.random() < 0.3:
            table.rollback(newest - 1)
    before = threading.active_count()
    for _ in range(3):
        click(clicks, (1, "a", 1))
        rows.append((1, "a", 1))
        run(clicks, "totals")
    assert totals(clicks) == totals_of(rows)
    assert len(states(clicks)) <= 7
    assert threading.active_count() <= before + 1  # a run leaves no connection to the JVM behind
