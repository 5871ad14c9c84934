"""Models and seeds end to end: exact values, counts, later runs, full refresh, schema changes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from integration_tests.adapter.conftest import Shop


def test_the_shop_builds_and_reports(shop: Shop) -> None:
    """dbt build makes every table in one snapshot each, with counts in run_results.json and in the log line."""
    shop.dbt("build")
    assert shop.rows("select order_id, customer, amount from demo.orders order by order_id") == [
        (1, "O'Brien", Decimal("10.50")),
        (2, "Müller, Anna", Decimal("20.00")),
        (9007199254740993, None, Decimal("7.25")),
    ]
    answer = shop.response("orders")
    assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_deleted"]) == (3, 0, 0)
    assert "(+3 ~0 -0)" in shop.log
    assert "using tablestore" in (shop.folder / "target/run/shop/models/orders.sql").read_text()


def test_later_runs_upsert_update_and_delete(shop: Shop) -> None:
    """A CDC batch: a change, a cancellation (delete_when), a new row; the rest stays."""
    shop.dbt("build")
    shop.orders(
        "1,O'Brien,11.00,paid,2026-01-02 10:00:00",
        "2,Anna,20.00,cancelled,2026-01-02 11:00:00",
        "3,New,5.00,placed,2026-01-02 12:00:00",
    )
    shop.dbt("build")
    assert shop.rows("select order_id, status from demo.orders order by order_id") == [
        (1, "paid"),
        (3, "placed"),
        (9007199254740993, "placed"),
    ]
    answer = shop.response("orders")
    assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_deleted"]) == (1, 1, 1)


def test_an_older_row_never_replaces_a_newer_one(shop: Shop) -> None:
    """sequence_field decides, not the order of runs."""
    shop.dbt("build")
    shop.orders("1,late,99.00,placed,2025-12-31 10:00:00")
    shop.dbt("build")
    assert shop.rows("select amount from demo.orders where order_id = 1") == [(Decimal("10.50"),)]


def test_full_refresh_is_one_snapshot_with_the_difference(shop: Shop) -> None:
    """History stays readable, and only what differs is counted."""
    shop.dbt("build")
    before = shop.engine.table("demo.orders").facts().snapshot_id
    shop.orders("1,O'Brien,10.50,placed,2026-01-01 10:00:00", "2,Anna,21.00,placed,2026-01-01 11:00:00")
    shop.dbt("build", "--full-refresh")
    answer = shop.response("orders")
    assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_deleted"]) == (0, 1, 1)
    assert shop.rows(f"select count(*) from demo.orders version as of {before}") == [(3,)]
    assert shop.rows("select count(*) from demo.orders") == [(2,)]


INCREMENTAL = """
{{{{ config(materialized='incremental', unique_key='id', on_schema_change='{change}') }}}}
{{% if is_incremental() %}} select 2 as id, 'x' as added {{% else %}} select 1 as id, 'old' as gone {{% endif %}}
"""


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ("append_new_columns", [(1, "old", None), (2, None, "x")]),
        ("sync_all_columns", [(1, None), (2, "x")]),
    ],
)
def test_on_schema_change_keeps_the_rows(shop: Shop, change: str, rows: list[tuple[object, ...]]) -> None:
    """Columns and rows change in one run; what is absent is NULL."""
    shop.write("models/m.sql", INCREMENTAL.format(change=change))
    shop.dbt("run", "--select", "m")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m order by id") == rows


@pytest.mark.parametrize(("change", "code"), [("fail", "TS1827"), ("ignore", "TS1828")])
def test_on_schema_change_refusals_leave_the_table(shop: Shop, change: str, code: str) -> None:
    """fail, and a missing column under ignore: an error, and the table is as it was."""
    shop.write("models/m.sql", INCREMENTAL.format(change=change))
    shop.dbt("run", "--select", "m")
    shop.dbt("run", "--select", "m", ok=False)
    assert code in shop.log
    assert shop.rows("select * from demo.m") == [(1, "old")]


NESTED = """
{{{{ config(materialized='incremental', unique_key='id', on_schema_change='{change}') }}}}
select {{% if is_incremental() %}} 2 as id, {later} as s
{{% else %}} 1 as id, named_struct('a', 1, 'b', 'x') as s {{% endif %}}
"""
WIDER, NARROWER = "named_struct('c', true, 'b', 'y', 'a', 2)", "named_struct('a', 2)"


@pytest.mark.parametrize(
    ("change", "later", "rows"),
    [
        ("append_new_columns", WIDER, [(1, 1, "x", None), (2, 2, "y", True)]),
        ("ignore", WIDER, [(1, 1, "x"), (2, 2, "y")]),
    ],
)
def test_on_schema_change_holds_for_fields_of_structs(
    shop: Shop, change: str, later: str, rows: list[tuple[object, ...]]
) -> None:
    """A new field is added or dropped as a new column is, and fields are matched by name, not by place."""
    shop.write("models/m.sql", NESTED.format(change=change, later=later))
    shop.dbt("run", "--select", "m")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select id, s.* from demo.m order by id") == rows


def test_a_missing_field_of_a_struct_leaves_the_table(shop: Shop) -> None:
    """Under ignore, as a missing column does."""
    shop.write("models/m.sql", NESTED.format(change="ignore", later=NARROWER))
    shop.dbt("run", "--select", "m")
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1063" in shop.log
    assert "s.b" in shop.log
    assert shop.rows("select id, s.* from demo.m") == [(1, 1, "x")]


def test_insert_overwrite_replaces_the_partitions_it_delivers(shop: Shop) -> None:
    """Other partitions stay."""
    shop.write(
        "models/m.sql",
        "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='p') }}"
        "{% if is_incremental() %} select 9 as v, 'b' as p"
        "{% else %} select * from values (1, 'a'), (2, 'b'), (3, 'b') as t(v, p) {% endif %}",
    )
    shop.dbt("run", "--select", "m")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select v, p from demo.m order by v") == [(1, "a"), (9, "b")]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("(1, 'a'), (null, 'b')", "TS16"),
        ("(1, 'a'), (1, 'b')", "TS16"),
    ],
)
def test_bad_rows_change_nothing(shop: Shop, rows: str, text: str) -> None:
    """A NULL key, or two rows of one key that nothing orders: refused, and the table stays."""
    shop.write(
        "models/m.sql", "{{ config(materialized='tablestore', primary_key='id') }} select 7 as id, 'z' as v"
    )
    shop.dbt("run", "--select", "m")
    shop.write(
        "models/m.sql",
        f"{{{{ config(materialized='tablestore', primary_key='id') }}}} select * from values {rows} as t(id, v)",
    )
    shop.dbt("run", "--select", "m", ok=False)
    assert text in shop.log
    assert shop.rows("select * from demo.m") == [(7, "z")]


def test_duplicates_last_accepts_two_rows_of_one_key(shop: Shop) -> None:
    """The explicit choice."""
    shop.write(
        "models/m.sql",
        "{{ config(materialized='tablestore', primary_key='id', duplicates='last') }}"
        " select * from values (1, 'a'), (1, 'b') as t(id, v)",
    )
    shop.dbt("run", "--select", "m")
    assert len(shop.rows("select * from demo.m")) == 1


def test_a_contract_is_enforced_by_the_write(shop: Shop) -> None:
    """check: the row is refused before anything is committed."""
    shop.write(
        "models/m.yml",
        "models: [{name: m, config: {contract: {enforced: true}}, columns: ["
        "{name: id, data_type: int, constraints: [{type: check, expression: 'id > 0'}]}]}]",
    )
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run", "--select", "m")
    shop.write("models/m.sql", "{{ config(materialized='table') }} select -1 as id")
    shop.dbt("run", "--select", "m", ok=False)
    assert shop.rows("select id from demo.m") == [(1,)]


def test_wrong_config_stops_before_anything_is_written(shop: Shop) -> None:
    """The error stands in the log with its code, and there is no table."""
    shop.write("models/m.sql", "{{ config(materialized='tablestore', primarykey='id') }} select 1 as id")
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1810" in shop.log
    assert "demo" not in shop.engine.databases() or shop.tables() == set()


def test_docs_show_facts_of_the_snapshot(shop: Shop) -> None:
    """Snapshot, rows and files stand in the catalog; no owner, no secret."""
    shop.dbt("build")
    shop.dbt("docs", "generate")
    catalog = (shop.folder / "target/catalog.json").read_text()
    assert '"snapshot_id"' in catalog
    assert '"rows"' in catalog


def test_show_and_run_operation_work_without_models(shop: Shop) -> None:
    """dbt show reads what an earlier process built."""
    shop.dbt("build")
    result = shop.dbt("show", "--inline", "select count(*) as n from {{ ref('orders') }}")
    assert result.success


def test_secrets_of_the_profile_reach_no_file(shop: Shop) -> None:
    """Neither artifacts nor logs nor the warehouse hold what stands under `log:`."""
    shop.keeps_manifest = True
    shop.output["log"] = {"kafka.sasl.password": "hunter2-secret"}
    shop.dbt("build")
    shop.dbt("docs", "generate")
    for path in shop.folder.rglob("*"):
        if path.is_file() and path.name != "profiles.yml":
            assert b"hunter2-secret" not in path.read_bytes(), path
    assert "hunter2-secret" not in shop.log
