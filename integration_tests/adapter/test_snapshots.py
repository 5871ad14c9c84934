"""dbt snapshots: what the conformance classes that run do not look at."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop


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
    ("strategy", "deletes", "jobs_max"),
    [
        ("strategy='timestamp', updated_at='at'", "ignore", 4),
        ("strategy='check', check_cols='all'", "invalidate", 4),
        ("strategy='check', check_cols='all'", "new_record", 5),
        pytest.param("strategy='check', check_cols='all'", "ignore", 4, marks=pytest.mark.nightly),
        pytest.param("strategy='timestamp', updated_at='at'", "invalidate", 5, marks=pytest.mark.nightly),
        pytest.param("strategy='timestamp', updated_at='at'", "new_record", 6, marks=pytest.mark.nightly),
    ],
)
def test_a_run_over_an_unchanged_source_is_one_query(
    shop: Shop, strategy: str, deletes: str, jobs_max: int
) -> None:
    """No commit, no statement that changes rows, no second query; jobs are the exchanges of that query's joins."""
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
        assert _jobs(shop) - jobs <= jobs_max
    assert shop.response("s")["rows_affected"] == 0
    assert "merge into" not in shop.log.lower()


SOURCE = "{{{{ config(materialized='table') }}}} select id, n, timestamp '{at}' as at from values {rows} as t(id, n)"


def _history(shop: Shop, config: str) -> None:
    shop.write(
        "snapshots/s.sql",
        f"{{% snapshot s %}} {{{{ config(unique_key='id', {config}) }}}}"
        " select * from {{ ref('src') }} {% endsnapshot %}",
    )


def _take(shop: Shop, rows: str, at: str = "2026-01-01 10:00:00") -> None:
    shop.write("models/src.sql", SOURCE.format(at=at, rows=rows))
    shop.dbt("build", "--select", "src", "s")


@pytest.mark.parametrize("deletes", ["invalidate", pytest.param("new_record", marks=pytest.mark.nightly)])
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
