"""dbt on a standalone cluster: the project of the adapter's tests, with a streaming model that keeps state."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import SparkSettings
from tablestore_engine.spark import task_placement

pytestmark = pytest.mark.filterwarnings("ignore")  # dbt's own deprecations are not ours to fail on
TOTALS = """
{{ config(materialized='streaming', unique_key='customer') }}
select customer, count(*) as events from {{ stream(ref('events')) }} group by customer
"""
EVENTS = """
{{ config(materialized='incremental') }}
select order_id, customer, updated_at from {{ ref('raw_orders') }}
{% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
"""


@pytest.mark.nightly
def test_build_on_a_cluster_gives_tables_increments_tests_and_streams(
    settings: SparkSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two builds with tasks on the workers: a keyed table with deletes, a full table, an append-only incremental model,
    a streaming model that counts on from its state, and all tests.
    """
    monkeypatch.setattr(task_placement, "SMALL_BYTES", -1)
    shop = Shop(tmp_path)
    shop.output["spark"] = {"master": settings.master, "conf": dict(settings.conf)}
    shop.write("models/events.sql", EVENTS)
    shop.write("models/totals.sql", TOTALS)
    shop.orders("1,ann,10.00,open,2026-01-01 00:00:00", "2,ben,5.00,open,2026-01-02 00:00:00")
    shop.dbt("build")
    shop.orders(
        "1,ann,11.00,open,2026-01-03 00:00:00",
        "2,ben,5.00,cancelled,2026-01-04 00:00:00",
        "3,ann,7.00,open,2026-01-05 00:00:00",
    )
    shop.dbt("build")
    assert shop.rows("select order_id, customer, cast(amount as string) from demo.orders order by 1") == [
        (1, "ann", "11.00"),
        (3, "ann", "7.00"),
    ]
    assert shop.rows("select count(*), cast(sum(amount) as string) from demo.daily") == [(2, "18.00")]
    assert shop.rows("select customer, events from demo.totals order by 1") == [("ann", 3), ("ben", 2)]
    for name in ("orders", "events", "totals"):
        assert shop.engine.table(f"demo.{name}").verify() == ()
