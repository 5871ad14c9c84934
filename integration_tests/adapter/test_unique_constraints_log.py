"""Unique constraints of a model with a topic: what is refused is in no message, and a pending log is finished."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_log import NOISE, _limit
from tablestore_engine.devservers.kafka_broker import BrokerInfo

YML = """
models:
  - name: m
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: int}
      - {name: mail, data_type: string, constraints: [{type: unique}]}
"""


@pytest.mark.nightly  # by day test_unique_constraints.py, test_log.py: red rows, a retry
def test_refused_rows_are_in_no_message_and_a_pending_log_is_finished_by_retry(
    shop: Shop, broker: BrokerInfo
) -> None:
    """The messages of a build come with its publication; one that the brokers refuse is sent by dbt retry, once."""
    shop.output["log"] = {"kafka.bootstrap.servers": broker.url}
    config = "materialized='incremental', on_schema_change='fail', unique_key='id', log_system='kafka', kafka_topic='"
    config += "unique_mails'"
    shop.write("models/m.yml", YML)

    def build(query: str, *, ok: bool = True) -> None:
        shop.write("models/m.sql", f"{{{{ config({config}) }}}} {query}")
        shop.dbt("run", "--select", "m", ok=ok)

    build("select 1 as id, 'a' as mail")
    assert shop.response("m")["kafka_topic"] == "unique_mails"
    build("select 2 as id, 'a' as mail", ok=False)
    assert "TS1808" in shop.log
    assert shop.engine.count_log_messages("demo.m") == 1
    _limit(broker, "unique_mails", 1_000)
    build(f"select 3 as id, '{NOISE}' as mail", ok=False)
    assert "TS1070" in shop.log
    assert shop.engine.table("demo.m").latest_snapshot_id() == 2
    _limit(broker, "unique_mails", 1_000_000)
    shop.dbt("retry")
    assert shop.engine.count_log_messages("demo.m") == 2
    assert shop.rows("select id from demo.m order by id") == [(1,), (3,)]
    assert shop.engine.table("demo.m").latest_snapshot_id() == 2
    build("select 4 as id, 'b' as mail")
    assert shop.engine.staged("demo") == ()
