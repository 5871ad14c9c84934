"""microbatch, delete+insert, seeds and tables touch only the rows that differ, and commit nothing when none does."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop
from tests.doses import case_rows

FEED = """
{{{{ config(materialized='view', event_time='at') }}}}
select id, cast(at as timestamp) as at, v from values {rows} as t(id, at, v)
"""
BATCHED = """
{{{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', begin='2026-01-01',
           batch_size='day', {more}) }}}}
select * from {{{{ ref('feed') }}}}
"""
DAYS = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-08")
FIRST = ["(1, '2026-01-01 10:00', 'a')", "(2, '2026-01-02 10:00', 'b')", "(3, '2026-01-02 11:00', 'c')",
         "(4, '2026-01-04 23:59:59', 'd')"]  # fmt: skip
LATER = [f"({day}, '2026-01-{day:02d} 01:00', 'e')" for day in range(5, 8)]


def newest(shop: Shop, table: str) -> int | None:
    """Id of the newest snapshot."""
    return shop.engine.table(table).facts().snapshot_id


def changes(shop: Shop, table: str, since: int | None) -> list[tuple[str, int, str]]:
    """(kind, id, v) of what came after a snapshot."""
    found = shop.engine.table(table).changes(since=since or 0).to_pylist()
    return sorted((row["_row_kind"], row["id"], row["v"]) for row in found)


def feed(shop: Shop, *rows: str) -> None:
    """What the batches read."""
    shop.write("models/feed.sql", FEED.format(rows=", ".join(rows)))


@pytest.mark.nightly  # by day adapter/test_microbatch_costs.py: random batches
@pytest.mark.parametrize(
    ("more", "updated"),
    case_rows(
        [
            ("concurrent_batches=false", [("+I", 3, "C"), ("-D", 3, "c")]),
            ("concurrent_batches=true", [("+I", 3, "C"), ("-D", 3, "c")]),
            ("concurrent_batches=true, unique_key='id'", [("+U", 3, "C"), ("-U", 3, "c")]),
        ],
        1,
    ),
)
def test_a_microbatch_changes_the_rows_that_differ(
    shop: Shop, more: str, updated: list[tuple[str, int, str]]
) -> None:
    """Empty batches commit nothing, and neither does a second run without news; one row that differs is one change,
    whether batches run one by one or at once, in whatever order they end.
    """
    shop.output["threads"] = 4
    feed(shop, *FIRST, *LATER)
    shop.write("models/m.sql", BATCHED.format(more=more))
    shop.dbt("run", "--select", "feed", "m", *DAYS)
    later = [(day, "e") for day in range(5, 8)]
    assert rows(shop) == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), *later]
    before = newest(shop, "demo.m")
    shop.dbt("run", "--select", "m", *DAYS)
    assert newest(shop, "demo.m") == before
    feed(shop, *FIRST[:2], "(3, '2026-01-02 11:00', 'C')", FIRST[3], *LATER)
    shop.dbt("run", "--select", "feed", "m", *DAYS)
    assert changes(shop, "demo.m", before) == updated
    before = newest(shop, "demo.m")
    feed(shop, FIRST[0], FIRST[3], *LATER)
    shop.dbt("run", "--select", "feed", "m", *DAYS)
    assert changes(shop, "demo.m", before) == [("-D", 2, "b"), ("-D", 3, "C")]
    assert rows(shop) == [(1, "a"), (4, "d"), *later]
    assert shop.engine.table("demo.m").verify() == ()


def rows(shop: Shop) -> list[tuple[object, ...]]:
    """The rows of the batched table."""
    return shop.rows("select id, v from demo.m order by id")


def test_a_microbatch_that_cannot_work_is_refused_before_its_first_batch(shop: Shop) -> None:
    """No interval, or an event_time that is no moment: no table is made."""
    shop.write(
        "models/m.sql",
        "{{ config(materialized='tablestore', incremental_strategy='microbatch') }} select 1 as id",
    )
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1829" in shop.log
    feed(shop, *FIRST)
    shop.write("models/m.sql", BATCHED.format(more="").replace("event_time='at'", "event_time='v'"))
    shop.dbt("run", "--select", "feed", "m", *DAYS, ok=False)
    assert "TS1886" in shop.log
    assert "m" not in shop.tables()


def test_delete_insert_replaces_keys_wherever_they_lie(shop: Shop) -> None:
    """unique_key='id', partition_by='day' without a primary key: a row whose day changes moves, equal rows stay."""
    model = (
        "{{{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id',"
        " partition_by='day') }}}} select * from values {rows} as t(id, day, v)"
    )
    shop.write("models/m.sql", model.format(rows="(1, 'mon', 'a'), (2, 'mon', 'b'), (3, 'tue', 'c')"))
    shop.dbt("run", "--select", "m")
    shop.write("models/m.sql", model.format(rows="(1, 'tue', 'a'), (2, 'mon', 'b'), (4, 'wed', 'd')"))
    shop.dbt("run", "--select", "m")
    assert shop.rows("select id, day, v from demo.m order by id") == [
        (1, "tue", "a"),
        (2, "mon", "b"),
        (3, "tue", "c"),
        (4, "wed", "d"),
    ]
    assert changes(shop, "demo.m", 1) == [("+I", 1, "a"), ("+I", 4, "d"), ("-D", 1, "a")]
    answer = shop.response("m")
    assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_deleted"]) == (2, 0, 1)
    shop.dbt("run", "--select", "m")
    assert newest(shop, "demo.m") == 2


def test_key_that_changes_its_partition_moves(shop: Shop) -> None:
    """unique_key='id', partition_by='day': the next run's row of another day takes the place of the first."""
    shop.write("models/m.sql", _KEYED_BY_DAY.format(key="'id'"))
    shop.dbt("run", "--select", "m")
    shop.write("models/m.sql", _KEYED_BY_DAY.format(key="'id'").replace("'mon'", "'tue'"))
    shop.dbt("run", "--select", "m")
    assert shop.rows("select id, day, v from demo.m") == [(1, "tue", "a")]


_KEYED_BY_DAY = (
    "{{{{ config(materialized='incremental', unique_key={key}, partition_by='day') }}}}"
    " select 1 as id, 'mon' as day, 'a' as v"
)


def test_seeds_and_tables_without_a_key_that_did_not_change_commit_nothing(shop: Shop) -> None:
    """The same file again, the same query again: the same snapshot; one changed row is one row in and one out."""
    shop.write(
        "models/m.sql",
        "{{ config(materialized='table') }} select order_id, status from {{ ref('raw_orders') }}",
    )
    shop.dbt("build", "--select", "raw_orders", "m")
    before = (newest(shop, "demo.raw_orders"), newest(shop, "demo.m"))
    shop.dbt("build", "--select", "raw_orders", "m")
    assert (newest(shop, "demo.raw_orders"), newest(shop, "demo.m")) == before
    shop.orders("1,O'Brien,10.50,sent,2026-01-01 10:00:00")
    shop.dbt("seed")
    shop.orders("1,O'Brien,10.50,paid,2026-01-01 10:00:00", "2,Anna,1.00,paid,2026-01-01 10:00:00")
    shop.dbt("seed")
    shop.orders("1,O'Brien,10.50,paid,2026-01-01 10:00:00", "2,Anna,2.00,paid,2026-01-01 10:00:00")
    shop.dbt("seed")
    answer = shop.response("raw_orders")
    assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_deleted"]) == (1, 0, 1)
