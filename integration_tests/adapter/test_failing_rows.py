"""Rows of a failed test are kept with the staged snapshot, unless a model that the test reads forbids it."""

from __future__ import annotations

import pytest
import yaml

from integration_tests.adapter.conftest import Shop
from tablestore_engine.spi import FailingRows

GOOD = "1,O'Brien,10.50,placed,2026-01-01 10:00:00"
BAD = tuple(f"{number},Anna,-{number}.00,placed,2026-01-02 11:00:00" for number in range(2, 10))


def failing(shop: Shop) -> dict[str, FailingRows]:
    """By short name of the test, of the one staged snapshot."""
    (item,) = shop.engine.gate.read_book("demo.orders").staged
    return {one.test.split(".")[2]: one.failing for one in item.outcomes if one.failing is not None}


def test_failing_rows_are_kept_with_the_staged_snapshot(shop: Shop) -> None:
    """Five of eight, of the staged rows, with the columns that the test gives; a passed test keeps none."""
    shop.orders(GOOD, *BAD)
    shop.dbt("build", "--select", "+orders", ok=False)
    ((name, rows),) = failing(shop).items()
    assert "not_negative" in name or "positive" in name or "amount" in name
    assert len(rows.rows) == 5
    assert "amount" in rows.columns
    amounts = {row[rows.columns.index("amount")] for row in rows.rows}
    assert all(str(one).startswith("-") for one in amounts)


def test_failing_rows_of_not_null_have_the_key(shop: Shop) -> None:
    """dbt's test selects the column alone, which is NULL: the rows that are kept have all columns."""
    shop.orders(GOOD, "2,Anna,,placed,2026-01-02 11:00:00")
    columns = [{"name": "amount", "data_tests": ["not_null"]}]
    shop.write("models/schema.yml", yaml.safe_dump({"models": [{"name": "orders", "columns": columns}]}))
    shop.dbt("build", "--select", "+orders", ok=False)
    (rows,) = (rows for name, rows in failing(shop).items() if name.startswith("not_null"))
    assert dict(zip(rows.columns, rows.rows[0], strict=True))["order_id"] == "2"
    assert len(rows.rows) == 1


@pytest.mark.parametrize("where", ["model", "meta"])
def test_model_forbids_to_keep_rows(shop: Shop, where: str) -> None:
    """The verdict is kept, its rows are not."""
    said = {"model": "keep_failing_rows=false", "meta": "meta={'tablestore': {'keep_failing_rows': false}}"}[
        where
    ]
    path = shop.folder / "models/orders.sql"
    path.write_text(
        path.read_text().replace("materialized='tablestore',", f"materialized='tablestore', {said},")
    )
    shop.orders(GOOD, *BAD)
    shop.dbt("build", "--select", "+orders", ok=False)
    (item,) = shop.engine.gate.read_book("demo.orders").staged
    assert item.red_gates
    assert failing(shop) == {}


def test_query_that_fails_is_no_failure_of_the_test(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's own result stays what it was."""
    monkeypatch.setattr("dbt.adapters.tablestore.write.data_tests.ROWS_MAX", "none of them")
    shop.orders(GOOD, *BAD)
    shop.dbt("build", "--select", "+orders", ok=False)
    assert failing(shop) == {}
    assert shop.engine.gate.read_book("demo.orders").staged[0].red_gates
