"""The table whose name is nearest to one that does not exist, for the text of an error."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.layout import database_location

_CANDIDATES = 3


def find_near_table(catalog: FilesystemCatalog, missing: Identifier) -> Identifier | None:
    """Of the same database; of the nearest database if that one does not exist.

    Lists the warehouse and one database, and changes nothing. A warehouse that cannot be listed has no near name.
    """
    with suppress(TablestoreError):
        databases = catalog.list_databases()
        near = [missing.database] if missing.database in databases else _nearest(missing.database, databases)
        for database in near[:1]:
            folder = database_location(catalog.warehouse, database)
            names = [status.name for status in catalog.fileio.list(folder) if status.is_dir]
            for name in _nearest(missing.name, names):
                found = Identifier(database, name)
                if catalog.is_table(found):
                    return found
    return None


def _nearest(word: str, names: list[str] | tuple[str, ...]) -> list[str]:
    """The nearest first; folders that no table can have are left out."""
    usable = [name for name in names if name.isascii() and name.replace("_", "a").isalnum()]
    return get_close_matches(word, usable, n=_CANDIDATES)
