"""Names of databases, tables and views, checked before they become paths.

INVARIANT  a name is letters, digits and underscores: it can never leave the warehouse as a path, needs no
           escaping in SQL, and means the same on file systems that ignore case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tablestore_engine.errors import FixRequest

SYSTEM_DATABASE = "information_schema"
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}")


def is_name(name: str) -> bool:
    """Whether a table or database can have the name."""
    return _NAME.fullmatch(name) is not None


def check_name(kind: str, name: str) -> str:
    """The name itself. Raises FixRequest TS1401."""
    if not is_name(name):
        raise FixRequest(
            "TS1401",
            f"{kind} name {name!r} cannot be used",
            why="names are 1 to 128 letters, digits and underscores",
            fix="read system tables in a query; write rows into a branch by INSERT, UPDATE, DELETE or MERGE; "
            "create and delete a branch by tablestore branch"
            if "$" in name
            else f"choose another {kind} name",
        )
    return name


def check_not_system(database: str) -> None:
    """Raises FixRequest TS1539."""
    if database.lower() == SYSTEM_DATABASE:
        raise FixRequest(
            "TS1539",
            f"database {database} cannot be created",
            why=f"{SYSTEM_DATABASE} has the views of the warehouse itself, which are read-only",
            fix="choose another database name",
        )


@dataclass(frozen=True, order=True)
class Identifier:
    """`database.name` of a table or view."""

    database: str
    name: str
    is_replacement: bool = False

    def __post_init__(self) -> None:
        check_name("database", self.database)
        check_name("table", self.name)

    @classmethod
    def parse(cls, text: str, near: Callable[[str], str] = lambda _: "") -> Identifier:
        """`db.table`, quoted with backticks or not; `near`: a hint for others. Raises FixRequest TS1401, TS1402."""
        parts = [part.strip().strip("`") for part in text.split(".")]
        if len(parts) != 2:
            raise FixRequest(
                "TS1402",
                f"{text!r} is not the name of a table",
                why="expected database.table",
                fix=f"write both parts, as in demo.orders{near(text)}",
            )
        return cls(parts[0], parts[1])

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def replacement(self) -> Identifier:
        """The table that is complete beside what has the name, and takes its place later (catalog.table_swap)."""
        return replace(self, is_replacement=True)
