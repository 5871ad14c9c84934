"""Publishing an eventual log behind the commit: most rows are there already; what is not right is set right.

Steps      1 how far is the topic decided 2 are the pending snapshots there, as this process knows (find_trusted)
           3 what else lies there is read: keys of unconfirmed records, a portion at a time 4 snapshots that are not
           there are sent from their changelogs, as a transactional log does 5 unconfirmed keys get what the table says
           at `latest`, the row or a tombstone 6 a marker answers for all of it
Marker     before it, rows without header `s` from `unchecked` on left out, the topic folded by key is the table at its
           snapshot; of every later snapshot each row has a copy behind it (decision 0034).
Cost       alone and undisturbed: one look at the ends, one transaction with a marker, no row.
INVARIANT  repairs are sent in transactions of the publisher: one that is fenced in between leaves nothing that could
           appear later over newer rows.
INVARIANT  a value is looked up behind all that it answers for: what is sent meanwhile lies behind the ends asked first,
           and stays unchecked.
CRASH      log.repairs: nothing of them is visible; the next call begins again
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.log.changes import ReadChanges, ReadState, TableState
from tablestore_engine.log.decode import decode_keys
from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress
from tablestore_engine.log.kafka.message_headers import RowHeaders
from tablestore_engine.log.kafka.prepublish_producer import PrepublishedSpan
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.transactional_publish import (
    Forget,
    Session,
    Tally,
    publish_marker,
    send_marker_and_commit,
)
from tablestore_engine.log.kafka.unconfirmed_records import (
    OwnOffsets,
    PrepublishedTopic,
    UnconfirmedRecords,
    find_trusted,
    gather,
    plan_reads,
)
from tablestore_engine.log.message_envelope import EncodedRows, encode_rows, plan_envelope
from tablestore_engine.log.sink import FindCommit, PrepublishedCommit

KEYS_MAX = 20_000


@dataclass(frozen=True)
class EventualCall:
    """`outbox` sends the snapshots up to `latest_id` from their changelogs, telling which keys it sent."""

    latest_id: int
    read_changes: ReadChanges
    read_state: ReadState
    find_commit: FindCommit | None
    outbox: Callable[[Forget], None]
    early: Mapping[int, PrepublishedCommit] = field(default_factory=dict)
    keys_max: int = KEYS_MAX

    @property
    def commit(self) -> str:
        """Of the newest snapshot."""
        return (self.find_commit(self.latest_id) if self.find_commit is not None else None) or ""


def publish_eventual(
    session: Session,
    topic: PrepublishedTopic,
    call: EventualCall,
    tally: Tally,
) -> None:
    """Raises KafkaException, and what publish_snapshot raises."""
    progress = session.progress
    if progress.published + bool(progress.partial) > call.latest_id:
        return  # another publisher was quicker: what is visible is newer than this call can look up
    ends = topic.find_ends()
    session.own = OwnOffsets(ends)
    pending = _pending(progress, call)
    trusted = find_trusted(progress, ends, [(one, commit) for one, commit, _ in pending], call.early)
    schema_id = pending[-1][2] if pending else 0
    work = _EventualWork(session, topic, call, tally, ends, schema_id)
    if trusted is not None and work.stay(trusted, [snapshot_id for snapshot_id, _, _ in pending]):
        return
    work.send_all()


def _pending(progress: Progress, call: EventualCall) -> list[tuple[int, str, int]]:
    """(id, commit, schema id) of the snapshots behind P that changed rows."""
    found = []
    for snapshot_id in range(progress.published + 1, call.latest_id + 1):
        changes = call.read_changes(snapshot_id)
        if changes is not None:
            found.append((snapshot_id, changes.commit, changes.schema.id))
    return found


@dataclass
class _EventualWork:
    """One call on its way; `schema_id`: of the newest snapshot that changed rows."""

    session: Session
    topic: PrepublishedTopic
    call: EventualCall
    tally: Tally
    ends: Mapping[int, int]
    schema_id: int

    def stay(self, trusted: Sequence[PrepublishedSpan], pending: Sequence[int]) -> bool:
        """All pending rows stay where they lie; False when there are too many unconfirmed records among them."""
        progress = self.session.progress
        reads = plan_reads(progress, self.ends, trusted)
        unconfirmed = self._gather(reads, trusted)
        if not unconfirmed.is_all:
            return False
        if len(unconfirmed):
            self._repair(unconfirmed, dict(self.ends))
        elif progress.published < self.call.latest_id:
            self._check(self.ends)
            self._marker()
        self.tally.add_early(pending, trusted)
        return True

    def send_all(self) -> None:
        """Every pending snapshot from its changelog; then unconfirmed records, a portion at a time."""
        reads = plan_reads(self.session.progress, self.ends, ())
        unconfirmed = self._gather(reads, ())
        if not unconfirmed.keys:
            self._check(self.ends)
        self.call.outbox(unconfirmed.forget)
        while unconfirmed.keys:
            until = dict(self.ends) if unconfirmed.is_all else unconfirmed.until
            self._repair(unconfirmed, until)
            if unconfirmed.is_all:
                return
            reads = plan_reads(self.session.progress, self.ends, ())
            unconfirmed = self._gather(reads, ())

    def _gather(
        self, reads: Mapping[int, Sequence[tuple[int, int]]], trusted: Sequence[PrepublishedSpan]
    ) -> UnconfirmedRecords:
        found = gather(self.topic, reads, trusted, keys_max=self.call.keys_max)
        found.keys = {partition: keys for partition, keys in found.keys.items() if keys}
        return found

    def _check(self, until: Mapping[int, int]) -> None:
        """Everything up to there is answered for by the next marker."""
        self.session.progress = checked_until(self.session.progress, until)

    def _marker(self) -> None:
        call = self.call
        publish_marker(self.session, call.latest_id, call.commit, schema_id=self.schema_id)

    def _repair(self, unconfirmed: UnconfirmedRecords, until: Mapping[int, int]) -> None:
        """One transaction: what the table has under these keys, and the marker of `latest`."""
        before = self.session.progress
        self._check(until)
        if not len(unconfirmed):  # all of them were sent with their snapshots
            self._marker()
            return
        state, producer = self.call.read_state(self.call.latest_id), self.session.producer
        headers, counts = RowHeaders(self.call.latest_id, self.call.commit), {}
        producer.begin()
        for partition, keys in sorted(unconfirmed.keys.items()):
            if keys:
                encoded = repairs_of(list(keys), state, self.session.log.settings)
                producer.send(encoded, partition, headers, span=range(len(encoded)), first=0)
                counts[partition] = len(encoded)
        self.session.log.runtime.crash_point("log.repairs")
        marker = CommitMarker(
            table_uuid=self.session.log.settings.table_uuid,
            snapshot_id=self.call.latest_id,
            commit=self.call.commit,
            topic_id=before.topic_id,
            schema_id=state.schema.id,
            chunk=1,
            counts=counts,
            before=before.published,
            since={partition: before.checked(partition) for partition in self.ends},
        )
        send_marker_and_commit(self.session, marker, self.tally)


def checked_until(progress: Progress, until: Mapping[int, int]) -> Progress:
    """The progress after what lies before `until` was looked through."""
    following = {**progress.next_offsets}
    unchecked = dict(progress.unchecked)
    for partition, end in until.items():
        if end >= progress.checked(partition):
            following[partition] = max(following.get(partition, 0), end)
            unchecked[partition] = end
    return replace(
        progress,
        next_offsets=following,
        unchecked={one: at for one, at in unchecked.items() if at < following.get(one, 0)},
        controls=frozenset(),
    )


def repairs_of(keys: Sequence[bytes], state: TableState, settings: LogSettings) -> EncodedRows:
    """The message that each of these keys has to have last: its row, or a tombstone."""
    known = decode_keys(keys, state.schema)
    rows = state.find_rows(known)
    kinds = pa.array(np.full(rows.num_rows, RowKind.UPDATE_AFTER, np.int8))
    there = encode_rows(
        rows.append_column(ROW_KIND_COLUMN, kinds),
        plan_envelope(state.schema, settings.mode, settings.formats),
    )
    found = there.keys or []
    gone = list(dict.fromkeys(keys).keys() - set(found))
    return EncodedRows(
        [*found, *gone],
        [*there.values, *(None for _ in gone)],
        [*there.kinds, *(int(RowKind.DELETE) for _ in gone)],
    )
