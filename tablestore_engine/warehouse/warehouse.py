"""One warehouse as this process sees it: its parts put together. Engine and Table stand on it.

Names      Warehouse   catalog, stores, relations, logs, writer and Spark of one folder; commits with their publishing
Parts      each is given what it needs and knows nothing above it: session ← stores ← names ← spark, logs ← relations
           ← writer
INVARIANT  before every commit that changes rows, and every claim of a staged one, the log is checked; after it the
           outbox is tried, and behind that partitions and old snapshots expire.
"""

from __future__ import annotations

from dataclasses import replace

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.name_lookup import NameLookup, find_snapshot
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.resolved_names import SnapshotRef
from tablestore_engine.fileio.stores import open_root
from tablestore_engine.log.sink import ChangelogSystem
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.executors import Executors
from tablestore_engine.spark.lazy_resolver import LazyResolver
from tablestore_engine.spark.lazy_session import LazySession
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.session import SparkSettings
from tablestore_engine.spark.shard_executors import ShardExecutors
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.tasks.task_runner import run_tasks
from tablestore_engine.store.write.requested_compaction import CompactionRequest, has_inbox_rows
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.maintenance.compact_report import CompactReport, report_of_compaction
from tablestore_engine.warehouse.maintenance.expiry import Expiry
from tablestore_engine.warehouse.maintenance.orphan_cleanup import Orphans
from tablestore_engine.warehouse.maintenance.partition_expiry import PartitionExpiry
from tablestore_engine.warehouse.relations.relations import Relations
from tablestore_engine.warehouse.write.incoming_rows import Incoming
from tablestore_engine.warehouse.write.table_writer import TableWriter
from tablestore_engine.warehouse.write.write_spec import WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport, report_of


class Warehouse:
    """Shared by the threads of a process; `log` is where changelogs go, `scratch` a folder.

    `uses_spark` False: a worker of Spark, where no session may start; bucket work stays in threads.
    """

    def __init__(
        self,
        path: str,
        spark: SparkSettings,
        log: ChangelogSystem,
        runtime: Runtime,
        *,
        trusted_sql: bool = False,
        scratch: str | None = None,
        uses_spark: bool = True,
    ) -> None:
        self.path, fileio = open_root(path, runtime.users)
        self.catalog = FilesystemCatalog(fileio, self.path, runtime)
        self.session = LazySession(spark, ScratchPlace(self.path, scratch, runtime.users))
        self.stores = OpenTables(self.catalog, Executors(self.session) if uses_spark else run_tasks)
        names = NameLookup(self.catalog, self.stores)
        self.spark = LazyResolver(self.session, names, trusted_sql=trusted_sql)
        shards = ShardExecutors(self.session if uses_spark else None)
        self.logs = Logs(self.catalog, self.stores, log, shards)
        self.relations = Relations(self.catalog, self.stores, names, self.spark, self.logs)
        self.expiry = Expiry(
            self.stores, self.logs, PartitionExpiry(self.catalog, self.stores, self.logs, runtime)
        )
        self.orphans = Orphans(self.catalog)
        self.writer = TableWriter(self.catalog, self.stores, self.relations, self.logs, self.spark, runtime)

    @property
    def resolver(self) -> Resolver:
        """Names for SQL; starts the session at first use."""
        return self.spark.get()

    def write_incoming(
        self,
        identifier: Identifier,
        incoming: Incoming,
        spec: WriteSpec,
        *,
        partition: dict[str, object] | None = None,
        computed_from: SnapshotRef | None = None,
    ) -> WriteReport:
        """One commit, then publishing. Raises PublishPending TS1070 when only the latter failed.

        `computed_from`: the only state that the rows are right on.
        """
        if not self.catalog.has_database(identifier.database):
            self.catalog.create_database(identifier.database)
        done = self.writer.write(identifier, incoming, spec, partition=partition, computed_from=computed_from)
        report = report_of(identifier, done)
        if done.staged is not None:
            return report
        if spec.publish:
            report = self.logs.published_behind(identifier, report)
        return self.expiry.after_commit(identifier, report, publishes=spec.publish)

    def compact(self, identifier: Identifier, request: CompactionRequest) -> CompactReport:
        """Steps that change no row, and taking in what other writers left, which is published like a commit.

        A compaction that brings no row into sight has nothing to tell a log, and needs none: the table's next
        publication passes its snapshots by. Raises what compact_table can, TS17xx, PublishPending TS1070.
        """
        store = self.stores.get(identifier)
        if has_inbox_rows(store.parts, request):
            self.logs.check(identifier)
        report = report_of_compaction(
            identifier, store.compact(full=request.full, partition=request.partition)
        )
        found = [store.snapshots.find(number) for number in report.snapshot_ids]
        if all(one is not None and one.changelog_manifest_list is None for one in found):
            return self.expiry.after_commit(identifier, report)
        sent = self.logs.published_behind(identifier, WriteReport(identifier, report.snapshot_id))
        return self.expiry.after_commit(identifier, replace(report, log=sent.log))

    def restore(self, identifier: Identifier, version: TableVersion) -> WriteReport:
        """The rows of a past state as the next snapshot, and its changes in the log. Raises as TableStore.restore,
        NotFound for a state that is gone, PublishPending TS1070 when only the log is pending.
        """
        self.logs.check(identifier)
        store = self.stores.get(identifier)
        past = find_snapshot(store, version)
        assert past is not None  # a version was named
        report = self.logs.published_behind(identifier, report_of(identifier, store.restore(past)))
        return self.expiry.after_commit(identifier, report)

    def rescale(self, identifier: Identifier, buckets: int) -> WriteReport:
        """Another number of buckets; a topic gets as many partitions with the publication behind it.

        What is pending of the old buckets is sent before. Raises FixRequest TS1344, TS17xx, PublishPending TS1070.
        """
        self.logs.check(identifier)
        store = self.stores.get(identifier)
        self.logs.published(identifier, WriteReport(identifier, store.snapshots.find_latest_id()))
        report = report_of(identifier, store.rescale(buckets))
        report = self.logs.published_behind(identifier, report)
        return self.expiry.after_commit(identifier, report)

    def publish_staged(self, identifier: Identifier, stage: str) -> WriteReport:
        """Staged -> current, then the log, then the branch goes. Raises RetryError TS1082, TS1308: nothing was done.

        When the log cannot be sent behind the claim (TS1070), the branch stays and says so: call it again.
        """
        self.logs.check_staged(identifier, stage)
        staging = self.stores.get(identifier).staging
        report = report_of(identifier, staging.publish(stage, keep=True))
        report = self.logs.published_behind(identifier, report)
        staging.discard(stage)
        return self.expiry.after_commit(identifier, report)

    def drop_staged(self, identifier: Identifier, stage: str) -> None:
        """Discard; a table that was never published and has nothing else staged is dropped."""
        store = self.stores.get(identifier)
        identity, staging = store.identity, store.staging
        was_staged = staging.find(stage) is not None
        staging.discard(stage)
        if was_staged and identity is not None:  # a misspelt name must not take an empty table with it
            self.relations.drop_unused(identifier, identity)

    def close(self) -> None:
        """Give connections of logs up; the Spark session stays for others in this process."""
        self.logs.close()
