"""Errors about tables and views that do not exist, with the nearest name that does.

INVARIANT  a suggested name is of a kind that the caller takes: a view only where a view can be named.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import Protocol

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.views import ViewStore
from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import database_location

_CANDIDATES = 3
TABLES, VIEWS = "table", "view"
RELATIONS = (TABLES, VIEWS)
_SHOWN = 10


class KnownNames(Protocol):
    @property
    def warehouse(self) -> str: ...

    @property
    def fileio(self) -> FileIO: ...

    @property
    def views(self) -> ViewStore: ...

    def list_databases(self) -> tuple[str, ...]: ...

    def list_tables(self, database: str) -> tuple[str, ...]:
        """Sorted; empty when the database is missing."""
        ...

    def is_table(self, identifier: Identifier) -> bool: ...


def find_near_name(
    catalog: KnownNames, missing: Identifier, kinds: Iterable[str] = RELATIONS
) -> Identifier | None:
    """Of the same database; of the nearest database if that one does not exist.

    Lists the warehouse and one database, and changes nothing. A warehouse that cannot be listed has no near name.
    """
    with suppress(TablestoreError):
        databases = catalog.list_databases()
        near = [missing.database] if missing.database in databases else _nearest(missing.database, databases)
        for database in near[:1]:
            views = set(catalog.views.list_names(database)) if VIEWS in kinds else set()
            folders = _list_folders(catalog, database) if TABLES in kinds else set()
            for name in _nearest(missing.name, folders | views):
                found = Identifier(database, name)
                if name in views or catalog.is_table(found):
                    return found
    return None


def find_full_names(catalog: KnownNames, word: str) -> tuple[Identifier, ...]:
    """Tables and views called `word` in any database; where there is none, those of the nearest name."""
    found: dict[str, list[Identifier]] = {}
    with suppress(TablestoreError):
        for database in catalog.list_databases():
            views = set(catalog.views.list_names(database))
            for name in _usable(_list_folders(catalog, database) | views):
                found.setdefault(name, []).append(Identifier(database, name))
        for name in (word, *get_close_matches(word, list(found), n=_CANDIDATES)):
            there = [one for one in found.get(name, ()) if catalog.is_table(one) or catalog.views.find(one)]
            if there:
                return tuple(there)
    return ()


def near_hint(catalog: KnownNames, missing: Identifier, kinds: Iterable[str] = RELATIONS) -> str:
    """`; did you mean demo.orders?`, or nothing."""
    near = find_near_name(catalog, missing, kinds)
    return "" if near is None else f"; did you mean {near}?"


def full_name_hint(catalog: KnownNames, text: str) -> str:
    """Of a text that is no `database.table`: `; did you mean demo.orders?` for its last word, or nothing."""
    found = find_full_names(catalog, text.rpartition(".")[2].strip(" `"))
    return f"; did you mean {' or '.join(map(str, found))}?" if found else ""


def missing_database(warehouse: str, database: str) -> NotFound:
    """TS1405."""
    return NotFound(
        "TS1405",
        f"database {database} does not exist",
        why=f"there is no folder {database}.db in {warehouse}",
        fix=f"CREATE SCHEMA {database}",
    )


def missing_table(catalog: KnownNames, missing: Identifier) -> NotFound:
    """TS1407: of a table that is changed, with the tables beside it."""
    known = ", ".join(catalog.list_tables(missing.database)[:_SHOWN]) or "none"
    return NotFound(
        "TS1407",
        f"table {missing} does not exist",
        why=f"tables of {missing.database} in {catalog.warehouse}: {known}",
        fix=f"correct the name, or build the model first{near_hint(catalog, missing, (TABLES,))}",
    )


def no_such_name(catalog: KnownNames, missing: Identifier, kinds: Iterable[str]) -> NotFound:
    """TS1414. `kinds`: what the caller takes; a view where only tables are taken is named as such."""
    what, is_view = " or ".join(kinds), False
    if VIEWS not in kinds:
        with suppress(TablestoreError):
            is_view = catalog.views.find(missing) is not None
    if is_view:
        return NotFound(
            "TS1414",
            f"{missing} is a view, and this needs a {what}",
            why="a view has no files: Spark computes its rows from other tables",
            fix=f'query it: tablestore sql "select * from {missing}"',
        )
    return NotFound(
        "TS1414",
        f"{what} {missing} does not exist",
        why=f"there is no such {what} in {catalog.warehouse}",
        fix=f"correct the name, or build the model first{near_hint(catalog, missing, kinds)}",
    )


def _list_folders(catalog: KnownNames, database: str) -> set[str]:
    """Also those that are no tables: only the nearest ones are looked into."""
    found = catalog.fileio.list(database_location(catalog.warehouse, database))
    return {status.name for status in found if status.is_dir}


def _nearest(word: str, names: Iterable[str]) -> list[str]:
    """The nearest first: names differ by case, so the same one in another case is next."""
    usable = _usable(names)
    same = [name for name in usable if name.lower() == word.lower()]
    return [*same, *(name for name in get_close_matches(word, usable, n=_CANDIDATES) if name not in same)]


def _usable(names: Iterable[str]) -> list[str]:
    """Folders that no table can have are left out."""
    return [name for name in sorted(names) if name.isascii() and name.replace("_", "a").isalnum()]
