"""Which state of a table is meant, as a value and as a name: `demo__at_snapshot_5`.orders is demo.orders at snapshot 5.

Names      TableVersion         exactly one of snapshot id, tag, epoch milliseconds, branch
           find_version         the same from arguments that may all be missing
           versioned_database   (database, version) -> the name that carries both
           split_database       that name -> (database, TableVersion | None)
Forms      __at_snapshot_<id>  __at_tag_<name>  __at_ts_<epoch ms>  __at_branch_<staged name>
WHY        a plain two-part name works wherever SQL takes a table: in joins, CTEs, views, tests and packages.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass

from tablestore_engine.errors import FixRequest

_VERSIONED = re.compile(r"(?P<database>\w+?)__at_(?P<kind>snapshot|tag|ts|branch)_(?P<value>\w+)")


@dataclass(frozen=True)
class TableVersion:
    """Exactly one of: snapshot id, tag name, epoch milliseconds, branch (the name of a staged snapshot).

    Raises FixRequest TS1015 for none or several.
    """

    snapshot: int | None = None
    tag: str | None = None
    timestamp_ms: int | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        given = [text for text, value in self._texts() if value is not None]
        if len(given) != 1:
            raise FixRequest(
                "TS1015",
                "a table version has to name one state",
                why=f"it names {', '.join(given) or 'nothing'}",
                fix="set exactly one of snapshot, tag, timestamp_ms and branch (staged)",
            )

    def __str__(self) -> str:
        return next(text for text, value in self._texts() if value is not None)

    def _texts(self) -> list[tuple[str, int | str | None]]:
        kinds = ("snapshot", "tag", "timestamp", "branch")
        return [(f"{kind} {value}", value) for kind, value in zip(kinds, astuple(self), strict=True)]


def find_version(
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    timestamp_ms: int | None = None,
    branch: str | None = None,
) -> TableVersion | None:
    """None when nothing is given: the current state. Raises FixRequest TS1015 for several."""
    if (snapshot, tag, timestamp_ms, branch) == (None, None, None, None):
        return None
    return TableVersion(snapshot, tag, timestamp_ms, branch)


def versioned_database(database: str, version: TableVersion) -> str:
    """`demo` and snapshot 5 -> `demo__at_snapshot_5`."""
    if version.snapshot is not None:
        return f"{database}__at_snapshot_{version.snapshot}"
    if version.tag is not None:
        return f"{database}__at_tag_{version.tag}"
    if version.timestamp_ms is not None:
        return f"{database}__at_ts_{version.timestamp_ms}"
    return f"{database}__at_branch_{version.branch}"


def split_database(name: str) -> tuple[str, TableVersion | None]:
    """`demo__at_ts_17` -> (demo, version). Raises FixRequest TS1014 when the value is no number."""
    match = _VERSIONED.fullmatch(name)
    if match is None:
        return name, None
    database, kind, value = match["database"], match["kind"], match["value"]
    if kind == "tag":
        return database, TableVersion(tag=value)
    if kind == "branch":
        return database, TableVersion(branch=value)
    if not value.isdigit():
        raise FixRequest(
            "TS1014",
            f"name {name!r} has no number behind __at_{kind}_",
            why=f"got {value!r}",
            fix="write a snapshot id, or epoch milliseconds",
        )
    if kind == "snapshot":
        return database, TableVersion(snapshot=int(value))
    return database, TableVersion(timestamp_ms=int(value))
