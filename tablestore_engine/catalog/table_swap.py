"""Swap a table or view for a replacement table: complete beside it first, then in its place by two renames.

    <db>.db/.tablestore/next/<name>/                       the replacement: a whole table that no listing shows
                                   .tablestore-replaced    what it takes the place of: a table's folder …
                                   .tablestore-replaced.json   … or a view's file

CHANGE     the atomic swap of two tables
Steps      1 what has the name moves into the replacement's folder  2 is it still what the replacement was made for? if
           not it moves back  3 the folder takes the name  4 what was replaced is deleted
INVARIANT  until step 1 the name means the old relation, from step 3 on the new one; who looks it up between them does
           steps 2 and 3 himself first (settle), so that no reader of ours and no later command finds the name empty.
INVARIANT  what a writer committed to the old table before step 1 is seen by step 2; later claims are refused.
Flat       where no folder can be renamed the replacement is copied into the place (flat_swap).
CRASH      the state is what lies in the replacement's folder: behind step 1 the next look-up goes on, behind step 3 the
           name is right and the next publication of it deletes what is left over.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tablestore_engine.catalog.flat_swap import FlatSwap
from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.fileio.base import FileIO, FolderStore, folders_of
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.commit_history import find_row_commit
from tablestore_engine.store.metadata.identity import find_identity
from tablestore_engine.store.metadata.name_hold import NameHold
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.table_store import TableStore

REPLACES = (
    "tablestore.stage.replaces"  # snapshot property: TableSwap.state() that the replacement was made for
)
REPLACED_FOLDER = ".tablestore-replaced"
_TABLE, _VIEW = REPLACED_FOLDER, f"{REPLACED_FOLDER}.json"


def holds_replaced(fileio: FileIO, folder: str) -> bool:
    """Whether the folder of a replacement has what it takes the place of: step 1 was done, step 4 was not."""
    return any(fileio.exists(f"{folder}/{name}") for name in (_TABLE, _VIEW))


@dataclass(frozen=True)
class TableSwap:
    """`place`: the folder of the name's table, `view`: the file of its view, `beside`: the replacement's folder."""

    fileio: FileIO
    runtime: Runtime
    place: str
    view: str
    beside: str

    def state(self) -> str | None:
        """What has the name: which table with which rows, or which text of a view; None when nothing has it."""
        return self._table_state(self.place) or self._view_state(self.view)

    def take_place(self) -> None:
        """Steps 1 to 3. Raises RetryError TS1480 when something else has the name than the replacement was made for."""
        expected = self._expected()
        is_flat = self.fileio.folders is None
        is_placed = self._flat.take_place(expected) if is_flat else self._taken_by_renames(expected)
        if not is_placed:
            raise RetryError(
                "TS1480",
                f"the table beside {self.place} cannot take its place",
                why=f"it was made for {expected}, and the name means {self.state() or 'nothing'} now",
                fix="build the model again: it is made for what is there now, and its tests run again",
            )
        self.runtime.crash_point("replace.placed")

    def _taken_by_renames(self, expected: str | None) -> bool:
        if not self._is_begun() and self.state() == expected:
            self._move_out()
            self.runtime.crash_point("replace.moved")
        return self.settle()

    def settle(self) -> bool:
        """Steps 2 and 3 of a change of places that has begun; whether the replacement has its place now."""
        if self.fileio.folders is None:
            return self._flat.settle()
        try:
            if not self._is_begun():
                return False
            moved = self._table_state(f"{self.beside}/{_TABLE}") or self._view_state(f"{self.beside}/{_VIEW}")
            if moved == self._expected():
                if self._view_state(self.view) == moved:  # moving a file is a link and a deletion
                    self.fileio.delete(self.view)
                return self._folders.rename(self.beside, self.place)
            self._move_back()
        except NotFound:  # another process was quicker
            return find_identity(self.fileio, self.place) is not None and not self._is_begun()
        return False

    def complete(self, held: NameHold) -> None:
        """End a swap without folders that was decided."""
        self._flat.complete(held)

    def is_cleared(self) -> bool:
        """Whether step 4 has nothing to do."""
        if self.fileio.folders is None:
            return self._flat.is_cleared()
        return not holds_replaced(self.fileio, self.place)

    def replaced_schema(self) -> TableSchema | None:
        """Of the table that step 4 deletes; None for a view, and when there is nothing."""
        if self.fileio.folders is None:
            return self._flat.replaced_schema()
        folder = f"{self.place}/{_TABLE}"
        if find_identity(self.fileio, folder) is None:
            return None
        return TableStore(self.fileio, folder, self.runtime).schema

    def clear(self) -> None:
        """Step 4."""
        if self.fileio.folders is None:
            self._flat.clear()
            return
        self.fileio.delete_tree(f"{self.place}/{_TABLE}")
        self.fileio.delete(f"{self.place}/{_VIEW}")

    # --------------------------------------------------------------------------------------------------------

    @property
    def _flat(self) -> FlatSwap:
        def state_of(identity: str | None) -> str | None:
            return self._view_state(self.view) if identity is None else self._state(self.place, identity)

        return FlatSwap(self.fileio, self.runtime, self.place, self.view, self.beside, state_of)

    @property
    def _folders(self) -> FolderStore:
        return folders_of(
            self.fileio,
            self.place,
            "putting a replacement in the place of a table or view",
            "DROP the old table or view and build the model again",
        )

    def _is_begun(self) -> bool:
        return holds_replaced(self.fileio, self.beside)

    def _expected(self) -> str | None:
        newest = TableStore(self.fileio, self.beside, self.runtime).latest()
        return None if newest is None else (newest.properties or {}).get(REPLACES)

    def _move_out(self) -> None:
        """A name is a table or a view; a table is what readers would take."""
        if find_identity(self.fileio, self.place) is not None:
            self._folders.rename(self.place, f"{self.beside}/{_TABLE}")
        else:
            self._folders.rename(self.view, f"{self.beside}/{_VIEW}")

    def _move_back(self) -> None:
        if self.fileio.exists(f"{self.beside}/{_TABLE}"):
            self._folders.rename(f"{self.beside}/{_TABLE}", self.place)
        elif not self._folders.rename(f"{self.beside}/{_VIEW}", self.view):
            self.fileio.delete(f"{self.beside}/{_VIEW}")  # somebody has put another view there

    def _table_state(self, place: str) -> str | None:
        identity = find_identity(self.fileio, place)
        return None if identity is None else self._state(place, identity)

    def _state(self, place: str, identity: str) -> str:
        snapshots = SnapshotStore(self.fileio, TableLayout(place), identity)
        found = find_row_commit(snapshots, snapshots.find_latest())
        rows = "no rows" if found is None else f"{found.commit_user}:{found.commit_identifier}"
        return f"table {identity[:16]} with {rows}"

    def _view_state(self, path: str) -> str | None:
        try:
            return f"view {hashlib.sha256(self.fileio.read(path)).hexdigest()[:16]}"
        except NotFound:
            return None
