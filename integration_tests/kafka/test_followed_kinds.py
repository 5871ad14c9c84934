"""Readers of every kind of log on a real broker: raw, of all rows, without a key, inserts only, shards, each format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from integration_tests.apicurio import Registry
from integration_tests.kafka.eventual import open_engine
from integration_tests.kafka.followed import (
    BOTH,
    STORED,
    changes,
    deletes,
    ended,
    expire,
    folded,
    grow,
    made,
    rows,
    stored,
)
from tablestore_engine.api import Engine, OnSchemaChange, WriteMode, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka import kafka_follower
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.stream.log_changes import PORTION_ROWS, LogChanges
from tests.doses import case_rows, cases


@pytest.fixture
def engine(tmp_path: Path, broker: BrokerInfo) -> Iterator[Engine]:
    """On the shared broker."""
    with open_engine(tmp_path, broker.url) as opened:
        yield opened


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_messages_as_they_are(engine: Engine, consistency: str) -> None:
    """Without the normalize step: the newest row of a key, and of a deleted one its key; by argument and by option."""
    table = made(engine, consistency, scan__remove_normalize="true")
    table.write(rows(_1="b"))
    table.write(deletes(1))
    raw = [change for change in changes(ended(table)) if change[1] == 1]
    assert raw == [("+I", 1, "a"), ("+U", 1, "b"), ("-D", 1, None)]
    assert changes(ended(table, normalize=False)) == changes(ended(table))
    exact = [change for change in changes(ended(table, normalize=True)) if change[1] == 1]
    assert exact == [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b"), ("-D", 1, "b")]


def test_a_log_of_all_rows_is_told_as_it_is(engine: Engine) -> None:
    """`log.changelog-mode=all`: the same rows as the files', and no snapshot is looked into."""
    table = made(engine, "transactional", log__changelog_mode="all")
    grow(table)
    expire(table)
    assert len(table.snapshot_ids()) == 1
    assert folded(changes(ended(table))) == stored(table)
    assert ("-U", 1, "a") in changes(ended(table))


def test_tables_without_a_key(engine: Engine) -> None:
    """Every appended row once, doubles too; stopped in the middle and gone on."""
    table = made(engine, "transactional", keyed=False)
    table.write(rows(_1="a", _2="b"), WriteSpec(mode=WriteMode.APPEND))
    with ended(table, batch_rows=4) as stream:
        first = next(stream)
        position = stream.position
    rest = changes(ended(table, position=position))
    got = [("+I", row["id"], row["v"]) for row in first.to_pylist()] + rest
    assert Counter(got) == Counter(("+I", row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())
    assert len(changes(ended(table, "from-snapshot", snapshot_id=2))) == 2


def test_inserts_only(engine: Engine) -> None:
    """`log.ignore-delete`: readers are told no deletes, and no rows before changes; all is an insert."""
    table = made(engine, "transactional", log__ignore_delete="true")
    table.write(rows(_1="b"))
    table.write(deletes(2))
    assert Counter(kind for kind, _, _ in changes(ended(table))) == {"+I": 10}


def test_a_log_of_several_publishers(engine: Engine) -> None:
    """`log.publish.shards`: a reader is told whole snapshots, whoever published which part of them first."""
    table = made(engine, "transactional", buckets=3, log__publish__shards="2")
    with ended(table) as live:
        found = folded(changes(live))
        grow(table)
        assert folded(changes(live), found) == stored(table)
    for until in table.snapshot_ids():
        assert folded(changes(ended(table, until=until, batch_rows=2))) == stored(table, until), until


def test_one_partition_is_far_ahead(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leader answers long before the others: it pauses when the room for what waits is full, helps nobody who waits
    for another partition, and every row comes, in order.
    """
    monkeypatch.setattr(kafka_follower, "QUEUE_MAX", 50)
    monkeypatch.setattr(kafka_follower, "_TAKE", 20)
    monkeypatch.setitem(LogChanges.__init__.__kwdefaults__ or {}, "portion_rows", 30)
    table = made(engine, "transactional", buckets=3)
    table.write(pa.table({"id": list(range(300)), "v": ["x"] * 300}))
    table.write(deletes(*range(100, 200)))
    opened, readers = kafka_follower.make_consumer, list[_OneIsAhead]()

    def make(settings: LogSettings, **named: str) -> object:
        consumer = opened(settings, **named)
        if named:
            readers.append(_OneIsAhead(consumer))
        return readers[-1] if named else consumer

    monkeypatch.setattr(kafka_follower, "make_consumer", make)
    assert folded(changes(ended(table))) == stored(table)
    assert any(0 in reader.paused for reader in readers)


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_log_reader_snapshot_larger_than_queue_limit_returns_all_rows(
    engine: Engine, consistency: str
) -> None:
    """Inserts and updates of more rows in one partition than a queue and a portion hold: every change comes once."""
    table = made(engine, consistency, buckets=1)
    keys = np.arange(150_000)
    assert len(keys) > max(kafka_follower.QUEUE_MAX, PORTION_ROWS)
    for value in ("x", "y"):
        table.write(pa.table({"id": keys, "v": pa.array([value] * len(keys))}))
    found = pa.Table.from_batches(ended(table)).group_by(["_row_kind", "v"])
    counts = found.aggregate([("id", "count"), ("id", "count_distinct")]).to_pylist()
    expected = {
        ("+I", "a"): STORED,
        ("-U", "a"): STORED,
        ("+U", "x"): STORED,
        ("+I", "x"): len(keys) - STORED,
        ("-U", "x"): len(keys),
        ("+U", "y"): len(keys),
    }
    assert {(one["_row_kind"], one["v"]): one["id_count"] for one in counts} == expected
    assert all(one["id_count"] == one["id_count_distinct"] for one in counts)


class _OneIsAhead:
    """A consumer to whom the leader of partition 0 answers first, the others when it has nothing more."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer, self._held, self.paused = consumer, list[Message](), list[int]()

    def consume(self, count: int, timeout: float) -> list[Message]:
        """Of partition 0 alone, as long as some come."""
        came = self._consumer.consume(count, timeout)
        self._held += [one for one in came if one.partition() != 0]
        first = [one for one in came if one.partition() == 0]
        if first:
            return first
        held, self._held = self._held, []
        return held

    def assign(self, places: list[TopicPartition]) -> None:
        """What was held back is of another life."""
        self._held = []
        self._consumer.assign(places)

    def pause(self, places: list[TopicPartition]) -> None:
        """As the consumer does."""
        self.paused += [place.partition for place in places]
        self._consumer.pause(places)

    def __getattr__(self, name: str) -> object:
        return getattr(self._consumer, name)


_READ = [
    *(("json", one) for one in BOTH),
    *((value, "eventual") for value in ("canal-json", "maxwell-json")),
    ("avro", "transactional"),  # not eventual: TS1742; by day test_registry.py, which has a registry
]


@pytest.mark.parametrize(("value", "consistency"), case_rows(_READ, 2))
def test_formats(
    tmp_path: Path, broker: BrokerInfo, request: pytest.FixtureRequest, value: str, consistency: str
) -> None:
    """Rows, updates, deletes and a new column come out of each format as out of debezium-json."""
    log = {"kafka.bootstrap.servers": broker.url}
    if value == "avro":
        registry: Registry = request.getfixturevalue("registry")
        log["schema.registry.url"] = registry.url
    key = "avro" if value == "avro" else "json"
    with Engine(str(tmp_path), log=log) as engine:
        table = made(engine, consistency, log__format=value, log__key__format=key)
        with ended(table) as live:
            found = folded(changes(live))
            grow(table)
            wider = pa.table({"id": [1], "v": ["w"], "n": [1]})
            table.write(wider, WriteSpec(on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS))
            assert folded(changes(live), found) == stored(table)
        assert folded(changes(ended(table))) == stored(table)


def test_modes_that_do_not_go_together(engine: Engine) -> None:
    """A position of files over the log, and the reverse; a log that a table does not have: TS1339, before a row."""
    table = made(engine, "eventual")
    with ended(table, read_mode="file") as files, ended(table) as log:
        for stream, other in ((files, "log"), (log, "file")):
            next(stream)
            with pytest.raises(FixRequest, match="TS1339"):
                table.stream(position=stream.position, read_mode=other)
    engine.write("d.n", rows(_1="a"), WriteSpec())
    with pytest.raises(FixRequest, match="TS1339"):
        ended(engine.table("d.n"))
