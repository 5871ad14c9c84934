"""Versioned names in SQL: `demo__at_snapshot_5`.orders is the table demo.orders at snapshot 5.

Names      split_database   database name as written -> (database, TableVersion | None)
           to_selector      TableVersion -> the Spark layer's Selector
Forms      __at_snapshot_<id>  __at_tag_<name>  __at_ts_<epoch ms>  __at_branch_<staged name>
WHY        a plain two-part name works wherever SQL takes a table: in joins, CTEs, views, tests and packages.
"""

from __future__ import annotations

import re

from tablestore_engine.api.spec import TableVersion
from tablestore_engine.errors import FixRequest
from tablestore_engine.spark.source import BRANCH, SNAPSHOT, TAG, TIMESTAMP, Selector

_VERSIONED = re.compile(r"(?P<database>\w+?)__at_(?P<kind>snapshot|tag|ts|branch)_(?P<value>\w+)")


def split_database(name: str) -> tuple[str, TableVersion | None]:
    """`demo__at_ts_17` -> (demo, version). Raises FixRequest TS1014 when the value is no number."""
    match = _VERSIONED.fullmatch(name)
    if match is None:
        return name, None
    kind, value = match["kind"], match["value"]
    if kind == "tag":
        return match["database"], TableVersion(tag=value)
    if kind == "branch":
        return match["database"], TableVersion(branch=value)
    if not value.isdigit():
        raise FixRequest(
            "TS1014",
            f"name {name!r} has no number behind __at_{kind}_",
            why=f"got {value!r}",
            fix="write a snapshot id, or epoch milliseconds",
        )
    number = int(value)
    return match["database"], TableVersion(snapshot=number) if kind == "snapshot" else TableVersion(
        timestamp_ms=number
    )


def to_selector(version: TableVersion) -> Selector:
    """The one field that is set. Raises FixRequest TS1015 for none or several."""
    fields = {
        SNAPSHOT: version.snapshot,
        TAG: version.tag,
        TIMESTAMP: version.timestamp_ms,
        BRANCH: version.branch,
    }
    chosen = [Selector(kind, value) for kind, value in fields.items() if value is not None]
    if len(chosen) == 1:
        return chosen[0]
    raise FixRequest(
        "TS1015",
        "a table version has to name one state",
        why=f"it names {', '.join(f'{one.kind} {one.value}' for one in chosen) or 'nothing'}",
        fix="set exactly one of snapshot, tag, timestamp_ms and branch (staged)",
    )
