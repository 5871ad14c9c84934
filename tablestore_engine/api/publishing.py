"""The table's changelog on its way to Kafka: what the store committed, handed to the log as data.

Names      TablePublisher   one per table and process: publish what is pending, look at the topic
Steps      settings from table options and the engine's `log` -> outbox: every snapshot behind the newest marker
INVARIANT  the log never reads files: each snapshot's changes are read here, in the store's deterministic order.
INVARIANT  one publisher per table and process, used by one thread at a time: a second would fence the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore_engine.log.beginning import prepare_log, reset_log
from tablestore_engine.log.changes import PublishReport, SnapshotChanges
from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.publisher import Publisher
from tablestore_engine.log.reader import read_messages
from tablestore_engine.log.settings import LogSettings, resolve_log
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.system import Runtime
from tablestore_engine.store.table_store import TableStore


def find_settings(store: TableStore, log: Mapping[str, str], table: str) -> LogSettings | None:
    """The table's log settings, None when it has no log system. Raises TS1700, TS1701."""
    schema = store.schema
    return resolve_log(schema.options, log, table=table, is_keyed=schema.is_keyed)


@dataclass
class TablePublisher:
    """Publishes one table; `store` gives snapshots and changes."""

    settings: LogSettings
    runtime: Runtime
    _publisher: Publisher | None = None
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("publisher", Rank.PUBLISHER))

    def prepare(self, after_snapshot: int) -> bool:
        """Make topic and marker topic; True when the topic is ours. Raises TS17xx."""
        beginning = prepare_log(self.settings, after_snapshot=after_snapshot, runtime=self.runtime)
        return self.settings.topic in beginning.created

    def reset(self, after_snapshot: int) -> None:
        """A new beginning of the log: snapshots up to this one count as published. Raises TS17xx."""
        self.close()
        reset_log(self.settings, after_snapshot=after_snapshot, runtime=self.runtime)

    def publish(self, store: TableStore) -> PublishReport | None:
        """Send every committed snapshot that the log lacks; None when the table has no snapshot."""
        latest = store.snapshots.find_latest_id()
        if latest is None:
            return None
        with self._lock:
            if self._publisher is None:
                self._publisher = Publisher(self.settings, runtime=self.runtime)
            return self._publisher.publish_pending(
                latest,
                lambda snapshot_id: _read_changes(store, snapshot_id),
                find_commit=lambda snapshot_id: _find_commit(store, snapshot_id),
            )

    def messages(self) -> list[LogMessage]:
        """All committed messages of the topic."""
        return list(read_messages(self.settings, runtime=self.runtime))

    def close(self) -> None:
        """Give the producer up."""
        with self._lock:
            if self._publisher is not None:
                self._publisher.close()
                self._publisher = None


def _read_changes(store: TableStore, snapshot_id: int) -> SnapshotChanges | None:
    snapshot = store.snapshots.get(snapshot_id)
    if not store.has_changes(snapshot):
        return None
    return SnapshotChanges(
        snapshot_id=snapshot.id,
        commit_user=snapshot.commit_user,
        commit_identifier=snapshot.commit_identifier,
        schema=store.schemas.get(snapshot.schema_id),
        batches=store.read_changes(snapshot),
    )


def _find_commit(store: TableStore, snapshot_id: int) -> str | None:
    snapshot = store.snapshots.find(snapshot_id)
    return None if snapshot is None else f"{snapshot.commit_user}:{snapshot.commit_identifier}"
