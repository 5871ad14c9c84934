"""The changelog in a real Kafka: only published rows, with offsets in run_results.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_publishing import BAD, FIXED, GOOD
from integration_tests.kafka.topics import topics_left
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tests.doses import cases


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


@pytest.mark.nightly  # by day kafka/test_stream_sink.py: without the broker nothing is committed
def test_a_broker_that_is_not_there_stops_the_build_before_it_writes(
    logged: Shop, broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table, no staged rows; the error names the brokers. TABLESTORE_KAFKA wins over those of the profile."""
    logged.output["log"] = {"kafka.bootstrap.servers": "127.0.0.1:9", "kafka.default.api.timeout.ms": "1000"}
    logged.orders(GOOD)
    logged.dbt("seed")
    logged.dbt("run", "--select", "stg_orders", "orders", ok=False)
    assert "127.0.0.1:9" in logged.log
    assert "orders" not in logged.tables()
    monkeypatch.setenv("TABLESTORE_KAFKA", broker.url)
    logged.dbt("run", "--select", "stg_orders", "orders")
    assert logged.engine.count_log_messages("demo.orders") == 1


@pytest.mark.nightly
def test_a_broker_that_goes_before_the_tests_leaves_all_of_it_staged(
    logged: Shop, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last green test fails and says that nothing was published; dbt retry publishes, table and topic once."""
    folder: Path = tmp_path_factory.mktemp("own-broker")
    log = {"kafka.bootstrap.servers": start_broker(folder).url, "kafka.socket.timeout.ms": "2000"}
    logged.output["log"] = log
    logged.orders(GOOD)

    def stop_once(line: str) -> None:
        if "START test" in line:
            logged.on_line = lambda _: None
            stop_broker(folder)

    logged.on_line = stop_once
    try:
        logged.dbt("build", ok=False)
        (failed,) = [one for one in logged.results().values() if "TS1876" in (one["message"] or "")]
        assert "TS1082 nothing was published" in failed["message"]
        assert "dbt retry" in failed["message"]
        assert "dbt build --select" not in failed["message"]
        assert logged.response("orders")["published"] is False
        assert "orders" not in logged.tables()
        start_broker(folder)
        logged.dbt("retry")
        assert logged.rows("select order_id from demo.orders") == [(1,)]
        assert logged.engine.count_log_messages("demo.orders") == 1
        assert logged.engine.staged("demo") == ()
    finally:
        stop_broker(folder)


@pytest.mark.nightly  # by day test_replacement.py; red rows above
def test_logged_table_takes_the_place_of_a_view_when_its_tests_are_green(
    shop: Shop, broker: BrokerInfo
) -> None:
    """While the test is red readers have the view and the topic has no message; green publishes both."""
    shop.output["log"] = {"kafka.bootstrap.servers": broker.url}
    shop.write("models/m.sql", "{{ config(materialized='view') }} select 1 as id")
    shop.write("models/m.yml", "models: [{name: m, columns: [{name: id, data_tests: [unique]}]}]")
    shop.dbt("build", "--select", "m")
    config = "materialized='table', log_system='kafka', kafka_topic='placed_m'"
    shop.write("models/m.sql", f"{{{{ config({config}) }}}} select explode(array(2, 2)) as id")
    shop.dbt("build", "--select", "m", ok=False)
    assert shop.rows("select * from demo.m") == [(1,)]
    shop.write("models/m.sql", f"{{{{ config({config}) }}}} select 2 as id")
    shop.dbt("build", "--select", "m")
    assert shop.rows("select * from demo.m") == [(2,)]
    assert shop.engine.count_log_messages("demo.m") == 1
    assert shop.engine.staged("demo") == ()


@pytest.mark.nightly  # by day test_replacement.py; kafka/test_replaced_logs.py
def test_view_in_place_of_a_table_with_a_topic_needs_a_full_refresh(shop: Shop, broker: BrokerInfo) -> None:
    """Without it the table, its history and its topic stay; with it all of them go."""
    shop.output["log"] = {"kafka.bootstrap.servers": broker.url}
    config = "materialized=var('kind', 'table'), log_system='kafka', kafka_topic='becomes_a_view'"
    shop.write("models/m.sql", f"{{{{ config({config}) }}}} select 1 as id")
    shop.dbt("run", "--select", "m")
    as_view = ("run", "--select", "m", "--vars", "{kind: view}")
    shop.dbt(*as_view, ok=False)
    assert "TS2070" in shop.log
    assert "becomes_a_view" in shop.log
    assert shop.engine.count_log_messages("demo.m") == 1
    both = {"becomes_a_view", "becomes_a_view__snapshots"}
    assert topics_left(_admin(broker), "becomes_a_view", both) == both
    shop.dbt(*as_view, "--full-refresh")
    assert shop.rows("select * from demo.m") == [(1,)]
    assert topics_left(_admin(broker), "becomes_a_view") == set()


ANOTHER = (
    "{{{{ config(materialized='incremental', primary_key='{key}', log_system='kafka', kafka_topic='{topic}') }}}}"
    " select id, id * 10 as other from values {values} as t(id)"
)


@pytest.mark.nightly  # by day kafka/test_replaced_logs.py
@pytest.mark.parametrize("command", cases(["run", "build"], 1))
def test_another_key_needs_another_topic(shop: Shop, broker: BrokerInfo, command: str) -> None:
    """Full refresh with another key and the same topic: refused before anything changes, gated or not (TS1832). With
    another topic that one gets all rows of the new table, and the old topic goes with the old table.
    """
    shop.output["log"] = {"kafka.bootstrap.servers": broker.url}
    first, second = f"key_{command}_a", f"key_{command}_b"
    shop.write("models/m.yml", "models: [{name: m, columns: [{name: id, data_tests: [unique]}]}]")
    shop.write("models/m.sql", ANOTHER.format(key="id", topic=first, values="(1), (2)"))
    shop.dbt(command, "--select", "m")
    shop.write("models/m.sql", ANOTHER.format(key="other", topic=first, values="(1), (3)"))
    shop.dbt(command, "--select", "m", "--full-refresh", ok=False)
    message = shop.results()["m"]["message"]
    assert "TS1832" in message
    assert f"keeps its topic '{first}'" in message
    assert shop.rows("select id from demo.m order by id") == [(1,), (2,)]
    assert (_ids(shop), shop.engine.staged("demo")) == ([1, 2], ())
    shop.write("models/m.sql", ANOTHER.format(key="other", topic=second, values="(1), (3)"))
    shop.dbt(command, "--select", "m", "--full-refresh")
    assert shop.rows("select id from demo.m order by id") == [(1,), (3,)]
    assert _ids(shop, "other") == [10, 30]
    assert topics_left(_admin(broker), f"key_{command}_", {second, f"{second}__snapshots"}) == {
        *(second, f"{second}__snapshots")
    }
    assert shop.engine.staged("demo") == ()


def test_a_retry_behind_a_commit_publishes_and_writes_nothing_twice(logged: Shop, broker: BrokerInfo) -> None:
    """An append model whose row is too large for its topic: committed, pending, failed; `dbt retry` only publishes."""
    topic = "retried_big"
    config = f"{{{{ config(materialized='incremental', log_system='kafka', kafka_topic='{topic}') }}}}"
    noise = "transform(sequence(1, {{ var('copies', 1) }}), i -> sha2(cast(i as string), 512))"
    logged.write("models/big.sql", f"{config}\nselect 1 as id, concat_ws('', {noise}) as text")
    logged.dbt("run", "--select", "big")
    _limit(broker, topic, 1000)
    logged.dbt("run", "--select", "big", "--vars", "{copies: 100}", ok=False)
    assert "TS1070" in logged.log
    assert "do not write these rows again" in logged.log
    assert "`dbt retry` sends it and writes nothing" in logged.log
    logged.dbt("retry", ok=False)
    assert logged.engine.count_log_messages("demo.big") == 1
    _limit(broker, topic, 1_000_000)
    logged.dbt("retry")
    assert logged.rows("select count(*) from demo.big") == [(2,)]
    assert logged.engine.count_log_messages("demo.big") == 2
    logged.dbt("run", "--select", "big")
    assert logged.rows("select count(*) from demo.big") == [(3,)]


NOISE = "".join(hashlib.sha512(str(number).encode()).hexdigest() for number in range(40))


@pytest.mark.nightly  # by day the retry behind a commit
def test_a_log_that_fails_behind_green_tests_is_pending(logged: Shop, broker: BrokerInfo) -> None:
    """Published in the table, too large for the topic: the test that asked ends in error, `dbt retry` sends it."""
    logged.orders(GOOD)
    logged.dbt("build")
    topic = logged.response("orders")["kafka_topic"]
    _limit(broker, topic, 1000)
    logged.orders(GOOD, f"2,{NOISE},20.00,placed,2026-01-02 11:00:00")
    logged.dbt("build", ok=False)
    assert logged.rows("select order_id from demo.orders order by 1") == [(1,), (2,)]
    assert logged.engine.count_log_messages("demo.orders") == 1
    answer = logged.response("orders")
    assert answer["published"] == "pending"
    assert topic in answer["reason"]
    (failed,) = [one for one in logged.results().values() if one["status"] == "error"]
    assert failed["unique_id"].startswith("test.")
    assert "TS1876" in failed["message"]
    assert "its log is PENDING" in failed["message"]
    assert "dbt retry" in failed["message"]
    assert not [line for line in logged.lines if "demo.orders NOT published" in line]
    assert [line for line in logged.shown if line.endswith("send it: tablestore publish demo.orders")]
    assert [line for line in logged.shown if line.endswith("and their logs are pending: demo.orders")]
    assert not [line for line in logged.shown if "readers do not see" in line]
    _limit(broker, topic, 1_000_000)
    logged.dbt("retry")
    assert (
        logged.engine.count_log_messages("demo.orders") == 3
    )  # an upsert sends the row that it found again, too
    assert logged.rows("select sum(orders) from demo.daily") == [(2,)]
    assert logged.engine.staged("demo") == ()


LOGGED = "log_system='kafka', kafka_topic='{topic}'"


@pytest.mark.nightly  # by day kafka/test_replaced_logs.py; another key below
def test_a_full_refresh_changes_the_log(shop: Shop, broker: BrokerInfo) -> None:
    """Another topic, none, one again: the new topic has all rows of the table, the one before goes with its table."""
    shop.output["log"] = {"kafka.bootstrap.servers": broker.url}

    def build(log: str, *more: str, ok: bool = True) -> None:
        config = f"materialized='tablestore', primary_key='id', {log}"
        shop.write("models/m.sql", f"{{{{ config({config}) }}}} select id from values (1), (2), (3) as t(id)")
        shop.dbt("run", "--select", "m", *more, ok=ok)

    build(LOGGED.format(topic="refreshed_a"))
    build(LOGGED.format(topic="refreshed_b"), ok=False)
    assert "kafka.topic" in shop.results()["m"]["message"]
    assert "--full-refresh" in shop.results()["m"]["message"]
    assert _topics(broker, "refreshed_") == ["refreshed_a", "refreshed_a__snapshots"]
    build(LOGGED.format(topic="refreshed_b"), "--full-refresh")
    assert "kafka.topic refreshed_a -> refreshed_b" in shop.log
    assert _topics(broker, "refreshed_") == ["refreshed_b", "refreshed_b__snapshots"]
    assert _ids(shop) == [1, 2, 3]
    build("", "--full-refresh")
    assert _topics(broker, "refreshed_") == []
    assert shop.rows("select count(*) from demo.m") == [(3,)]
    assert shop.engine.table("demo.m").facts().log is None
    build(LOGGED.format(topic="refreshed_c"), "--full-refresh")
    assert _topics(broker, "refreshed_") == ["refreshed_c", "refreshed_c__snapshots"]
    assert _ids(shop) == [1, 2, 3]


def _ids(shop: Shop, key: str = "id") -> list[int]:
    """Keys of the table's messages."""
    messages = shop.engine.table("demo.m").log_messages()
    return sorted(json.loads(one.key or b"{}")[key] for one in messages)


def _admin(broker: BrokerInfo) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.url})


def _topics(broker: BrokerInfo, prefix: str) -> list[str]:
    """Names that begin so."""
    found = AdminClient({"bootstrap.servers": broker.url}).list_topics(timeout=10).topics
    return sorted(name for name in found if name.startswith(prefix))


def test_a_secret_in_a_config_stops_dbt_before_it_writes_a_manifest(logged: Shop) -> None:
    """TS1818 while parsing, in SQL and in YAML; no file under target or logs has the value."""
    logged.keeps_manifest = True
    path = logged.folder / "models/orders.sql"
    plain = path.read_text()
    path.write_text(plain.replace("log_system=", "kafka={'sasl.password': 'hunter2'}, log_system="))
    logged.dbt("parse", ok=False)
    assert "TS1818" in logged.log
    path.write_text(plain)
    logged.write("dbt_project.yml", (logged.folder / "dbt_project.yml").read_text() + YAML_SECRET)
    logged.dbt("parse", ok=False)
    assert "TS1818" in logged.log
    written = [
        one for folder in ("target", "logs") for one in (logged.folder / folder).rglob("*") if one.is_file()
    ]
    assert not [one for one in written if b"hunter2" in one.read_bytes()]


YAML_SECRET = """
models:
  shop:
    +table_properties: {"fs.azure.account.key.acme": hunter2}
"""


def _limit(broker: BrokerInfo, topic: str, size: int) -> None:
    """max.message.bytes of a topic."""
    admin = AdminClient({"bootstrap.servers": broker.url})
    change = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


CONTRACT = """
models:
  - name: feed
    config: {{contract: {{enforced: true}}}}
    columns: [{columns}]
"""


def test_a_contract_keeps_what_consumers_of_the_topic_read(logged: Shop) -> None:
    """A column that goes is refused, in a full refresh too, before anything is written; where it is allowed it goes."""
    config = "materialized='tablestore', primary_key=['id'], log_system='kafka', kafka_topic='feed_contract'"

    def model(columns: str, text: str, more: str = "") -> None:
        logged.write("models/feed.yml", CONTRACT.format(columns=columns))
        logged.write("models/feed.sql", f"{{{{ config({config}{more}) }}}}\nselect {text}")

    model("{name: id, data_type: int}, {name: v, data_type: string}", "1 as id, 'a' as v")
    logged.dbt("run", "--select", "feed")
    model("{name: id, data_type: int}", "1 as id")
    logged.dbt("run", "--select", "feed", "--full-refresh", ok=False)
    assert "TS1877" in logged.log
    assert logged.rows("select * from demo.feed") == [(1, "a")]
    assert logged.engine.count_log_messages("demo.feed") == 1
    model("{name: id, data_type: int}", "1 as id", ", contract_changes='allowed'")
    logged.dbt("run", "--select", "feed", "--full-refresh")
    assert logged.rows("select * from demo.feed") == [(1,)]
