"""A handle on one table: read any state, write, stage and publish, maintain. Works without Spark.

INVARIANT  a handle holds no state of the table: each call looks at the newest snapshot, a Scan is pinned. One of
           `Engine.seen_table` reads the state that it was made at.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.api.results import CommitInfo, StagedInfo, TableFacts
from tablestore_engine.api.table_branches import TableBranches
from tablestore_engine.api.table_columns import ColumnChanges
from tablestore_engine.api.table_reads import TableReads
from tablestore_engine.api.table_states import TableStates
from tablestore_engine.api.table_system import TableSystem
from tablestore_engine.api.table_writes import TableWrites
from tablestore_engine.catalog.name_lookup import find_snapshot
from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.moments import DAY_MS
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.metadata.commit_history import find_row_commit, rows_version
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.log.decode import LogMessage
    from tablestore_engine.store.expiry.expire_snapshots import ExpireReport
    from tablestore_engine.store.orphan_files.clean_orphans import OrphanReport
    from tablestore_engine.stream.changes_input import ChangesInput
    from tablestore_engine.stream.consumer_lag import ConsumerFacts
    from tablestore_engine.stream.table_stream import TableStream
    from tablestore_engine.warehouse.compared_states import ComparedStates, SnapshotName
    from tablestore_engine.warehouse.log.log_status import LogStatus
    from tablestore_engine.warehouse.maintenance.compact_report import CompactReport
    from tablestore_engine.warehouse.net_changes import ChangeCounts


@dataclass(frozen=True, repr=False)
class Table(ColumnChanges, TableStates, TableBranches, TableReads, TableSystem, TableWrites):
    """One table of an engine. It holds no state: each call looks at the newest snapshot.

    >>> orders = engine.table("demo.orders")
    >>> orders
    Table('demo.orders')
    >>> orders.scan().to_arrow().num_rows
    3
    """

    # reading -------------------------------------------------------------------------------------

    def positions(self, version: TableVersion | None = None) -> Mapping[str, str]:
        """How far a state has got in each source of its rows (WriteSpec.positions). Raises FixRequest TS1470."""
        return self.store.positions(find_snapshot(self.store, version))

    def rows_version(self) -> str:
        """Of the newest commit that a writer of derived rows has to know of."""
        from tablestore_engine.store.foreign_commits import version_for_writer

        return version_for_writer(self.store.context)

    def commit_of_rows(self) -> str:
        """The newest commit that changed rows, partition expiry included; for ROWS_READ."""
        return rows_version(self.store.context.snapshots, self.store.context.newest_snapshot())

    def newest_commit(self) -> CommitInfo | None:
        """The newest one of a writer; compactions and statistics do not count."""
        found = find_row_commit(self.store.snapshots, self.store.context.newest_snapshot())
        return None if found is None else CommitInfo(found.time_millis, found.properties or {})

    def find_foreign_commit(self, own: Mapping[str, str]) -> Snapshot | None:
        """Of rows that were not written with these properties, or that came while such rows were computed."""
        from tablestore_engine.store.foreign_commits import find_foreign_commit

        return find_foreign_commit(self.store.context, own)

    def changes(self, since: int, until: int | None = None) -> pa.Table:
        """Changelog rows of the snapshots in (since, until], with _row_kind and _snapshot_id.

        >>> report = orders.delete("id = 2")
        >>> orders.changes(since=1).select(["id", "_row_kind"]).to_pylist()
        [{'id': 2, '_row_kind': '-D'}]
        """
        from tablestore_engine.warehouse.snapshot_diff import read_changes_table

        return read_changes_table(self.store, since, until)

    def changelog(self, since: int = 0, until: int | None = None) -> pa.Table:
        """`changes`, by default of all snapshots.

        >>> orders.changelog().num_rows
        3
        """
        return self.changes(since, until)

    def change_batches(
        self, since: int, until: int | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of `changes` as a stream, so that they need not fit in memory; `columns`: some of the table's."""
        from tablestore_engine.warehouse.snapshot_diff import read_change_batches

        return read_change_batches(self.store, since, until, columns)

    def stream(  # noqa: PLR0913 - words of one request, by name, each with a default
        self,
        mode: str | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp_ms: int | None = None,
        options: Mapping[str, str] | None = None,
        position: str | None = None,
        consumer_id: str | None = None,
        ignore_progress: bool | None = None,
        until: int | str | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int | None = None,
        read_mode: str | None = None,
        normalize: bool | None = None,
        interval_s: float = 1.0,
        stop: threading.Event | None = None,
        wait: Callable[[float], bool] | None = None,
    ) -> TableStream:
        """Follow the table: an iterator of record batches with its columns, `_row_kind` and `_snapshot_id`.

        mode         latest-full (default: the rows of the newest snapshot, then all changes behind it), latest,
                     earliest, from-snapshot and from-snapshot-full with `snapshot_id`, from-timestamp with
                     `timestamp_ms`, compacted-full; `options` are the same under Paimon's keys (`scan.mode` …)
        position     go on exactly behind the batch after which another reader had this `position`
        consumer_id  go on at the progress that `commit()` of a reader with this id kept; expiry keeps what it needs
        until        end behind this snapshot, or behind the newest one (`"now"`); None: wait for more until stopped
        read_mode    file: changes come from the table's files, when their snapshot is there; log: from its log. None:
                     as the table's `streaming-read-mode` says, else log for an eventual log and file for all others
        normalize    False: messages of an upsert log as they are; else they become changes: -U +U +I -D. None: as
                     the table's `scan.remove-normalize` says
        batch_rows   rows of a batch at most; interval_s: how often to look for a new snapshot; stop: ends it, as
                     `stop()` does; wait: waits so many seconds instead, and says whether to end

        Raises FixRequest TS1331, TS1332, TS1334, TS1335, TS1338, TS1339, TS1353, NotFound TS1333, TS1337, TS1110; while
        it is read TS1336 to TS1338, TS1315 as well; over a log TS1356 to TS1359 and TS17xx.
        After an error the next call goes on behind the last batch.
        """
        from tablestore_engine.stream.open_stream import StreamRequest, open_stream
        from tablestore_engine.stream.startup_mode import parse_request
        from tablestore_engine.stream.table_stream import Pace

        said = (mode, snapshot_id, timestamp_ms, options)
        start = None
        if any(one is not None for one in said):
            start = parse_request(mode, snapshot_id=snapshot_id, timestamp_ms=timestamp_ms, options=options)
        request = StreamRequest(
            start=start,
            position=position,
            consumer_id=consumer_id,
            ignore_progress=ignore_progress,
            until=until,
            columns=columns,
            batch_rows=batch_rows,
            read_mode=read_mode,
            normalizes=normalize,
            pace=Pace(interval_s, stop or threading.Event(), wait),
        )
        return open_stream(self.store.context, request, partial(self.warehouse.logs.follow, self.identifier))

    def diff(self, since: SnapshotName, until: SnapshotName | None = None) -> ChangeCounts:
        """Keys inserted, updated and deleted between two states: snapshot ids, tags, `"@staged"` or `"@staged:NAME"`.

        A key whose row is the same in both is no change. Tables without a key count rows.
        """
        return self.compare(since, until).count()

    def compare(self, since: SnapshotName, until: SnapshotName | None = None) -> ComparedStates:
        """Two states whose changes can be read and counted. Raises TS1321, TS1544 to TS1547."""
        from tablestore_engine.warehouse.compared_states import compare_states

        find_beside = partial(self.warehouse.stores.find, self.identifier.replacement)
        return compare_states(self.store, since, until, find_beside)

    def facts(self) -> TableFacts:
        """Facts of the current snapshot, from metadata alone, all of one state."""
        seen = self.store.find_seen() or self.store.context
        schema, snapshot = seen.latest_schema(), seen.newest_snapshot()
        plan = seen.scanner.plan_scan(snapshot, schema=schema)
        return TableFacts(
            snapshot_id=None if snapshot is None else snapshot.id,
            committed_at_ms=None if snapshot is None else snapshot.time_millis,
            rows=plan.visible_rows,
            files=len(plan.stored_files),
            bytes=sum(file.meta.file_size for file in plan.stored_files),
            buckets=schema.bucket_count,
            primary_key=schema.primary_keys,
            partition_by=schema.partition_keys,
            log=self.warehouse.logs.system.find_name(schema),
            waiting_rows=plan.waiting_rows,
        )

    @property
    def source(self) -> str:
        """Its name among the positions of tables that read it."""
        from tablestore_engine.stream.changes_input import source_of

        return source_of(self.store)

    def plan_changes(
        self, position: str | None, *, branch: str | None = None, most: int | None = None, only: bool = False
    ) -> ChangesInput:
        """Which changes (of `most` snapshots) come behind a reader's position. Raises TS1474, TS1317, `only` TS1481."""
        from tablestore_engine.stream.changes_input import plan_changes

        return plan_changes(self.store, position, branch=branch, most=most, only=only)

    def count_changed_rows(self, found: ChangesInput, *, at_most: bool = False) -> int | None:
        """How many rows their changelog has, by metadata; None where that is not known. Raises NotFound TS1302."""
        from tablestore_engine.stream.changes_input import count_changed_rows

        return count_changed_rows(self.store, found, at_most=at_most)

    def hold_changes(self, consumer_id: str, found: ChangesInput) -> None:
        """Keep from expiry what comes behind them. Raises FixRequest TS1107, RetryError TS1365."""
        from tablestore_engine.stream.changes_input import hold_changes

        if not self.store.reads_for:  # main is only read then: a range that has expired is reported (TS1474)
            hold_changes(self.store, consumer_id, found)

    def consumers(self) -> tuple[ConsumerFacts, ...]:
        """Named readers, by name: how far each is and what it has not read. Raises FixData TS1391."""
        from tablestore_engine.stream.consumer_lag import list_consumers

        return list_consumers(self.store.context)

    def reset_consumer(self, consumer_id: str, next_snapshot: int) -> None:
        """Let a named reader go on with the changes of that snapshot. Raises FixRequest TS1354, TS1107."""
        from tablestore_engine.stream.consumer_lag import reset_consumer

        reset_consumer(self.store.context, consumer_id, next_snapshot)

    def delete_consumer(self, consumer_id: str) -> None:
        """Forget a named reader; expiry waits for it no more. Raises NotFound TS1355."""
        from tablestore_engine.stream.consumer_lag import delete_consumer

        delete_consumer(self.store.context, consumer_id)

    # log and staging ---------------------------------------------------------------------------

    def publish(self) -> WriteReport:
        """Send what is committed and not yet in the log; the report says where they are."""
        from tablestore_engine.warehouse.gate.staged_table_swap import StagedTableSwaps

        newest = WriteReport(self.identifier, self.latest_snapshot_id())
        report = self.warehouse.logs.published(self.identifier, newest)
        StagedTableSwaps(self.warehouse).finish(self.identifier)
        return report

    def log_status(self) -> LogStatus | None:
        """Where the log stands and what it lacks, from metadata alone; None without a log. Raises TS17xx."""
        return self.warehouse.logs.look(self.identifier)

    def reset_log(self, after_snapshot: int) -> int:
        """Begin the log anew: snapshots up to this one count as published; what readers see of it stays.

        The number of rows that no reader has seen (their transaction never ended) and that are dropped.
        """
        return self.warehouse.logs.reset(self.identifier, after_snapshot)

    def staged(self) -> tuple[StagedInfo, ...]:
        """Staged snapshots that wait, oldest first."""
        return tuple(
            StagedInfo(
                table=self.identifier,
                name=one.name,
                snapshot_id=one.snapshot.id,
                base_snapshot_id=one.base_id,
                outcomes={said.test_id: said.status for said in one.outcomes},
                properties=dict(one.snapshot.properties or {}),
            )
            for one in self.store.staging.list_all()
        )

    def record_outcome(self, stage: str, test: str, status: str) -> None:
        """Keep what a test said of a staged snapshot."""
        self.store.staging.record_outcome(stage, test, status)

    def publish_staged(self, stage: str) -> WriteReport:
        """Make a staged snapshot the current one, then send its changelog. Raises RetryError when main moved."""
        return self.warehouse.publish_staged(self.identifier, stage)

    def drop_staged(self, stage: str) -> None:
        """Forget a staged snapshot; a table that never had another one goes with it."""
        self.warehouse.drop_staged(self.identifier, stage)

    def compact(
        self,
        *,
        partition: Mapping[str, object] | None = None,
        full: bool = False,
        order_by: str | None = None,
    ) -> CompactReport:
        """What is due by the rules of a writer; with `full` one run per bucket without dead rows.

        `order_by` sorts all files of an append table: "zorder:a,b", "hilbert:…", "order:…"; only columns: by their
        number, as Paimon. `partition` names values of partition columns, all or some. Large work runs on Spark. Raises
        NotFound TS1370, FixRequest TS1311, TS1213, TS1214; PublishPending TS1070 when rows of other writers were taken
        in and only the log is pending.
        """
        from tablestore_engine.format.cluster_order import parse_order
        from tablestore_engine.store.write.requested_compaction import CompactionRequest

        order = None if order_by is None else parse_order(order_by)
        return self.warehouse.compact(
            self.identifier, CompactionRequest(dict(partition or {}), full, order=order)
        )

    def expire(
        self, *, keep: int | None = None, older_than_ms: int | None = None, dry_run: bool = False
    ) -> ExpireReport:
        """Expire old snapshots and delete their unreferenced files; by default as the table's options say.

        `keep`: only so many of the newest stay; `older_than_ms`: those that were the table within this time stay too.
        Tags keep their rows. Staged snapshots past `tablestore.staged-retention` are dropped first, as `tablestore
        expire` does: `ExpireReport.staged`. Raises FixRequest TS1088, TS1392, TS17xx (a log that does not answer).
        """
        from tablestore_engine.warehouse.gate.table_expiry import expire_table

        return expire_table(
            self.warehouse, self.identifier, keep=keep, older_than_ms=older_than_ms, dry_run=dry_run
        )

    expire_snapshots = expire  # its name in other libraries

    def orphans(self, *, delete: bool = False, older_than_ms: int = DAY_MS) -> OrphanReport:
        """Files that nothing names and nobody touched within that time: of killed writers, dropped stages, rollbacks.

        They are looked at only, unless `delete`. Raises FixData TS1325, TS1326: nothing was deleted; RetryError TS1327.
        """
        return self.warehouse.orphans.of_table(self.identifier, grace_ms=older_than_ms, delete=delete)

    def rescale(self, buckets: int) -> WriteReport:
        """Another number of buckets: all rows are written anew in one commit, none changes. Large work runs on Spark.

        A topic gets as many partitions. Raises FixRequest TS1344, PublishPending TS1070 when only the log is pending.
        """
        return self.warehouse.rescale(self.identifier, buckets)

    def convert(self, buckets: int | None = None) -> WriteReport:
        """Make a keyed table of another engine writable: deletion vectors and fixed buckets, in place; no row changes.

        `buckets` None: as many as it has. Past snapshots expire: stop other engines' jobs on the table first. A table
        that is written here already stays as it is. Raises FixRequest TS1558, TS1576, TS1577, RetryError TS1559,
        Unsupported TS1127 for what a conversion does not change.
        """
        return self.warehouse.convert(self.identifier, buckets)

    def verify(self) -> tuple[str, ...]:
        """Problems found on disk, of main and of all branches; () when every invariant holds."""
        from tablestore_engine.warehouse.group_state_files import GroupStateFiles
        from tablestore_engine.warehouse.streaming_state_files import POSITION

        found = [*self.store.verify()]
        for name in self.branches():
            found += [f"branch {name}: {problem}" for problem in self.store.on_branch(name).verify()]
        with suppress(TablestoreError):  # what cannot be read is among the problems
            state = self.positions().get(POSITION, "")
            damage = GroupStateFiles(self.warehouse.catalog, self.identifier).find_damage(state)
            found += [] if damage is None else [damage]
        return tuple(found)

    def log_messages(self) -> list[LogMessage]:
        """All committed messages of the table's log; [] without one."""
        publisher = self.warehouse.logs.find_publisher(self.identifier)
        return [] if publisher is None else publisher.messages()

    def log_rows(self) -> pa.Table:
        """All committed messages of the table's log as rows, with `_ROW_KIND`. Raises FixData TS1718."""
        publisher = self.warehouse.logs.find_publisher(self.identifier)
        if publisher is None:
            empty = self.schema.arrow_schema().empty_table()
            return empty.append_column(ROW_KIND_COLUMN, pa.array([], pa.int8()))
        return publisher.rows(self.schema)
