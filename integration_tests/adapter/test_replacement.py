"""One relation in the place of another: other keys, other options, a view for a table; no table is lost for it."""

from __future__ import annotations

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
