"""Orphan files of a warehouse: of its tables, also of those that wait for a name, and folders that are no table.

INVARIANT  nothing of another user is touched, and nothing without `delete`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.orphan_folders import (
    OrphanFolder,
    delete_orphan_folder,
    list_orphan_folders,
)
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.runtime.ownership import is_strangers
from tablestore_engine.store.orphan_files.clean_orphans import OrphanReport, OrphanRequest


@dataclass(frozen=True)
class Orphans:
    catalog: FilesystemCatalog

    def of_table(self, identifier: Identifier, *, grace_ms: int, delete: bool) -> OrphanReport:
        """See store.orphan_files.clean_orphans. Raises FixRequest TS1090 too."""
        _check(grace_ms)
        request = OrphanRequest(grace_ms, delete, self._is_stranger)
        return self.catalog.store(identifier).orphans(request)

    def folders(self, *, grace_ms: int, delete: bool) -> tuple[OrphanFolder, ...]:
        """What lies beside tables. Raises FixRequest TS1090."""
        _check(grace_ms)
        found = list_orphan_folders(self.catalog, grace_ms, self._is_stranger)
        for one in found if delete else ():
            delete_orphan_folder(self.catalog, one)
        return found

    def tables(self) -> tuple[Identifier, ...]:
        """Everything that may have orphan files."""
        return tuple(
            identifier
            for database in self.catalog.list_databases()
            for identifier in (
                *(Identifier(database, name) for name in self.catalog.list_tables(database)),
                *(
                    Identifier(database, name).replacement
                    for name in self.catalog.list_replacements(database)
                ),
            )
        )

    def _is_stranger(self, status: FileStatus) -> bool:
        return is_strangers(status.owner, self.catalog.runtime.users)


def _check(grace_ms: int) -> None:
    if grace_ms < 0:
        raise FixRequest(
            "TS1090",
            "orphan files are not looked for",
            why=f"the grace period is {grace_ms} ms",
            fix="give 0 or more; what is younger may belong to a write that has not ended",
        )
