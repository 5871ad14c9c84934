"""One snapshot as one Kafka transaction, or as several when it is big.

CHANGE     one Kafka transaction of a publication
Steps      1 slices of a batch are encoded 2 messages that are visible already are left out 3 the rest is sent
           4 all reports are in, nothing else is undecided there 5 marker 6 commit 7 readers see it
Partition  = bucket. Of a table without buckets each slice is cut into as many pieces as the topic has partitions.
Shard      what is not of the settings' own partitions is passed over, and cut before: every shard cuts alike.
INVARIANT  memory holds one slice and the client's bounded queue, however big the snapshot is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.avro_schema import SchemaIds
from tablestore_engine.log.changes import ChangelogRows, SnapshotChanges
from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress, encode_marker, plan_progress
from tablestore_engine.log.kafka.hanging_transactions import await_visible, check_alone
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.message_headers import RowHeaders
from tablestore_engine.log.kafka.prepublish_producer import PrepublishedSpan
from tablestore_engine.log.kafka.publish_progress import PublishProgress
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.unconfirmed_records import OwnOffsets, plan_unchecked
from tablestore_engine.log.message_envelope import EncodedRows, encode_rows, plan_envelope

_SLICE_ROWS = 32_768
Forget = Callable[[int, Iterable[bytes]], None]


@dataclass
class Session:
    """A connected log, an initialised producer, what it knows; dropped as a whole. `marker_id`: of the marker topic."""

    log: KafkaLog
    producer: LogProducer
    progress: Progress
    own: OwnOffsets | None = None
    marker_id: str = ""

    def placed(
        self, marker: CommitMarker, spans: Mapping[int, tuple[int, int]], rows: Mapping[int, int]
    ) -> CommitMarker:
        """The marker with where its rows lie; of an eventual log also from where it does not answer for early rows."""
        carried = {partition: (end, end) for partition, end in self.progress.next_offsets.items()}
        made = replace(marker, offsets={**carried, **spans}, early=self.own is not None)
        if self.own is None:
            return made
        self.own.add(rows)
        following = {partition: end for partition, (_, end) in made.offsets.items()}
        return replace(made, unchecked=plan_unchecked(self.progress, following, self.own))

    def moved(self, marker: CommitMarker) -> None:
        """The marker is visible: it is the progress. A transaction leaves a control record behind its rows."""
        before, after = self.progress, plan_progress(marker)
        carried = {
            one for one in before.controls if after.next_offsets.get(one) == before.next_offsets.get(one)
        }
        self.progress = replace(after, controls=after.controls | carried)


@dataclass
class Tally:
    """`sent` are committed transactions with their row counts; `in_doubt` is one whose answer was not seen."""

    sent: list[tuple[CommitMarker, int]] = field(default_factory=list)
    in_doubt: tuple[CommitMarker, int] | None = None
    early: list[PrepublishedSpan] = field(default_factory=list)
    stayed: list[int] = field(default_factory=list)
    progress: PublishProgress = field(default_factory=lambda: PublishProgress("", lambda: 0))

    def add_early(self, snapshots: Iterable[int], spans: Iterable[PrepublishedSpan]) -> None:
        """Count snapshots whose rows lay in the topic already."""
        self.stayed += snapshots
        self.early += [one for one in spans if one.rows]

    def settle(self, newest: CommitMarker | None) -> None:
        """After reading P again: the one in doubt counts if the newest marker is its own, and what the broker
        lost behind that marker (log/kafka/hanging_transactions.py) does not count any more: it will be sent once more.
        """
        if self.in_doubt is not None and newest == self.in_doubt[0]:
            self.sent.append(self.in_doubt)
        self.in_doubt = None
        if newest is not None:
            kept = [one for one in self.sent if _place_of(one[0]) <= _place_of(newest)]
            self.sent = [_without_hidden(one, newest) for one in kept]

    def add(self, marker: CommitMarker, rows: int) -> None:
        """Count a committed transaction."""
        self.sent.append((marker, rows))

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.sent) + sum(one.rows for one in self.early)

    @property
    def snapshots(self) -> tuple[int, ...]:
        sent = (marker.snapshot_id for marker, _ in self.sent if marker.last and marker.before is None)
        return (*self.stayed, *sent)

    @property
    def offsets(self) -> Mapping[int, tuple[int, int]]:
        """{partition: (first, next)} over all transactions."""
        spans: dict[int, tuple[int, int]] = {}
        early = [(one.partition, one.first, one.following) for one in self.early]
        sent = [(part, *span) for marker, _ in self.sent for part, span in marker.offsets.items()]
        for partition, first, following in [*early, *sent]:
            if first < following:
                known = spans.get(partition, (first, following))
                spans[partition] = (min(known[0], first), max(known[1], following))
        return spans


def _without_hidden(one: tuple[CommitMarker, int], newest: CommitMarker) -> tuple[CommitMarker, int]:
    """A sent marker that was set right (hanging_transactions.take_out) counts without what was taken out."""
    marker, rows = one
    if _place_of(marker) != _place_of(newest) or marker == newest or newest.before is not None:
        return one
    hidden = sum(count - newest.counts.get(partition, 0) for partition, count in marker.counts.items())
    return newest, rows - hidden


def _place_of(marker: CommitMarker) -> tuple[int, int]:
    return marker.snapshot_id, marker.chunk


def publish_snapshot(
    session: Session,
    changes: SnapshotChanges,
    tally: Tally,
    *,
    ids: SchemaIds = SchemaIds(),  # noqa: B008 - frozen
    forget: Forget | None = None,
) -> None:
    """Publish what of this snapshot is not visible yet; `ids`: of its Avro schemas.

    Raises KafkaException, TS1708-TS1716, TS1723, TS1765.
    """
    settings = session.log.settings
    work = _Work(session, changes, tally, forget)
    envelope = plan_envelope(changes.schema, settings.mode, settings.formats, ids)
    work.begin()
    for partition, rows in _slices(changes.batches, settings):
        work.send(encode_rows(rows, envelope), partition)
        tally.progress.sent(rows.num_rows)
        if work.is_full():
            work.finish(last=False)
            work.begin()
    for partition, visible in session.progress.partial.items():
        if work.counts.get(partition, 0) < visible:
            raise history_differs(settings, f"snapshot {changes.snapshot_id} has fewer rows than are visible")
    work.finish(last=True)


def publish_marker(session: Session, snapshot_id: int, commit: str, *, schema_id: int = 0) -> None:
    """Move P to `snapshot_id`: neither it nor those before it changed a row, or their rows (of the schema `schema_id`)
    lie there already. Raises KafkaException.
    """
    settings = session.log.settings
    bare = CommitMarker(
        settings.table_uuid,
        snapshot_id,
        commit,
        session.progress.topic_id,
        schema_id,
        shard=settings.shard,
        shards=settings.shards,
    )
    marker = session.placed(bare, {}, {})
    session.producer.begin()
    session.producer.send_marker(*encode_marker(marker))
    session.log.runtime.crash_point("log.marker")
    session.producer.commit()
    _await_commit(session, marker)


def send_marker_and_commit(session: Session, marker: CommitMarker, tally: Tally) -> None:
    """Reports, marker, commit; the progress in memory follows. Raises KafkaException, TS1709, TS1714, TS1730."""
    producer, runtime = session.producer, session.log.runtime
    spans = producer.settle()
    check_alone(session.log, spans, producer.arrived)
    placed = session.placed(marker, spans, producer.arrived)
    producer.send_marker(*encode_marker(placed))
    runtime.crash_point("log.marker")
    tally.in_doubt = (placed, producer.rows)
    producer.commit()
    runtime.crash_point("log.committed")
    tally.in_doubt = None
    tally.add(placed, producer.rows)
    _await_commit(session, placed)


def _await_commit(session: Session, marker: CommitMarker) -> None:
    """Readers see the transaction before the next one begins: aborting that one could drop what is still hidden."""
    topic = session.log.settings.topic
    following = {(topic, part): end for part, (first, end) in marker.offsets.items() if first < end}
    following[session.log.marker_place] = session.producer.marker_end
    await_visible(session.log, following)
    session.moved(marker)


def history_differs(settings: LogSettings, why: str) -> FixRequest:
    """The log does not describe this table's snapshots: going on would skip or mix some."""
    return FixRequest(
        "TS1708",
        f"topic {settings.topic} and the snapshots of {settings.table} do not fit together",
        why=f"{why}: the table was rolled back, or restored, to a state before its log",
        fix="give the log a new beginning with `tablestore publish --reset N`",
    )


@dataclass
class _Work:
    """One snapshot on its way; `counts` {partition: messages so far}, visible ones included."""

    session: Session
    changes: SnapshotChanges
    tally: Tally
    forget: Forget | None = None
    counts: dict[int, int] = field(default_factory=dict)
    started_ms: int = 0

    def begin(self) -> None:
        self.started_ms = self.session.log.runtime.now_ms()
        self.session.producer.begin()
        self.session.log.runtime.crash_point("log.begin")

    def send(self, encoded: EncodedRows, partition: int) -> None:
        """Send a slice, except the messages that an earlier transaction made visible."""
        first = self.counts.get(partition, 0)
        visible = self.session.progress.partial.get(partition, 0)
        begin, end = min(max(visible - first, 0), len(encoded)), len(encoded)
        middle = (begin + end + 1) // 2
        headers = RowHeaders(self.changes.snapshot_id, self.changes.commit)
        self.session.producer.send(encoded, partition, headers, span=range(begin, middle), first=first)
        self.session.log.runtime.crash_point("log.rows")
        self.session.producer.send(encoded, partition, headers, span=range(middle, end), first=first)
        self.counts[partition] = first + end
        if self.forget is not None and encoded.keys is not None:
            self.forget(partition, encoded.keys[begin:end])

    def is_full(self) -> bool:
        """Whether this transaction should end here: readers wait for it, and brokers abort it after two minutes."""
        settings = self.session.log.settings
        is_late = self.session.log.runtime.now_ms() - self.started_ms >= settings.chunk_ms
        return self.session.producer.rows >= settings.chunk_rows or is_late

    def finish(self, *, last: bool) -> None:
        """As send_marker_and_commit."""
        settings = self.session.log.settings
        marker = CommitMarker(
            table_uuid=settings.table_uuid,
            snapshot_id=self.changes.snapshot_id,
            commit=self.changes.commit,
            topic_id=self.session.progress.topic_id,
            schema_id=self.changes.schema.id,
            chunk=self.session.progress.chunks,
            last=last,
            counts=dict(self.counts),
            shard=settings.shard,
            shards=settings.shards,
        )
        send_marker_and_commit(self.session, marker, self.tally)


def _slices(batches: Iterable[ChangelogRows], settings: LogSettings) -> Iterator[tuple[int, pa.Table]]:
    """(topic partition, rows) in order, small enough for memory. Raises FixRequest TS1723."""
    for batch in batches:
        if batch.bucket >= settings.partitions:
            raise FixRequest(
                "TS1723",
                f"topic {settings.topic} does not fit {settings.table}",
                why=f"bucket {batch.bucket} has no topic partition: there are {settings.partitions}",
                fix=f"run `tablestore publish {settings.table}`: a publication that begins after a rescale adds the "
                "partitions",
            )
        if batch.bucket >= 0 and not settings.has_partition(batch.bucket):
            continue
        for start in range(0, batch.rows.num_rows, _SLICE_ROWS):
            rows = batch.rows.slice(start, _SLICE_ROWS)
            if batch.bucket >= 0:
                yield batch.bucket, rows
            else:
                pieces = _spread(rows, settings.partitions)
                yield from (piece for piece in pieces if settings.has_partition(piece[0]))


def _spread(rows: pa.Table, partitions: int) -> Iterator[tuple[int, pa.Table]]:
    """Neighbouring pieces of about equal size, one per partition."""
    cuts = [rows.num_rows * n // partitions for n in range(partitions + 1)]
    for partition, (begin, end) in enumerate(itertools.pairwise(cuts)):
        if begin < end:
            yield partition, rows.slice(begin, end - begin)
