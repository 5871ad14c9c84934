"""An eventual log in memory: a topic, its markers, a table that is a dict, and writers that may be stopped anywhere.

WHY        log/kafka/publisher.py, eventual_log, unconfirmed_records and transactional_publish run as they are; only the
           brokers are made of lists. So thousands of interleavings fit into a second.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import new_schema
from tablestore_engine.log.changes import SnapshotChanges, TableState
from tablestore_engine.log.kafka import kafka_log, transactional_publish
from tablestore_engine.log.kafka import publisher as publisher_module
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress, decode_marker, plan_progress
from tablestore_engine.log.kafka.eventual_log import EventualCall
from tablestore_engine.log.kafka.kafka_client import Reasons
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import LogTopics, TopicFacts
from tablestore_engine.log.kafka.message_headers import RowHeaders
from tablestore_engine.log.kafka.prepublish_producer import PrepublishedSpan
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.unconfirmed_records import PrepublishedMessage
from tablestore_engine.log.message_envelope import ChangelogMode, EncodedRows
from tablestore_engine.log.sink import PrepublishedCommit
from tablestore_engine.runtime.outside_world import Runtime
from tests.unit.log.change_batch import ChangeBatch

SCHEMA = new_schema(
    pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())]), primary_keys=["id"]
)
Table = Mapping[int, str]


class Dead(Exception):
    """The process ends here."""


def key_of(number: int) -> bytes:
    """As the envelope writes it."""
    return json.dumps({"id": number}, separators=(",", ":")).encode()


@dataclass
class Record:
    """`txn` None: an early row. `state`: open, committed or aborted; control records have no key."""

    key: bytes | None
    value: bytes | None = None
    token: str | None = None
    snapshot_id: int | None = None
    state: str = "committed"

    @property
    def row(self) -> tuple[int, str | None]:
        """Number and value, None for a tombstone."""
        value = None if self.value is None else json.loads(self.value)["after"]["v"]
        return json.loads(self.key or b"")["id"], value


@dataclass
class World:
    """`history[n]`: the table after snapshot n; `commits`, `changes` of snapshot n (0: the empty table)."""

    buckets: int = 2
    pause: Callable[[str], None] = lambda _: None
    topic: list[list[Record]] = field(default_factory=list)
    markers: list[CommitMarker] = field(default_factory=list)
    history: list[dict[int, str]] = field(default_factory=lambda: [{}])
    commits: list[str] = field(default_factory=lambda: [""])
    epoch: int = 0
    tokens: int = 0
    chunk_rows: int = 1_000
    keys_max: int = 1_000
    is_late: Callable[[], bool] = lambda: False
    late: list[tuple[int, str | None, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.topic = [[] for _ in range(self.buckets)]
        base = CommitMarker("u", 0, "", "t", offsets=dict.fromkeys(range(self.buckets), (0, 0)), early=True)
        self.markers.append(base)

    @property
    def settings(self) -> LogSettings:
        """Of the one table."""
        client = ClientConfig({"bootstrap.servers": "nowhere:1"})
        return LogSettings(
            "d.t", "u", "t", self.buckets, ChangelogMode.UPSERT, client,
            chunk_rows=self.chunk_rows, is_eventual=True,
        )  # fmt: skip

    @property
    def latest(self) -> int:
        """The newest snapshot."""
        return len(self.history) - 1

    # ---- table -------------------------------------------------------------------------------------------------

    def claim(self, after: dict[int, str], commit: str) -> int:
        """The next snapshot."""
        self.history.append(after)
        self.commits.append(commit)
        return self.latest

    def changes(self, snapshot_id: int) -> dict[int, str | None]:
        """Key → new value, None when it is gone."""
        return difference(self.history[snapshot_id - 1], self.history[snapshot_id])

    def read_changes(self, snapshot_id: int) -> SnapshotChanges | None:
        """As the store gives them, one batch per bucket."""
        changed = self.changes(snapshot_id)
        if not changed:
            return None
        batches = []
        for bucket in range(self.buckets):
            mine = {key: value for key, value in changed.items() if key % self.buckets == bucket}
            kinds = [RowKind.DELETE if value is None else RowKind.UPDATE_AFTER for value in mine.values()]
            batches.append(ChangeBatch(bucket, _arrow(mine, kinds)))
        user, _, identifier = self.commits[snapshot_id].rpartition(":")
        return SnapshotChanges(snapshot_id, user, int(identifier), SCHEMA, batches)

    def read_state(self, snapshot_id: int) -> TableState:
        """The dict at that time."""
        self.pause("state")
        rows = self.history[snapshot_id]

        def find(keys: pa.Table) -> pa.Table:
            found = {key: rows[key] for key in keys.column("id").to_pylist() if key in rows}
            return _arrow(found, [RowKind.INSERT] * len(found)).select(["id", "v"])

        return TableState(SCHEMA, find)

    # ---- topic -------------------------------------------------------------------------------------------------

    def new_token(self) -> str:
        """For one call."""
        self.tokens += 1
        return f"token{self.tokens}"

    def send_early(self, key: int, value: str | None, token: str) -> int:
        """Its offset."""
        log = self.topic[key % self.buckets]
        log.append(Record(key_of(key), _envelope(key, value), token))
        return len(log) - 1

    def send_late(self) -> None:
        """The oldest request that nobody waits for any more."""
        if self.late:
            self.send_early(*self.late.pop(0))

    def find_ends(self) -> Mapping[int, int]:
        """Behind the last decided record."""
        self.pause("ends")
        return {
            bucket: next((at for at, one in enumerate(log) if one.state == "open"), len(log))
            for bucket, log in enumerate(self.topic)
        }

    def read_early(self, partition: int, span: tuple[int, int]) -> Iterator[PrepublishedMessage]:
        """As KafkaTopic."""
        self.pause("read")
        for at in range(*span):
            one = self.topic[partition][at]
            if one.token is not None and one.key is not None:
                yield PrepublishedMessage(at, one.key, one.token)

    def visible(self) -> Iterator[tuple[int, int, Record]]:
        """(partition, offset, record) of what read_committed consumers see."""
        for bucket, log in enumerate(self.topic):
            for at, one in enumerate(log):
                if one.state == "open":
                    break
                if one.state == "committed" and one.key is not None:
                    yield bucket, at, one

    def folded(self, counts: Callable[[int, int, Record], bool], into: Table | None = None) -> Table:
        """Last value per key of the records that count."""
        found: dict[int, str] = dict(into or {})
        for bucket, at, one in self.visible():
            if counts(bucket, at, one):
                key, value = one.row
                found.pop(key, None)
                if value is not None:
                    found[key] = value
        return found

    def abort_open(self) -> None:
        """What init does: the transaction of the one before ends."""
        for log in self.topic:
            was_open = [one for one in log if one.state == "open"]
            for one in was_open:
                one.state = "aborted"
            if was_open:
                log.append(Record(None))

    # ---- what must hold ----------------------------------------------------------------------------------------

    def check_marker(self, marker: CommitMarker) -> None:
        """Before it the topic is the table at its snapshot; behind it lies all that came later."""
        following = {bucket: end for bucket, (_, end) in marker.offsets.items()}

        def before(bucket: int, at: int, one: Record) -> bool:
            bound = following[bucket]
            return at < (bound if one.snapshot_id is not None else marker.unchecked.get(bucket, bound))

        at = self.history[marker.snapshot_id]
        assert self.folded(before) == at, f"before {marker}"
        behind = self.folded(lambda bucket, at, _: at >= following[bucket], at)
        assert behind == self.history[-1], f"behind {marker}"

    def check_end(self) -> None:
        """After a publication that nobody disturbed."""
        assert self.markers[-1].snapshot_id == self.latest
        assert self.folded(lambda *_: True) == self.history[-1]
        for marker in self.markers:
            if marker.last:
                self.check_marker(marker)


def difference(before: Table, after: Table) -> dict[int, str | None]:
    """Key → new value, in key order."""
    keys = sorted({*before, *after})
    return {key: after.get(key) for key in keys if before.get(key) != after.get(key)}


def _arrow(rows: Mapping[int, str | None], kinds: list[RowKind]) -> pa.Table:
    return pa.table(
        [
            pa.array(list(rows), pa.int64()),
            pa.array(list(rows.values()), pa.string()),
            pa.array(kinds, pa.int8()),
        ],
        ["id", "v", "_ROW_KIND"],
    )


def _envelope(key: int, value: str | None) -> bytes | None:
    if value is None:
        return None
    return json.dumps({"before": None, "after": {"id": key, "v": value}, "op": "c"}).encode()


class MemoryProducer:
    """In the place of LogProducer: one transaction at a time, fenced by whoever opens another one."""

    def __init__(self, world: World, *_: object) -> None:
        self.world = world
        self.reasons = Reasons()
        self.marker_end = 0
        world.epoch += 1
        self.epoch = world.epoch
        self._begin()

    def _begin(self) -> None:
        self.rows = 0
        self.arrived: dict[int, int] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._marker: CommitMarker | None = None

    def _check(self, what: str) -> None:
        self.world.pause(what)
        if self.epoch != self.world.epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED))

    def begin(self) -> None:
        """As LogProducer."""
        self._begin()

    def send(
        self, encoded: EncodedRows, partition: int, headers: RowHeaders, *, span: range, first: int
    ) -> None:
        """As LogProducer; rows reach the topic one by one."""
        for index in span:
            self._check("send")
            log, keys = self.world.topic[partition], encoded.keys or []
            log.append(Record(keys[index], encoded.values[index], None, headers.snapshot_id, "open"))
            at = len(log) - 1
            self._spans[partition] = (self._spans.get(partition, (at, 0))[0], at + 1)
            self.arrived[partition] = self.arrived.get(partition, 0) + 1
            self.rows += 1

    def settle(self) -> Mapping[int, tuple[int, int]]:
        """As LogProducer."""
        return dict(self._spans)

    def send_marker(self, _: bytes, value: bytes) -> None:
        """As LogProducer."""
        self._check("marker")
        self._marker = decode_marker(value)

    def commit(self) -> None:
        """As LogProducer."""
        self._check("commit")
        assert self._marker is not None
        self.world.markers.append(self._marker)
        for partition in self._spans:
            log = self.world.topic[partition]
            for one in log:
                one.state = "committed" if one.state == "open" else one.state
            log.append(Record(None))
        self.world.pause("committed")

    def abandon(self, *, abort: bool) -> None:
        """As LogProducer; the successor aborts."""


@dataclass
class Process:
    """`known`: of its commits, by snapshot."""

    world: World
    name: str
    known: dict[int, PrepublishedCommit] = field(default_factory=dict)
    commits: int = 0
    publisher: Publisher | None = None
    is_publishing: bool = False

    def attempt(
        self, changed: Mapping[int, str | None], token_of: Mapping[int, str]
    ) -> list[PrepublishedSpan]:
        """Send the rows of one attempt early, one after the other; a call for each bucket, in turns."""
        offsets: dict[str, list[int]] = {}
        for key, value in changed.items():
            self.world.pause("early")
            if self.world.is_late():  # given up by the client, and taken by the broker at some time
                self.world.late.append((key, value, token_of[key % self.world.buckets]))
                continue
            token = token_of[key % self.world.buckets]
            offsets.setdefault(token, []).append(self.world.send_early(key, value, token))
        return [
            PrepublishedSpan(token, bucket, min(offsets[token]), max(offsets[token]) + 1, len(offsets[token]))
            for bucket, token in token_of.items()
            if token in offsets
        ]

    def write(self, edits: Mapping[int, str | None], *, is_acknowledged: bool = True) -> None:
        """Commit these edits on the newest table: early rows, claim, again when it was lost."""
        self.commits += 1
        commit = f"{self.name}:{self.commits}"
        while True:
            base = self.world.latest
            after = {
                key: value
                for key, value in {**self.world.history[base], **edits}.items()
                if value is not None
            }
            changed = difference(self.world.history[base], after)
            spans = self.attempt(changed, {b: self.world.new_token() for b in range(self.world.buckets)})
            is_whole = sum(one.rows for one in spans) == len(changed)
            self.world.pause("claim")
            if self.world.latest == base:
                break
        snapshot_id = self.world.claim(after, commit)
        self.world.pause("claimed")
        if is_acknowledged and is_whole and spans:
            self.known[snapshot_id] = PrepublishedCommit(commit, tuple(spans))

    def publish(self) -> None:
        """As the warehouse does behind a commit; one thread at a time, the next one would wait."""
        if self.is_publishing:
            return
        self.is_publishing = True
        try:
            self._publish()
        finally:
            self.is_publishing = False

    def _publish(self) -> None:
        if self.publisher is None:
            self.publisher = Publisher(KafkaLog(self.world.settings, Runtime(sleep=lambda _: None)))
        self.world.pause("publish")
        latest = self.world.latest
        self.publisher.publish_pending(
            latest,
            self.world.read_changes,
            find_commit=lambda number: self.world.commits[number] or None,
            read_state=self.world.read_state,
            early=dict(self.known),
        )


def install(patch: pytest.MonkeyPatch, world: World) -> None:
    """Put the world in the place of the brokers."""

    def opened(_: object, __: object, *___: object) -> tuple[Progress, CommitMarker]:
        world.abort_open()
        return plan_progress(world.markers[-1]), world.markers[-1]

    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    module = publisher_module
    patch.setattr(kafka_log, "make_admin", lambda *_: object())
    patch.setattr(module, "LogProducer", functools.partial(MemoryProducer, world))
    patch.setattr(module, "open_progress", opened)
    there = TopicFacts("topic", 1, 1)
    patch.setattr(module, "find_settled_topics", lambda *_: LogTopics(there, there))
    for name in ("check_topics", "check_use"):
        patch.setattr(module, name, nothing)
    patch.setattr(module, "KafkaTopic", lambda *_: world)
    patch.setattr(module, "EventualCall", functools.partial(EventualCall, keys_max=world.keys_max))
    patch.setattr(transactional_publish, "check_alone", nothing)
    patch.setattr(transactional_publish, "await_visible", nothing)
