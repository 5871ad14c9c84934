"""dbt builds a project whose warehouse is an S3 server: the same results as in a folder, in both ways of reading."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from dbt.adapters.factory import reset_adapters

from integration_tests.adapter.conftest import Shop
from integration_tests.s3.warehouses import address
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tests.doses import cases

pytestmark = pytest.mark.filterwarnings("ignore")  # dbt's own deprecations
_FIRST = (
    "1,ann,10.0,new,2026-01-01 10:00:00",
    "2,bob,20.0,new,2026-01-01 11:00:00",
    "3,cid,5.5,new,2026-01-02 09:00:00",
)
_SECOND = (
    "2,bob,25.0,paid,2026-01-03 11:00:00",
    "3,cid,5.5,cancelled,2026-01-03 09:00:00",
    "4,dee,1.0,new,2026-01-03 12:00:00",
)
_DAILY = [(date(2026, 1, 1), 2, 30.0), (date(2026, 1, 2), 1, 5.5)]
_INCREMENTAL = """{{ config(materialized='incremental', primary_key=['order_id'], incremental_strategy='merge') }}
select order_id, amount, updated_at from {{ ref('orders') }}
{% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
"""
_SNAPSHOT = """{% snapshot history %} {{ config(unique_key='order_id', strategy='check', check_cols=['amount']) }}
select order_id, amount from {{ ref('orders') }} {% endsnapshot %}
"""


@pytest.fixture(params=cases(["native", "portable", "folder"], 1))
def shop(
    request: pytest.FixtureRequest,
    s3_server: S3ServerInfo,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shop]:
    """The shop project with an incremental model and a snapshot; `folder` is what the others are compared with."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    made = Shop(tmp_path)
    made.output["spark"] |= {"connector": "fetch"}
    if request.param != "folder":
        made.output["warehouse"] = address(bucket, request.param, s3_server.url)
        made.output["spark"] |= {"read_way": request.param}
    made.write("models/recent.sql", _INCREMENTAL)
    made.write("snapshots/history.sql", _SNAPSHOT)
    yield made
    reset_adapters()


def test_builds_snapshots_gates_and_past_states(shop: Shop) -> None:
    """Two builds, a red test that holds a table back, and a query of the first state give the rows of a folder."""
    shop.orders(*_FIRST)
    shop.dbt("build")
    first = shop.engine.table("demo.orders").facts().snapshot_id
    assert shop.rows("select * from demo.daily order by day") == _DAILY
    shop.orders(*_SECOND)
    shop.dbt("build")
    assert shop.rows("select order_id, amount, status from demo.orders order by 1") == [
        (1, 10.0, "new"),
        (2, 25.0, "paid"),
        (4, 1.0, "new"),
    ]
    assert shop.rows("select order_id, amount from demo.recent order by 1") == [
        (1, 10.0),
        (2, 25.0),
        (3, 5.5),
        (4, 1.0),
    ]
    assert shop.rows(f"select count(*) from demo.orders version as of {first}") == [(3,)]
    assert shop.rows("select order_id, count(*) from demo.history group by 1 order by 1") == [
        (1, 1),
        (2, 2),
        (3, 1),
        (4, 1),
    ]
    shop.orders("5,eve,-1.0,new,2026-01-04 10:00:00")
    shop.dbt("build", ok=False)
    assert shop.rows("select count(*) from demo.orders where order_id = 5") == [(0,)], "its test is red"
    shop.orders("5,eve,1.0,new,2026-01-04 11:00:00")
    shop.dbt("build")
    assert shop.rows("select amount from demo.orders where order_id = 5") == [(1.0,)]
