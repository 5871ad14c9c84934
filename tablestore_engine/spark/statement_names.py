"""The look-ups of one statement: each name of a table, view or function is looked up once.

INVARIANT  one statement sees one snapshot per table, and one state of the warehouse in its system views.
INVARIANT  `alias.column` reads like `database.table`: behind the first name that is none, and before one of which no
           table is open, databases are listed, and a name in none of them costs no request.
INVARIANT  a function's key in `done` and `meanings` is `(database, "name()")`: no table or view can have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import (
    Meaning,
    Overrides,
    ResolvedFunction,
    ResolvedName,
    ResolvedSystemView,
    ResolvedTable,
    ResolvedView,
)
from tablestore_engine.errors import FixRequest
from tablestore_engine.spark.session_names import Name
from tablestore_engine.sql.as_of_clause import called_names, qualified_names
from tablestore_engine.sql.system_names import find_system_name
from tablestore_engine.sql.table_version import TableVersion, split_database

SystemViewText = Callable[[ResolvedSystemView, "StatementNames"], str]


def function_key(name: Name) -> Name:
    """The key of a function, in lower case."""
    return name[0].lower(), f"{name[1].lower()}()"


class StatementNames:
    """`session` analyses the statement. `system_view`: the text of a view of the warehouse itself, for this statement.
    `new`: a view or function that the statement creates.
    """

    def __init__(
        self,
        names: NameLookup,
        overrides: Overrides,
        session: SparkSession,
        system_view: SystemViewText,
        new: tuple[Name, ResolvedFunction | ResolvedView] | None = None,
    ) -> None:
        self._names = names
        self._overrides = overrides
        self.session = session
        self._system_view = system_view
        self._making: set[tuple[str, str]] = set()
        self._found: dict[tuple[str, str, TableVersion | None], ResolvedName | None] = {}
        self._databases: frozenset[str] | None = None  # listed when a name is no relation
        self._functions: dict[Name, ResolvedFunction | None] = {}
        self._new_view: tuple[Name, ResolvedView] | None = None
        if new is not None and isinstance(new[1], ResolvedView):
            self._new_view = ((new[0][0].lower(), new[0][1].lower()), new[1])
        elif new is not None and isinstance(new[1], ResolvedFunction):
            self._functions[new[0][0], new[0][1].lower()] = new[1]
        self._open: list[tuple[Name, bool]] = []
        self._bound: dict[Name, tuple[Name, str]] = {}
        self.done: dict[Name, str | None] = {}
        self.meanings: dict[Name, Meaning | None] = {}

    @property
    def calls_functions(self) -> bool:
        """Whether a function of the warehouse is called."""
        return any(self._functions.values())

    def lookup(self, database: str, name: str, version: TableVersion | None = None) -> ResolvedName | None:
        """As it is written; else in lower case, since Spark's names ignore case and the warehouse's do not."""
        if self._new_view is not None and version is None:
            new, view = self._new_view
            if new == (database.lower(), name.lower()):
                return view
        system = find_system_name(name)
        table = name if system is None else system.table
        chosen = version or self._overrides.version(database, table)
        key = (database, name, chosen)
        if key not in self._found:
            found = self._find(database, name, chosen)
            if found is not None:
                is_constant = chosen != self._overrides.version(database, table)
                self._overrides.note(database, table, found, is_constant=is_constant)
            if found is None and name != name.lower():
                found = self.lookup(database, name.lower(), version)
            if found is None and database != database.lower():
                found = self.lookup(database.lower(), name, version)
            self._found[key] = found
        return self._found[key]

    def _find(self, database: str, name: str, version: TableVersion | None) -> ResolvedName | None:
        base = split_database(database)[0]
        if self._databases is None and not self._names.knows(base):
            self._databases = self._names.list_databases()
        if self._databases is not None and base not in self._databases:
            return None  # the alias of a column
        found = self._names.lookup(database, name, version, self._overrides.seen)
        if found is None and self._databases is None:
            self._databases = self._names.list_databases()
        if not isinstance(found, ResolvedSystemView):
            return found
        if (database, name) in self._making:
            raise FixRequest(
                "TS1537",
                f"{database}.{name} cannot be read by a view whose columns it lists",
                why="a stored view reads it, and it would have to know that view first",
                fix="read it in a query, or make the view a table",
            )
        self._making.add((database, name))
        try:
            return ResolvedView(self._system_view(found, self), is_own=True)
        finally:
            self._making.remove((database, name))

    def find_function(self, name: Name) -> ResolvedFunction | None:
        """A function of the warehouse; the case of its own name does not count."""
        key = (name[0], name[1].lower())
        if key not in self._functions:
            self._functions[key] = self._names.find_function(*key)
        return self._functions[key]

    def shapes(self, text: str) -> list[str]:
        """The columns of each table and the version of each view that a view's text names."""
        shapes: list[str] = []
        for database, name in qualified_names(text):
            found = self.lookup(database, name)
            if isinstance(found, ResolvedTable):
                shapes.append(repr(found.schema.fields))
            elif found is not None:
                shapes.append(str(self.done.get((database.lower(), name.lower()))))
        return shapes + [str(self.done.get(function_key(name))) for name in called_names(text)]

    @contextmanager
    def inside(self, one: Name, *, is_view: bool = False) -> Iterator[None]:
        """While the text of a function or view is read. Raises FixRequest TS1535, TS2141 when it is in use already."""
        if (one, is_view) in self._open:
            path = [*self._open[self._open.index((one, is_view)) :], (one, is_view)]
            raise _names_itself(".".join(one), " → ".join(".".join(name) for name, _ in path), is_view)
        self._open.append((one, is_view))
        try:
            yield
        finally:
            self._open.pop()

    def is_bound(self, written: Name) -> bool:
        """Whether this very spelling was registered already."""
        return self._bound.get((written[0].lower(), written[1].lower()), (None,))[0] == written

    def bind(self, written: Name, found: Meaning) -> None:
        """Spark has one place for all spellings of a name: two relations cannot both have it in one statement."""
        what = found.key if isinstance(found, ResolvedTable) else found.sql
        first, before = self._bound.setdefault((written[0].lower(), written[1].lower()), (written, what))
        if before != what:
            raise FixRequest(
                "TS1527",
                f"{'.'.join(first)} and {'.'.join(written)} cannot be read in one statement",
                why="they are two relations whose names differ only in case, which Spark ignores",
                fix="rename one of them, or read them in two statements",
            )


def _names_itself(name: str, path: str, is_view: bool) -> FixRequest:
    why = f"directly, or through a view or function that it reads: {path}"
    if is_view:
        return FixRequest(
            "TS2141", f"view {name} reads itself", why=why, fix="correct the query of one of them"
        )
    return FixRequest(
        "TS1535",
        f"function {name} calls itself",
        why=why,
        fix="write the recursion as a query (WITH RECURSIVE), or remove the call",
    )


def too_deep(name: Name, most: int) -> FixRequest:
    """The error for a view that reads views that read views …"""
    return FixRequest(
        "TS1513",
        f"view {name[0]}.{name[1]} cannot be resolved",
        why=f"views are nested more than {most} deep",
        fix="make one of the views that it reads a table",
    )
