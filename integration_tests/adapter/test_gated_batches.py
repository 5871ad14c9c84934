"""Microbatch with data tests: one staged snapshot for all batches, also of several runs; green publishes it at once."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop

FEED = """
{{{{ config(materialized='view', event_time='at') }}}}
select id, cast(at as timestamp) as at, v from values {rows} as t(id, at, v)
"""
BATCHED = """
{{{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', begin='2026-01-01',
           batch_size='day', {more}) }}}}
select id, at, case when v = 'broken' then raise_error('no such value') else v end as v from {{{{ ref('feed') }}}}
"""
TESTS = """
models:
  - name: m
    columns:
      - name: v
        data_tests: [{accepted_values: {arguments: {values: [a, b, c]}}}]
"""
ALL = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-07")
SECOND = ("--event-time-start", "2026-01-02", "--event-time-end", "2026-01-03")


def feed(shop: Shop, **values: str) -> list[tuple[int, str]]:
    """Six days of one row each, all `a` but those named d1…d6; day 5 has none."""
    days = [(day, values.get(f"d{day}", "a")) for day in (1, 2, 3, 4, 6)]
    rows = ", ".join(f"({day}, '2026-01-{day:02d} 10:00', '{v}')" for day, v in days)
    shop.write("models/feed.sql", FEED.format(rows=rows))
    return days


def project(shop: Shop, more: str) -> None:
    """The model and its test."""
    shop.output["threads"] = 4
    shop.write("models/m.sql", BATCHED.format(more=more))
    shop.write("models/m.yml", TESTS)


def rows(shop: Shop) -> list[tuple[object, ...]]:
    """What readers see."""
    return shop.rows("select id, v from demo.m order by id")


def snapshots(shop: Shop) -> list[int]:
    """Ids of the table's snapshots."""
    return [one.id for one in shop.engine.table("demo.m").snapshots()]


def test_all_batches_are_published_together_by_green_tests(shop: Shop) -> None:
    """A red test holds every batch back; `dbt run` of one batch joins those that wait instead of dropping them; green
    tests publish all as one snapshot; the next build is one snapshot with what differs.
    """
    project(shop, "concurrent_batches=true")
    feed(shop, d2="bad")
    shop.dbt("build", "--select", "feed", "m", *ALL, ok=False)
    (staged,) = shop.engine.staged("demo")
    assert snapshots(shop) == []
    seen = shop.rows(f"select id, v from `demo__at_branch_{staged.name}`.m order by id")
    assert seen == [(1, "a"), (2, "bad"), (3, "a"), (4, "a"), (6, "a")]
    good = feed(shop)
    shop.dbt("run", "--select", "feed", "m", *SECOND)
    assert "those of this run join them" in shop.log
    assert (len(shop.engine.staged("demo")), snapshots(shop)) == (1, [])
    shop.dbt("test", "--select", "m")
    assert (rows(shop), snapshots(shop), shop.engine.staged("demo")) == (good, [1], ())
    changed = feed(shop, d3="b", d6="c")
    shop.dbt("build", "--select", "feed", "m", *ALL)
    assert (rows(shop), snapshots(shop), shop.engine.staged("demo")) == (changed, [1, 2], ())
    found = shop.engine.table("demo.m").changes(since=1).to_pylist()
    kinds = sorted((one["_row_kind"], one["id"], one["v"]) for one in found)
    assert kinds == [("+I", 3, "b"), ("+I", 6, "c"), ("-D", 3, "a"), ("-D", 6, "a")]
    assert shop.engine.table("demo.m").verify() == ()


def test_batches_that_failed_are_retried_into_the_same_stage(shop: Shop) -> None:
    """One batch fails, its tests are skipped, the others wait; `dbt retry` adds it, tests and publishes all."""
    project(shop, "concurrent_batches=true")
    feed(shop, d3="broken")
    shop.dbt("build", "--select", "feed", "m", *ALL, ok=False)
    assert snapshots(shop) == []
    (staged,) = shop.engine.staged("demo")
    good = feed(shop)
    shop.dbt("run", "--select", "feed", "--target-path", "aside")
    shop.dbt("retry")
    assert f"batches of an earlier run wait in staged snapshot {staged.name}" in shop.log
    assert (rows(shop), snapshots(shop), shop.engine.staged("demo")) == (good, [1], ())


@pytest.mark.nightly  # by day tests/laws/test_gate_batch_laws.py; test_verdicts.py: a lost claim
def test_batches_are_planned_again_after_somebody_elses_commit(shop: Shop) -> None:
    """The table gets other rows before the last test: all batches of this run, of a table with a key,
    are staged and tested once more.
    """
    project(shop, "concurrent_batches=false, unique_key='id'")
    feed(shop)
    shop.dbt("build", "--select", "feed", "m", *ALL)
    changed = feed(shop, d1="b", d4="c")
    done: list[bool] = []

    def somebody(line: str) -> None:
        if "START test" in line and not done:
            done.append(True)
            shop.engine.sql("insert into demo.m values (99, timestamp '2026-02-01 00:00:00', 'a')")

    shop.on_line = somebody
    shop.dbt("build", "--select", "feed", "m", *ALL)
    assert "planned and tested again" in shop.log
    assert (rows(shop), snapshots(shop)) == ([*changed, (99, "a")], [1, 2, 3])
