"""A table that was made for rows which were refused: removed again, unless somebody has used it meanwhile.

Steps      no snapshot, no branch? → moved away → looked at there, where no claim can reach it any more → deleted, or
           put back
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.fileio.base import FileIO, FolderStore
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.identity import find_identity
from tablestore_engine.store.table_store import TableStore


@dataclass(frozen=True)
class UnusedTable:
    """The table of this identity in a folder that can be moved."""

    name: str
    place: str
    identity: str

    def drop(
        self, fileio: FileIO, runtime: Runtime, folders: FolderStore, move_aside: Callable[[], str]
    ) -> TableSchema | None:
        """Its schema, None when it stays.

        Raises RetryError TS1466 when its place was taken meanwhile: then nothing is deleted.
        """
        if not self._is_unused(fileio, self.place):
            return None
        try:
            aside = move_aside()
        except NotFound:
            return None
        if self._is_unused(fileio, aside):
            schema = TableStore(fileio, aside, runtime).schema
            fileio.delete_tree(aside)
            return schema
        if not folders.rename(aside, self.place):
            raise RetryError(
                "TS1466",
                f"a table {self.name} that is in use cannot be put back",
                why=f"another one was made in its place meanwhile; its files are in {aside}",
                fix="read the rows from there, or delete the folder",
            )
        return None

    def _is_unused(self, fileio: FileIO, place: str) -> bool:
        """No snapshot, no stage, and no claim on the way: its temporary file keeps the folder from being removed."""
        layout = TableLayout(place)
        if find_identity(fileio, place) != self.identity or fileio.list(layout.branches_dir):
            return False
        try:
            fileio.delete(layout.snapshot_dir)
        except OSError:
            return False
        return True
