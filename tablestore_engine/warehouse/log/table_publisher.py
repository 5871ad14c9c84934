"""The table's changelog on its way to its log: what the store committed, handed to the sink as data.

Steps      newest snapshot of the store -> each shard of the sink (spark/shard_task.py): every snapshot that it lacks,
           by this process, or by Spark tasks where much is pending (spark/shard_executors.py)
INVARIANT  one publisher per table and process, used by one thread at a time: a second would fence the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.errors import (
    LogNotReady,
    PublishPending,
    TablestoreError,
)
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.sink import ChangelogSink, LogPosition, PrepublishedCommit, merge_sent
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.spark.shard_task import ShardTask, find_commit, send_shard
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.log.log_status import LogStatus, read_status
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.spark.shard_executors import RunShards, ShardExecutors


@dataclass
class TablePublisher:
    """Publishes one table to its sink; `reached`: how far the log was, when last asked."""

    sink: ChangelogSink
    reached: int | None = None
    _early: dict[int, PrepublishedCommit] = field(default_factory=dict)
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
            self.reached = self.sink.check(latest, lambda snapshot_id: find_commit(store, snapshot_id))
            return self.reached

    def publish(self, store: TableStore, executors: ShardExecutors | None = None) -> LogPosition | None:
        """Send every committed snapshot that the log lacks; None when the table has no snapshot.

        `executors`: for what is large and shared out; without them this process sends all shards, one after the other.
        """
        latest = store.snapshots.find_latest_id()
        if latest is None:
            return None
        shards = self.sink.shards()
        run = self._plan_place(store, latest, len(shards), executors)
        with self._lock:
            early = dict(self._early)
            if run is None:
                done = [send_shard(shard, store, latest, early) for shard in shards]
            else:
                self.sink.close()  # the tasks take over from here
                tasks = [
                    ShardTask(shard, store.fileio, store.location, store.identity, latest) for shard in shards
                ]
                answers = zip(shards, run(tasks), strict=True)
                done = [sent or send_shard(shard, store, latest) for shard, sent in answers]
            sent = merge_sent(done)
            self.reached = sent.reached
            for snapshot_id in [one for one in self._early if one <= sent.reached]:
                del self._early[snapshot_id]
            return sent.position

    def _plan_place(
        self, store: TableStore, latest: int, shards: int, executors: ShardExecutors | None
    ) -> RunShards | None:
        """Before the lock: Spark may have to start."""
        if shards == 1 or executors is None:
            return None
        reached = self.check(store) if self.reached is None else self.reached
        pending = map(store.snapshots.find, range(reached + 1, latest + 1))
        return executors.plan(
            sum(ChangelogReader(store.context).bytes(one) for one in pending if one is not None), shards
        )

    def remember(self, report: CommitReport) -> None:
        """What a commit of this process gave to the log before: it need not be sent again."""
        if report.early is not None and report.snapshot_id is not None and not report.is_empty:
            commit = f"{report.commit_user}:{report.commit_identifier}"
            self._early[report.snapshot_id] = PrepublishedCommit(commit, report.early)

    def look(self, table: str, store: TableStore, now_ms: int) -> LogStatus:
        """Where the log stands; asks under no lock, so that it can be seen while this process publishes."""
        return read_status(table, store, self.sink.look(), now_ms)

    def messages(self) -> list[LogMessage]:
        return self.sink.read()

    def rows(self, schema: TableSchema) -> pa.Table:
        """The same as rows of the table, with `_ROW_KIND`."""
        return self.sink.decode(self.sink.read(), schema)

    def close(self) -> None:
        with self._lock:
            self.sink.close()


def pending_log(table: str, report: WriteReport, error: TablestoreError, flags: str) -> PublishPending:
    """What a commit says whose log could not be sent; `flags`: what the command may have to be told."""
    return PublishPending(
        "TS1070",
        f"snapshot {report.snapshot_id} of {table} is committed, its log is pending",
        why=f"{error.code} {error.what}: {error.why}; to correct it, {error.fix}",
        fix=f"do not write these rows again; the table's next write, or `tablestore publish {table}` ({flags}), sends "
        "what is pending, in order and once",
        snapshot=report.snapshot_id,
        report=report,
    )


def unready_log(table: str, stage: str, error: TablestoreError) -> LogNotReady:
    """Before the claim of a staged snapshot: neither table nor log has anything of it."""
    return LogNotReady(
        "TS1082",
        f"nothing was published: the log of {table} cannot take staged snapshot {stage}",
        why=f"{error.code} {error.what}: {error.why}; to correct it, {error.fix}",
        fix="repair the log; the snapshot stays staged with its test results, and is published by `dbt retry`, "
        f"`dbt test` or `tablestore staged publish {table} {stage}`",
    )
