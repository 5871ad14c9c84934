"""Expiry of partitions of the tables of a warehouse: behind commits when it is time to look, and when somebody asks.

CHANGE     when partitions expire (options partition.expiration-time, partition.expiration-check-interval)
Steps      the log is checked → store.expiry.expire_partitions commits → what was committed is published
INVARIANT  behind a commit this process looks at once, and then when the interval of the table has passed; a look that
           fails counts as one: the next commit is not made to wait for the same trouble.
INVARIANT  no commit behind a commit while a staged snapshot waits in the table, or one that was built or tested on its
           rows waits anywhere: they could not be published any more.
INVARIANT  it publishes only where the commit before it was published: who said not to send rows meant it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.commit_steps import EXPIRE_PARTITIONS, CommitSteps
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport
    from tablestore_engine.store.rows.row_condition import RowCondition


@dataclass(frozen=True)
class PartitionExpiry:
    """Over all tables of one warehouse; shared by the threads of a process."""

    catalog: FilesystemCatalog
    stores: OpenTables
    run_commit: Callable[[Identifier, CommitSteps, Callable[[], WriteReport]], WriteReport]
    runtime: Runtime
    _looked: dict[tuple[Identifier, str | None], int] = field(default_factory=dict, compare=False)
    _lock: OrderedLock = field(
        default_factory=lambda: OrderedLock("looks for expired partitions", Rank.WAREHOUSE), compare=False
    )

    def when_due(
        self, identifier: Identifier, store: TableStore, traits: TableTraits, *, publishes: bool
    ) -> PartitionReport | None:
        """What went; None when it was not the time, or not the place, to look. Raises as run()."""
        if "partition.expiration-time" not in traits.schema.options or (traits.has_log and not publishes):
            return None
        key, now = (identifier, store.identity), self.runtime.now_ms()
        with self._lock:
            last = self._looked.get(key)
        interval = traits.partition_interval_ms
        if (last is not None and interval and now - last <= interval) or self.is_awaited(identifier):
            return None
        with self._lock:
            self._looked[key] = now
        return None if traits.partition_rule is None else self.run(identifier)

    def run(
        self, identifier: Identifier, where: RowCondition | None = None, *, dry_run: bool = False
    ) -> PartitionReport:
        """Expire now, or drop those that `where` is TRUE of. Raises FixRequest TS1341, TS1215, Unsupported TS1122,
        TS1136, TS1137, TS17xx: nothing was committed; PublishPending TS1070: the rows are gone, and only the log lacks
        that.
        """
        store = self.stores.get(identifier)
        if dry_run:
            return store.expire_partitions(where, dry_run=True)
        done: list[PartitionReport] = []

        def commit() -> WriteReport:
            done.append(store.expire_partitions(where))
            snapshot = done[0].snapshot_id
            return WriteReport(identifier, snapshot, deleted=done[0].rows, is_empty=snapshot is None)

        self.run_commit(identifier, EXPIRE_PARTITIONS, commit)
        return done[0]

    def is_awaited(self, identifier: Identifier) -> bool:
        """Whether something staged lies here, or names this table in what was kept with it (gate/gatekeeper.py)."""
        for database in self.catalog.list_databases():
            names = {*self.catalog.list_tables(database), *self.catalog.list_replacements(database)}
            for name in sorted(names):
                one = Identifier(database, name)
                if any(self._awaits(place, identifier) for place in (one, one.replacement)):
                    return True
        return False

    def _awaits(self, place: Identifier, identifier: Identifier) -> bool:
        store = self.stores.find(place)
        if store is None:
            return False
        for staged in store.staging.list_all():
            kept = [*(staged.snapshot.properties or {}).values()]
            kept += [one.details or "" for one in staged.outcomes]
            if place == identifier or any(str(identifier) in text for text in kept):
                return True
        return False
