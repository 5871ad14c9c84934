"""The changelog in a real Kafka: only published rows, with offsets in run_results.json."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_publishing import BAD, FIXED, GOOD
from tablestore_engine.log.dev_broker import BrokerInfo


@pytest.fixture
def logged(shop: Shop, broker: BrokerInfo, request: pytest.FixtureRequest) -> Shop:
    """The shop with orders in a topic of its own."""
    topic = f"orders_{request.node.name.replace('[', '_').replace(']', '')}"
    shop.output["log"] = {"kafka.bootstrap.servers": broker.url}
    path = shop.folder / "models/orders.sql"
    config = f"materialized='tablestore', log_system='kafka', kafka_topic='{topic}',"
    path.write_text(path.read_text().replace("materialized='tablestore',", config))
    return shop


def test_red_rows_never_reach_the_topic(logged: Shop) -> None:
    """Green: one message per change. Red: the topic stays. Fixed: it grows by the change."""
    logged.orders(GOOD)
    logged.dbt("build")
    assert logged.engine.count_log_messages("demo.orders") == 1
    assert "kafka orders_" in logged.log
    logged.orders(BAD)
    logged.dbt("build", ok=False)
    assert logged.engine.count_log_messages("demo.orders") == 1
    logged.orders(FIXED)
    logged.dbt("build")
    assert logged.engine.count_log_messages("demo.orders") == 2


def test_offsets_stand_in_run_results(logged: Shop) -> None:
    """dbt run publishes at once: topic and offsets of this commit are in adapter_response."""
    logged.orders(GOOD)
    logged.dbt("seed")
    logged.dbt("run")
    answer = logged.response("orders")
    assert answer["kafka_topic"].startswith("orders_")
    assert [span[1] - span[0] >= 1 for span in answer["kafka_offsets"].values()] == [True]


def test_one_topic_for_two_models_is_refused(logged: Shop) -> None:
    """Before either is written."""
    logged.write("models/copy.sql", (logged.folder / "models/orders.sql").read_text())
    logged.dbt("seed")
    logged.dbt("run", ok=False)
    assert "TS1817" in logged.log
    assert not {"orders", "copy"} & logged.tables()


def test_a_broker_that_is_not_there_stops_the_build_before_it_writes(logged: Shop) -> None:
    """No table, no staged rows; the error names the brokers."""
    logged.output["log"] = {"kafka.bootstrap.servers": "127.0.0.1:9", "kafka.socket.timeout.ms": "2000"}
    logged.orders(GOOD)
    logged.dbt("seed")
    logged.dbt("run", "--select", "stg_orders", "orders", ok=False)
    assert "127.0.0.1:9" in logged.log
    assert "orders" not in logged.tables()
