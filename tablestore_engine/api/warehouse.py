"""One warehouse as this process sees it: names, open tables, the Spark session, the log. Engine and Table stand on it.

Names      Warehouse   stores by name, commits followed by publishing, drops and renames
INVARIANT  no JVM before the first statement that needs one.
INVARIANT  before every commit, and every claim of a staged one, the log is checked; after it the outbox is tried: what
           an earlier process left unpublished goes first, in order; an error behind it says so (PublishPending).
INVARIANT  the lock guards the two dictionaries only; nothing that takes a lock of its own is called under it.
INVARIANT  a table with a log appears only after its topics are there and claimed (P7).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tablestore_engine.api.comments import set_all_comments
from tablestore_engine.api.listing import list_relations
from tablestore_engine.api.location import own_folder
from tablestore_engine.api.publishing import TablePublisher, pending_log, unready_log
from tablestore_engine.api.report import RelationInfo, WriteReport, report_of
from tablestore_engine.api.rows import Incoming
from tablestore_engine.api.sources import EngineSource
from tablestore_engine.api.spec import OnSchemaChange, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.api.target import has_log
from tablestore_engine.api.writing import Writer
from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.errors import FixRequest, NotFound, StorageError, TablestoreError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.layout import TableLayout, database_location
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.beginning import drop_log
from tablestore_engine.log.settings import LogSettings, resolve_log
from tablestore_engine.log.sizes import MessageLimit, message_limit
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.system import Runtime
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.session import open_session, session_scratch
from tablestore_engine.store.clone import clone_table
from tablestore_engine.store.table_store import TableStore

_IGNORE = OnSchemaChange.IGNORE
_MANAGED = "tablestore.managed-topic"


class Warehouse:
    """Shared by the threads of a process; `log` are Kafka client settings (secrets stay in memory)."""

    def __init__(
        self,
        path: str,
        spark: SparkSettings,
        log: Mapping[str, str],
        runtime: Runtime,
        *,
        trusted_sql: bool = False,
    ) -> None:
        self.path = own_folder(path, runtime.users)
        self.log = {str(key): str(value) for key, value in log.items()}
        self.runtime = runtime
        self._settings = spark
        self._trusted_sql = trusted_sql
        self._own_views: set[str] = set()
        self._fileio = LocalFileIO(self.path)
        self.catalog = FilesystemCatalog(self._fileio, self.path, runtime)
        self.writer = Writer(
            catalog=self.catalog,
            open_store=self.open_store,
            check_log=self._check_log,
            before_create=self.prepare_log,
            after_refusal=self.drop_unused,
            find_limit=self._find_limit,
            scratch=self._scratch,
            runtime=runtime,
        )
        self._stores: dict[Identifier, TableStore] = {}
        self._publishers: dict[str, TablePublisher] = {}
        self._resolver: Resolver | None = None
        self._starting = OrderedLock("first use of Spark", Rank.ENGINE_SPARK)
        self._lock = OrderedLock("tables of a warehouse", Rank.WAREHOUSE)

    # Spark ---------------------------------------------------------------------------------------

    @property
    def resolver(self) -> Resolver:
        """Names for SQL; starts the session at first use."""
        if self._resolver is not None:
            return self._resolver
        with self._starting:
            if self._resolver is None:
                session = open_session(self._settings, self.path)
                source = EngineSource(self.catalog, self.find_store, self._own_views.__contains__)
                self._resolver = Resolver(session, source, self._scratch(), trusted_sql=self._trusted_sql)
            return self._resolver

    @property
    def has_spark(self) -> bool:
        """Whether this warehouse has used Spark yet."""
        return self._resolver is not None

    def _scratch(self) -> Path:
        return session_scratch(self.path)

    # tables --------------------------------------------------------------------------------------

    def find_store(self, identifier: Identifier) -> TableStore | None:
        """The store of a table, None when there is no such table."""
        if not self.catalog.has_table(identifier):
            self._forget_store(identifier)  # its name in SQL goes when a statement looks it up
            return None
        return self.open_store(identifier)

    def get_store(self, identifier: Identifier) -> TableStore:
        """The store of a table. Raises NotFound TS1414."""
        found = self.find_store(identifier)
        if found is None:
            raise NotFound(
                "TS1414",
                f"table {identifier} does not exist",
                why=f"there is no such table in {self.path}",
                fix="correct the name, or build the model first",
            )
        return found

    def open_store(self, identifier: Identifier) -> TableStore:
        """A store for the name, one per process so that its caches are shared."""
        with self._lock:
            store = self._stores.get(identifier)
            if store is None:
                store = TableStore(self._fileio, self.catalog.location(identifier), self.runtime)
                self._stores[identifier] = store
            return store

    def forget(self, identifier: Identifier) -> None:
        """After a drop or rename: caches of the old table must not meet a new one of the same name."""
        self._forget_store(identifier)
        if self._resolver is not None:  # it calls back for look-ups: never under our lock
            self._resolver.forget(identifier.database, identifier.name)

    def _forget_store(self, identifier: Identifier) -> None:
        with self._lock:
            self._stores.pop(identifier, None)

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """With its tables when `cascade`."""
        if cascade and self.catalog.has_database(name):
            for one in self.relations(name, with_unpublished=True):
                if one.kind == "table":
                    self.drop_table(one.identifier)
        self.catalog.drop_database(name, cascade=cascade)

    def relations(self, database: str, *, with_unpublished: bool = False) -> tuple[RelationInfo, ...]:
        """Tables and views; tables that only have a staged snapshot are nobody's business yet. See api/listing.py."""
        return list_relations(self.catalog, self.find_store, database, with_unpublished=with_unpublished)

    def find_relation(self, identifier: Identifier) -> RelationInfo | None:
        """A table or view by its name."""
        store = self.find_store(identifier)
        if store is not None:
            return RelationInfo(identifier, "table", store.schema.comment)
        view = self.catalog.views.find(identifier)
        return None if view is None else RelationInfo(identifier, "view", view.comment)

    def create_empty(self, identifier: Identifier, incoming: Incoming, spec: TableSpec) -> None:
        """Schema only; its log is prepared first."""
        plan = self.writer.target(identifier, incoming, WriteSpec(spec, on_schema_change=_IGNORE))
        if not plan.is_new:
            raise FixRequest(
                "TS1415", f"{identifier} exists already", why="a table has that name", fix="drop it first"
            )
        self.catalog.create_table(identifier, self.prepare_log(identifier, plan.schema))

    def drop_table(self, identifier: Identifier) -> None:
        """With its history, and with its topics when the engine made them: these first, since with the brokers away
        nothing should be dropped, and no topic stay behind that blocks the next table of the name.
        """
        self._drop_topics(identifier, self.catalog.find_schema(identifier))
        self.catalog.drop_table(identifier)
        self.forget(identifier)

    def _drop_topics(self, identifier: Identifier, schema: TableSchema | None) -> None:
        if schema is not None and schema.options.get(_MANAGED) == "true":
            # a table that could not be published any more (TS1737) must still be droppable
            options = {**schema.options, "changelog-producer": "lookup"}
            settings = self._log_settings(identifier, replace(schema, options=options))
            if settings is not None:
                self._close_publisher(settings.table_uuid)
                drop_log(settings)

    def drop_unused(self, identifier: Identifier, identity: str) -> None:
        """The table of this identity, when no snapshot, no stage and no writer has used it."""
        schema = self.catalog.drop_unused(identifier, identity)
        if schema is not None:
            self.forget(identifier)
            with suppress(
                TablestoreError
            ):  # a refusal is what the caller must hear; a left claim is taken over
                self._drop_topics(identifier, schema)

    def rename(self, source: Identifier, target: Identifier) -> None:
        """A table or view under a new name."""
        if self.catalog.find_schema(source) is not None:
            self.catalog.rename_table(source, target)
        else:
            self.catalog.rename_view(source, target)
        self.forget(source)

    def clone_table(self, source: Identifier, target: Identifier) -> None:
        """The newest snapshot of a table as another one, complete beside it before what has the name goes."""
        if not self.catalog.has_database(target.database):
            self.catalog.create_database(target.database)
        if source == target:
            raise FixRequest(
                "TS1080",
                f"{source} cannot be cloned onto itself",
                why="what has the target's name is replaced",
                fix="give another name",
            )
        hidden = f".tablestore-clone-{self.runtime.new_uuid()}"
        folder = f"{database_location(self.path, target.database)}/{hidden}"
        try:
            clone_table(self.get_store(source).parts, TableLayout(folder))
        except StorageError:  # a full disk must not stay full of what has no name
            self._fileio.delete_tree(folder)
            raise
        if self.find_store(target) is not None:
            self.drop_table(target)
        self.drop_view(target)
        self.catalog.place_table(folder, target)
        self.forget(target)

    def put_view(self, identifier: Identifier, view: ViewDefinition) -> None:
        """Create or replace; its text is this process's own, which may do what the user may."""
        self._own_views.add(view.sql)
        self.catalog.put_view(identifier, view)

    def drop_view(self, identifier: Identifier) -> None:
        """A missing one is fine."""
        self.catalog.views.drop(identifier)
        if self.catalog.schemas(identifier.successor).list_ids():
            self.catalog.drop_table(identifier.successor)
        self.forget(identifier)

    def set_comments(self, identifier: Identifier, comment: str | None, columns: Mapping[str, str]) -> None:
        """Comments of a table (one new schema version) or view."""
        view = self.catalog.views.find(identifier)
        if view is not None:
            merged = {**view.column_comments, **columns}
            self.catalog.put_view(identifier, ViewDefinition(view.sql, comment or view.comment, merged))
            return
        self.catalog.alter_table(identifier, lambda schema: set_all_comments(schema, comment, columns))

    # commits -------------------------------------------------------------------------------------

    def write_incoming(
        self,
        identifier: Identifier,
        incoming: Incoming,
        spec: WriteSpec,
        *,
        partition: dict[str, object] | None = None,
        computed_from: tuple[int, str] | None = None,
    ) -> WriteReport:
        """One commit, then publishing. Raises PublishPending TS1070 when only the latter failed.

        `computed_from`: (id, Snapshot.unique) that the rows are right on.
        """
        if not self.catalog.has_database(identifier.database):
            self.catalog.create_database(identifier.database)
        report = self.writer.write(
            identifier, incoming, spec, partition=partition, computed_from=computed_from
        )
        if report.staged is not None or not spec.publish:
            return report_of(identifier, report)
        return self._published_behind(identifier, report_of(identifier, report))

    def _check_log(self, identifier: Identifier) -> None:
        """A log in trouble is told while nothing is committed yet; a new table's comes with its topics."""
        store = self.find_store(identifier)
        publisher = None if store is None else self.find_publisher(identifier)
        if store is not None and publisher is not None:
            publisher.check(store)

    def check_staged_log(self, identifier: Identifier, stage: str) -> None:
        """The same before the claim of a staged snapshot, which may bring the log, unless it is out. Raises TS1082."""
        store = self.find_store(identifier)
        if store is None or store.staging.find(stage) is None or store.staging.is_out(stage):
            return
        schema = store.schema if has_log(store.schema.options) else store.on_staged(stage).schema
        try:
            publisher = self.find_publisher(identifier, schema)
            if publisher is not None:
                publisher.check(store)
        except TablestoreError as error:
            raise unready_log(str(identifier), stage, error) from error

    def _find_limit(self, identifier: Identifier, schema: TableSchema) -> MessageLimit | None:
        settings = self._log_settings(identifier, schema)
        return None if settings is None else message_limit(settings)

    def _published_behind(self, identifier: Identifier, report: WriteReport) -> WriteReport:
        """`published` behind a commit: what fails now must not be taken for a write that failed."""
        try:
            return self.published(identifier, report)
        except TablestoreError as error:
            raise pending_log(str(identifier), report.snapshot_id, report, error) from error

    def published(self, identifier: Identifier, report: WriteReport) -> WriteReport:
        """Send what is committed and not yet in the log; the report with this call's offsets."""
        store = self.get_store(identifier)
        publisher = self.find_publisher(identifier)
        sent = None if publisher is None else publisher.publish(store)
        if publisher is None or sent is None:
            return report
        return report.with_log(publisher.settings.topic, sent.offsets)

    def reset_log(self, identifier: Identifier, after_snapshot: int) -> int:
        """Begin the log anew behind a snapshot; rows dropped unseen. Raises FixRequest TS1030, TS1031; TS17xx."""
        latest = self.get_store(identifier).snapshots.find_latest_id() or 0
        publisher = self.find_publisher(identifier)
        if publisher is None:
            raise FixRequest(
                "TS1030",
                f"{identifier} has no log to begin anew",
                why="its option log.system is not kafka",
                fix="set log.system and kafka.topic first",
            )
        if not 0 <= after_snapshot <= latest:
            raise FixRequest(
                "TS1031",
                f"the log of {identifier} cannot begin behind snapshot {after_snapshot}",
                why=f"the table has snapshots up to {latest}",
                fix=f"give a number from 0 (everything is sent again) to {latest} (only what comes next is sent)",
            )
        return publisher.reset(after_snapshot)

    def publish_staged(self, identifier: Identifier, stage: str) -> WriteReport:
        """Staged -> current, then the log, then the branch goes. Raises RetryError TS1082, TS1308: nothing was done.

        When the log cannot be sent behind the claim (TS1070), the branch stays and says so: call it again.
        """
        self.check_staged_log(identifier, stage)
        staging = self.get_store(identifier).staging
        report = report_of(identifier, staging.publish(stage, keep=True))
        report = self._published_behind(identifier, report)
        staging.discard(stage)
        return report

    def drop_staged(self, identifier: Identifier, stage: str) -> None:
        """Discard; a table that was never published and has nothing else staged is dropped."""
        store = self.get_store(identifier)
        identity, staging = store.identity, store.staging
        was_staged = staging.find(stage) is not None
        staging.discard(stage)
        if was_staged and identity is not None:  # a misspelt name must not take an empty table with it
            self.drop_unused(identifier, identity)

    def find_publisher(self, name: Identifier, schema: TableSchema | None = None) -> TablePublisher | None:
        """The table's publisher, None when it (or `schema`) has no log. Raises TS1700, TS1701."""
        settings = self._log_settings(name, schema or self.get_store(name).schema)
        if settings is None:
            return None
        with self._lock:
            known = self._publishers.get(settings.table_uuid)
            if known is None or known.settings != settings:  # an option may have changed meanwhile
                self._publishers[settings.table_uuid] = TablePublisher(settings, self.runtime)
            found = self._publishers[settings.table_uuid]
        if known is not None and known is not found:
            known.close()
        return found

    def _log_settings(self, identifier: Identifier, schema: TableSchema) -> LogSettings | None:
        """The log that a table's options and the engine's `log` give. Raises TS1700, TS1701, TS1737."""
        place = self.catalog.location(identifier)
        return resolve_log(
            schema.options, self.log, table=str(identifier), is_keyed=schema.is_keyed, place=place
        )

    def prepare_log(self, identifier: Identifier, schema: TableSchema) -> TableSchema:
        """Topics before the table; the schema says whether we made them. Raises TS17xx."""
        settings = self._log_settings(identifier, schema)
        if settings is None:
            return schema
        created = TablePublisher(settings, self.runtime).prepare(after_snapshot=0)
        return replace(schema, options={**schema.options, _MANAGED: str(created).lower()})

    def _close_publisher(self, table_uuid: str) -> None:
        with self._lock:
            publisher = self._publishers.pop(table_uuid, None)
        if publisher is not None:
            publisher.close()

    def close(self) -> None:
        """Give producers up; the Spark session stays for others in this process."""
        for table_uuid in list(self._publishers):
            self._close_publisher(table_uuid)
