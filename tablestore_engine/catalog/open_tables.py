"""The tables of a warehouse as this process has them open: one store for each name.

INVARIANT  one store per name and process, so that its caches are shared; a dropped table's never meet a new one's.
INVARIANT  the lock guards the dictionary only; nothing that takes a lock of its own is called under it.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.catalog.target_branch import MadeBranch, make_branch
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.tasks.task_runner import run_tasks

if TYPE_CHECKING:
    from tablestore_engine.store.tasks.task_runner import RunTasks


class OpenTables:
    """Shared by the threads of a process; `runner` performs the bucket tasks of all of them."""

    def __init__(self, catalog: FilesystemCatalog, runner: RunTasks = run_tasks) -> None:
        self._catalog = catalog
        self._runner = runner
        self._stores: dict[tuple[Identifier, str], TableStore] = {}
        self._lock = OrderedLock("tables of a warehouse", Rank.WAREHOUSE)

    def find(self, identifier: Identifier) -> TableStore | None:
        """The store of a table, None when there is no such table."""
        if not self._catalog.has_table(identifier):
            self.forget(identifier)  # its name in SQL goes when a statement looks it up
            return None
        return self.open(identifier)

    def find_seen(self, identifier: Identifier) -> TableContext | None:
        """The table as it is now, for one operation (TableStore.find_seen); None when there is no such table."""
        seen = self.open(identifier).find_seen()
        if seen is None and self.find(identifier) is not None:
            return self.open(identifier).find_seen()  # another table takes a name in two steps
        return seen

    def find_context(self, identifier: Identifier) -> TableContext | None:
        """The table that has the name now, without its state; None when there is no such table."""
        context = self.open(identifier).context
        if context.guard.identity is None:
            return None if self.find(identifier) is None else self.open(identifier).context
        return context

    def find_as_seen(self, identifier: Identifier, seen: SeenStates | None = None) -> TableStore | None:
        """A handle whose calls all read the state that the table has now; None when there is no such table.

        One look at a name that was a table the last time. Others may be views: they are listed first. `seen`: of the
        work that looks: a table that it has seen is not looked at.
        """
        known = None if seen is None else seen.find(identifier)
        if known is not None:
            return known
        with self._lock:
            was_table = any(one == identifier for one, _ in self._stores)
        if not was_table and self.find(identifier) is None:
            return None
        found = self.find_seen(identifier)
        if found is None:
            return None
        snapshots = found.snapshots.seeing(found.newest_snapshot())
        made = replace(self.open(identifier), pinned=replace(found, snapshots=snapshots))
        if seen is not None:
            seen.put(identifier, made)
        return made

    def knows(self, database: str) -> bool:
        with self._lock:
            return any(one.database == database for one, _ in self._stores)

    def get(self, identifier: Identifier) -> TableStore:
        """The store of a table. Raises NotFound TS1414."""
        from tablestore_engine.catalog.near_names import TABLES, no_such_name

        found = self.find(identifier)
        if found is None:
            raise no_such_name(self._catalog, identifier, (TABLES,))
        return found

    def open(self, identifier: Identifier) -> TableStore:
        """A store for the name, whether its table is there or yet to be made; on the branch of the warehouse."""
        main = self._kept(identifier, replace(self._catalog.main_store(identifier), runner=self._runner))
        return self._kept(identifier, self._catalog.on_target(main))

    def _kept(self, identifier: Identifier, made: TableStore) -> TableStore:
        """The one that is open already, if there is one for the same branch."""
        with self._lock:
            return self._stores.setdefault((identifier, f"{made.branch} {made.reads_for}"), made)

    def make_branch(self, identifier: Identifier) -> MadeBranch | None:
        """The branch of the warehouse, before a table is written on it; None when it is there, or there is no table,
        or who works on the branch does not make it.

        Raises FixRequest TS1350, RetryError TS1375.
        """
        branch = self._catalog.branch if self._catalog.makes_branches else None
        return None if branch is None else make_branch(self._catalog.main_store(identifier), branch)

    def forget(self, identifier: Identifier) -> None:
        """After a drop or rename: caches of the old table must not meet a new one of the same name."""
        with self._lock:
            for key in [key for key in self._stores if key[0] == identifier]:
                del self._stores[key]
