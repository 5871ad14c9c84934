"""Publishing one shard of a table's log, as a value: a thread of the driver performs it, or a Spark task.

CHANGE     the publication of one shard
Steps      newest snapshot → shard.publish, which reads how far it is, then the rows of its own buckets, from here
INVARIANT  the log never reads files: each snapshot's changes are read here, in the store's deterministic order. Files
           of other shards' buckets are not opened.
INVARIANT  a Spark task may run twice, also at once, and may outlive its driver: a shard knows by itself how far it is,
           and of two that publish it one is fenced. It sends only snapshots that are committed.
INVARIANT  errors of ours cross as data, as those of bucket tasks do (task_outcomes). Nothing here touches Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tablestore_engine.errors import EngineBug, TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.log.changes import SnapshotChanges, TableState
from tablestore_engine.log.sink import ChangelogShard, PrepublishedCommit, SentChanges
from tablestore_engine.spark.task_outcomes import Outcome, decode_outcome, encode_failure
from tablestore_engine.spark.worker_versions import check_here
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.metadata.identity import table_gone
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits


def send_shard(
    shard: ChangelogShard,
    store: TableStore,
    latest_id: int,
    early: Mapping[int, PrepublishedCommit] = MappingProxyType({}),
) -> SentChanges:
    """Every committed snapshot that the shard lacks. Raises TS17xx."""
    return shard.publish(
        latest_id,
        lambda snapshot_id: read_changes(store, snapshot_id, shard),
        lambda snapshot_id: find_commit(store, snapshot_id),
        lambda snapshot_id: read_state(store, snapshot_id),
        early,
    )


def read_changes(store: TableStore, snapshot_id: int, shard: ChangelogShard) -> SnapshotChanges | None:
    """Of a log that began with the rows of a snapshot: nothing before it, and of it those rows."""
    start = TableTraits(store.schema).log_start_snapshot
    if start is not None and snapshot_id < start:
        return None
    snapshot = store.snapshots.get(snapshot_id)
    if snapshot_id != start and not ChangelogReader(store.context).has_changes(snapshot):
        return None
    is_start = snapshot_id == start
    return SnapshotChanges(
        snapshot_id=snapshot.id,
        commit_user=snapshot.commit_user,
        commit_identifier=snapshot.commit_identifier,
        schema=store.context.schemas.get(snapshot.schema_id),
        batches=ChangelogReader(store.context, shard.takes).read_state(snapshot)
        if is_start
        else ChangelogReader(store.context, shard.takes).read(snapshot),
        count_rows=lambda: (
            snapshot.total_record_count
            if is_start
            else ChangelogReader(store.context, shard.takes).count(snapshot)
        ),
    )


def read_state(store: TableStore, snapshot_id: int) -> TableState:
    """The table at a snapshot."""
    snapshot = store.snapshots.get(snapshot_id)
    return TableState(
        store.context.schemas.get(snapshot.schema_id), lambda keys: store.find_rows(snapshot, keys)
    )


def find_commit(store: TableStore, snapshot_id: int) -> str | None:
    """Who committed it; None when it is not there any more."""
    snapshot = store.snapshots.find(snapshot_id)
    return None if snapshot is None else f"{snapshot.commit_user}:{snapshot.commit_identifier}"


@dataclass(frozen=True)
class ShardTask:
    """`location` and `identity` of the table whose snapshots up to `latest_id` are sent."""

    shard: ChangelogShard
    fileio: FileIO
    location: str
    identity: str | None
    latest_id: int

    def run(self) -> SentChanges:
        """Raises RetryError TS1365 when another table lies there, TS17xx."""
        store = TableStore(self.fileio, self.location)
        if store.identity != self.identity:
            raise table_gone(self.location, is_replaced=store.identity is not None)
        try:
            return send_shard(self.shard, store, self.latest_id)
        finally:
            self.shard.close()


def encode_task(task: ShardTask) -> bytes:
    """For the worker."""
    return pickle.dumps(task)


def run_task(work: tuple[int, bytes]) -> Outcome:
    """In the worker: the place in the answer, and what encode_task gave."""
    place, data = work
    try:
        task: ShardTask = pickle.loads(data)  # noqa: S301 - written by our own driver
    except ImportError:  # the client of the log is not installed here: the driver sends it
        return place, pickle.dumps(None)
    try:
        check_here()
        return place, pickle.dumps(task.run())
    except TablestoreError as error:
        return place, encode_failure(error)


def decode_sent(data: bytes) -> SentChanges | TablestoreError | None:
    """Raises EngineBug TS1777."""
    outcome = decode_outcome(data)
    if outcome is None or isinstance(outcome, SentChanges | TablestoreError):
        return outcome
    raise EngineBug(
        "TS1777",
        "a Spark task that publishes returned something unknown",
        why=f"expected SentChanges, got {type(outcome).__name__}",
        fix="report this; what is in the log is right, and the rest is sent by the next publication",
    )
