"""Which state of a table is meant, or what changed between two, as a value and as a name: `demo__at_snapshot_5`.orders.

CHANGE     the schema names for a past state in SQL
Forms      __at_snapshot_<id>  __at_tag_<name>  __at_ts_<epoch ms>  __at_watermark_<epoch ms>
           __at_branch_<staged name>
           __changes_<id>_to_<id>  __changes_<id>_to_now  __changes_<id>_to_branch_<staged name>; with `start` for the
           first id all rows of the second as inserts
WHY        a plain two-part name works wherever SQL takes a table: in joins, CTEs, views, tests and packages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablestore_engine.errors import FixRequest

MOMENT = (
    "now()"  # in place of a table's name, with timestamp_ms: what functions of the time give in a statement
)
_KINDS = ("snapshot", "tag", "timestamp", "branch", "changes", "watermark")
_VERSIONED = re.compile(r"(?P<database>\w+?)__at_(?P<kind>snapshot|tag|ts|watermark|branch)_(?P<value>\w+)")

_CHANGES = re.compile(
    r"(?P<database>\w+?)__changes_(?P<since>start|\d+)_to_(?:branch_(?P<branch>\w+)|(?P<until>now|\d+))"
)


@dataclass(frozen=True)
class ChangesBetween:
    """The snapshots after `since` up to `until`, or up to the staged snapshot `branch`; with neither up to now.

    `since` None: nothing is known yet, so all rows of the end come as inserts.

    >>> version = TableVersion(changes=ChangesBetween(since=1, until=5))
    >>> version.changes
    ChangesBetween(since=1, until=5, branch=None)
    """

    since: int | None
    until: int | None = None
    branch: str | None = None

    def __str__(self) -> str:
        since = "start" if self.since is None else self.since
        until = "now" if self.until is None else self.until
        return f"{since}_to_{until if self.branch is None else f'branch_{self.branch}'}"


@dataclass(frozen=True)
class TableVersion:
    """Exactly one of: snapshot id, tag name, epoch milliseconds, branch (the name of a staged snapshot), changes,
    watermark. A watermark is in epoch milliseconds: the first snapshot whose watermark has reached it.

    Raises FixRequest TS1015 for none or several.

    >>> pinned = {"demo.orders": TableVersion(snapshot=1)}
    >>> engine.query("select id from demo.orders", versions=pinned).count()  # doctest: +SPARK
    3
    """

    snapshot: int | None = None
    tag: str | None = None
    timestamp_ms: int | None = None
    branch: str | None = None
    changes: ChangesBetween | None = None
    watermark: int | None = None

    def __post_init__(self) -> None:
        given = [text for text, value in self._texts() if value is not None]
        if len(given) != 1:
            raise FixRequest(
                "TS1015",
                "a table version has to name one state",
                why=f"it names {', '.join(given) or 'nothing'}",
                fix="set exactly one of snapshot, tag, timestamp_ms, watermark and branch (staged)",
            )

    @property
    def staged(self) -> str | None:
        return self.branch if self.changes is None else self.changes.branch

    def __str__(self) -> str:
        return next(text for text, value in self._texts() if value is not None)

    def _texts(self) -> list[tuple[str, object]]:
        values = (self.snapshot, self.tag, self.timestamp_ms, self.branch, self.changes, self.watermark)
        return [(f"{kind} {value}", value) for kind, value in zip(_KINDS, values, strict=True)]


def find_version(
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    timestamp_ms: int | None = None,
    branch: str | None = None,
    watermark: int | None = None,
) -> TableVersion | None:
    """None when nothing is given: the current state. Raises FixRequest TS1015 for several."""
    if (snapshot, tag, timestamp_ms, branch, watermark) == (None,) * 5:
        return None
    return TableVersion(snapshot, tag, timestamp_ms, branch, watermark=watermark)


def versioned_database(database: str, version: TableVersion) -> str:
    """`demo` and snapshot 5 -> `demo__at_snapshot_5`."""
    if version.snapshot is not None:
        return f"{database}__at_snapshot_{version.snapshot}"
    if version.tag is not None:
        return f"{database}__at_tag_{version.tag}"
    if version.timestamp_ms is not None:
        return f"{database}__at_ts_{version.timestamp_ms}"
    if version.watermark is not None:
        return f"{database}__at_watermark_{version.watermark}"
    if version.changes is not None:
        return f"{database}__changes_{version.changes}"
    return f"{database}__at_branch_{version.branch}"


def split_database(name: str) -> tuple[str, TableVersion | None]:
    """`demo__at_ts_17` -> (demo, version). Raises FixRequest TS1014 when the value is no number."""
    changes = _CHANGES.fullmatch(name)
    if changes is not None:
        return changes["database"], TableVersion(changes=_changes_of(changes))
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
            f"name {name!r} has no number after __at_{kind}_",
            why=f"got {value!r}",
            fix="write a snapshot id, or epoch milliseconds",
        )
    if kind == "watermark":
        return database, TableVersion(watermark=int(value))
    if kind == "snapshot":
        return database, TableVersion(snapshot=int(value))
    return database, TableVersion(timestamp_ms=int(value))


def _changes_of(match: re.Match[str]) -> ChangesBetween:
    since = None if match["since"] == "start" else int(match["since"])
    if match["branch"] is not None:
        return ChangesBetween(since, branch=match["branch"])
    return ChangesBetween(since, None if match["until"] == "now" else int(match["until"]))
