"""Names with upper-case letters: found again, and never mixed up with their lower-case twins."""

from __future__ import annotations

from integration_tests.adapter.conftest import Shop


def test_upper_case_names_are_found_again(shop: Shop) -> None:
    """Schema, model and view with capitals: the second run is incremental, and everybody can read them."""
    shop.output["schema"] = "Demo"
    shop.write(
        "models/Orders_V2.sql",
        "{{ config(materialized='incremental', unique_key='Id') }} select 1 as Id"
        "{% if is_incremental() %} union all select max(Id) + 1 from {{ this }} {% endif %}",
    )
    shop.write("models/Latest.sql", "{{ config(materialized='view') }} select * from {{ ref('Orders_V2') }}")
    shop.write("models/m.yml", "models: [{name: Latest, columns: [{name: Id, data_tests: [unique]}]}]")
    shop.dbt("build", "--select", "Orders_V2", "Latest")
    shop.dbt("build", "--select", "Orders_V2", "Latest")
    assert shop.rows("select id from Demo.Latest order by id") == [(1,), (2,)]


def test_names_that_differ_only_in_case_are_not_mixed_up(shop: Shop) -> None:
    """Spark has one place for both: one statement over two such tables is refused, each alone is right."""
    shop.write("models/a.sql", "{{ config(materialized='table', alias='twin') }} select 'low' as v")
    shop.write("models/b.sql", "{{ config(materialized='table', alias='TWIN') }} select 'high' as v")
    shop.write(
        "models/c.sql",
        "{{ config(materialized='table') }} select a.v, b.v as w from {{ ref('a') }} a cross join {{ ref('b') }} b",
    )
    shop.dbt("run", "--select", "a", "b", "c", ok=False)
    assert "TS1527" in shop.log
    assert shop.rows("select v from demo.twin") == [("low",)]
    assert shop.rows("select v from demo.TWIN") == [("high",)]


def test_a_schema_name_with_a_space_is_refused_by_name(shop: Shop) -> None:
    """The message is about the name, not about SQL that the user never wrote."""
    shop.write("models/m.sql", "{{ config(materialized='table', schema='My Schema') }} select 1 as a")
    result = shop.dbt("run", "--select", "m", ok=False)
    assert "TS1401" in f"{shop.log} {result.exception}"
