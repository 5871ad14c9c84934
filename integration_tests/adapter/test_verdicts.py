"""What a green test means: the versions that it read, and nothing else."""

from __future__ import annotations

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
