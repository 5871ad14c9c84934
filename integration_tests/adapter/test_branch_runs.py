"""A dbt run on a branch: every kind of node is built there or refused by name, and main has the same bytes after it."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_publishing import BAD, FIXED, GOOD
from integration_tests.branch_world import main_files

DEV = ("--vars", "{tablestore_branch: dev}")
KEYED = "materialized='incremental', unique_key='order_id'"
MODELS = {
    "m_append.sql": "{{ config(materialized='incremental', incremental_strategy='append') }} "
    "select * from {{ ref('raw_orders') }}"
    "{% if is_incremental() %} where order_id > (select max(order_id) from {{ this }}){% endif %}",
    "m_merge.sql": f"{{{{ config({KEYED}) }}}} select order_id, amount from {{{{ ref('orders') }}}}",
    "m_replace.sql": f"{{{{ config({KEYED}, incremental_strategy='delete+insert') }}}} "
    "select order_id, status from {{ ref('raw_orders') }}",
    "m_partitions.sql": "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
    "partition_by=['customer']) }} select customer, order_id from {{ ref('raw_orders') }}",
    "m_keys.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', "
    "unique_key='customer') }} "
    "select customer, avg(amount) as amount, count(*) as orders from {{ ref('orders') }} group by customer",
    "m_view.sql": "{{ config(materialized='materialized_view', unique_key='order_id') }} "
    "select order_id, amount * 2 as twice from {{ ref('orders') }}",
    "m_changes.sql": f"{{{{ config({KEYED}) }}}} "
    "select order_id, amount from {{ changes(ref('orders')) }} where _row_kind in ('+I', '+U')",
    "m_stream.sql": "{{ config(materialized='streaming', unique_key='order_id') }} "
    "select order_id, amount, _row_kind, _snapshot_id from {{ stream(ref('orders')) }}",
    "m_state.sql": "{{ config(materialized='streaming') }} "
    "select customer, window.start as day, count(*) as n from {{ stream(ref('m_append')) }} "
    "watermark updated_at delay of interval 10 minutes group by customer, window(updated_at, '1 hour')",
    "m_python.py": "def model(dbt, session):\n    return dbt.ref('orders').select('order_id')\n",
}
SNAPSHOT = (
    "{% snapshot history %} {{ config(unique_key='order_id', strategy='timestamp', updated_at='updated_at') }} "
    "select * from {{ ref('raw_orders') }} {% endsnapshot %}"
)


def tables_of(shop: Shop) -> list[str]:
    """All of demo, as `demo.name`."""
    return [f"demo.{one.identifier.name}" for one in shop.engine.relations("demo") if one.kind == "table"]


def state(shop: Shop) -> dict[str, dict[str, bytes]]:
    """The bytes of every table's main."""
    return {name: main_files(shop.engine.table(name)) for name in tables_of(shop)}


def rows_of(engine: Any, name: str) -> list[str]:
    """Sorted; columns that say when dbt ran are left out."""
    found = engine.table(name).to_arrow()
    kept = [
        one for one in found.column_names if one not in ("dbt_updated_at", "dbt_valid_from", "dbt_scd_id")
    ]
    return sorted(map(str, found.select(kept).to_pylist()))


def test_a_build_on_a_branch_leaves_main_and_comes_to_it_by_fast_forward(shop: Shop) -> None:
    """Seed, view, tables and their tests: red rows stay staged on the branch, green ones are published there."""
    shop.orders(GOOD)
    shop.dbt("build")
    before, orders = state(shop), rows_of(shop.engine, "demo.orders")
    dev = shop.engine.on_branch("dev")
    shop.orders(GOOD, BAD)
    shop.dbt("build", *DEV, ok=False)
    assert "demo.orders: branch dev is made, from snapshot 1 of main" in shop.log
    assert "demo.orders NOT published" in shop.log
    assert rows_of(dev, "demo.orders") == orders
    assert [len(dev.staged("demo.orders")), len(shop.engine.staged("demo.orders"))] == [1, 0]
    shop.orders(GOOD, FIXED)
    shop.dbt("build", *DEV)
    assert state(shop) == before
    assert len(rows_of(dev, "demo.orders")) == 2
    shop.dbt("run", "--select", "daily", "--vars", "{tablestore_branch: other}")
    assert "demo.daily: reads demo.orders from main, which have no branch other" in shop.log
    assert state(shop) == before
    for name in tables_of(shop):
        assert shop.engine.table(name).fast_forward("dev").added, name
    assert len(rows_of(shop.engine, "demo.orders")) == 2
    shop.dbt("build")  # main goes on from there
    assert len(rows_of(shop.engine, "demo.orders")) == 2


@pytest.mark.nightly
def test_every_kind_of_node_is_built_on_the_branch_as_on_main(shop: Shop) -> None:
    """Each strategy, twice: the branch has the rows that a run on main makes in a copy, and main has the same bytes.

    After a fast-forward of all tables a run on main finds nothing to do but what runs always do.
    """
    for name, text in MODELS.items():
        shop.write(f"models/{name}", text)
    shop.write("snapshots/history.sql", SNAPSHOT)
    third = "3,Ina,7.00,placed,2026-01-04 10:00:00"
    shop.orders(GOOD)
    shop.dbt("build")
    before, folder = state(shop), shop.folder / "warehouse"
    shutil.copytree(folder, shop.folder / "copy")
    place = shop.output["warehouse"]
    for feed in ((GOOD, FIXED), (GOOD, FIXED.replace("20.00", "21.00").replace("01-03", "01-05"), third)):
        shop.orders(*feed)
        shop.dbt("build", *DEV)
        assert state(shop) == before
        dev = {name: rows_of(shop.engine.on_branch("dev"), name) for name in tables_of(shop)}
        assert all(shop.engine.on_branch("dev").is_on_branch(name) for name in dev)
        shop.output["warehouse"] = place.replace("warehouse", "copy")
        shop.dbt("build")
        assert {name: rows_of(shop.engine, name) for name in tables_of(shop)} == dev
        shop.output["warehouse"] = place
    for name in tables_of(shop):
        assert shop.engine.table(name).fast_forward("dev").added, name
        assert shop.engine.table(name).verify() == ()
    shop.dbt("build")
    assert {name: rows_of(shop.engine, name) for name in dev} == dev


def test_what_has_no_branch_is_refused_by_name_and_changes_nothing(shop: Shop) -> None:
    """A view with another text, a function, another key, a drop; a new table is empty on main."""
    shop.orders(GOOD)
    shop.dbt("build", "--exclude", "daily")
    before, view = state(shop), shop.engine.find_view("demo.stg_orders")
    stg = (shop.folder / "models/stg_orders.sql").read_text()
    for name, text in (
        ("stg_orders", stg + " where true"),
        ("stg_orders", stg.replace("view", "table")),
        (
            "orders",
            (shop.folder / "models/orders.sql")
            .read_text()
            .replace("['order_id']", "['order_id', 'customer']"),
        ),
    ):
        path = shop.folder / f"models/{name}.sql"
        old = path.read_text()
        path.write_text(text)
        shop.dbt("run", "--full-refresh", "--select", name, *DEV, ok=False)
        assert "TS1222" in shop.log, name
        path.write_text(old)
    assert state(shop) == before
    assert shop.engine.find_view("demo.stg_orders") == view
    shop.dbt("run", "--select", "daily", *DEV)
    assert (len(shop.engine.table("demo.daily")), len(shop.engine.on_branch("dev").table("demo.daily"))) == (
        0,
        1,
    )
    shop.dbt("run", "--vars", "{tablestore_branch: 17}", ok=False)
    assert "TS1223" in shop.log
