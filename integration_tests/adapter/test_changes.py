"""`changes(ref(…))`: each change of an input reaches a model once, with the model's own commit."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec

FEED = WriteSpec(
    table=TableSpec(primary_key=("id",), options={"bucket": "1", "tablestore.expire-grace": "0 s"})
)
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: feed}]}]"
COPY = """
{{ config(materialized='incremental', unique_key='id') }}
select * from {{ changes(source('raw', 'feed')) }}
"""
BATCHED = (
    "materialized='incremental', incremental_strategy='microbatch', event_time='v', "
    "begin='2026-01-01', batch_size='day'"
)
JOURNAL = """
{{ config(materialized='incremental') }}
select id, v, _row_kind as kind, _snapshot_id as snapshot from {{ changes(source('raw', 'feed')) }}
"""


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """A shop with a table that others write."""
    shop.write("models/feed.yml", SOURCES)
    shop.write("models/copy.sql", COPY)
    put(shop, (1, "a"), (2, "b"))
    return shop


def put(shop: Shop, *pairs: tuple[int, str]) -> None:
    """Somebody's commit."""
    rows = pa.table({"id": [one for one, _ in pairs], "v": [v for _, v in pairs]})
    shop.engine.write("demo.feed", rows, FEED)


def copied(shop: Shop) -> list[tuple[object, ...]]:
    """The rows of the model."""
    return shop.rows("select id, v from demo.copy order by id")


def newest(shop: Shop, table: str = "demo.copy") -> int | None:
    """Id of the newest snapshot."""
    return shop.engine.table(table).latest_snapshot_id()


def test_a_model_follows_its_input(feed: Shop) -> None:
    """All rows first, then what changed: puts, a delete, a key that changes three times and one that came and went. A
    run without news commits nothing; neither helper column is stored.
    """
    feed.dbt("run", "--select", "copy")
    assert copied(feed) == [(1, "a"), (2, "b")]
    assert [one.name for one in feed.engine.columns("demo.copy")] == ["id", "v"]
    before = newest(feed)
    feed.dbt("run", "--select", "copy")
    assert newest(feed) == before
    for v in ("x", "y", "z"):
        put(feed, (2, v))
    put(feed, (3, "c"), (4, "d"))
    feed.engine.sql("delete from demo.feed where id in (1, 4)")
    feed.dbt("run", "--select", "copy")
    assert copied(feed) == [(2, "z"), (3, "c")]
    assert newest(feed) == (before or 0) + 1
    told = feed.engine.table("demo.copy").changes(before or 0).to_pylist()
    assert sorted((one["_row_kind"], one["id"]) for one in told) == [
        ("+I", 3),
        ("+U", 2),
        ("-D", 1),
        ("-U", 2),
    ]


def test_unit_tests_give_the_rows_that_changed(feed: Shop) -> None:
    """As a run would read them, with their kinds, wherever the model is. An ephemeral input stays refused."""
    rows = "select 1 as id, 'a' as v, '-D' as _row_kind, 7 as _snapshot_id"
    given = f"given: [{{input: \"source('raw', 'feed')\", format: sql, rows: \"{rows}\"}}]"
    expect = "expect: {rows: [{id: 1, v: a, _row_kind: -D, _snapshot_id: 7}]}"
    feed.write("models/unit.yml", f"unit_tests: [{{name: gone, model: copy, {given}, {expect}}}]")
    feed.dbt("run", "--select", "copy")
    feed.dbt("test", "--select", "copy,test_type:unit")
    feed.write("models/inline.sql", "{{ config(materialized='ephemeral') }} select 1 as id, 'a' as v")
    feed.write("models/other.sql", COPY.replace("source('raw', 'feed')", "ref('inline')"))
    feed.dbt("run", "--select", "other", ok=False)
    assert "TS1835" in feed.log


def test_every_change_comes_once(feed: Shop) -> None:
    """An append-only model keeps a journal: after each run it has what the input's changelog has, no row twice."""
    feed.write("models/journal.sql", JOURNAL)
    feed.dbt("run", "--select", "journal")
    for number in range(3):
        put(feed, (number, f"v{number}"), (7, f"w{number}"))
        if number != 1:
            feed.dbt("run", "--select", "journal")
            feed.dbt("run", "--select", "journal")
    expected = feed.engine.table("demo.feed").changes(1).to_pylist()
    changes = [(one["_snapshot_id"], one["_row_kind"], one["id"], one["v"]) for one in expected]
    found = feed.rows("select snapshot, kind, id, v from demo.journal")
    assert sorted(found) == sorted([(1, "+I", 1, "a"), (1, "+I", 2, "b"), *changes])


def test_a_full_refresh_begins_anew(feed: Shop) -> None:
    """With all rows, at the newest position; a rollback of the model takes rows and position back together."""
    feed.dbt("run", "--select", "copy")
    put(feed, (1, "A"))
    feed.dbt("run", "--select", "copy", "--full-refresh")
    assert copied(feed) == [(1, "A"), (2, "b")]
    put(feed, (5, "e"))
    feed.dbt("run", "--select", "copy")
    table = feed.engine.table("demo.copy")
    table.rollback((newest(feed) or 0) - 1)
    assert copied(feed) == [(1, "A"), (2, "b")]
    feed.dbt("run", "--select", "copy")
    assert copied(feed) == [(1, "A"), (2, "b"), (5, "e")]


def test_an_input_that_was_rolled_back_is_no_gap(feed: Shop) -> None:
    """TS1474 names the way out, and nothing is committed; the same for a table that was made anew."""
    put(feed, (3, "c"))
    feed.dbt("run", "--select", "copy")
    feed.engine.table("demo.feed").rollback(1)
    put(feed, (4, "d"))
    before = newest(feed)
    feed.dbt("run", "--select", "copy", ok=False)
    assert "TS1474" in feed.log
    assert newest(feed) == before
    feed.dbt("run", "--select", "copy", "--full-refresh")
    assert copied(feed) == [(1, "a"), (2, "b"), (4, "d")]
    feed.engine.drop_table("demo.feed")
    put(feed, (9, "z"))
    feed.dbt("run", "--select", "copy", ok=False)
    assert "TS1841" in feed.log
    feed.dbt("run", "--select", "copy", "--full-refresh")
    assert copied(feed) == [(9, "z")]
    assert len(feed.engine.table("demo.copy").positions()) == 1


def test_expiry_waits_for_the_model(feed: Shop) -> None:
    """A consumer holds the snapshots behind its position until the next run."""
    feed.dbt("run", "--select", "copy")
    for number in range(3):
        put(feed, (number, "n"))
    table = feed.engine.table("demo.feed")
    assert [(one.name, one.next_snapshot) for one in table.consumers()] == [("dbt-demo-copy", 2)]
    table.expire(keep=1, older_than_ms=0)
    assert 2 in table.snapshot_ids()
    feed.dbt("run", "--select", "copy")
    assert copied(feed) == [(0, "n"), (1, "n"), (2, "n")]


def test_an_input_whose_history_is_gone(feed: Shop) -> None:
    """Somebody took the consumer away: TS1474 says what has expired, nothing is committed."""
    feed.dbt("run", "--select", "copy")
    for number in range(3):
        put(feed, (number, "n"))
    table = feed.engine.table("demo.feed")
    table.delete_consumer("dbt-demo-copy")
    table.expire(keep=1, older_than_ms=0)
    feed.dbt("run", "--select", "copy", ok=False)
    assert "TS1474" in feed.log
    assert newest(feed) == 1


def test_two_runs_at_once(feed: Shop) -> None:
    """Another run commits between this one's plan and its claim: this one says so, and its rows are not there twice."""
    feed.write("models/journal.sql", JOURNAL)
    feed.dbt("run", "--select", "journal")
    put(feed, (3, "c"))

    def other(line: str) -> None:
        if not line.startswith("Began executing node"):  # compiled, not yet written
            return
        feed.on_line = lambda _: None
        own = feed.engine.table("demo.journal")
        position = own.positions()
        (source,) = position
        table = feed.engine.table("demo.feed")
        found = table.plan_changes(position[source])
        assert found.step is not None
        rows = pa.table({"id": [3], "v": ["c"], "kind": ["+I"], "snapshot": pa.array([2], pa.int64())})
        feed.engine.write("demo.journal", rows, WriteSpec(positions={source: found.step}))

    feed.on_line = other
    feed.dbt("run", "--select", "journal", ok=False)
    assert "TS1471" in feed.log
    assert feed.rows("select count(*) from demo.journal") == [(3,)]
    feed.dbt("run", "--select", "journal")
    assert feed.rows("select count(*) from demo.journal") == [(3,)]


@pytest.mark.nightly  # by day test_stateful_streaming.py: staged inputs
def test_changes_of_what_is_staged_wait_with_it(feed: Shop) -> None:
    """dbt build: a child reads its parent's staged changes, is published behind it, and goes on there in the next run;
    a red test of the parent holds both back, and no position moves.
    """
    feed.write(
        "models/parent.sql",
        "{{ config(materialized='incremental', unique_key='id') }}\nselect id, v from {{ source('raw', 'feed') }}",
    )
    feed.write("models/child.sql", COPY.replace("source('raw', 'feed')", "ref('parent')"))
    feed.write("models/t.yml", "models: [{name: parent, columns: [{name: v, data_tests: [not_null]}]}]")
    feed.dbt("build", "--select", "parent", "child")
    rows = "select id, v from demo.child order by id"
    assert feed.rows(rows) == [(1, "a"), (2, "b")]
    put(feed, (2, "c"), (3, "d"))
    feed.dbt("build", "--select", "parent", "child")
    assert feed.rows(rows) == [(1, "a"), (2, "c"), (3, "d")]
    position = feed.engine.table("demo.child").positions()
    nothing = pa.table({"id": [4], "v": pa.array([None], pa.string())})
    feed.engine.write("demo.feed", nothing, FEED)
    feed.dbt("build", "--select", "parent", "child", ok=False)
    assert feed.engine.table("demo.child").positions() == position
    put(feed, (4, "e"))
    feed.dbt("build", "--select", "parent", "child")
    assert feed.rows(rows) == [(1, "a"), (2, "c"), (3, "d"), (4, "e")]


@pytest.mark.parametrize(
    "config",
    [
        "materialized='table'",
        "materialized='view'",
        BATCHED,
    ],
)
def test_models_that_cannot_remember_are_refused(feed: Shop, config: str) -> None:
    """Nothing is made."""
    feed.write("models/copy.sql", COPY.replace("materialized='incremental', unique_key='id'", config))
    feed.dbt("run", "--select", "copy", ok=False)
    assert "TS1835" in feed.log
    assert feed.engine.find_table("demo.copy") is None


def test_kinds_without_an_order(feed: Shop) -> None:
    """TS1836: which change of a key is the newest, only the snapshot says."""
    feed.write("models/copy.sql", COPY.replace("select *", "select id, v, _row_kind"))
    feed.dbt("run", "--select", "copy", ok=False)
    assert "TS1836" in feed.log


def test_the_position_is_readable(feed: Shop) -> None:
    """One source, by the input's identity; its snapshot and commit."""
    feed.dbt("run", "--select", "copy")
    (item,) = feed.engine.table("demo.copy").positions().items()
    source, text = item
    identity = feed.engine.table("demo.feed").store.identity
    assert source == f"table:{identity}"
    assert json.loads(text)["snapshot"] == 1
