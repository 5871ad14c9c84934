"""One relation in the place of another: other keys, other options, a view for a table; no table is lost for it."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop


def test_a_table_of_the_users_is_never_the_place_to_grow(shop: Shop) -> None:
    """m changes its key while a table m__ts_new of somebody else lies beside: both have their rows after it."""
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 7 as id")
    shop.dbt("run", "--select", "m")
    shop.engine.sql("create table demo.m__ts_new (note string)")
    shop.engine.sql("insert into demo.m__ts_new values ('mine')")
    shop.write("models/m.sql", "{{ config(materialized='table', primary_key='id') }} select 8 as id")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m__ts_new") == [("mine",)]
    assert shop.rows("select * from demo.m") == [(8,)]


def test_a_view_of_itself_does_not_cost_the_table(shop: Shop) -> None:
    """A model that reads {{ this }} becomes a view: the table it reads would be dropped for a view of nothing."""
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 7 as id")
    shop.dbt("run", "--select", "m")
    for text in ("{{ this }}", "Demo.M", "(select * from {{ ref('over_m') }})"):
        if "over_m" in text:
            shop.engine.create_view("demo.over_m", "select * from demo.m")
            text = "(select * from demo.over_m)"
        shop.write("models/m.sql", f"{{{{ config(materialized='view') }}}} select * from {text}")
        shop.dbt("run", "--select", "m", ok=False)
        assert "TS1880" in shop.log
        assert shop.rows("select * from demo.m") == [(7,)]


def test_a_full_refresh_changes_every_option(shop: Shop) -> None:
    """Buckets, sequence field and changelog producer follow the model; without --full-refresh they are refused."""
    text = "{{{{ config(materialized='tablestore', primary_key='id', {options}) }}}} select 1 as id, 2 as v, 3 as w"
    shop.write("models/m.sql", text.format(options="buckets=2, sequence_field='v'"))
    shop.dbt("run", "--select", "m")
    shop.write(
        "models/m.sql", text.format(options="buckets=3, sequence_field='w', changelog_producer='none'")
    )
    shop.dbt("run", "--select", "m", ok=False)
    assert "--full-refresh" in shop.log
    shop.dbt("run", "--select", "m", "--full-refresh")
    options = shop.engine.table("demo.m").schema.options
    assert (options["bucket"], options["sequence.field"], options["changelog-producer"]) == ("3", "w", "none")
    assert shop.rows("select * from demo.m") == [(1, 2, 3)]
    shop.write("models/m.sql", text.format(options="buckets=1").replace("'tablestore'", "'table'"))
    shop.dbt("run", "--select", "m")
    options = shop.engine.table("demo.m").schema.options
    assert options["bucket"] == "1"
    assert "sequence.field" not in options
    assert shop.tables() == {"m"}


TESTED = "models: [{name: m, columns: [{name: id, data_tests: [unique]}]}]"


def test_a_tested_table_takes_the_place_of_a_view(shop: Shop) -> None:
    """Red: readers keep the view, and `dbt test` of another process says why. Green: the table has the name."""
    shop.write("models/m.sql", "{{ config(materialized='view') }} select 1 as id")
    shop.write("models/m.yml", TESTED)
    shop.write(
        "models/child.sql", "{{ config(materialized='table') }} select id + 10 as id from {{ ref('m') }}"
    )
    shop.dbt("build", "--select", "m", "child")
    table = "{{ config(materialized='table') }} select explode(array(2, %s)) as id"
    shop.write("models/m.sql", table % "2")
    shop.dbt("build", "--select", "m", "child", ok=False)
    assert shop.rows("select * from demo.m") == [(1,)]
    assert shop.response("m")["published"] is False
    assert shop.rows("select id from demo.child") == [(11,)]
    (waiting,) = shop.engine.staged("demo")
    assert shop.rows(f"select id from demo__at_branch_{waiting.name}.m") == [(2,), (2,)]
    assert "m" in shop.tables()
    shop.dbt("test", "--select", "m", ok=False)
    assert shop.rows("select * from demo.m") == [(1,)]
    shop.write("models/m.sql", table % "3")
    shop.dbt("build", "--select", "m", "child")
    assert sorted(shop.rows("select id from demo.m")) == [(2,), (3,)]
    assert sorted(shop.rows("select id from demo.child")) == [(12,), (13,)]
    assert shop.response("m")["published"] is True
    assert shop.engine.find_view("demo.m") is None
    assert shop.engine.staged("demo") == ()
    shop.dbt("build", "--select", "m", "child")


@pytest.mark.nightly  # by day a table that takes the place of a view, above
def test_a_tested_table_changes_its_key(shop: Shop) -> None:
    """While its test is red the old key and rows stay; then a later `dbt test` lets the new one in."""
    text = "{{{{ config(materialized='incremental', primary_key='{key}') }}}} select 7 as id, 'a' as name"
    shop.write("models/m.yml", TESTED.replace("unique", "{accepted_values: {arguments: {values: [7]}}}"))
    shop.write("tests/allowed.sql", "select * from {{ ref('m') }} where {{ var('red', 'false') }}")
    shop.write("models/m.sql", text.format(key="id"))
    shop.dbt("build", "--select", "m")
    shop.write("models/m.sql", text.format(key="name").replace("7", "{{ var('id', 7) }}"))
    shop.dbt("build", "--select", "m", "--full-refresh", "--vars", "{red: 'true'}", ok=False)
    assert shop.engine.table("demo.m").facts().primary_key == ("id",)
    shop.dbt("test", "--select", "m")
    assert shop.engine.table("demo.m").facts().primary_key == ("name",)
    assert shop.rows("select * from demo.m") == [(7, "a")]
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(7, "a")]


def test_a_run_that_publishes_at_once_drops_who_waits_for_the_place(shop: Shop) -> None:
    """A red table waits beside the view; `dbt run` makes the table at once and says what it dropped."""
    shop.write("models/m.sql", "{{ config(materialized='view') }} select 1 as id")
    shop.write("models/m.yml", TESTED)
    shop.dbt("build", "--select", "m")
    shop.write("models/m.sql", "{{ config(materialized='table') }} select explode(array(2, 2)) as id")
    shop.dbt("build", "--select", "m", ok=False)
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(2,), (2,)]
    assert shop.engine.staged("demo") == ()
    assert "is dropped: this run publishes at once" in shop.log
