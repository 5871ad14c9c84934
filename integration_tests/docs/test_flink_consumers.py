"""Flink reads the topic as docs/kafka-envelope.md says: a real cluster of one JVM, with the connectors of the page.

Bounded    the scripts of the page never end; here they end at the topic's end, everything else is as on the page
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.docs.order_log import KILLS, NAME, OrderLog
from integration_tests.docs.page_consumers import program
from integration_tests.interop.environments import CannotMake
from integration_tests.interop.flink_sql import FlinkSql
from integration_tests.interop.rows import Change, Row, plain_rows
from tablestore_engine.devservers.kafka_broker import BrokerInfo

pytestmark = pytest.mark.nightly  # 190 MB of jars, about a minute


@pytest.fixture(scope="module")
def flink_sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkSql]:
    """One cluster; without its jars the tests are skipped, but fail under CI."""
    try:
        cluster = FlinkSql(tmp_path_factory.mktemp("flink"))
    except CannotMake as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"Flink cannot be had: {missing}")
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def logs(broker: BrokerInfo, tmp_path_factory: pytest.TempPathFactory) -> dict[str, OrderLog]:
    """After kills: both consistencies, and mode `all` with and without a key."""
    made = {
        "transactional": {},
        "eventual": {},
        "all": {"log.changelog-mode": "all"},
        "no key": {"bucket": "-1"},
    }
    found = {}
    for name, options in made.items():
        consistency = "eventual" if name == "eventual" else "transactional"
        folder = tmp_path_factory.mktemp("flink-log")
        log = OrderLog(folder, broker.url, consistency, is_keyed=name != "no key", **options)
        for crash in KILLS[consistency][:2]:
            log.write(1, crash=crash)
            log.publish()
        found[name] = log
    return found


def _script(name: str, log: OrderLog, *changed: tuple[str, str]) -> str:
    """A script of the page for this topic, which ends."""
    here = (
        ("'localhost:9092'", f"'{log.url}'"),
        ("'topic' = 'orders',", f"'topic' = '{log.topic}', 'scan.bounded.mode' = 'latest-offset',"),
    )
    return program(name, *here, *changed)


def _bag(changes: list[Change]) -> Counter[Row]:
    """Added rows without removed ones."""
    rows: Counter[Row] = Counter()
    for kind, row in changes:
        rows[row] += 1 if kind in ("+I", "+U") else -1
    return Counter({row: count for row, count in rows.items() if count})


def _table(log: OrderLog) -> Counter[Row]:
    """The rows of the table."""
    rows = log.engine.table(NAME).scan(columns=["order_id", "customer", "amount"]).to_arrow()
    return Counter(plain_rows(rows))


@pytest.mark.parametrize("name", ["transactional", "eventual"])
def test_upsert_kafka_reads_a_log_of_upserts(
    flink_sql: FlinkSql, logs: dict[str, OrderLog], name: str
) -> None:
    """With deletes, in both consistencies."""
    changes = flink_sql.changes(_script("orders_upsert.sql", logs[name]))
    assert _bag(changes) == _table(logs[name])
    assert {kind for kind, _ in changes} == {"+I", "-U", "+U", "-D"}


@pytest.mark.parametrize("consistency", KILLS)
def test_upsert_kafka_reads_rows_and_tombstones_of_json(
    flink_sql: FlinkSql, broker: BrokerInfo, tmp_path: Path, consistency: str
) -> None:
    """`log.format=json` is the connector's own form: columns stand in the value, and a delete arrives as one."""
    log = OrderLog(tmp_path, broker.url, consistency, **{"log.format": "json"})
    for crash in KILLS[consistency][:2]:
        log.write(1, crash=crash)
        log.publish()
    changes = flink_sql.changes(_script("orders_json.sql", log))
    assert _bag(changes) == _table(log)
    assert {kind for kind, _ in changes} == {"+I", "-U", "+U", "-D"}


@pytest.mark.parametrize("name", ["all", "no key"])
def test_kafka_reads_a_log_of_all_rows(flink_sql: FlinkSql, logs: dict[str, OrderLog], name: str) -> None:
    """Each change once, though publishers were killed; `read_uncommitted` has rows twice."""
    log = logs[name]
    without_key = (("amount DOUBLE,\n  PRIMARY KEY (order_id) NOT ENFORCED", "amount DOUBLE"),) * (
        name == "no key"
    )
    assert _bag(flink_sql.changes(_script("orders_all.sql", log, *without_key))) == _table(log)
    uncommitted = ("'read_committed'", "'read_uncommitted'")
    assert _bag(flink_sql.changes(_script("orders_all.sql", log, *without_key, uncommitted))) != _table(log)


def test_kafka_misses_the_deletes_of_a_log_of_upserts(flink_sql: FlinkSql, logs: dict[str, OrderLog]) -> None:
    """Rows that are gone stay, and there is no error."""
    log = logs["transactional"]
    found = {row[0] for row in _bag(flink_sql.changes(_script("orders_all.sql", log)))}
    assert found > {row[0] for row in _table(log)}


_ROW = "`after` ROW<customer STRING, amount DOUBLE>"
_PICKED = "`after`.customer, `after`.amount"


@pytest.mark.parametrize(
    ("value_format", "column", "row"),
    [
        ("canal-json", "`data` ARRAY<ROW<customer STRING, amount DOUBLE>>", "`data`[1]"),
        ("maxwell-json", "`data` ROW<customer STRING, amount DOUBLE>", "`data`"),
    ],
)
def test_other_json_formats(
    flink_sql: FlinkSql, broker: BrokerInfo, tmp_path: Path, value_format: str, column: str, row: str
) -> None:
    """Both connectors, with what the page says is different for them."""
    log = OrderLog(tmp_path / "upsert", broker.url, "eventual", **{"log.format": value_format})
    other = ((_ROW, column), (_PICKED, f"{row}.customer, {row}.amount"))
    assert _bag(flink_sql.changes(_script("orders_upsert.sql", log, *other))) == _table(log)
    log = OrderLog(
        tmp_path / "all",
        broker.url,
        "transactional",
        **{"log.format": value_format, "log.changelog-mode": "all"},
    )
    other = (("'debezium-json'", f"'{value_format}'"),)
    assert _bag(flink_sql.changes(_script("orders_all.sql", log, *other))) == _table(log)
