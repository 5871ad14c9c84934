"""dbt snapshots: what the conformance classes that run do not look at."""

from __future__ import annotations

from integration_tests.adapter.conftest import Shop


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
