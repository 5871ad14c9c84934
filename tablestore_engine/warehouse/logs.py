"""The logs of a warehouse's tables: which table has one, and everything that is done with it.

Names      Logs   check, publish, reset and drop by table; topics for a table to be; size limits of its rows
INVARIANT  before every commit, and every claim of a staged one, the log is checked; after it the outbox is tried: what
           an earlier process left unpublished goes first, in order; an error behind it says so (PublishPending).
INVARIANT  a table with a log appears only after its topics are there and claimed (P7).
INVARIANT  the lock guards the dictionary of publishers only; nothing that takes a lock of its own is called under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.lifecycle import drop_log
from tablestore_engine.log.settings import LogSettings, resolve_log
from tablestore_engine.log.sizes import MessageLimit, message_limit
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.system import Runtime
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.table_publisher import TablePublisher, pending_log, unready_log
from tablestore_engine.warehouse.write_report import WriteReport

_MANAGED = "tablestore.managed-topic"


class Logs:
    """Shared by the threads of a process; `client` are Kafka client settings (secrets stay in memory)."""

    def __init__(
        self, catalog: FilesystemCatalog, stores: OpenTables, client: Mapping[str, str], runtime: Runtime
    ) -> None:
        self.client = {str(key): str(value) for key, value in client.items()}
        self._catalog = catalog
        self._stores = stores
        self._runtime = runtime
        self._publishers: dict[str, TablePublisher] = {}
        self._lock = OrderedLock("logs of a warehouse", Rank.WAREHOUSE)

    def find_publisher(self, name: Identifier, schema: TableSchema | None = None) -> TablePublisher | None:
        """The table's publisher, None when it (or `schema`) has no log. Raises TS1700, TS1701."""
        settings = self._settings(name, schema or self._stores.get(name).schema)
        if settings is None:
            return None
        with self._lock:
            known = self._publishers.get(settings.table_uuid)
            if known is None or known.settings != settings:  # an option may have changed meanwhile
                self._publishers[settings.table_uuid] = TablePublisher(settings, self._runtime)
            found = self._publishers[settings.table_uuid]
        if known is not None and known is not found:
            known.close()
        return found

    def _settings(self, identifier: Identifier, schema: TableSchema) -> LogSettings | None:
        """The log that a table's options and the engine's `log` give. Raises TS1700, TS1701, TS1737."""
        place = self._catalog.location(identifier)
        return resolve_log(
            schema.options, self.client, table=str(identifier), is_keyed=schema.is_keyed, place=place
        )

    # before a commit -----------------------------------------------------------------------------

    def check(self, identifier: Identifier) -> None:
        """A log in trouble is told while nothing is committed yet; a new table's comes with its topics."""
        store = self._stores.find(identifier)
        publisher = None if store is None else self.find_publisher(identifier)
        if store is not None and publisher is not None:
            publisher.check(store)

    def check_staged(self, identifier: Identifier, stage: str) -> None:
        """The same before the claim of a staged snapshot, which may bring the log, unless it is out. Raises TS1082."""
        store = self._stores.find(identifier)
        if store is None or store.staging.find(stage) is None or store.staging.is_out(stage):
            return
        schema = store.schema if TableTraits(store.schema).has_log else store.on_staged(stage).schema
        try:
            publisher = self.find_publisher(identifier, schema)
            if publisher is not None:
                publisher.check(store)
        except TablestoreError as error:
            raise unready_log(str(identifier), stage, error) from error

    def find_limit(self, identifier: Identifier, schema: TableSchema) -> MessageLimit | None:
        """How large a row the log can carry; None without a log."""
        settings = self._settings(identifier, schema)
        return None if settings is None else message_limit(settings)

    def prepare(self, identifier: Identifier, schema: TableSchema) -> TableSchema:
        """Topics before the table; the schema says whether we made them. Raises TS17xx."""
        settings = self._settings(identifier, schema)
        if settings is None:
            return schema
        created = TablePublisher(settings, self._runtime).prepare(after_snapshot=0)
        return replace(schema, options={**schema.options, _MANAGED: str(created).lower()})

    # behind a commit -----------------------------------------------------------------------------

    def published(self, identifier: Identifier, report: WriteReport) -> WriteReport:
        """Send what is committed and not yet in the log; the report with this call's offsets."""
        store = self._stores.get(identifier)
        publisher = self.find_publisher(identifier)
        sent = None if publisher is None else publisher.publish(store)
        if publisher is None or sent is None:
            return report
        return report.with_log(publisher.settings.topic, sent.offsets)

    def published_behind(self, identifier: Identifier, report: WriteReport) -> WriteReport:
        """`published` behind a commit: what fails now must not be taken for a write that failed (TS1070)."""
        try:
            return self.published(identifier, report)
        except TablestoreError as error:
            raise pending_log(str(identifier), report, error) from error

    # beginning and end ---------------------------------------------------------------------------

    def reset(self, identifier: Identifier, after_snapshot: int) -> int:
        """Begin the log anew behind a snapshot; rows dropped unseen. Raises FixRequest TS1030, TS1031; TS17xx."""
        latest = self._stores.get(identifier).snapshots.find_latest_id() or 0
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

    def drop_topics(self, identifier: Identifier, schema: TableSchema | None) -> None:
        """Of a table that is about to go, when the engine made them."""
        if schema is not None and schema.options.get(_MANAGED) == "true":
            # a table that could not be published any more (TS1737) must still be droppable
            options = {**schema.options, "changelog-producer": "lookup"}
            settings = self._settings(identifier, replace(schema, options=options))
            if settings is not None:
                self._close_publisher(settings.table_uuid)
                drop_log(settings)

    def _close_publisher(self, table_uuid: str) -> None:
        with self._lock:
            publisher = self._publishers.pop(table_uuid, None)
        if publisher is not None:
            publisher.close()

    def close(self) -> None:
        """Give all producers up."""
        for table_uuid in list(self._publishers):
            self._close_publisher(table_uuid)
