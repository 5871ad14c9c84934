"""A failed build of last week: what the next dbt run does with its staged rows."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_publishing import BAD, GOOD
from tablestore_engine.spi import SYSTEM
from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper

DAY = 86_400_000


def _later(days: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on retention takes it for so many days later."""
    monkeypatch.setattr(Gatekeeper, "now_ms", lambda _: SYSTEM.now_ms() + int(days * DAY))


def _change(shop: Shop, old: str, new: str) -> None:
    """In the text of the model orders."""
    path = shop.folder / "models/orders.sql"
    path.write_text(path.read_text().replace(old, new))


def test_a_failed_build_is_dropped_by_a_run_after_its_retention(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's option counts, the end of the first run says until when; a nonsense value is refused."""
    kind = "materialized='tablestore',"
    _change(shop, kind, f"{kind} table_properties={{'tablestore.staged-retention': '30 d'}},")
    shop.orders(GOOD)
    shop.dbt("build")
    shop.orders(BAD)
    shop.dbt("build", ok=False)
    (summary,) = [line for line in shop.shown if "of this run's tables wait" in line]
    assert "demo.orders (tablestore staged); kept until 20" in summary
    (staged,) = shop.engine.staged("demo")
    _later(29.9, monkeypatch)
    shop.dbt("run", "--select", "stg_orders", "daily")
    assert [one.name for one in shop.engine.staged("demo")] == [staged.name]
    _later(30, monkeypatch)
    shop.dbt("run", "--select", "daily")
    (line,) = [line for line in shop.shown if "staged snapshot" in line]
    assert (
        f"demo.orders: staged snapshot {staged.name} (snapshot 2) is dropped: it was written 30 d ago" in line
    )
    assert "failed tests: " in line
    assert shop.engine.staged("demo") == ()
    assert shop.rows("select order_id from demo.orders") == [(1,)]
    _change(shop, "'30 d'", "'0'")
    shop.dbt("run", "--select", "orders", ok=False)
    assert "TS1008" in shop.log
