"""A table that lives in a dict: the changelog that the publisher reads, without any file."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.format.schema import new_schema
from tablestore_engine.log.changes import SnapshotChanges
from tablestore_engine.log.kafka.bounded_reader import read_messages
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.log_lifecycle import prepare_log
from tablestore_engine.log.kafka.settings import LogSettings, resolve_log
from tests.unit.log.change_batch import ChangeBatch

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
Row = tuple[int, str, int]


@dataclass
class Source:
    """`snapshots[n]` is snapshot n+1: None without changes, else batches of (bucket, [(kind, id)…])."""

    buckets: int = 2
    uuid: str = field(default_factory=lambda: uuid.uuid4().hex)
    snapshots: list[list[tuple[int, list[tuple[str, int]]]] | None] = field(default_factory=list)
    pad: int = 0

    def grow(self, count: int, rows: int = 6) -> None:
        """Add snapshots: inserts, an update pair, a delete, spread over the buckets; every fifth is empty."""
        for _ in range(count):
            number = len(self.snapshots) + 1
            if number % 5 == 0:
                self.snapshots.append(None)
                continue
            ids = range(number * 1000, number * 1000 + rows)
            changes = [("+I", i) for i in ids] + [("-U", ids[0]), ("+U", ids[0]), ("-D", ids[-1])]
            self.snapshots.append(
                [(b, [c for c in changes if c[1] % self.buckets == b]) for b in range(self.buckets)]
            )

    def read(self, snapshot_id: int) -> SnapshotChanges | None:
        """The publisher's read_changes."""
        content = self.snapshots[snapshot_id - 1]
        if content is None:
            return None
        schema = new_schema(COLUMNS, primary_keys=["id"])
        batches = [ChangeBatch(bucket, self._table(changes)) for bucket, changes in content]
        return SnapshotChanges(snapshot_id, "tester", snapshot_id, schema, batches)

    def find_commit(self, snapshot_id: int) -> str:
        """The publisher's find_commit."""
        return f"tester:{snapshot_id}"

    def _table(self, changes: list[tuple[str, int]]) -> pa.Table:
        ids = [i for _, i in changes]
        # noise, so that compression does not make a large row small
        names = [f"name {i}" + random.Random(i).randbytes(self.pad // 2).hex() for i in ids]
        kinds = [("+I", "-U", "+U", "-D").index(kind) for kind, _ in changes]
        return pa.table(
            [pa.array(ids, pa.int64()), pa.array(names), pa.array(kinds, pa.int8())],
            ["id", "name", "_ROW_KIND"],
        )


def settings_of(source: Source, url: str, **options: str) -> LogSettings:
    """Settings of this table; the topic is named after its uuid."""
    resolved = resolve_log(
        {
            "log.system": "kafka",
            "changelog-producer": "lookup",
            "kafka.topic": f"t-{source.uuid}",
            "bucket": str(source.buckets),
            "tablestore.table-uuid": source.uuid,
            **options,
        },
        {"kafka.bootstrap.servers": url},
        table="demo.t",
        is_keyed=True,
    )
    assert resolved is not None
    return resolved


def with_timeout(settings: LogSettings, seconds: float) -> LogSettings:
    """The same log, whose clients wait that long for an answer."""
    return replace(settings, client=replace(settings.client, timeout_s=seconds))


def new_table(broker: BrokerInfo, snapshots: int, **options: str) -> tuple[Source, LogSettings]:
    """A source with that many snapshots and its prepared topics."""
    source = Source()
    source.grow(snapshots)
    settings = settings_of(source, broker.url, **options)
    prepare_log(KafkaLog(settings))
    return source, settings


def expected(source: Source, snapshots: range | None = None) -> Mapping[int, list[Row]]:
    """Mode upsert: everything but -U, in order."""
    wanted: dict[int, list[Row]] = {bucket: [] for bucket in range(source.buckets)}
    for number in snapshots if snapshots is not None else range(1, len(source.snapshots) + 1):
        for bucket, changes in source.snapshots[number - 1] or []:
            wanted[bucket] += [(number, kind, i) for kind, i in changes if kind != "-U"]
    return wanted


def await_published(source: Source, settings: LogSettings, wanted: Mapping[int, list[Row]]) -> None:
    """For a publisher that was killed right behind its commit: readers see it a moment later."""
    deadline = time.monotonic() + 120
    while published(source, settings) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert published(source, settings) == wanted


def published(
    source: Source, settings: LogSettings, isolation: str = "read_committed"
) -> Mapping[int, list[Row]]:
    """(snapshot, kind, id) of every message, per partition, in offset order; checks headers and envelope on the way."""
    seen: dict[int, list[Row]] = {bucket: [] for bucket in range(source.buckets)}
    numbers: dict[tuple[int, int], int] = {}
    for message in read_messages(KafkaLog(settings), isolation=isolation):
        assert message.snapshot_id is not None
        assert message.kind is not None
        assert message.commit == f"tester:{message.snapshot_id}"
        key = json.loads(message.key or b"")["id"]
        if message.value is not None:
            assert json.loads(message.value)["after"]["id"] == key
        if isolation == "read_committed":
            place = (message.snapshot_id, message.partition)
            assert message.sequence == numbers.get(place, 0), "header q counts from 0 without a gap"
            numbers[place] = numbers.get(place, 0) + 1
        seen[message.partition].append((message.snapshot_id, message.kind.short_string, key))
    return seen
