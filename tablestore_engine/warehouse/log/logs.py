"""The logs of a warehouse's tables: which table has one, and everything that is done with it.

CHANGE     when a log is checked, sent, created again and dropped
INVARIANT  before every commit, and every claim of a staged one, the log is checked; after it the outbox is tried: what
           an earlier process left unpublished goes first, in order; an error behind it says so (PublishPending).
INVARIANT  a table with a log appears only after its log is there and claimed (P7).
INVARIANT  the lock guards the dictionaries of publishers and sinks only; nothing that takes a lock of its own is called
           under it.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.target_branch import refuse_on
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.metadata.identity import UUID_OPTION
from tablestore_engine.store.stage.staging import find_staged, is_out
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.catalog.left_logs import LeftLog
    from tablestore_engine.log.followed_log import FollowedLog
    from tablestore_engine.log.sink import ChangelogSink, ChangelogSystem, LoggedTable, RowLimit
    from tablestore_engine.spark.shard_executors import ShardExecutors
    from tablestore_engine.store.stage.stage_rebase import StagedSnapshot
    from tablestore_engine.warehouse.log.log_status import LogStatus
    from tablestore_engine.warehouse.log.table_publisher import TablePublisher


class Logs:
    """Shared by the threads of a process; `system` is where the logs are, `executors` send what is large."""

    def __init__(
        self,
        catalog: FilesystemCatalog,
        stores: OpenTables,
        system: ChangelogSystem,
        executors: ShardExecutors | None = None,
    ) -> None:
        from tablestore_engine.catalog.left_logs import LeftLogStore

        self.system = system
        self._executors = executors
        self._catalog = catalog
        self._stores = stores
        self._publishers: dict[str, TablePublisher] = {}
        self._sinks: dict[str, tuple[LoggedTable, ChangelogSink | None]] = {}
        self._lock = OrderedLock("logs of a warehouse", Rank.WAREHOUSE)
        self.left = LeftLogStore(catalog.fileio, catalog.warehouse)

    def find_publisher(self, name: Identifier, schema: TableSchema | None = None) -> TablePublisher | None:
        """The table's publisher, None when it (or `schema`) has no log. Raises TS1700, TS1701."""
        from tablestore_engine.warehouse.log.table_publisher import TablePublisher

        seen = schema or self._stores.get(name).schema
        sink = self._find_sink(name, seen)
        if sink is None:
            return None
        uuid = _uuid(name, seen)
        with self._lock:
            known = self._publishers.get(uuid)
            if known is None or known.sink != sink:  # an option may have changed meanwhile
                self._publishers[uuid] = TablePublisher(sink)
            found = self._publishers[uuid]
        if known is not None and known is not found:
            known.close()
        return found

    def _find_sink(self, identifier: Identifier, schema: TableSchema) -> ChangelogSink | None:
        """The log that a table's options and the engine's `log` give, looked for once while the table stays as it is.
        Raises TS1700, TS1701, TS1737.
        """
        if self._catalog.branch is not None:  # its rows go to the log once they are main's
            return None
        return self._known_sink(identifier, schema)

    def _known_sink(self, identifier: Identifier, schema: TableSchema) -> ChangelogSink | None:
        table, uuid = self._table(identifier, schema), _uuid(identifier, schema)
        with self._lock:
            known = self._sinks.get(uuid)
        if known is None or known[0] != table:
            known = table, self.system.find_sink(table)
            with self._lock:
                self._sinks[uuid] = known
        return known[1]

    def _table(self, identifier: Identifier, schema: TableSchema) -> LoggedTable:
        """A table that waits for its place claims its log for that place already."""
        from tablestore_engine.log.sink import LoggedTable

        place = replace(identifier, is_replacement=False)
        return LoggedTable(str(place), self._catalog.location(place), schema)

    def find_limit(self, identifier: Identifier, schema: TableSchema) -> RowLimit | None:
        """What a row may be so that the table's log can carry it, on a branch too; None without a log."""
        found = self._known_sink(identifier, schema)
        return None if found is None else found.row_limit()

    def find_shared(self, one: TableSchema, options: Mapping[str, str]) -> str | None:
        """The name of the log that a table and one with these options would both have."""
        name = self.system.find_name(one)
        other = self.system.find_name(replace(one, options=dict(options)))
        return name if name == other else None

    # before a commit -----------------------------------------------------------------------------

    def check(
        self,
        identifier: Identifier,
        wanted: TableSchema | None = None,
        *,
        current: TableSchema | None = None,
    ) -> None:
        """A log in trouble is told while nothing is committed yet; a new table's is made with it.

        `wanted`: the schema that the commit will bring, whose rows the log must be able to carry. `current`: the
        table's, where the operation has looked; None: look now.
        """
        if current is None:
            seen = self._stores.find_seen(identifier)
            current = None if seen is None or seen.seen is None else seen.seen.schema
        publisher = None if current is None else self.find_publisher(identifier, current)
        if publisher is not None:
            publisher.check(self._stores.open(identifier))
            if wanted is not None:
                self.check_schema(identifier, wanted)

    def check_schema(self, identifier: Identifier, wanted: TableSchema) -> None:
        """Whether the table's log can carry rows of this schema. Raises TS17xx; asks nobody without a log."""
        sink = self._find_sink(identifier, wanted)
        if sink is not None:
            sink.check_schema()

    def check_staged(self, identifier: Identifier, stage: str) -> None:
        """The same before the claim of a staged snapshot, which may bring the log, unless it is out. Raises TS1082."""
        seen = self._stores.find_seen(identifier)
        staged = None if seen is None else find_staged(seen, stage)
        if seen is not None and staged is not None:
            self.check_found(identifier, seen, staged)

    def check_found(self, identifier: Identifier, seen: TableContext, staged: StagedSnapshot) -> None:
        """The same of one that the operation has looked up."""
        from tablestore_engine.warehouse.log.table_publisher import unready_log

        if is_out(seen, staged):
            return
        schema, store = seen.latest_schema(), self._stores.open(identifier)
        is_as_main = staged.base is not None and staged.snapshot.schema_id == staged.base.schema_id
        wanted = schema if is_as_main else store.on_staged(staged.name).schema
        try:
            publisher = self.find_publisher(identifier, schema if TableTraits(schema).has_log else wanted)
            if publisher is not None:
                publisher.check(store)
                self.check_schema(identifier, wanted)
        except TablestoreError as error:
            raise unready_log(str(identifier), staged.name, error) from error

    def check_change(self, identifier: Identifier, before: TableSchema, after: TableSchema) -> None:
        """Log options that do not fit the table are refused before they are its own. Raises as find_publisher."""
        self.check_kept(identifier, before, after)
        if _is_log_changed(before, after):
            self._find_sink(identifier, after)

    def check_kept(self, identifier: Identifier, before: TableSchema, after: TableSchema) -> None:
        """On a branch log options stay as they are: main's log would begin with rows that it has not. Raises TS1222."""
        if _is_log_changed(before, after):
            refuse_on(self._catalog.branch, f"a change of the log options of {identifier}")

    def look(self, identifier: Identifier) -> LogStatus | None:
        """Where the table's log stands; None without one. Raises TS17xx when it cannot be asked."""
        publisher = self.find_publisher(identifier)
        if publisher is None:
            return None
        return publisher.look(str(identifier), self._stores.get(identifier), self._catalog.runtime.now_ms())

    def follow(self, identifier: Identifier) -> FollowedLog | None:
        """The log as one reader follows it; None when the table has none. Raises TS17xx."""
        sink = self._find_sink(identifier, self._stores.get(identifier).schema)
        return None if sink is None else sink.follow()

    def prepare(self, identifier: Identifier, schema: TableSchema, *, after_snapshot: int = 0) -> TableSchema:
        """The log before the table; the schema keeps what the log wants kept. Raises TS17xx."""
        sink = self._known_sink(identifier, schema)  # of a new table on a branch too: main is empty
        if sink is None:
            return schema
        return replace(schema, options={**schema.options, **sink.prepare(after_snapshot=after_snapshot)})

    def take_back(self, identifier: Identifier) -> None:
        """Behind a write that failed: rows that it sent early go at once where that is possible, else with whoever
        publishes next; the error to tell is the write's.
        """
        with suppress(TablestoreError):
            store = self._stores.find(identifier)
            publisher = None if store is None else self.find_publisher(identifier)
            if store is not None and publisher is not None:
                publisher.publish(store)

    # after a commit ------------------------------------------------------------------------------

    def published(self, identifier: Identifier, report: WriteReport) -> WriteReport:
        """Send what is committed and not yet in the log; the report with where its rows are."""
        publisher = self.find_publisher(identifier, None if report.seen is None else report.seen.schema)
        sent = None if publisher is None else publisher.publish(self._stores.get(identifier), self._executors)
        return report if sent is None else replace(report, log=sent)

    def published_after_commit(self, identifier: Identifier, report: WriteReport) -> WriteReport:
        """`published` after a commit: what fails now must not be taken for a write that failed (TS1070).

        A table that was dropped right after the commit took its log along: nothing is pending.
        """
        from tablestore_engine.warehouse.log.table_publisher import pending_log

        try:
            return self.published(identifier, report)
        except TablestoreError as error:
            if self._stores.find(identifier) is None:
                return report
            raise pending_log(str(identifier), report, error, self.system.flags) from error

    # beginning and end ---------------------------------------------------------------------------

    def reset(self, identifier: Identifier, after_snapshot: int) -> int:
        """Begin the log anew behind a snapshot; rows dropped unseen. Raises FixRequest TS1030, TS1031; TS17xx."""
        latest = self._stores.get(identifier).snapshots.find_latest_id() or 0
        publisher = self.find_publisher(identifier)
        if publisher is None:
            needed = " and ".join(self.system.needs)
            raise FixRequest(
                "TS1030",
                f"{identifier} has no log to reset",
                why="its option log.system is none",
                fix=f"set {needed} first",
            )
        if not 0 <= after_snapshot <= latest:
            raise FixRequest(
                "TS1031",
                f"the log of {identifier} cannot begin after snapshot {after_snapshot}",
                why=f"the table has snapshots up to {latest}",
                fix=f"give a number from 0 (everything is sent again) to {latest} (only what comes next is sent)",
            )
        return publisher.reset(after_snapshot)

    def drop(self, identifier: Identifier, schema: TableSchema | None) -> None:
        """Of a table that is about to go, when the engine made its log; one that stays is noted (former_logs.py)."""
        if schema is None or self.system.find_name(schema) is None:
            return
        owned = self.system.find_owned(self._table(identifier, schema))
        if owned is None:
            self.left.put(self._left(identifier, schema))
            return
        self._catalog.check_deletable(identifier)  # else the table would stay without its log
        self._close_publisher(_uuid(identifier, schema))
        try:
            owned.drop()
        except TablestoreError:
            with suppress(TablestoreError, OSError):  # some callers go on: what the log said is their error
                self.left.put(self._left(identifier, schema))
            raise
        self.left.drop(_uuid(identifier, schema))

    def _left(self, identifier: Identifier, schema: TableSchema) -> LeftLog:
        from tablestore_engine.catalog.left_logs import LeftLog

        return LeftLog(replace(identifier, is_replacement=False), schema, self._catalog.runtime.now_ms())

    def find_former(self, left: LeftLog) -> ChangelogSink | None:
        """The log that a table had. Raises TS1701."""
        return self.system.find_former(self._table(left.table, left.schema))

    def _close_publisher(self, table_uuid: str) -> None:
        with self._lock:
            publisher = self._publishers.pop(table_uuid, None)
            self._sinks.pop(table_uuid, None)
        if publisher is not None:
            publisher.close()

    def close(self) -> None:
        for table_uuid in list(self._publishers):
            self._close_publisher(table_uuid)


def _is_log_changed(before: TableSchema, after: TableSchema) -> bool:
    changed = before.options.items() ^ after.options.items()
    return any(key.startswith("log.") or key == "streaming-read-mode" for key, _ in changed)


def _uuid(identifier: Identifier, schema: TableSchema) -> str:
    """What a log is known by; a system that needs none gets the name."""
    return schema.options.get(UUID_OPTION, str(identifier))
