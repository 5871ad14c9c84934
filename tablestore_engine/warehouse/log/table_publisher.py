"""The table's changelog on its way to its log: what the store committed, handed to the sink as data.

Names      TablePublisher   one per table and process: check before a commit, publish what is pending, look at the log
           pending_log()    what a commit says whose log could not be sent
           unready_log()    what a publication says that was not begun, because its log could not be sent: UNREADY_LOG
Steps      newest snapshot of the store -> sink: every snapshot that the log lacks, read here when the sink asks
INVARIANT  the log never reads files: each snapshot's changes are read here, in the store's deterministic order.
INVARIANT  one publisher per table and process, used by one thread at a time: a second would fence the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from tablestore_engine.errors import PublishPending, RetryError, TablestoreError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.changes import SnapshotChanges, TableState
from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.sink import ChangelogSink, EarlyCommit, LogPosition
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.log.log_status import LogStatus, read_status
from tablestore_engine.warehouse.write_report import WriteReport

UNREADY_LOG = "TS1082"


@dataclass
class TablePublisher:
    """Publishes one table to its sink; `reached`: how far the log was, when last asked."""

    sink: ChangelogSink
    reached: int | None = None
    _early: dict[int, EarlyCommit] = field(default_factory=dict)
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("publisher", Rank.PUBLISHER))

    def reset(self, after_snapshot: int) -> int:
        """A new beginning of the log: snapshots up to this one count as published. Raises TS17xx.

        The number of rows that no reader had seen, and that are dropped.
        """
        with self._lock:
            self.reached = None
            self._early.clear()  # the log may be another one now
            return self.sink.reset(after_snapshot)

    def check(self, store: TableStore) -> int:
        """Before a commit: everything that publishing would meet first. Raises TS17xx; nothing is sent.

        The newest snapshot that the log has.
        """
        with self._lock:
            latest = store.snapshots.find_latest_id() or 0
            self.reached = self.sink.check(latest, lambda snapshot_id: _find_commit(store, snapshot_id))
            return self.reached

    def publish(self, store: TableStore) -> LogPosition | None:
        """Send every committed snapshot that the log lacks; None when the table has no snapshot."""
        latest = store.snapshots.find_latest_id()
        if latest is None:
            return None
        with self._lock:
            sent = self.sink.publish(
                latest,
                lambda snapshot_id: _read_changes(store, snapshot_id),
                lambda snapshot_id: _find_commit(store, snapshot_id),
                lambda snapshot_id: _read_state(store, snapshot_id),
                dict(self._early),
            )
            self.reached = sent.reached
            for snapshot_id in [one for one in self._early if one <= sent.reached]:
                del self._early[snapshot_id]
            return sent.position

    def remember(self, report: CommitReport) -> None:
        """What a commit of this process gave to the log before: it need not be sent again."""
        if report.early is not None and report.snapshot_id is not None and not report.is_empty:
            commit = f"{report.commit_user}:{report.commit_identifier}"
            self._early[report.snapshot_id] = EarlyCommit(commit, report.early)

    def look(self, table: str, store: TableStore, now_ms: int) -> LogStatus:
        """Where the log stands; asks under no lock, so that it can be seen while this process publishes."""
        return read_status(table, store, self.sink.look(), now_ms)

    def messages(self) -> list[LogMessage]:
        """Every message that readers of the log see."""
        return self.sink.read()

    def rows(self, schema: TableSchema) -> pa.Table:
        """The same as rows of the table, with `_ROW_KIND`."""
        return self.sink.decode(self.sink.read(), schema)

    def close(self) -> None:
        """Give connections up."""
        with self._lock:
            self.sink.close()


def pending_log(table: str, report: WriteReport, error: TablestoreError, flags: str) -> PublishPending:
    """What a commit says whose log could not be sent; `flags`: what the command may have to be told."""
    return PublishPending(
        "TS1070",
        f"snapshot {report.snapshot_id} of {table} is committed, its log is pending",
        why=str(error),
        fix=f"do not write these rows again; the table's next write, or `tablestore publish {table}` ({flags}), sends "
        "what is pending, in order and once",
        snapshot=report.snapshot_id,
        report=report,
    )


def unready_log(table: str, stage: str, error: TablestoreError) -> RetryError:
    """Before the claim of a staged snapshot: neither table nor log has anything of it."""
    return RetryError(
        "TS1082",
        f"nothing was published: the log of {table} cannot take staged snapshot {stage}",
        why=str(error),
        fix="set the log right; the snapshot waits with what its tests said, and goes out by `dbt retry`, `dbt test` "
        f"or `tablestore staged publish {table} {stage}`",
    )


def _read_changes(store: TableStore, snapshot_id: int) -> SnapshotChanges | None:
    """Of a log that began with the rows of a snapshot: nothing before it, and of it those rows."""
    start = TableTraits(store.schema).log_start_snapshot
    if start is not None and snapshot_id < start:
        return None
    snapshot = store.snapshots.get(snapshot_id)
    if snapshot_id != start and not store.has_changes(snapshot):
        return None
    return SnapshotChanges(
        snapshot_id=snapshot.id,
        commit_user=snapshot.commit_user,
        commit_identifier=snapshot.commit_identifier,
        schema=store.schemas.get(snapshot.schema_id),
        batches=store.read_state(snapshot) if snapshot_id == start else store.read_changes(snapshot),
        count_rows=lambda: (
            snapshot.total_record_count if snapshot_id == start else store.count_changes(snapshot)
        ),
    )


def _read_state(store: TableStore, snapshot_id: int) -> TableState:
    snapshot = store.snapshots.get(snapshot_id)
    return TableState(store.schemas.get(snapshot.schema_id), lambda keys: store.find_rows(snapshot, keys))


def _find_commit(store: TableStore, snapshot_id: int) -> str | None:
    snapshot = store.snapshots.find(snapshot_id)
    return None if snapshot is None else f"{snapshot.commit_user}:{snapshot.commit_identifier}"
