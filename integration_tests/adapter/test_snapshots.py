"""dbt snapshots: what the conformance classes that run do not look at."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop
from tests.doses import cases


@pytest.mark.nightly
def test_a_deletion_record_keeps_the_values(shop: Shop) -> None:
    """hard_deletes='new_record': the record of a deleted row has its last values, and ends when the row returns."""
    shop.write(
        "snapshots/s.sql",
        "{% snapshot s %} {{ config(unique_key='id', strategy='check', check_cols=['n'],"
        " hard_deletes='new_record') }} select * from {{ ref('src') }} {% endsnapshot %}",
    )
    for rows in ("(1, 'a'), (2, 'b')", "(1, 'a')", "(1, 'a')", "(1, 'a'), (2, 'b')"):
        shop.write(
            "models/src.sql",
            f"{{{{ config(materialized='table') }}}} select * from values {rows} as t(id, n)",
        )
        shop.dbt("build", "--select", "src", "s")
    assert shop.rows(
        "select id, n, dbt_is_deleted, dbt_valid_to is null from demo.s order by id, dbt_valid_from"
    ) == [
        (1, "a", "False", True),
        (2, "b", "False", False),
        (2, "b", "True", False),
        (2, "b", "False", True),
    ]


BIG = (
    "{{ config(materialized='table') }} select cast(id as int) as id, concat('n', id) as n, "
    "timestamp '2026-01-01 10:00:00' as at from range(20000)"
)


def _jobs(shop: Shop) -> int:
    """How many jobs Spark has started."""
    return int(shop.engine.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.parametrize(
    ("strategy", "deletes"),
    [
        ("strategy='timestamp', updated_at='at'", "ignore"),
        pytest.param("strategy='check', check_cols='all'", "new_record", marks=pytest.mark.nightly),
        pytest.param("strategy='check', check_cols='all'", "invalidate", marks=pytest.mark.nightly),
    ],
)
def test_a_run_over_an_unchanged_source_is_no_query(shop: Shop, strategy: str, deletes: str) -> None:
    """No commit, no row is read: that nothing changed is known from the positions in the history's table."""
    _history(shop, f"{strategy}, hard_deletes='{deletes}'")
    shop.write("models/src.sql", BIG)
    shop.dbt("run", "--select", "src")
    shop.dbt("snapshot")
    table = shop.engine.table("demo.s")
    before = table.snapshot_ids()
    for _ in range(2):
        jobs = _jobs(shop)
        shop.dbt("snapshot")
        assert table.snapshot_ids() == before
        assert _jobs(shop) - jobs <= 1  # of a query that has no rows
    assert shop.response("s")["rows_affected"] == 0
    assert shop.response("s")["evaluated"] == "affected keys"


@pytest.mark.nightly  # by day the unchanged source, whose jobs are counted
@pytest.mark.parametrize(
    ("strategy", "deletes", "jobs_max"),
    [
        ("strategy='check', check_cols='all'", "invalidate", 5),
        pytest.param("strategy='timestamp', updated_at='at'", "new_record", 6, marks=pytest.mark.nightly),
    ],
)
def test_a_run_that_compares_all_keys_is_one_query(
    shop: Shop, strategy: str, deletes: str, jobs_max: int
) -> None:
    """Jobs are the exchanges of that query's joins; equal rows give no version and no second query."""
    query = "select *, if(current_date() is null, 1, 0) as zero from {{ ref('src') }}"
    _history(shop, f"{strategy}, hard_deletes='{deletes}'", query)
    shop.write("models/src.sql", BIG)
    shop.dbt("run", "--select", "src")
    shop.dbt("snapshot")
    versions = shop.rows("select count(*) from demo.s")
    jobs = _jobs(shop)
    shop.dbt("snapshot")
    assert _jobs(shop) - jobs <= jobs_max
    assert shop.response("s")["evaluated"] == "all rows"
    assert shop.rows("select count(*) from demo.s") == versions
    assert "merge into" not in shop.log.lower()


CHECK, QUERY = "strategy='check', check_cols=['n']", "select id, n from {{ source('feed', 'src') }}"
OTHERWISE = {  # what a later run finds → config, query, statements before it, why all keys are compared
    "query": (CHECK, "select id, concat(n, '') as n from {{ source('feed', 'src') }}", (), "its SQL changed"),
    "config": ("strategy='check', check_cols=['n', 'id']", QUERY, (), "its SQL changed"),
    "rows": (CHECK, QUERY, ("delete from demo.s where id = 2",), "another writer has changed its rows"),
    "clock": (
        CHECK,
        "select id, if(current_date() is null, '', n) as n from {{ source('feed', 'src') }}",
        (),
        "current_date",
    ),
}


@pytest.mark.nightly  # by day histories with an oracle
@pytest.mark.parametrize("cause", cases(list(OTHERWISE), 1))
def test_history_made_otherwise_compares_all_keys(shop: Shop, cause: str) -> None:
    """And says why; a run behind it compares the keys that changed, unless its query uses a clock."""
    config, query, statements, reason = OTHERWISE[cause]
    shop.engine.sql("create schema demo")
    shop.engine.sql("create table demo.src (id int not null, n string, primary key (id))")
    shop.engine.sql("insert into demo.src values (1, 'a'), (2, 'b')")
    _history(shop, CHECK, QUERY)
    shop.dbt("snapshot")
    shop.engine.sql("insert into demo.src values (1, 'c')")
    for statement in statements:
        shop.engine.sql(statement)
    _history(shop, config, query)
    shop.dbt("snapshot")
    assert shop.response("s")["evaluated"] == "all rows"
    assert reason in shop.response("s")["fallback"]
    shop.engine.sql("insert into demo.src values (2, 'd'), (3, 'e')")
    shop.dbt("snapshot")
    assert shop.response("s").get("keys_affected") == (None if cause == "clock" else 2)
    current = "select id, n from demo.s where dbt_valid_to is null order by id"
    assert shop.rows(current) == [(1, "c"), (2, "d"), (3, "e")]


@pytest.mark.nightly  # by day conformance: TestSnapshotNewColumnWithDeletes
def test_source_with_a_new_column_makes_all_keys_new_versions(shop: Shop) -> None:
    """As dbt's strategy has it; the run is not restricted, and later ones are again."""
    shop.engine.sql("create schema demo")
    shop.engine.sql("create table demo.src (id int not null, n string, primary key (id))")
    shop.engine.sql("insert into demo.src values (1, 'a'), (2, 'b')")
    _history(shop, CHECK.replace("['n']", "'all'"), "select * from {{ source('feed', 'src') }}")
    shop.dbt("snapshot")
    shop.engine.sql("alter table demo.src add column m int")
    shop.dbt("snapshot")
    assert shop.rows("select count(*), count(dbt_valid_to) from demo.s") == [(4, 2)]
    assert "evaluated" not in shop.response("s")
    evaluated = []
    for number in (3, 4):
        shop.engine.sql(f"insert into demo.src values (1, 'a', {number})")
        shop.dbt("snapshot")
        evaluated.append(shop.response("s")["evaluated"])
    assert evaluated == ["all rows", "affected keys"]
    assert shop.rows("select id, m from demo.s where dbt_valid_to is null order by id") == [(1, 4), (2, None)]


@pytest.mark.parametrize("key", cases(["concat(id, '')", "id"], 1))
def test_snapshot_by_an_expression_or_a_custom_strategy_compares_all_keys(shop: Shop, key: str) -> None:
    """A strategy of the project may take a row for changed that is as it was."""
    strategy = CHECK if key != "id" else "strategy='always'"
    shop.write(
        "macros/always.sql",
        "{% macro snapshot_always_strategy(node, old, new, config, exists) %}{% do return({'unique_key': 'id',"
        " 'updated_at': snapshot_get_time(), 'row_changed': 'true', 'hard_deletes': 'ignore',"
        " 'scd_id': snapshot_hash_arguments(['id', snapshot_get_time()])}) %}{% endmacro %}",
    )
    shop.engine.sql("create schema demo")
    shop.engine.sql("create table demo.src as select 1 as id, 'a' as n")
    _history(shop, strategy, QUERY, key)
    for _ in range(2):
        shop.dbt("snapshot")
        assert "evaluated" not in shop.response("s")
        assert (
            shop.engine.table("demo.src").consumers() == ()
        )  # nobody reads its changes: they expire as ever
    assert shop.rows("select count(*) from demo.s") == [(2 if key == "id" else 1,)]


SOURCE = "{{{{ config(materialized='table') }}}} select id, n, timestamp '{at}' as at from values {rows} as t(id, n)"


def _history(shop: Shop, config: str, query: str = "select * from {{ ref('src') }}", key: str = "id") -> None:
    shop.write("models/feed.yml", "sources: [{name: feed, schema: demo, tables: [{name: src}]}]")
    shop.write(
        "snapshots/s.sql",
        f'{{% snapshot s %}} {{{{ config(unique_key="{key}", {config}) }}}} {query} {{% endsnapshot %}}',
    )


def _take(shop: Shop, rows: str, at: str = "2026-01-01 10:00:00") -> None:
    shop.write("models/src.sql", SOURCE.format(at=at, rows=rows))
    shop.dbt("build", "--select", "src", "s")


@pytest.mark.nightly  # by day test_snapshot_histories.py: rows that return
@pytest.mark.parametrize("deletes", ["invalidate", "new_record"])
def test_a_row_that_returns_is_current_again(shop: Shop, deletes: str) -> None:
    """Deleted and back with the same updated_at: a version of its own, current, behind the time it was away."""
    _history(shop, f"strategy='timestamp', updated_at='at', hard_deletes='{deletes}'")
    for rows in ("(1, 'a'), (2, 'b')", "(1, 'a')", "(1, 'a'), (2, 'b')", "(1, 'a'), (2, 'b')"):
        _take(shop, rows)
    current = "select id, n from demo.s where dbt_valid_to is null order by id"
    assert shop.rows(current) == [(1, "a"), (2, "b")]
    assert shop.rows("select count(*), count(distinct dbt_scd_id) from demo.s where id = 2") == [
        (2, 2) if deletes == "invalidate" else (3, 3)
    ]
    overlapping = (
        "select count(*) from demo.s a join demo.s b on a.id = b.id and a.dbt_scd_id <> b.dbt_scd_id"
        " and a.dbt_valid_from < coalesce(b.dbt_valid_to, timestamp '9999-01-01')"
        " and b.dbt_valid_from < coalesce(a.dbt_valid_to, timestamp '9999-01-01')"
    )
    assert shop.rows(overlapping) == [(0,)]


@pytest.mark.nightly  # by day the unchanged source above
def test_a_snapshot_without_changes_commits_nothing(shop: Shop) -> None:
    """The second of two equal runs leaves the table's newest snapshot, and is no MERGE."""
    _history(shop, "strategy='check', check_cols='all'")
    _take(shop, "(1, 'a'), (2, 'b')")
    before = shop.engine.table("demo.s").facts().snapshot_id
    _take(shop, "(1, 'a'), (2, 'b')")
    assert shop.engine.table("demo.s").facts().snapshot_id == before
    assert "nothing changed" in shop.results()["s"]["message"]
    assert "merge into" not in (shop.folder / "target/run/shop/snapshots/s.sql").read_text()
    _take(shop, "(1, 'a'), (2, 'c')")
    assert shop.rows("select id, n, dbt_valid_to is null from demo.s order by id, dbt_valid_from") == [
        (1, "a", True),
        (2, "b", False),
        (2, "c", True),
    ]
    assert shop.engine.table("demo.s").facts().snapshot_id == before + 1
