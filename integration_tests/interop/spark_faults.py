"""What paimon-spark 0.9.0 shows otherwise, of Java's tables as of ours: the rows to expect of it, and the limit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from integration_tests.interop.rows import Row, as_it_is

TIME, HOLLOW = "with_time", "hollow_rows"
LIMITS = {
    TIME: "OK: TIME is shown as milliseconds since midnight",
    HOLLOW: "OK: structs whose fields are all NULL are shown as NULL",
}
_FIELDS = 3  # of the struct in the table of HOLLOW


def as_spark_shows(name: str, rows: Sequence[Row]) -> list[Row]:
    """Rows of the table of this name in OURS."""
    if name == TIME:
        return [(row[0], None if row[1] is None else milliseconds(row[1])) for row in rows]
    return [tuple(map(_none_if_hollow, row)) for row in rows] if name == HOLLOW else as_it_is(rows)


def milliseconds(time: dt.time) -> int:
    """Since midnight."""
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1000 + time.microsecond // 1000


def _none_if_hollow(value: Any) -> Any:
    """Structs and lists are tuples here: a list of structs keeps its length."""
    if not isinstance(value, tuple) or not value:
        return value
    if any(isinstance(one, tuple) for one in value):
        return tuple(map(_none_if_hollow, value))
    return None if all(one is None for one in value) else value
