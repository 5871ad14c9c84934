"""dbt's unit tests of what a write leaves: the table, and the changelog that its topic would get."""

from __future__ import annotations

import textwrap

import pytest

from integration_tests.adapter.conftest import Shop

MODEL = """{{ config(materialized='incremental', unique_key='id', %s) }}
select id, amount, gone from {{ ref('feed') }}
{%% if is_incremental() %%} where id > 0 {%% endif %%}
"""
FEED = "select 1 as id, cast(1.5 as decimal(10,2)) as amount, false as gone"
TEST = """
unit_tests:
  - name: the_test
    model: totals
    config: {{meta: {{tablestore: {{result: {result}}}}}}}
    given:
      - input: ref('feed')
        rows: [{feed}]
{prior}
    expect:
      rows: [{expect}]
"""
PRIOR = """      - input: this
        rows: [{id: 1, amount: 1}, {id: 2, amount: 2}, {id: 3, amount: 3}]"""


@pytest.fixture
def totals(shop: Shop) -> Shop:
    """A keyed model whose rows may mean deletes."""
    shop.write("models/feed.sql", FEED)
    shop.write("models/totals.sql", MODEL % "delete_when='gone'")
    shop.dbt("run", "--select", "feed")
    return shop


def check(shop: Shop, *, ok: bool, expect: str, result: str = "table", feed: str, prior: str = PRIOR) -> None:
    """Run the unit test."""
    text = TEST.format(result=result, feed=feed, prior=prior, expect=expect)
    shop.write("models/unit.yml", textwrap.dedent(text))
    shop.dbt("test", "--select", "totals", ok=ok)
    assert not any(name.startswith("dbt_unit_test_") for name in shop.engine.databases())


FEED_ROWS = (
    "{id: 2, amount: 20, gone: false}, {id: 3, amount: 30, gone: true}, {id: 4, amount: 4, gone: false}"
)


def test_the_table_after_the_write(totals: Shop) -> None:
    """Rows that were there, an update, a delete and an insert; another expectation fails and shows the difference."""
    after = "{id: 1, amount: 1}, {id: 2, amount: 20}, {id: 4, amount: 4}"
    check(totals, ok=True, feed=FEED_ROWS, expect=after)
    check(totals, ok=False, feed=FEED_ROWS, expect="{id: 2, amount: 20}, {id: 4, amount: 4}")
    assert "differs from" in totals.log
    assert "totals" not in totals.tables()


@pytest.mark.nightly  # by day the table after the write, and a write that is broken
def test_the_changelog_of_the_write(totals: Shop) -> None:
    """What a consumer of the topic gets."""
    emitted = (
        "{_row_kind: '-U', id: 2, amount: 2}, {_row_kind: '+U', id: 2, amount: 20}, "
        "{_row_kind: '-D', id: 3, amount: 3}, {_row_kind: '+I', id: 4, amount: 4}"
    )
    check(totals, ok=True, result="changelog", feed=FEED_ROWS, expect=emitted)
    check(totals, ok=False, result="changelog", feed=FEED_ROWS, expect=emitted.replace("-D", "-U"))
    same = "{id: 2, amount: 2, gone: false}"
    prior = PRIOR.replace("amount: 2}", "amount: 2, gone: false}")
    both = "{_row_kind: '-U', id: 2, amount: 2}, {_row_kind: '+U', id: 2, amount: 2}"
    check(totals, ok=True, result="changelog", feed=same, prior=prior, expect=both)  # as the topic gets it


def test_a_first_run(totals: Shop) -> None:
    """Without rows of `this` there is no table yet."""
    first = "{id: 1, amount: 9, gone: false}, {id: 2, amount: 9, gone: true}"
    check(totals, ok=True, feed=first, prior="", expect="{id: 1, amount: 9}")
    check(totals, ok=False, feed=f"{first}, {first}", prior="", expect="{id: 1, amount: 9}")
    assert "TS1601" in totals.log
    check(
        totals,
        ok=True,
        feed=first,
        prior="",
        result="changelog",
        expect="{_row_kind: '+I', id: 1, amount: 9}",
    )


@pytest.mark.nightly  # by day the table after the write
def test_an_append_and_a_partition(totals: Shop) -> None:
    """The write is the model's own: rows are added, or partitions replaced."""
    totals.write(
        "models/totals.sql",
        "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='id') }} "
        "select id, amount, gone from {{ ref('feed') }}",
    )
    rows = "{id: 1, amount: 7}, {id: 1, amount: 8}"
    check(totals, ok=True, feed=rows, expect=f"{rows}, {{id: 2, amount: 2}}, {{id: 3, amount: 3}}")
    check(
        totals,
        ok=True,
        result="changelog",
        feed=rows,
        expect="{_row_kind: '-D', id: 1, amount: 1}, {_row_kind: '+I', id: 1, amount: 7}, "
        "{_row_kind: '+I', id: 1, amount: 8}",
    )


def test_a_broken_write_fails_the_test(totals: Shop) -> None:
    """A key that comes twice is refused as in a run; nothing is left behind."""
    check(totals, ok=False, feed="{id: 2, amount: 1}, {id: 2, amount: 3}", expect="{id: 1}")
    assert "TS1601" in totals.log


@pytest.mark.nightly  # by day the table after the write, and a first run
def test_a_unit_test_is_incremental_when_it_gives_rows_of_this(totals: Shop) -> None:
    """Whatever the warehouse has; a unit test of the query follows the same rule, and an override wins."""
    feed = "{id: 0, amount: 1}, {id: 5, amount: 5}"
    check(totals, ok=True, feed=feed, expect="{id: 5}", prior="      - {input: this, rows: []}")
    check(totals, ok=True, feed=feed, expect="{id: 0}, {id: 5}", prior="")
    totals.dbt("run", "--select", "totals")
    check(totals, ok=True, feed=feed, expect="{id: 0}, {id: 5}", prior="")
    check(totals, ok=True, feed=feed, expect="{id: 5}", prior=PRIOR, result="query")
    text = TEST.format(result="table", feed=feed, prior="", expect="{id: 5}")
    changed = text.replace("    given:", "    overrides: {macros: {is_incremental: true}}\n    given:")
    totals.write("models/unit.yml", textwrap.dedent(changed))
    totals.dbt("test", "--select", "totals")


@pytest.mark.parametrize(
    ("meta", "code"),
    [("{result: tabel}", "TS1811"), ("{results: table}", "TS1873"), ("table", "TS1811")],
)
def test_a_wrong_word_is_refused(totals: Shop, meta: str, code: str) -> None:
    """Before anything runs."""
    text = TEST.format(result="table", feed="{id: 1}", prior="", expect="{id: 1}")
    totals.write("models/unit.yml", textwrap.dedent(text.replace("{result: table}", meta)))
    totals.dbt("test", "--select", "totals", ok=False)
    assert code in totals.log


def test_a_view_has_no_table(totals: Shop) -> None:
    """Its query can be tested."""
    totals.write(
        "models/totals.sql",
        "{{ config(materialized='view') }} select id, amount, gone from {{ ref('feed') }}",
    )
    check(totals, ok=False, feed="{id: 1}", prior="", expect="{id: 1}")
    assert "TS1869" in totals.log
    check(totals, ok=True, feed="{id: 1}", prior="", expect="{id: 1}", result="query")
