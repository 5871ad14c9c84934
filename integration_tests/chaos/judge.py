"""What is expected of a table and its topic, and what is there.

Table      each snapshot is somebody's command: its rows and its changes are what a dict says; each ack names its
           snapshot; the files keep their invariants
Log        transactional: per partition exactly the changelog files behind `base`, in order, each row once; header q
           counts without a gap; markers ascend · eventual: the last message of each key is the table's row, every
           changed row is there at least once; at an epoch's end what each marker promises (check_markers)
INVARIANT  what is expected comes from seed and acks; the order of rows within a snapshot alone from its files.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from integration_tests.chaos.attacker import ack_file
from integration_tests.chaos.readers import Told, check_exact, check_keys, check_told, follow
from integration_tests.chaos.tables import Kind, command_of, writer_of
from integration_tests.interop.oracle import Oracle
from integration_tests.interop.rows import Change, assert_same
from integration_tests.kafka.eventual import check_markers, settings_of_table
from tablestore_engine.api import Engine
from tablestore_engine.errors import NotFound
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.changelog import ChangelogReader

_POLL_SECONDS = 30.0
Sent = tuple[int, str, int, str | None]  # snapshot, row kind, key, value


@dataclass(frozen=True)
class Seen:
    """`snapshot`: None of a row that was sent before there was one."""

    partition: int
    snapshot: int | None
    sequence: int
    kind: str
    key: int
    value: str | None

    @property
    def sent(self) -> Sent:
        """To be compared; a row whose snapshot is not known has no place there."""
        assert self.snapshot is not None
        return self.snapshot, self.kind, self.key, self.value


@dataclass
class Judge:
    """`base`: the log begins behind this snapshot, since its topic was made anew; `resets`: how often it was."""

    kind: Kind
    epoch: int
    seed: int
    root: Path
    base: int = 0
    resets: int = 0
    lost_markers: bool = False
    found: dict[tuple[int, int], int] = field(default_factory=dict)
    wanted: dict[int, list[Sent]] = field(default_factory=dict)
    changes: dict[int, list[Change]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    _oracle: Oracle | None = None
    _checked: int = 0
    _checked_acks: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the table."""
        return self.kind.table(self.epoch)

    @property
    def where(self) -> str:
        """For messages."""
        return f"seed {self.seed}, {self.name}"

    # the table -----------------------------------------------------------------------------------

    def check_table(self, engine: Engine) -> None:
        """Everything that is new in it."""
        table = engine.table(self.name)
        problems = table.verify()
        assert not problems, f"{self.where}: {problems}"
        oracle = self._oracle or Oracle(self.kind.schema)
        self._oracle = oracle
        for snapshot in table.snapshots():
            if snapshot.id > self._checked:
                self._check_snapshot(engine, snapshot, oracle)
                self._checked = snapshot.id
        for writer in range(self.kind.writers):
            self._check_acks(writer)

    def _check_snapshot(self, engine: Engine, snapshot: Snapshot, oracle: Oracle) -> None:
        where, table = f"{self.where}, snapshot {snapshot.id}", engine.table(self.name)
        expected: list[Change] = []
        if snapshot.commit_kind != "COMPACT":
            writer = writer_of(snapshot.commit_user)
            assert writer is not None, f"{where} is of {snapshot.commit_user}"
            identity = (writer, snapshot.commit_identifier)
            assert identity not in self.found, f"{where}: {identity} is there twice"
            self.found[identity] = snapshot.id
            command = command_of(self.seed, self.kind, *identity)
            expected = list(command.apply(oracle))
        changes = table.changes(snapshot.id - 1, snapshot.id)
        pairs = zip(changes["_row_kind"].to_pylist(), _id_and_value(changes), strict=True)
        assert_same(expected, list(pairs), where)
        assert_same(
            oracle.rows(), list(_id_and_value(table.scan(snapshot=snapshot.id).to_arrow())), f"{where}, rows"
        )
        self.changes[snapshot.id] = expected
        self._want(engine, snapshot)
        self.counts["snapshots"] += 1

    def _want(self, engine: Engine, snapshot: Snapshot) -> None:
        """Its messages, per partition: in the mode upsert without -U, and a delete has no value."""
        store = engine.table(self.name).store
        if not ChangelogReader(store.context).has_changes(snapshot):
            return
        for batch in ChangelogReader(store.context).read(snapshot):
            kinds = [RowKind(one) for one in batch.rows["_ROW_KIND"].to_pylist()]
            rows = self.wanted.setdefault(max(batch.bucket, 0), [])
            for kind, (key, value) in zip(kinds, _id_and_value(batch.rows), strict=True):
                if self.kind.is_keyed and kind is RowKind.UPDATE_BEFORE:
                    continue
                gone = self.kind.is_keyed and kind is RowKind.DELETE
                rows.append((snapshot.id, kind.short_string, key, None if gone else value))

    def _check_acks(self, writer: int) -> None:
        for turn, snapshot in read_acks(self.root, self.name, writer).items():
            if turn <= self._checked_acks.get(writer, -1):
                continue
            self._checked_acks[writer] = turn
            if snapshot is not None:
                there = self.found.get((writer, turn))
                assert there == snapshot, (
                    f"{self.where}: ack of {writer}.{turn} says {snapshot}, it is {there}"
                )
                self.counts["acknowledged"] += 1

    # the log -------------------------------------------------------------------------------------

    def check_log(self, engine: Engine, url: str) -> None:
        """After check_table, and when all is published."""
        topic = self.kind.topic(self.epoch, self.seed)
        seen = list(read_topic(url, topic))
        if self.kind.is_eventual:
            self._check_eventual(engine, seen)
        else:
            self._check_transactional(seen)
        self._check_marker_topic(url, topic)

    def check_promises(self, engine: Engine, url: str) -> None:
        """Each marker of an eventual log against the table's past."""
        if self.kind.is_eventual:
            check_markers(engine, self.name, settings_of_table(engine, self.name, url))

    def check_readers(self, engine: Engine, chance: random.Random) -> None:
        """Our own readers over the log: from its beginning, at a snapshot's rows, at the newest ones."""
        starts: list[tuple[str, int | None]] = [("latest-full", None)]
        if self.resets == 0:
            starts.append(("earliest", None))
        if self._checked > self.base:
            starts.append(("from-snapshot-full", chance.randint(self.base + 1, self._checked)))
        for mode, snapshot in starts:
            told = follow(engine, self.name, mode, snapshot, chance.choice((1, 7, 1_000)))
            where = f"{self.where}, read {mode} {snapshot or ''}"
            try:
                self._check_told(told, mode, where)
            except NotFound as refused:
                # of an eventual log some snapshots have no boundary, and none has one before markers were lost
                may_lack = self.kind.is_eventual or self.lost_markers
                if refused.code != "TS1356" or not may_lack or mode == "latest-full":
                    raise
                self.counts["starts without a boundary"] += 1
            except AssertionError:
                self.counts["wrong"] += 1
                raise

    def _check_told(self, told: Iterator[Told], mode: str, where: str) -> None:
        rows = list(check_keys(told, where) if self.kind.is_keyed else told)
        assert self._oracle is not None
        self.counts["told by readers"] += check_told(rows, self._oracle.rows(), where)
        if mode == "earliest" and not self.kind.is_eventual and not self.lost_markers:
            check_exact(rows, self.changes, where)

    def _check_transactional(self, seen: list[Seen]) -> None:
        for partition in range(self.kind.buckets):
            wanted = [one for one in self.wanted.get(partition, []) if one[0] > self.base]
            have = [one.sent for one in seen if one.partition == partition]
            lost, doubled = Counter(wanted) - Counter(have), Counter(have) - Counter(wanted)
            where = f"{self.where}, partition {partition}"
            self.counts["lost"] += lost.total()
            self.counts["doubled"] += doubled.total()
            assert not lost, f"{where}: {lost.total()} of {len(wanted)} lost: {sorted(lost)[:4]}"
            assert not doubled, f"{where}: {doubled.total()} of {len(have)} too much: {sorted(doubled)[:4]}"
            assert have == wanted, f"{where}: not in order"
            expected: Counter[int] = Counter()
            for one in (message for message in seen if message.partition == partition):
                assert one.sequence == expected[one.snapshot or 0], f"{where}: q of {one}"
                expected[one.snapshot or 0] += 1

    def _check_eventual(self, engine: Engine, seen: list[Seen]) -> None:
        last = {one.key: one.value for one in seen}
        folded = sorted((key, value) for key, value in last.items() if value is not None)
        assert self._oracle is not None
        assert_same(self._oracle.rows(), folded, f"{self.where}: the last message of each key")
        sent = {(one.key, one.value) for one in seen}
        wanted = [(one[2], one[3]) for rows in self.wanted.values() for one in rows if one[0] > self.base]
        lost = [one for one in wanted if one not in sent]
        self.counts["lost"] += len(lost)
        assert not lost, f"{self.where}: {len(lost)} of {len(wanted)} never came: {lost[:4]}"

    def _check_marker_topic(self, url: str, topic: str) -> None:
        """Of each shard by itself; the log is where all of them are."""
        found: dict[int, list[dict[str, Any]]] = {shard: [] for shard in range(self.kind.shards)}
        for message in _read(url, f"{topic}__snapshots"):
            value = message.value()
            if value is not None:
                found[message.partition() or 0].append(json.loads(value))
        for shard, markers in found.items():
            self._check_markers(markers, f"{self.where}, shard {shard}")

    def _check_markers(self, markers: Sequence[dict[str, Any]], where: str) -> None:
        before, beginnings = (0, 0), 0
        for marker in markers:
            place = (marker["snapshot"], marker["chunk"])
            if not marker["commit"]:  # a claim, or a new beginning
                before, beginnings = place, beginnings + (place[0] > 0)
                continue
            # of an eventual log a marker may come again, to answer for more
            ascends = place[0] >= before[0] if self.kind.is_eventual else place > before
            assert ascends, f"{where}: marker {place} behind {before}"
            before = place
        assert beginnings <= self.resets, (
            f"{where}: {beginnings} new beginnings, {self.resets} were asked for"
        )
        assert markers, f"{where}: no marker"
        newest = markers[-1]
        assert newest["last"], f"{where}: the newest marker is of a part of snapshot {newest['snapshot']}"
        assert newest["snapshot"] == self._checked, f"{where}: marker {newest}, snapshot {self._checked}"

    def count_rows(self, url: str) -> None:
        """At an epoch's end."""
        seen = list(read_topic(url, self.kind.topic(self.epoch, self.seed)))
        self.counts["messages"] += len(seen)
        if self.kind.is_eventual:
            wanted = sum(one[0] > self.base for rows in self.wanted.values() for one in rows)
            self.counts["sent again or taken back"] += len(seen) - wanted


def read_acks(root: Path, table: str, writer: int) -> Mapping[int, int | None]:
    """Turn -> snapshot."""
    path = ack_file(root, table, writer)
    if not path.exists():
        return {}
    pairs = (line.split() for line in path.read_text().splitlines())
    return {int(turn): None if snapshot == "-" else int(snapshot) for turn, snapshot in pairs}


def read_topic(url: str, topic: str) -> Iterator[Seen]:
    """Partition by partition, in order."""
    for message in _read(url, topic):
        headers = dict(message.headers() or [])
        value, raw_key = message.value(), message.key()
        body = {} if value is None else json.loads(value)
        row = body.get("after") or body.get("before") or {}
        key = row["id"] if raw_key is None else json.loads(raw_key)["id"]
        yield Seen(
            partition=message.partition(),
            snapshot=int(headers["s"]) if "s" in headers else None,
            sequence=int(headers["q"]),
            kind=headers["k"].decode(),
            key=key,
            value=row.get("v"),
        )


def _read(url: str, topic: str) -> Iterator[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": url,
            "group.id": f"chaos-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=_POLL_SECONDS).topics[topic].partitions
        for partition in sorted(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            yield from _read_partition(consumer, topic)
    finally:
        consumer.close()


def _read_partition(consumer: Consumer, topic: str) -> Iterator[Message]:
    while True:
        messages = consumer.consume(5_000, timeout=0.02)
        if not messages:
            messages = [one for one in [consumer.poll(_POLL_SECONDS)] if one is not None]
        if not messages:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{topic} gives no answer"))
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                return
            elif not error.retriable() and error.code() != KafkaError._TRANSPORT:
                raise KafkaException(error)


def _id_and_value(rows: pa.Table) -> Iterator[tuple[int, str]]:
    return zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)
