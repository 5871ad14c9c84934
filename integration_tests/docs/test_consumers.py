"""The consumers of docs/kafka-envelope.md keep a correct copy, and one that breaks a rule of the page does not."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from integration_tests.docs.order_log import KILLS, NAME, OrderLog, Rows
from integration_tests.docs.page_consumers import (
    PAGE,
    Change,
    JavaConsumer,
    PythonConsumer,
    program,
)
from integration_tests.docs.snippets import read_snippets
from tablestore_engine.api import TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tests.doses import cases

CONSUMERS = [PythonConsumer, JavaConsumer]
# make test runs each test in one way, make test-nightly in the other: each is half a minute of killed processes
_NIGHTLY = pytest.mark.nightly
PYTHON_FIRST = [PythonConsumer, pytest.param(JavaConsumer, marks=_NIGHTLY)]
TRANSACTIONAL_FIRST = ["transactional", pytest.param("eventual", marks=_NIGHTLY)]
EVENTUAL_FIRST = ["eventual", pytest.param("transactional", marks=_NIGHTLY)]
FILES = {
    "orders_copy.py",
    "OrdersCopy.java",
    "orders_upsert.sql",
    "orders_all.sql",
    "orders_json.sql",
    "orders_start.py",
}
Kind = type[PythonConsumer] | type[JavaConsumer]
# what a consumer does that breaks a rule of the page, in each program
UNCOMMITTED: dict[Kind, Change] = {
    PythonConsumer: ('"isolation.level": "read_committed"', '"isolation.level": "read_uncommitted"'),
    JavaConsumer: ('"isolation.level", "read_committed"', '"isolation.level", "read_uncommitted"'),
}
FIRST_WINS: dict[Kind, Change] = {
    PythonConsumer: ("where ?3 = 0 or ?3 >= snapshot", "where false"),
    JavaConsumer: ("header == null || snapshot >= stored", "!rows.has(message.key())"),
}
NO_TOMBSTONES: dict[Kind, Change] = {
    PythonConsumer: ('"row" = excluded."row"', '"row" = coalesce(excluded."row", "row")'),
    JavaConsumer: ("header == null || snapshot >= stored", "message.value() != null"),
}
ONLY_WITH_SNAPSHOT: dict[Kind, Change] = {
    PythonConsumer: (
        "values (?1, json_extract(?2, '$.after'), ?3)",
        "select ?1, json_extract(?2, '$.after'), ?3 where ?3 > 0",
    ),
    JavaConsumer: ("header == null || snapshot >= stored", "header != null"),
}
LAST_READ_WINS: dict[Kind, Change] = {
    PythonConsumer: ("where ?3 = 0 or ?3 >= snapshot", "where true"),
    JavaConsumer: ("header == null || snapshot >= stored", "true"),
}


def _copy_of(kind: Kind, folder: Path, log: OrderLog, expected: Rows) -> dict[int, int]:
    """A copy from the beginning has these rows; how far it has read."""
    with kind(folder, log) as consumer:
        consumer.await_rows(expected)
        return consumer.positions()


def _broken_rows(kind: Kind, folder: Path, log: OrderLog, change: Change, reached: dict[int, int]) -> Rows:
    """The copy of a consumer that breaks a rule, when it has read as far as a good one."""
    with kind(folder, log, change) as consumer:
        consumer.await_positions(reached)
        return consumer.rows()


def test_every_program_of_the_page_is_run() -> None:
    """By the tests below, and by test_flink_consumers.py."""
    assert {one.file_name for one in read_snippets(PAGE)} - {None} == FILES


@pytest.mark.nightly  # by day kafka/test_exactly_once.py: kills; the page's programs below
@pytest.mark.parametrize("consistency", TRANSACTIONAL_FIRST)
def test_copies_are_the_table_whatever_is_killed(
    broker: BrokerInfo, tmp_path: Path, consistency: str
) -> None:
    """Writers die at each failpoint, consumers die between: transactional, a copy is always the published state. In
    both modes it is the table once that is published.
    """
    log = OrderLog(tmp_path / "warehouse", broker.url, consistency)
    with ExitStack() as stack:
        consumers = [stack.enter_context(kind(tmp_path / kind.__name__, log)) for kind in CONSUMERS]
        for crash in KILLS[consistency]:
            log.write(crash=crash)
            for consumer in consumers:
                consumer.kill()
                consumer.start()
                if consistency == "transactional":
                    consumer.await_rows(log.published_rows())
            log.write()
            for consumer in consumers:
                consumer.await_rows(log.rows())


@pytest.mark.nightly  # by day kafka/test_exactly_once.py: an open transaction
def test_uncommitted_rows_are_not_published(broker: BrokerInfo, tmp_path: Path) -> None:
    """A publisher is killed before its transaction ends: `read_uncommitted` has rows that will be sent again."""
    log = OrderLog(tmp_path / "warehouse", broker.url, "transactional")
    log.write(crash="log.marker:1")
    assert log.published_rows() != log.rows()
    for kind in CONSUMERS:
        with kind(tmp_path / f"bad-{kind.__name__}", log, UNCOMMITTED[kind]) as consumer:
            consumer.await_rows(log.rows())
        _copy_of(kind, tmp_path / kind.__name__, log, log.published_rows())


@pytest.fixture(scope="module")
def eventual_log(broker: BrokerInfo, tmp_path_factory: pytest.TempPathFactory) -> OrderLog:
    """With rows that were withdrawn, and rows that were sent twice."""
    log = OrderLog(tmp_path_factory.mktemp("eventual"), broker.url, "eventual")
    for crash in KILLS["eventual"]:
        log.write(crash=crash)
        log.publish()
    return log


@pytest.mark.nightly  # by day the copies above keep every rule
@pytest.mark.parametrize("kind", PYTHON_FIRST)
def test_an_eventual_log_needs_every_rule(eventual_log: OrderLog, tmp_path: Path, kind: Kind) -> None:
    """Who keeps the first row of a key, ignores tombstones or messages without snapshot has another table."""
    log, table = eventual_log, eventual_log.rows()
    keys = [one.key for one in log.engine.table(NAME).log_messages()]
    assert len(keys) > len(set(keys))
    reached = _copy_of(kind, tmp_path / "good", log, table)
    for number, change in enumerate((FIRST_WINS, NO_TOMBSTONES, ONLY_WITH_SNAPSHOT)):
        assert _broken_rows(kind, tmp_path / f"bad-{number}", log, change[kind], reached) != table


@pytest.mark.nightly  # by day kafka/test_rescale.py
@pytest.mark.parametrize("kind", PYTHON_FIRST)
def test_rows_in_former_partitions_are_ignored(broker: BrokerInfo, tmp_path: Path, kind: Kind) -> None:
    """A running consumer takes up the partitions of a rescale. One that reads the former partition last needs `s`."""
    log = OrderLog(tmp_path / "warehouse", broker.url, "transactional", bucket="1")
    with kind(tmp_path / "running", log) as consumer:
        consumer.await_rows(log.rows())
        log.engine.table(NAME).rescale(3)
        for order in range(6):
            log.put(order, "moved", order)
        log.delete(5)
        consumer.await_rows(log.rows())
        reached = consumer.positions()
        assert set(reached) == {0, 1, 2}
        _read_again(consumer)
        consumer.await_positions(reached)
        assert consumer.rows() == log.rows()
    with kind(tmp_path / "bad", log, LAST_READ_WINS[kind]) as consumer:
        consumer.await_positions(reached)
        _read_again(consumer)
        consumer.await_positions(reached)
        assert consumer.rows() != log.rows()


def _read_again(consumer: PythonConsumer | JavaConsumer) -> None:
    """All of partition 0, after the others."""
    consumer.kill()
    consumer.forget(0)
    consumer.start()


@pytest.mark.nightly  # by day the copies above, and the texts of a start below
@pytest.mark.parametrize("consistency", EVENTUAL_FIRST)
def test_a_copy_starts_with_the_table(broker: BrokerInfo, tmp_path: Path, consistency: str) -> None:
    """First messages are gone, rows are unconfirmed, a snapshot is pending: a start with the table gets a copy."""
    log = OrderLog(tmp_path / "warehouse", broker.url, consistency)
    log.write(crash="commit.manifests:1")
    log.publish()
    _delete_messages(log)
    with PythonConsumer(tmp_path / "late", log) as late:
        assert "messages are gone, start with the table" in late.ended()
    log.write(crash="commit.done:1")
    log.write(crash="commit.manifests:1")
    started = PythonConsumer(tmp_path / "started", log)
    _start(started, log, NAME)
    assert started.rows() == log.published_rows() != log.rows()
    with started:
        log.write()
        started.await_rows(log.rows())


def _start(started: PythonConsumer, log: OrderLog, table: str) -> None:
    """The page's program makes the copy."""
    (started.folder / "orders_start.py").write_text(program("orders_start.py"))
    words = ["orders_start.py", log.url, log.topic, started.copy_name, str(log.folder), table]
    subprocess.run([sys.executable, *words], cwd=started.folder, check=True, timeout=120)


def _delete_messages(log: OrderLog) -> None:
    """As the topic's retention does."""
    client = AdminClient({"bootstrap.servers": log.url})
    everything = [TopicPartition(log.topic, partition, OFFSET_END) for partition in range(2)]
    for done in client.delete_records(everything).values():
        done.result(30)


@pytest.mark.parametrize("kind", cases(CONSUMERS, 1))
def test_numbers_keep_their_digits(broker: BrokerInfo, tmp_path: Path, kind: Kind) -> None:
    """A decimal with more digits than a floating-point number has; a null; a text with quotes."""
    log = OrderLog(tmp_path / "warehouse", broker.url, "transactional")
    log.topic = f"{log.topic}-prices"
    amount = Decimal("12345678901234567890.1234567890")
    row = {"order_id": 1, "amount": amount, "customer": 'a "b"', "note": None}
    rows = pa.Table.from_pylist([row]).set_column(3, "note", pa.array([None], pa.string()))
    options = {"log.system": "kafka", "kafka.topic": log.topic}
    log.engine.write(
        "demo.prices", rows, WriteSpec(table=TableSpec(primary_key=("order_id",), options=options))
    )
    with kind(tmp_path / "consumer", log) as consumer:
        consumer.await_rows({1: ('a "b"', float(amount))})
        assert consumer.raw_rows() == [row]


def test_a_start_with_the_table_writes_the_texts_of_messages(broker: BrokerInfo, tmp_path: Path) -> None:
    """Keys and rows of all kinds of values are those of a copy that read the topic: no key is there twice."""
    log = OrderLog(tmp_path / "warehouse", broker.url, "transactional")
    log.topic = f"{log.topic}-kinds"
    at = datetime(2024, 3, 10, 7, 30, 0, 500_000)  # noqa: DTZ001 - a time without zone
    row = {
        "order_id": 1, "price": Decimal("12345678901234567890.1234567890"), "at": at, "seen": at.replace(tzinfo=UTC),
        "day": at.date(), "ratio": 1e22, "odd": float("nan"), "raw": b"\x00\xff", "note": None, "tags": ["a", None],
        "map": [("k", 1)], "deep": {"x": Decimal("0.10")}, "customer": 'a "b" \u00e9', "amount": 1.5,
    }  # fmt: skip
    types = {"note": pa.string(), "map": pa.map_(pa.string(), pa.int64()), "price": pa.decimal128(38, 10)}
    schema = pa.schema(
        [(name, types[name] if name in types else pa.array([one]).type) for name, one in row.items()]
    )
    options = {"log.system": "kafka", "kafka.topic": log.topic}
    key = ("order_id", "at", "price", "ratio")
    spec = WriteSpec(table=TableSpec(primary_key=key, options=options))
    log.engine.write("demo.kinds", pa.Table.from_pylist([row], schema), spec)
    read, started = PythonConsumer(tmp_path / "read", log), PythonConsumer(tmp_path / "started", log)
    with read:
        read.await_rows({1: ('a "b" \u00e9', 1.5)})
    _start(started, log, "demo.kinds")
    texts = 'select key, "row" from copy'
    assert started.query(texts) == read.query(texts)
    assert len(started.query(texts)) == 1
