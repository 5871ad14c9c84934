"""Test-gated publishing: red rows reach nobody, green ones everybody, in one process or in several."""

from __future__ import annotations

import re

import pytest

from integration_tests.adapter.conftest import Shop
from tests.doses import cases

GOOD = "1,O'Brien,10.50,placed,2026-01-01 10:00:00"
BAD = "2,Anna,-20.00,placed,2026-01-02 11:00:00"
FIXED = "2,Anna,20.00,placed,2026-01-03 11:00:00"


def policy(shop: Shop, value: str) -> None:
    """Set publish of the model orders."""
    path = shop.folder / "models/orders.sql"
    path.write_text(
        path.read_text().replace(
            "materialized='tablestore',", f"materialized='tablestore', publish='{value}',"
        )
    )


def test_green_is_published_after_the_last_test(shop: Shop) -> None:
    """dbt build stages, tests, publishes, and says so; children read the rows."""
    shop.orders(GOOD)
    shop.dbt("build")
    assert shop.rows("select count(*) from demo.orders") == [(1,)]
    assert shop.rows("select orders from demo.daily") == [(1,)]
    assert "demo.orders published" in shop.log
    said = re.findall(r"publishing took (\d+\.\d\d) s, which dbt counts in the time of test (\w+)", shop.log)
    responses = {name: one["adapter_response"] for name, one in shop.results().items()}
    told = {name: one["publishing_seconds"] for name, one in responses.items() if "publishing_seconds" in one}
    assert len(said) == 2
    assert {name: f"{seconds:.2f}" for name, seconds in told.items()} == {name: text for text, name in said}
    assert shop.response("orders")["staged"]


def test_red_reaches_nobody(shop: Shop) -> None:
    """Readers and children keep the old rows; the staged rows can be looked at; the next good run publishes."""
    shop.orders(GOOD)
    shop.dbt("build")
    before = shop.engine.table("demo.orders").facts().snapshot_id
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    assert shop.engine.table("demo.orders").facts().snapshot_id == before
    assert shop.rows("select order_id from demo.orders") == [(1,)]
    assert shop.rows("select orders from demo.daily") == [(1,)]
    assert shop.results()["daily"]["status"] == "skipped"
    assert "demo.orders NOT published" in shop.log
    shop.dbt(
        "show", "--inline", "select count(*) as n from {{ tablestore_staged(ref('orders')) }} having n = 2"
    )
    assert "| 2 |" in shop.log
    (staged,) = shop.engine.staged("demo")
    assert shop.rows(f"select order_id from `demo__at_branch_{staged.name}`.orders order by 1") == [
        (1,),
        (2,),
    ]
    shop.orders(FIXED)
    shop.dbt("build")
    assert shop.rows("select order_id, amount from demo.orders order by 1")[1][0] == 2
    assert shop.engine.staged("demo") == ()


def test_a_first_build_that_is_red_leaves_no_table(shop: Shop) -> None:
    """Nobody sees a table that never passed."""
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    assert shop.tables() == {"raw_orders", "stg_orders"}
    shop.orders(FIXED)
    shop.dbt("build")
    assert shop.rows("select order_id from demo.orders") == [(2,)]


def test_run_and_test_in_two_processes(shop: Shop) -> None:
    """publish='on_tests': dbt run stages, dbt test publishes."""
    policy(shop, "on_tests")
    shop.orders(GOOD)
    shop.dbt("seed")
    shop.dbt("run")
    assert "orders" not in shop.tables()
    (summary,) = [line for line in shop.shown if "of this run's tables wait" in line]
    assert (
        "2 of this run's tables wait, and readers do not see them yet: demo.daily, demo.orders (tablestore staged)"
        "; kept until 20"
    ) in summary
    shop.dbt("test")
    assert shop.rows("select count(*) from demo.orders") == [(1,)]
    assert shop.rows("select orders from demo.daily") == [(1,)]


@pytest.mark.nightly  # by day red reaches nobody; tests/unit/adapter/test_messages.py
def test_a_run_over_a_waiting_stage_says_what_becomes_of_it(shop: Shop) -> None:
    """Replaced by the rows built now, dropped when they change nothing; what was built from it goes along."""
    policy(shop, "on_tests")
    shop.orders(GOOD)
    shop.dbt("build")
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    shop.dbt("run", "--select", "orders")
    was = "staged snapshot 2 of demo.orders, which was waiting, "
    assert [line for line in shop.shown if line.endswith(was + "is replaced by this build")]
    assert shop.rows("select order_id from demo.orders") == [(1,)]
    columns = "order_id, customer, amount, status, updated_at, cast(updated_at as date) as day"
    shop.write("models/stg_orders.sql", f"select {columns} from {{{{ ref('raw_orders') }}}} where false")
    shop.dbt("run", "--select", "stg_orders", "orders")
    dropped = was + "is dropped: built again, the model changes nothing of what readers see"
    assert [line for line in shop.shown if line.endswith(dropped)]
    assert not [line for line in shop.shown if "publishes at once" in line or "tables wait" in line]
    assert shop.engine.staged("demo") == ()


def test_run_and_red_test_in_two_processes(shop: Shop) -> None:
    """The outcome is kept: a later green run of only the other tests does not publish."""
    policy(shop, "on_tests")
    shop.orders(BAD)
    shop.dbt("seed")
    shop.dbt("run")
    shop.dbt("test", ok=False)
    shop.dbt("test", "--select", "unique_orders_order_id")
    assert "orders" not in shop.tables()


def test_auto_publishes_at_once_when_no_test_runs(shop: Shop) -> None:
    """dbt run without tests is dbt run."""
    shop.orders(BAD)
    shop.dbt("seed")
    shop.dbt("run")
    assert shop.rows("select count(*) from demo.orders") == [(1,)]


def test_always_does_not_wait(shop: Shop) -> None:
    """The user's own choice."""
    policy(shop, "always")
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    assert shop.rows("select count(*) from demo.orders") == [(1,)]


def test_manual_waits_for_the_operation(shop: Shop) -> None:
    """Green tests are not enough, the operation is."""
    policy(shop, "manual")
    shop.orders(GOOD)
    shop.dbt("build")
    assert "orders" not in shop.tables()
    shop.dbt("run-operation", "tablestore_publish")
    assert shop.rows("select count(*) from demo.orders") == [(1,)]
    assert shop.rows("select orders from demo.daily") == [(1,)]


def test_a_warning_does_not_block(shop: Shop) -> None:
    """severity: warn is information."""
    path = shop.folder / "models/schema.yml"
    path.write_text(path.read_text().replace("- not_negative", "- not_negative: {config: {severity: warn}}"))
    shop.orders(BAD)
    shop.dbt("build")
    assert shop.rows("select count(*) from demo.orders") == [(1,)]


def test_retry_publishes_when_the_test_turns_green(shop: Shop) -> None:
    """dbt retry runs only the red test and what was skipped: the staged rows go out then."""
    shop.write("macros/limit.sql", "{% macro limit() %}0{% endmacro %}")
    shop.write(
        "macros/not_negative.sql",
        "{% test not_negative(model, column_name) %}"
        " select {{ column_name }} from {{ model }} where {{ column_name }} < {{ limit() }} {% endtest %}",
    )
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    shop.write("macros/limit.sql", "{% macro limit() %}-100{% endmacro %}")
    shop.dbt("retry")
    assert shop.rows("select order_id from demo.orders") == [(2,)]
    assert shop.rows("select orders from demo.daily") == [(1,)]


@pytest.mark.nightly  # by day test_verdicts.py: a test of a past snapshot
@pytest.mark.parametrize("version", cases(["{demo.orders: 1}", "{orders: 1}"], 1))
def test_tests_on_a_past_snapshot(shop: Shop, version: str) -> None:
    """tablestore_as_of: the red rows are in the current snapshot, not in the first one."""
    shop.orders(GOOD)
    shop.dbt("build")
    policy(shop, "always")
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    shop.dbt("test", "--select", "orders", ok=False)
    shop.dbt("test", "--select", "orders", "--vars", f"{{tablestore_as_of: {version}}}")


def test_refs_at_a_snapshot(shop: Shop) -> None:
    """ref('orders').at(1) in a model, also under --empty."""
    shop.orders(GOOD)
    shop.dbt("build")
    shop.orders(FIXED)
    shop.dbt("build")
    shop.write(
        "models/old.sql", "{{ config(materialized='table') }} select order_id from {{ ref('orders').at(1) }}"
    )
    shop.dbt("run", "--select", "old")
    assert shop.rows("select * from demo.old") == [(1,)]
    shop.dbt("run", "--select", "old", "--empty")
    assert shop.rows("select * from demo.old") == []
