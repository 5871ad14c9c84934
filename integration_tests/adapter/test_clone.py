"""dbt clone: tables of another schema by their metadata, and never at the cost of a table."""

from __future__ import annotations

import shutil

from integration_tests.adapter.conftest import Shop


def _remember(shop: Shop) -> str:
    """The artifacts as the state of production."""
    state = shop.folder / "state"
    shutil.copytree(shop.folder / "target", state, dirs_exist_ok=True)
    return str(state)


def test_a_clone_onto_its_own_schema_leaves_every_table(shop: Shop) -> None:
    """dbt clone --full-refresh from the schema to itself: each relation is skipped, tables stay tables with rows."""
    shop.keeps_manifest = True
    shop.dbt("build")
    state, before = _remember(shop), shop.rows("select * from demo.orders order by order_id")
    shop.dbt("clone", "--full-refresh", "--state", state)
    kinds = {info.identifier.name: info.kind for info in shop.engine.relations("demo")}
    assert kinds == {"raw_orders": "table", "stg_orders": "view", "orders": "table", "daily": "table"}
    assert shop.rows("select * from demo.orders order by order_id") == before
    assert "skipping clone for relation" in shop.log


def test_tables_are_cloned_as_tables(shop: Shop) -> None:
    """Another schema gets a table for a table and a view for a view; its rows are its own, also in a second clone."""
    shop.keeps_manifest = True
    shop.dbt("build")
    state, before = _remember(shop), shop.rows("select * from demo.orders order by order_id")
    shop.output["schema"] = "dev"
    shop.dbt("clone", "--state", state)
    kinds = {info.identifier.name: info.kind for info in shop.engine.relations("dev")}
    assert kinds == {"raw_orders": "table", "stg_orders": "view", "orders": "table", "daily": "table"}
    shop.engine.sql("delete from dev.orders where order_id = 1")
    assert shop.rows("select * from demo.orders order by order_id") == before
    shop.dbt("clone", "--state", state)
    assert "already exists" in shop.log
    assert len(shop.rows("select * from dev.orders")) == len(before) - 1
    shop.dbt("clone", "--full-refresh", "--state", state)
    assert shop.rows("select * from dev.orders order by order_id") == before
