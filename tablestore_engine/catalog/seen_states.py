"""The states of tables that one piece of work has looked at: its later steps read these instead of looking again.

CHANGE     which steps of a piece of work share one look at a table
INVARIANT  of one thread, for one piece of work, and forgotten when it has written the table. Work that waits for
           another thread, or changes the warehouse in another way, begins with new states.
INVARIANT  a claim looks at what is there: a state that has moved since costs a try, never a row.
"""

from __future__ import annotations

from typing import Any

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.store.table_store import TableStore


class SeenStates:
    """Handles of tables, each pinned to the state that the work saw first.

    `analyzed`: of each query that the work has asked, its text → what it was analyzed over, and what came of it.
    """

    def __init__(self) -> None:
        self._stores: dict[Identifier, TableStore] = {}
        self.analyzed: dict[str, tuple[object, Any]] = {}

    def find(self, identifier: Identifier) -> TableStore | None:
        """The handle of a table that was looked at; None: nobody has looked, or nothing was there."""
        return self._stores.get(identifier)

    def put(self, identifier: Identifier, store: TableStore) -> None:
        self._stores[identifier] = store

    def forget(self, identifier: Identifier) -> None:
        """The work has changed the table, or has tried to."""
        self._stores.pop(identifier, None)
