"""One warehouse as this process sees it: catalog, stores, relations, logs, writer and Spark of one folder.

Parts      each is given what it needs and knows nothing above it: session ← stores ← names ← spark, logs ← relations
           ← writer
INVARIANT  before every commit that changes rows, and every claim of a staged one, the log is checked; after it the
           pending changelog is sent, then partitions and old snapshots expire: `run_commit`, as the kind of the commit
           says (commit_steps.py).
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.name_lookup import NameLookup, find_snapshot
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.fileio.store_address import is_object_store, parse_address
from tablestore_engine.fileio.stores import open_root
from tablestore_engine.format.layout import check_branch_name
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.executors import Executors
from tablestore_engine.spark.lazy_resolver import LazyResolver
from tablestore_engine.spark.lazy_session import LazySession
from tablestore_engine.spark.shard_executors import ShardExecutors
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.tasks.task_runner import run_tasks
from tablestore_engine.warehouse.commit_steps import (
    ANALYZE,
    COMPACT,
    COMPACT_LEVEL_ZERO,
    CONVERT,
    PUBLISH_STAGED,
    RESCALE,
    RESTORE,
    WRITE,
    WRITE_UNSENT,
    CommitSteps,
    LogCheck,
    Sends,
)
from tablestore_engine.warehouse.iceberg_follower import IcebergMetadata
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.maintenance.expiry import Expiry
from tablestore_engine.warehouse.maintenance.partition_expiry import PartitionExpiry
from tablestore_engine.warehouse.relations.relations import Relations
from tablestore_engine.warehouse.relations.system_views import SystemViews
from tablestore_engine.warehouse.running_operations import Operations
from tablestore_engine.warehouse.write_report import WriteReport, report_of

if TYPE_CHECKING:
    from tablestore_engine.catalog.resolved_names import SnapshotRef
    from tablestore_engine.fileio.external_folders import ExternalFolders, FolderNames
    from tablestore_engine.format.table_statistics import TableStatistics
    from tablestore_engine.log.sink import ChangelogSystem
    from tablestore_engine.spark.resolver import Resolver
    from tablestore_engine.spark.spark_settings import SparkSettings
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport
    from tablestore_engine.store.rows.row_condition import RowCondition
    from tablestore_engine.store.write.requested_compaction import CompactionReport, CompactionRequest
    from tablestore_engine.warehouse.log.former_logs import FormerLogs
    from tablestore_engine.warehouse.maintenance.compact_report import CompactReport
    from tablestore_engine.warehouse.maintenance.orphan_cleanup import Orphans
    from tablestore_engine.warehouse.write.incoming import Incoming
    from tablestore_engine.warehouse.write.table_writer import TableWriter
    from tablestore_engine.warehouse.write.write_spec import WriteSpec


class Warehouse:
    """Shared by the threads of a process; `log` is where changelogs go, `scratch` a folder.

    `uses_spark` False: a worker of Spark, where no session may start; bucket work stays in threads. `say` gets a line
    where Spark starts to read an object store. `external_paths`: where else data files may lie.
    """

    def __init__(  # noqa: PLR0913 - as of Engine
        self,
        path: str,
        spark: SparkSettings | Callable[[], SparkSettings],
        log: ChangelogSystem,
        runtime: Runtime,
        *,
        trusted_sql: bool = False,
        scratch: str | None = None,
        uses_spark: bool = True,
        say: Callable[[str], None] = lambda _: None,
        external_paths: FolderNames = (),
    ) -> None:
        self.path, fileio = open_root(path, runtime.users)
        is_local = not is_object_store(path)
        self.address = self.path if is_local else parse_address(path).text
        self.session = LazySession(
            spark, ScratchPlace(self.path if is_local else None, scratch, runtime.users)
        )
        self.operations = Operations(self.session.cancel_jobs)
        self._uses_spark, self._trusted_sql, self._say = uses_spark, trusted_sql, say
        self._log = log
        external = _open_external(external_paths, self.path) if external_paths else None
        self._set_up(FilesystemCatalog(fileio, self.path, runtime, external=external))

    def _set_up(self, catalog: FilesystemCatalog) -> None:
        self._on_branches: dict[str, Warehouse] = {}
        self.catalog = catalog
        self.stores = OpenTables(catalog, Executors(self.session) if self._uses_spark else run_tasks)
        names = NameLookup(catalog, self.stores, SystemViews(catalog, self.stores).find)
        trusted = self._trusted_sql
        self.spark = LazyResolver(self.session, names, catalog.fileio, trusted_sql=trusted, say=self._say)
        shards = ShardExecutors(self.session if self._uses_spark else None)
        self.logs = Logs(catalog, self.stores, self._log, shards)
        self.iceberg = IcebergMetadata(self.catalog, self.stores)
        self.relations = Relations(self.catalog, self.stores, names, self.spark, self.logs, self.iceberg)
        self.expiry = Expiry(
            self.stores,
            self.logs,
            PartitionExpiry(catalog, self.stores, self.run_commit, catalog.runtime),
        )

    def on_branch(self, name: str, *, makes_branches: bool = False) -> Warehouse:
        """The same with its tables on a branch; those without it are only read, or with `makes_branches` get it with
        their first write. Raises FixRequest TS1107.
        """
        check_branch_name(name)
        found = None if makes_branches else self._on_branches.get(name)
        if found is None:
            found = copy(self)
            for made in ("orphans", "former_logs", "writer"):
                found.__dict__.pop(made, None)
            found._set_up(replace(self.catalog, branch=name, makes_branches=makes_branches))
            if not makes_branches:
                self._on_branches[name] = found
        return found

    @cached_property
    def orphans(self) -> Orphans:
        from tablestore_engine.warehouse.maintenance.orphan_cleanup import Orphans

        return Orphans(self.catalog)

    @cached_property
    def former_logs(self) -> FormerLogs:
        from tablestore_engine.warehouse.log.former_logs import FormerLogs

        return FormerLogs(self.catalog, self.logs)

    @cached_property
    def writer(self) -> TableWriter:
        from tablestore_engine.warehouse.write.table_writer import TableWriter

        return TableWriter(
            self.catalog, self.stores, self.relations, self.logs, self.spark, self.catalog.runtime
        )

    @property
    def resolver(self) -> Resolver:
        """Names for SQL; starts the session at first use."""
        return self.spark.get()

    @contextmanager
    def running(self, *, needs_spark: bool | None = None) -> Iterator[None]:
        """One operation: another thread can stop it, and its Spark jobs carry its tag. Raises Stopped TS1091.

        `needs_spark`: the session starts at once; None: the operation uses it where it runs already.
        """
        from tablestore_engine.spark.jvm_connection import interruptible

        with self.operations.running() as operation:
            if not (self.session.is_started if needs_spark is None else needs_spark):
                yield
                return
            with operation.starting_spark():
                session = self.session.get()
            self.operations.check()
            with interruptible(session, operation.tag) as connection, self.resolver.in_use():
                operation.close_calls.append(connection.close)
                yield

    def run_commit(
        self,
        identifier: Identifier,
        steps: CommitSteps,
        commit: Callable[[], WriteReport],
        *,
        stage: str | None = None,
    ) -> WriteReport:
        """One operation: check the log, commit, Iceberg metadata, publish, release, expire, as the kind has it.

        `stage`: of a kind that publishes a staged snapshot. A staged commit ends after the commit. Raises what `commit`
        raises, TS17xx before it, PublishPending TS1070 after it.
        """
        with self.running():
            self.stores.make_branch(identifier)
            if steps.check is LogCheck.TABLE:
                self.logs.check(identifier)
            elif steps.check is LogCheck.STAGED and stage is not None:
                self.logs.check_staged(identifier, stage)
            if steps.sends_first:
                latest = self.stores.get(identifier).snapshots.find_latest_id()
                self.logs.published(identifier, WriteReport(identifier, latest))
            report = commit()
            if report.staged is not None:
                return report
            report = self.iceberg.after_commit(identifier, report)
            if steps.sends is Sends.PENDING or (steps.sends is Sends.ROWS and not report.is_empty):
                report = self.logs.published_after_commit(identifier, report)
            if steps.releases and stage is not None:
                self.stores.get(identifier).staging.discard(stage)
            if not steps.expires:
                return report
            return self.expiry.after_commit(identifier, report, publishes=steps.sends is not Sends.NOTHING)

    def expire_partitions(
        self, identifier: Identifier, where: RowCondition | None = None, *, dry_run: bool = False
    ) -> PartitionReport:
        """As PartitionExpiry.run, which may raise."""
        with self.running():
            return self.expiry.partitions.run(identifier, where, dry_run=dry_run)

    def write_incoming(
        self,
        identifier: Identifier,
        incoming: Incoming,
        spec: WriteSpec,
        *,
        partition: dict[str, object] | None = None,
        computed_from: SnapshotRef | None = None,
        seen: SeenStates | None = None,
    ) -> WriteReport:
        """One commit, then publishing. Raises PublishPending TS1070 when only the latter failed.

        `computed_from`: the only state that the rows are right on. `beside` of the spec: see write_rows. `seen`: of the
        work that writes; the first try is planned on the table's state in it.
        """

        def commit() -> WriteReport:
            done = self.writer.write(
                identifier, incoming, spec, partition=partition, computed_from=computed_from, seen=seen
            )
            return report_of(identifier, done)

        return self.run_commit(identifier, WRITE if spec.publish else WRITE_UNSENT, commit)

    def compact(self, identifier: Identifier, request: CompactionRequest) -> CompactReport:
        """Steps that change no row, and taking in what other writers left, which is published like a commit. Expired
        records go before, unless a staged snapshot waits for its tests on these rows.

        A compaction that brings no row into sight has nothing to tell a log, and needs none: the table's next
        publication passes its snapshots by. Raises what compact_table can, TS17xx, PublishPending TS1070.
        """
        from tablestore_engine.store.table_traits import TableTraits
        from tablestore_engine.store.write.requested_compaction import has_inbox_rows
        from tablestore_engine.warehouse.maintenance.compact_report import report_of_compaction

        store = self.stores.get(identifier)
        done: list[CompactionReport] = []
        expires = TableTraits(store.schema).record_rule is not None and not self.expiry.partitions.is_awaited(
            identifier
        )

        def commit() -> WriteReport:
            asked = {"full": request.full, "partition": request.partition, "order": request.order}
            done.append(store.compact(expires=expires, **asked))
            found = [store.snapshots.find(number) for number in done[0].snapshot_ids]
            has_changelog = any(one is None or one.changelog_manifest_list is not None for one in found)
            return WriteReport(identifier, done[0].snapshot_id, is_empty=not has_changelog)

        steps = COMPACT_LEVEL_ZERO if expires or has_inbox_rows(store.context, request) else COMPACT
        report = self.run_commit(identifier, steps, commit)
        return report_of_compaction(done[0], report)

    def restore(self, identifier: Identifier, version: TableVersion) -> WriteReport:
        """The rows of a past state as the next snapshot, and its changes in the log. Raises as TableStore.restore,
        NotFound for a state that is gone, PublishPending TS1070 when only the log is pending.
        """

        def commit() -> WriteReport:
            store = self.stores.get(identifier)
            past = find_snapshot(store, version)
            assert past is not None  # a version was named
            return report_of(identifier, store.restore(past))

        return self.run_commit(identifier, RESTORE, commit)

    def rescale(self, identifier: Identifier, buckets: int) -> WriteReport:
        """Another number of buckets; a topic gets as many partitions with the publication that follows.

        The pending changelog of the old buckets is sent first. Raises FixRequest TS1344, TS17xx, PublishPending TS1070.
        """

        def commit() -> WriteReport:
            return report_of(identifier, self.stores.get(identifier).rescale(buckets))

        return self.run_commit(identifier, RESCALE, commit)

    def analyze(self, identifier: Identifier, columns: Sequence[str] | None = None) -> TableStatistics | None:
        """Statistics of the newest snapshot in a commit without rows; `columns` None: of all. None: no snapshot.

        Raises as store.analyze.
        """
        from tablestore_engine.store.analyze import analyze

        found: list[TableStatistics | None] = []

        def commit() -> WriteReport:
            statistics, done = analyze(self.stores.get(identifier), columns)
            found.append(statistics)
            if done is None:
                return WriteReport(identifier, None, is_empty=True)
            return replace(report_of(identifier, done), is_empty=True)

        self.run_commit(identifier, ANALYZE, commit)
        return found[-1]

    def convert(self, identifier: Identifier, buckets: int | None = None) -> WriteReport:
        """Deletion vectors and fixed buckets for a table of another engine. Raises as store.conversion, TS1577."""
        from tablestore_engine.warehouse.write.converted_schema import plan_conversion

        def commit() -> WriteReport:
            store = self.stores.get(identifier)
            change = plan_conversion(store, buckets, self.catalog.runtime.new_uuid())
            return report_of(identifier, store.convert(change))

        return self.run_commit(identifier, CONVERT, commit)

    def publish_staged(self, identifier: Identifier, stage: str) -> WriteReport:
        """Staged -> current, then the log, then the branch goes. Raises RetryError TS1082, TS1308: nothing was done.

        When the log cannot be sent behind the claim (TS1070), the branch stays and says so: call it again. Raises
        RetryError TS1548 when it is being dropped.
        """
        from tablestore_engine.store.stage.stage_drop import begin_publishing

        def publish() -> WriteReport:
            store = self.stores.get(identifier)
            begin_publishing(store.context, store.staging.get(stage))
            return report_of(identifier, store.staging.publish(stage, keep=True))

        return self.run_commit(identifier, PUBLISH_STAGED, publish, stage=stage)

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


def _open_external(named: FolderNames, warehouse: str) -> ExternalFolders:
    from tablestore_engine.fileio.external_folders import ExternalFolders

    return ExternalFolders(named, warehouse)
