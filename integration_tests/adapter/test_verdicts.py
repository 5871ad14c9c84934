"""What a green test means: the versions that it read, and nothing else."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop

GOOD = "1,O'Brien,10.50,placed,2026-01-01 10:00:00"
BAD = "2,Anna,-20.00,placed,2026-01-02 11:00:00"


def test_a_test_of_a_past_snapshot_says_nothing_of_the_staged_one(shop: Shop) -> None:
    """All tests green at snapshot 1 while red rows wait: the red rows stay where they are."""
    shop.orders(GOOD)
    shop.dbt("build")
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    shop.dbt("test", "--select", "orders", "--vars", "{tablestore_as_of: {orders: 1}}")
    assert shop.rows("select order_id from demo.orders") == [(1,)]
    (staged,) = shop.engine.staged("demo")
    assert "red" in staged.outcomes.values()
    shop.dbt("test", "--select", "orders", "--vars", "{tablestore_as_of: {ordres: 1}}", ok=False)
    assert "TS1875" in shop.log
    assert "ordres" in shop.log


AT_1 = {
    "as_macro": "select * from {{ ref('orders').at(1) }} where amount < 0",
    "as_sql": "select * from {{ ref('orders') }} version as of 1 where amount < 0",
}


@pytest.mark.nightly  # by day a past snapshot, below; tests/unit/adapter/test_verdicts.py
def test_a_test_that_names_a_version_is_no_gate(shop: Shop) -> None:
    """Snapshot 1 is red for good: that neither opens the gate of the next one nor closes it, and a line says so."""
    shop.orders(BAD)
    shop.dbt("seed")
    shop.dbt("run")
    for name, sql in AT_1.items():
        shop.write(f"tests/{name}.sql", sql)
    shop.orders("2,Anna,20.00,placed,2026-01-03 11:00:00")
    shop.dbt("build", ok=False)
    assert {shop.results()[name]["status"] for name in AT_1} == {"fail"}
    assert shop.rows("select amount from demo.orders") == [(Decimal("20.00"),)]
    assert shop.response("orders")["published"] is True
    for name in AT_1:
        assert f"{name} read demo.orders only at versions that it names itself (snapshot 1)" in shop.log
    shop.orders("2,Anna,-30.00,placed,2026-01-04 11:00:00")
    shop.write("tests/as_sql.sql", AT_1["as_sql"].replace("as of 1", "as of 2"))
    shop.dbt("build", ok=False)
    assert shop.results()["as_sql"]["status"] == "pass"
    assert shop.rows("select amount from demo.orders") == [(Decimal("20.00"),)]


RELATION = """
models:
  - name: daily
    columns:
      - name: day
        data_tests:
          - relationships: {arguments: {to: ref('orders'), field: day}}
"""


@pytest.mark.nightly  # by day adapter/test_whole_run.py; tests/laws/test_gate_laws.py
def test_tables_that_one_test_read_go_out_together(shop: Shop) -> None:
    """daily is red on its own; the relation to orders was green for both new versions, so neither is published."""
    shop.write("models/relation.yml", RELATION.replace("- name: daily", "- name: daily_too"))
    shop.write(
        "models/daily_too.sql",
        "{{ config(materialized='table') }} select day, count(*) as orders from {{ ref('orders') }} group by day"
        "{% if var('twice', false) %} union all select day, 0 from {{ ref('orders') }} {% endif %}",
    )
    shop.write(
        "tests/one_row_per_day.sql", "select day from {{ ref('daily_too') }} group by day having count(*) > 1"
    )
    shop.orders(GOOD)
    shop.dbt("build")
    assert shop.response("orders")["published"] is True
    shop.orders(GOOD, "3,Eve,7.00,placed,2026-01-05 10:00:00")
    shop.dbt("build", "--vars", "{twice: true}", ok=False)
    assert shop.rows("select count(*) from demo.orders") == [(1,)]
    assert shop.rows("select count(*) from demo.daily_too") == [(1,)]
    answer = shop.response("orders")
    assert answer["published"] is False
    assert "is published together with demo.daily_too" in answer["reason"]
    assert "of this run's tables wait" in shop.log
    shop.dbt("build")
    assert shop.rows("select count(*) from demo.orders") == [(2,)]
    assert shop.rows("select count(*) from demo.daily_too") == [(2,)]
    assert shop.engine.staged("demo") == ()


def other_writer(shop: Shop, order_id: int, amount: str, before: str, times: int = 1) -> None:
    """Somebody else commits an order to demo.orders when dbt says `before`."""
    left = [times]

    def commit(line: str) -> None:
        if before in line and left[0] > 0:
            left[0] -= 1
            table = shop.engine.table("demo.orders")
            rows = table.scan().to_arrow().slice(0, 1)
            changed = rows.set_column(0, "order_id", pa.array([order_id], rows.schema.field("order_id").type))
            index = rows.schema.get_field_index("amount")
            value = pa.array([Decimal(amount)], rows.schema.field("amount").type)
            table.write(changed.set_column(index, "amount", value))

    shop.on_line = commit


def test_a_lost_claim_is_planned_and_tested_again(shop: Shop) -> None:
    """Somebody commits while the tests run: the same dbt build plans on that, tests that, and publishes both rows."""
    shop.orders(GOOD)
    shop.dbt("build")
    other_writer(shop, 50, "5.00", before="START test unique_orders_order_id")
    shop.orders(GOOD, "3,Eve,7.00,placed,2026-01-05 10:00:00")
    shop.dbt("build")
    assert shop.rows("select order_id from demo.orders order by 1") == [(1,), (3,), (50,)]
    assert shop.response("orders")["published"] is True
    assert "planned and tested again" in shop.log
    other_writer(shop, 51, "-5.00", before="START test unique_orders_order_id")
    shop.orders(GOOD, "4,Eve,7.00,placed,2026-01-06 10:00:00")
    shop.dbt("build", ok=False)
    assert "not_negative_orders_amount failed" in shop.log
    assert "demo.orders NOT published" in shop.log
    assert shop.response("orders")["published"] is False
    assert shop.rows("select count(*) from demo.orders where order_id = 4") == [(0,)]
