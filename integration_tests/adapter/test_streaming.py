"""materialized='streaming': what came behind the model's last commit, each change once, range by range."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec
from tests.doses import case_rows, examples

FEED = WriteSpec(
    table=TableSpec(primary_key=("id",), options={"bucket": "1", "tablestore.expire-grace": "0 s"})
)
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: feed}, {name: names}, {name: events}]}]"
COPY = """
{{ config(materialized='streaming', unique_key='id') }}
select id, v, _row_kind, _snapshot_id from {{ stream(source('raw', 'feed')) }}
"""
JOURNAL = """
{{ config(materialized='streaming', row_kinds='all') }}
select id, v, _row_kind as kind, _snapshot_id as snapshot from {{ stream(source('raw', 'feed')) }}
"""
EVENTS = """
{{ config(materialized='streaming') }}
select e.v, n.name from {{ stream(source('raw', 'events')) }} e left join {{ source('raw', 'names') }} n on e.v = n.v
"""


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """A shop with tables that others write."""
    shop.write("models/feed.yml", SOURCES)
    shop.write("models/copy.sql", COPY)
    put(shop, (1, "a"), (2, "b"))
    return shop


def put(shop: Shop, *pairs: tuple[int, str | None]) -> None:
    """Somebody's commit."""
    rows = pa.table({"id": [one for one, _ in pairs], "v": pa.array([v for _, v in pairs], pa.string())})
    shop.engine.write("demo.feed", rows, FEED)


def copied(shop: Shop) -> list[tuple[object, ...]]:
    """The rows of the model."""
    return shop.rows("select id, v from demo.copy order by id, v")


def newest(shop: Shop, table: str = "demo.copy") -> int | None:
    """Id of the newest snapshot."""
    return shop.engine.table(table).latest_snapshot_id()


def run(shop: Shop, model: str = "copy", *more: str, ok: bool = True) -> None:
    """`dbt run` of one model."""
    shop.dbt("run", "--select", model, *more, ok=ok)


def test_a_bounded_run_takes_everything_up_to_now(feed: Shop) -> None:
    """All rows first, then puts, deletes and keys that change several times, by key; without news nothing is committed.
    The result says what was followed, and neither helper column is stored.
    """
    run(feed)
    assert copied(feed) == [(1, "a"), (2, "b")]
    assert [one.name for one in feed.engine.columns("demo.copy")] == ["id", "v"]
    before = newest(feed)
    run(feed)
    assert newest(feed) == before
    for v in ("x", "y", "z"):
        put(feed, (2, v))
    put(feed, (3, "c"), (4, "d"))
    feed.engine.sql("delete from demo.feed where id in (1, 4)")
    run(feed)
    assert copied(feed) == [(2, "z"), (3, "c")]
    assert newest(feed) == (before or 0) + 1
    answer = feed.response("copy")
    assert answer["followed"] == {"demo.feed": [1, 6]}
    assert (answer["batches"], answer["rows_read"]) == (1, 10)
    assert "feed 1→6" in feed.log


def test_rows_enter_and_leave_a_filter(feed: Shop) -> None:
    """What an update makes match is put, what it makes match no more is taken away, whatever came between two runs."""
    feed.write("models/copy.sql", COPY + "where v < 'm'")
    run(feed)
    put(feed, (1, "z"), (2, "c"), (3, "x"), (4, "y"))
    run(feed)
    assert copied(feed) == [(2, "c")]
    put(feed, (1, "b"), (3, "d"))
    put(feed, (3, "q"), (2, "w"))
    put(feed, (2, "a"))
    run(feed)
    assert copied(feed) == [(1, "b"), (2, "a")]


def test_a_row_that_cannot_be_computed_stops_the_stream_and_loses_nothing(feed: Shop) -> None:
    """In ANSI mode the run fails before its commit, says what Spark says and how to go on; with a corrected query the
    next run takes every row from the same position.
    """
    feed.write("models/copy.sql", COPY.replace("id, v,", "id, 6 div (id - 3) as v,"))
    conf, name = feed.engine.spark.conf, "spark.sql.ansi.enabled"
    before = str(conf.get(name))
    conf.set(name, "true")
    try:
        run(feed)
        first = newest(feed)
        put(feed, (3, "c"), (4, "d"))
        put(feed, (5, "e"))
        run(feed, ok=False)
        assert all(word in feed.log for word in ("TS2157", "DIVIDE_BY_ZERO", "try_divide"))
        assert newest(feed) == first
        corrected = COPY.replace("id, v,", "id, cast(try_divide(6, id - 3) as bigint) as v,")
        feed.write("models/copy.sql", corrected)
        run(feed)
    finally:
        conf.set(name, before)
    assert copied(feed) == [(1, -3), (2, -6), (3, None), (4, 6), (5, 3)]


def test_unit_tests_give_the_rows_that_came(feed: Shop) -> None:
    """dbt's unit tests of a streaming model: rows are given with their kinds, as a range would have them."""
    feed.write("models/shout.sql", COPY.replace("id, v,", "id, upper(v) as v,"))
    rows = "select 1 as id, 'a' as v, '+I' as _row_kind, 1 as _snapshot_id"
    given = f"given: [{{input: \"source('raw', 'feed')\", format: sql, rows: \"{rows}\"}}]"
    expect = "expect: {rows: [{id: 1, v: A}]}"
    feed.write("models/unit.yml", f"unit_tests: [{{name: upper, model: shout, {given}, {expect}}}]")
    feed.dbt("test", "--select", "shout,test_type:unit")


def test_an_ephemeral_model_has_no_changes(feed: Shop) -> None:
    """It is a part of the query: refused, not read as a table whose later rows would never come."""
    feed.write(
        "models/inline.sql",
        "{{ config(materialized='ephemeral') }} select id, v from {{ source('raw', 'feed') }}",
    )
    feed.write(
        "models/copy.sql",
        "{{ config(materialized='streaming') }} select f.id, i.v from {{ stream(source('raw', 'feed')) }} f "
        "join {{ stream(ref('inline')) }} i on f.id = i.id",
    )
    run(feed, ok=False)
    assert "TS1843" in feed.log
    assert "copy" not in feed.tables()


def test_compiling_needs_no_table(feed: Shop) -> None:
    """dbt compile and docs generate before the first run; the text names no position, so it is the same later."""
    feed.write("models/early.sql", COPY.replace("source('raw', 'feed')", "source('raw', 'names')"))
    feed.dbt("compile", "--select", "early")
    assert "demo__changes_start_to_now" in feed.log
    run(feed, "early", ok=False)
    run(feed)
    put(feed, (3, "c"))
    compiled = feed.folder / "target/compiled/shop/models/copy.sql"
    before = compiled.read_text()
    run(feed)
    assert compiled.read_text() == before


def test_compiling_says_who_runs_the_query(feed: Shop) -> None:
    """Range by range, or Spark's own streaming with its clause and mode; what cannot be kept up is refused by its
    clause, also by two streams in one text; what cannot be known yet is said to be so.
    """
    stream = "{{ stream(source('raw', 'feed')) }}"
    head = "{{ config(materialized='streaming', unique_key='v', row_kinds='all') }}"
    feed.write("models/many.sql", f"{head} select v, count(*) as n from {stream} group by v")
    feed.write(
        "models/sorted.sql", f"{head} select v from {stream} union all select v from {stream} order by v"
    )
    feed.write("models/some.sql", "{{ config(materialized='ephemeral') }} select 1 as v")
    feed.write(
        "models/met.sql", f"{head} select s.v from {stream} s join {{{{ ref('some') }}}} o on o.v = s.v"
    )
    feed.dbt("compile", "--select", "copy", "many", "met")
    said = "\n".join(feed.shown)
    assert "copy: its query runs over each range of changes separately" in said
    assert "many: Spark's own streaming runs its query" in said
    assert "an aggregate (GROUP BY, count, sum, …); rows come out in update mode" in said
    assert "met: who runs its query is known when it runs: it reads an ephemeral model" in said
    assert feed.tables() == {"feed"}
    feed.dbt("compile", "--select", "sorted", ok=False)
    assert "TS1844" in feed.log
    assert "ORDER BY" in feed.log


def test_a_long_way_is_gone_in_steps(feed: Shop) -> None:
    """max_snapshots_per_batch: a commit for so many snapshots; the answer adds them up; each change once."""
    feed.write("models/journal.sql", JOURNAL.replace("row_kinds", "max_snapshots_per_batch=2, row_kinds"))
    run(feed, "journal")
    for number in range(5):
        put(feed, (number, f"v{number}"), (7, f"w{number}"))
    run(feed, "journal")
    assert newest(feed, "demo.journal") == 4
    answer = feed.response("journal")
    assert answer["followed"] == {"demo.feed": [1, 6]}
    expected = feed.engine.table("demo.feed").changes(1).to_pylist()
    assert (answer["batches"], answer["rows_read"], answer["rows_inserted"]) == (
        3,
        len(expected),
        len(expected),
    )
    changes = [(one["_snapshot_id"], one["_row_kind"], one["id"], one["v"]) for one in expected]
    found = feed.rows("select snapshot, kind, id, v from demo.journal")
    assert sorted(found) == sorted([(1, "+I", 1, "a"), (1, "+I", 2, "b"), *changes])


@pytest.mark.nightly  # by day tests/laws/test_step_laws.py; steps below
def test_steps_over_a_change_of_columns(feed: Shop) -> None:
    """A column that comes in the middle of a long way: no step is stuck before it, rows of before have none of it."""
    config = "'streaming', max_snapshots_per_batch=1, on_schema_change='append_new_columns'"
    feed.write(
        "models/copy.sql", COPY.replace("'streaming'", config).replace("id, v, _row_kind, _snapshot_id", "*")
    )
    run(feed)
    put(feed, (2, "c"))
    put(feed, (3, "d"))
    feed.engine.sql("alter table demo.feed add column w int")
    feed.engine.sql("update demo.feed set w = 5 where id = 1")
    run(feed)
    expected = [(1, "a", 5), (2, "c", None), (3, "d", None)]
    assert feed.rows("select id, v, w from demo.copy order by id") == expected
    feed.engine.sql("update demo.feed set w = 6 where id = 2")
    feed.engine.sql("update demo.feed set w = 7 where id = 3")
    run(feed)
    assert feed.response("copy")["batches"] == 2
    expected = [(1, "a", 5), (2, "c", 6), (3, "d", 7)]
    assert feed.rows("select id, v, w from demo.copy order by id") == expected


def test_steps_that_a_killed_run_has_made_stay(feed: Shop) -> None:
    """A run ends between two of its commits; the next one goes on behind the last, no change twice."""
    feed.write("models/journal.sql", JOURNAL.replace("row_kinds", "max_snapshots_per_batch=1, row_kinds"))
    run(feed, "journal")
    for number in range(3):
        put(feed, (7, f"w{number}"))
    writer = feed.engine.write
    calls: list[str] = []

    def write_once(name: str, *given: object, **named: object) -> object:
        calls.append(name)
        if len(calls) == 2:
            raise RuntimeError
        return writer(name, *given, **named)  # type: ignore[arg-type]  # passed on as it came

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(feed.engine), "write", lambda self, *given, **named: write_once(*given, **named))
        feed.dbt("run", "--select", "journal", ok=False)
    assert newest(feed, "demo.journal") == 2
    run(feed, "journal")
    found = feed.rows("select kind, v from demo.journal where id = 7 order by snapshot, kind desc")
    assert found == [("+I", "w0"), ("-U", "w0"), ("+U", "w1"), ("-U", "w1"), ("+U", "w2")]


def test_rows_joined_with_what_tables_have_now(feed: Shop) -> None:
    """An append-only model: each event once, with the name that stood in the table when its run came."""
    feed.engine.write("demo.events", pa.table({"v": ["a", "b"]}), WriteSpec())
    names = WriteSpec(table=TableSpec(primary_key=("v",)))
    feed.engine.write("demo.names", pa.table({"v": ["a"], "name": ["ann"]}), names)
    feed.write("models/named.sql", EVENTS)
    run(feed, "named")
    feed.engine.write("demo.names", pa.table({"v": ["b"], "name": ["bob"]}), names)
    run(feed, "named")
    feed.engine.write("demo.events", pa.table({"v": ["b"]}), WriteSpec())
    run(feed, "named")
    assert feed.rows("select v, name from demo.named order by v, name") == [
        ("a", "ann"),
        ("b", None),
        ("b", "bob"),
    ]


def test_kinds_are_never_counted_by_mistake(feed: Shop) -> None:
    """A query without _row_kind takes +I; at an update it stops with TS1845, nothing written, and goes on when the
    model says what kinds mean.
    """
    plain = COPY.replace("select id, v, _row_kind, _snapshot_id", "select id, v").replace(
        ", unique_key='id'", ""
    )
    feed.write("models/copy.sql", plain)
    run(feed)
    put(feed, (3, "c"))
    run(feed)
    assert copied(feed) == [(1, "a"), (2, "b"), (3, "c")]
    before = newest(feed)
    put(feed, (3, "d"))
    run(feed, ok=False)
    assert "TS1845" in feed.log
    assert newest(feed) == before
    feed.write(
        "models/copy.sql",
        plain.replace("'streaming'", "'streaming', row_kinds='all'") + "where _row_kind = '+U'",
    )
    run(feed)
    assert copied(feed) == [(1, "a"), (2, "b"), (3, "c"), (3, "d")]


@pytest.mark.parametrize(
    ("sql", "code", "said"),
    case_rows(
        [
            (
                "select v, count(*) as n from {{ stream(source('raw', 'feed')) }} group by v",
                "TS1844",
                "aggregate",
            ),
            ("select distinct v from {{ stream(source('raw', 'feed')) }}", "TS1844", "DISTINCT"),
            ("select id, v from {{ source('raw', 'feed') }}", "TS1843", "follows nothing"),
            ("select id, v from {{ stream(ref('copy').at(snapshot=1)) }}", "TS1843", "one state"),
            ("select id, v from {{ changes(source('raw', 'feed')) }}", "TS1835", "stream()"),
            ("select id, v, _row_kind from {{ stream(source('raw', 'feed')) }}", "TS1836", "_snapshot_id"),
        ],
        2,
    ),
)
def test_what_cannot_be_followed_is_named(feed: Shop, sql: str, code: str, said: str) -> None:
    """Before anything is made."""
    run(feed)
    feed.write("models/wrong.sql", "{{ config(materialized='streaming') }}\n" + sql)
    run(feed, "wrong", ok=False)
    assert code in feed.log
    assert said in feed.log
    assert feed.engine.find_table("demo.wrong") is None


@pytest.mark.parametrize(
    ("config", "code"),
    case_rows(
        [
            ("materialized='table'", "TS1843"),
            ("materialized='view'", "TS1843"),
            ("materialized='incremental', unique_key='id'", "TS1843"),
            ("materialized='streaming', unique_key='id', incremental_strategy='changed_keys'", "TS1842"),
            ("materialized='streaming', unique_key='id', max_snapshots_per_batch=0", "TS1842"),
            ("materialized='streaming', unique_key='id', row_kinds='upserts'", "TS1811"),
        ],
        2,
    ),
)
def test_other_configs_are_refused(feed: Shop, config: str, code: str) -> None:
    """stream() elsewhere, and words that mean nothing here."""
    feed.write("models/copy.sql", COPY.replace("materialized='streaming', unique_key='id'", config))
    run(feed, ok=False)
    assert code in feed.log
    assert feed.engine.find_table("demo.copy") is None


@pytest.mark.nightly  # by day test_changes.py: a full refresh, a rollback
def test_rows_and_position_go_back_together(feed: Shop) -> None:
    """A rollback of the model reads again what it took back; a full refresh begins anew."""
    run(feed)
    put(feed, (5, "e"))
    run(feed)
    feed.engine.table("demo.copy").rollback((newest(feed) or 0) - 1)
    assert copied(feed) == [(1, "a"), (2, "b")]
    run(feed)
    assert copied(feed) == [(1, "a"), (2, "b"), (5, "e")]
    feed.engine.sql("delete from demo.copy where id = 1")
    run(feed, "copy", "--full-refresh")
    assert copied(feed) == [(1, "a"), (2, "b"), (5, "e")]
    put(feed, (6, "f"))
    run(feed)
    assert copied(feed) == [(1, "a"), (2, "b"), (5, "e"), (6, "f")]


@pytest.mark.nightly  # by day test_changes.py: an input that was rolled back
def test_no_gap_where_history_is_gone(feed: Shop) -> None:
    """An input that was rolled back, expired or made anew is an error that names the full refresh."""
    put(feed, (3, "c"))
    run(feed)
    table = feed.engine.table("demo.feed")
    assert [(one.name, one.next_snapshot) for one in table.consumers()] == [("dbt-demo-copy", 3)]
    table.rollback(1)
    put(feed, (4, "d"))
    before = newest(feed)
    run(feed, ok=False)
    assert "TS1474" in feed.log
    assert newest(feed) == before
    run(feed, "copy", "--full-refresh")
    assert copied(feed) == [(1, "a"), (2, "b"), (4, "d")]
    feed.engine.drop_table("demo.feed")
    put(feed, (9, "z"))
    run(feed, ok=False)
    assert "TS1841" in feed.log
    run(feed, "copy", "--full-refresh")
    assert copied(feed) == [(9, "z")]
    put(feed, (8, "y"))
    run(feed)
    assert copied(feed) == [(8, "y"), (9, "z")]


@pytest.mark.parametrize(("how", "rows"), case_rows([("apply", 3), ("continue", 2), ("fail", 2)], 1))
def test_other_sql(feed: Shop, how: str, rows: int) -> None:
    """apply: what comes from now on is made by it; continue: nothing is read, with a warning; fail: TS1846. Spaces are
    no change, and --full-refresh is always right.
    """
    config = f"'streaming', on_configuration_change='{how}'"
    feed.write("models/copy.sql", COPY.replace("'streaming'", config))
    run(feed)
    put(feed, (3, "c"))
    other = COPY.replace("'streaming'", config).replace("id, v,", "id, upper(v) as v,")
    feed.write("models/copy.sql", other)
    run(feed, ok=how != "fail")
    assert len(copied(feed)) == rows
    assert ("TS1846" in feed.log) is (how == "fail")
    assert ("nothing was read" in feed.log) is (how == "continue")
    run(feed, "copy", "--full-refresh")
    assert copied(feed) == [(1, "A"), (2, "B"), (3, "C")]
    put(feed, (4, "d"))
    feed.write("models/copy.sql", other + "\n\n")
    run(feed)
    assert copied(feed)[-1] == (4, "D")


def test_tests_hold_a_stream_back(feed: Shop) -> None:
    """dbt build: what a run followed waits for its tests, and no position moves while they are red; then all of it goes
    out as one commit, however small the steps are, with a parent that waited too.
    """
    feed.write(
        "models/parent.sql",
        "{{ config(materialized='incremental', unique_key='id') }}\nselect id, v from {{ source('raw', 'feed') }}",
    )
    child = COPY.replace("source('raw', 'feed')", "ref('parent')")
    feed.write("models/copy.sql", child.replace("'streaming'", "'streaming', max_snapshots_per_batch=1"))
    tests = "columns: [{name: v, data_tests: [not_null]}]"
    feed.write("models/t.yml", f"models: [{{name: parent, {tests}}}, {{name: copy, {tests}}}]")
    feed.dbt("build", "--select", "parent", "copy")
    assert copied(feed) == [(1, "a"), (2, "b")]
    put(feed, (2, "c"), (3, "d"))
    feed.dbt("build", "--select", "parent", "copy")
    assert copied(feed) == [(1, "a"), (2, "c"), (3, "d")]
    position, before = feed.engine.table("demo.copy").positions(), newest(feed)
    for number in range(3):
        feed.engine.write("demo.parent", pa.table({"id": [10 + number], "v": ["x"]}), WriteSpec())
    feed.engine.write("demo.parent", pa.table({"id": [20], "v": pa.array([None], pa.string())}), WriteSpec())
    feed.dbt("build", "--select", "copy", ok=False)
    assert feed.engine.table("demo.copy").positions() == position
    feed.engine.sql("delete from demo.parent where id = 20")
    feed.dbt("build", "--select", "copy")
    assert copied(feed) == [(1, "a"), (2, "c"), (3, "d"), (10, "x"), (11, "x"), (12, "x")]
    assert newest(feed) == (before or 0) + 1


def test_random_histories(feed: Shop) -> None:
    """Puts, deletes and keys that come and go, any number of commits between runs, any size of step: the copy is its
    input, the journal has every change once.
    """
    rng = random.Random(20261123)
    feed.write("models/copy.sql", COPY.replace("'streaming'", "'streaming', max_snapshots_per_batch=2"))
    feed.write("models/journal.sql", JOURNAL.replace("row_kinds", "max_snapshots_per_batch=3, row_kinds"))
    for _ in range(examples(3, 5)):
        for _ in range(rng.randrange(5)):
            keys = rng.sample(range(8), 3)
            put(feed, *((key, f"v{rng.randrange(100)}") for key in keys))
            if rng.random() < 0.5:
                feed.engine.sql(f"delete from demo.feed where id in ({keys[0]}, {rng.randrange(8)})")
        feed.dbt("run", "--select", "copy", "journal")
        assert copied(feed) == feed.rows("select id, v from demo.feed order by id")
    changes = feed.engine.table("demo.feed").changes(0).to_pylist()
    expected = [(one["_snapshot_id"], one["_row_kind"], one["id"], one["v"]) for one in changes]
    first = feed.engine.table("demo.journal").changes(0, 1).to_pylist()
    start = max(one["snapshot"] for one in first)
    found = feed.rows("select snapshot, kind, id, v from demo.journal")
    base = [(one["snapshot"], one["kind"], one["id"], one["v"]) for one in first]
    assert sorted(found) == sorted([*base, *(one for one in expected if one[0] > start)])


FOLLOWERS = {
    "copy": COPY,
    "changed": COPY.replace("'streaming'", "'incremental'").replace("stream(", "changes("),
    "totals": """{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='part',
          affected_by={'feed': 'id % 2'}) }}
select id % 2 as part, count(*) as n from {{ source('raw', 'feed') }} group by id % 2""",
}


@pytest.mark.nightly  # by day test_stream_positions.py: empty runs with state
def test_runs_without_rows_move_no_place(feed: Shop) -> None:
    """--empty leaves rows and positions of all that follow as they are; a table that it replaces has read nothing, so
    the next run takes all. --sample is refused: what is outside of it would count as read.
    """
    for name, text in FOLLOWERS.items():
        feed.write(f"models/{name}.sql", text)
    feed.dbt("run", "--select", *FOLLOWERS, "--empty")
    assert copied(feed) == []
    feed.dbt("run", "--select", *FOLLOWERS)
    states = {name: newest(feed, f"demo.{name}") for name in FOLLOWERS}
    put(feed, (3, "c"))
    feed.dbt("run", "--select", *FOLLOWERS, "--empty")
    assert {name: newest(feed, f"demo.{name}") for name in FOLLOWERS} == states
    feed.dbt("run", "--select", *FOLLOWERS)
    expected = [(1, "a"), (2, "b"), (3, "c")]
    for _ in range(2):
        assert copied(feed) == expected
        assert feed.rows("select id, v from demo.changed order by id") == expected
        assert feed.rows("select part, n from demo.totals order by part") == [(0, 1), (1, 2)]
        feed.dbt("run", "--select", *FOLLOWERS, "--full-refresh", "--empty")
        assert copied(feed) == []
        feed.dbt("run", "--select", *FOLLOWERS)
    for name in FOLLOWERS:
        feed.dbt("run", "--select", name, "--sample", "1 day", ok=False)
        assert "TS1859" in feed.log
