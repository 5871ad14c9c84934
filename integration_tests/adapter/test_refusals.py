"""A run that fails leaves what was there: the old table, the view, or nothing."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop

_TWICE = "select * from values (1, 'a'), (1, 'b') as t(id, v)"
_CONTRACT = (
    "models: [{{name: m, config: {{contract: {{enforced: true}}}}, columns: ["
    "{{name: id, data_type: int, constraints: [{}]}}]}}]"
)


def test_a_key_that_does_not_fit_the_rows_leaves_the_old_table(shop: Shop) -> None:
    """The table with another key takes the old one's place only when it is complete."""
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 7 as id, 'z' as v")
    shop.dbt("run", "--select", "m")
    shop.write("models/m.sql", f"{{{{ config(materialized='table', primary_key='id') }}}} {_TWICE}")
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1601" in shop.log
    assert shop.rows("select * from demo.m") == [(7, "z")]
    assert shop.tables() == {"m"}
    shop.write(
        "models/m.sql",
        "{{ config(materialized='table', primary_key='id') }} select id + 1 as id, v from {{ this }}",
    )
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(8, "z")]
    assert shop.engine.table("demo.m").facts().primary_key == ("id",)
    assert shop.tables() == {"m"}


def test_a_view_stays_until_its_table_is_complete(shop: Shop) -> None:
    """A view becomes a table, and a table a view, only when the new one can be made."""
    shop.write("models/m.sql", "{{ config(materialized='view') }} select 7 as id, 'z' as v")
    shop.dbt("run", "--select", "m")
    shop.write("models/m.sql", f"{{{{ config(materialized='table', primary_key='id') }}}} {_TWICE}")
    shop.dbt("run", "--select", "m", ok=False)
    assert shop.rows("select * from demo.m") == [(7, "z")]
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 8 as id, 'y' as v")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(8, "y")]
    shop.write("models/m.sql", "{{ config(materialized='view') }} select nothing_like_it from {{ ref('n') }}")
    shop.write("models/n.sql", "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run", "--select", "m", "n", ok=False)
    assert shop.rows("select * from demo.m") == [(8, "y")]


def test_a_first_run_that_fails_leaves_no_table(shop: Shop) -> None:
    """Else the next run would be an incremental one that finds nothing newer than NULL."""
    text = (
        "{{{{ config(materialized='tablestore', primary_key='id') }}}} select * from ({}) as t"
        "{{% if is_incremental() %}} where id > (select max(id) from {{{{ this }}}}) {{% endif %}}"
    )
    shop.write("models/m.sql", text.format(_TWICE))
    shop.dbt("run", "--select", "m", ok=False)
    assert shop.tables() == set()
    shop.write("models/m.sql", text.format("select 1 as id, 'a' as v"))
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(1, "a")]


def test_a_table_without_a_snapshot_is_filled_whole(shop: Shop) -> None:
    """A run that died between making the table and its first commit left it; is_incremental() is false for it."""
    shop.write(
        "models/m.sql",
        "{{ config(materialized='incremental', unique_key='id') }} select 1 as id"
        "{% if is_incremental() %} where 1 > (select max(id) from {{ this }}) {% endif %}",
    )
    shop.engine.create_database("demo")
    shop.engine.sql("create table demo.m (id int not null) tblproperties ('primary-key' = 'id')")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(1,)]


def test_a_table_that_waits_for_its_tests_is_not_read_as_empty(shop: Shop) -> None:
    """A model built in another process from a table that was never published says so, and builds nothing."""
    shop.orders("2,Anna,-20.00,placed,2026-01-02 11:00:00")
    shop.dbt("build", ok=False)
    shop.dbt("run", "--select", "daily", ok=False)
    assert "TS1417" in shop.log
    assert "daily" not in shop.tables()


@pytest.mark.parametrize(
    ("constraint", "code"),
    [("{type: check, expression: 'idd > 1'}", "TS1505"), ("{type: custom, expression: 'mask x'}", "TS1834")],
)
def test_a_constraint_that_means_nothing_is_refused(shop: Shop, constraint: str, code: str) -> None:
    """A check that does not parse has an error of ours, and a custom constraint is never ignored silently."""
    shop.write("models/m.yml", _CONTRACT.format(constraint))
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run", "--select", "m", ok=False)
    assert code in shop.log
    assert "'Project" not in shop.log
    assert "demo" not in shop.engine.databases() or shop.tables() == set()


def test_a_struct_without_fields_is_refused(shop: Shop) -> None:
    """Parquet cannot hold it; the message names the type."""
    shop.write("models/m.sql", "{{ config(materialized='table') }} select struct() as nothing")
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1138" in shop.log


def test_a_hook_does_not_write_past_the_tests(shop: Shop) -> None:
    """DML on {{ this }} after a staged build would change the published rows: it is refused, they stay."""
    config = "materialized='table', post_hook='insert into {{ this }} select 99 as id'"
    shop.write("models/m.sql", f"{{{{ config({config}) }}}} select 1 as id")
    shop.write("models/m.yml", "models: [{name: m, columns: [{name: id, data_tests: [unique]}]}]")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select id from demo.m order by id") == [(1,), (99,)]
    shop.dbt("build", "--select", "m", ok=False)
    assert "TS1528" in shop.log
    assert shop.rows("select id from demo.m order by id") == [(1,), (99,)]
