"""Moments as text: the one format that commands and messages print, and what they accept.

Form       2026-01-31T12:00:00.123Z: ISO 8601, UTC, milliseconds. Values of columns keep their microseconds
           input: the same, with another offset or without one (UTC), or milliseconds since 1970
RULE       a moment of dbt, Python or the command line without an offset is UTC. Where it meets a column without a time
           zone, TIMESTAMP_NTZ is read as the clock of UTC and a DATE as its midnight in UTC. SQL text alone is read in
           the session's time zone, as by Spark (decision 0094 lists every place).
INVARIANT  the time zone of the machine has no effect. tests/house/test_moments.py: no other module formats a moment.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tablestore_engine.errors import FixRequest

_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::(?P<minutes>\d{2})(?::(?P<seconds>\d{2}))?)?"
)
DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_text(millis: int) -> str:
    """`2026-01-31T12:00:00.123Z` of epoch milliseconds."""
    return _with_z(
        datetime.fromtimestamp(millis // 1000, UTC).replace(microsecond=millis % 1000 * 1000), "milliseconds"
    )


def datetime_text(value: datetime) -> str:
    """A value of a column: in UTC with `Z` if it has a zone, else without; digits of a second as far as it has them."""
    return value.isoformat() if value.tzinfo is None else _with_z(value.astimezone(UTC), "auto")


def parse_moment(text: str) -> int:
    """Epoch milliseconds of a moment as a user writes it. Raises ValueError."""
    text = text.strip()
    if text.isdecimal():
        return int(text)
    return epoch_millis(datetime.fromisoformat(text))


def epoch_millis(moment: datetime, zone: tzinfo = UTC) -> int:
    """Milliseconds since 1970, rounded down; `zone`: of a moment without an offset. A float would lose milliseconds."""
    return (aware(moment, zone) - _EPOCH) // timedelta(milliseconds=1)


def aware(moment: datetime, zone: tzinfo = UTC) -> datetime:
    """The moment with its own offset, else with `zone`."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def read_zone(name: str) -> tzinfo:
    """A time zone as Spark names it: of a region, or an offset. Raises FixRequest TS2155, never takes another zone."""
    if name == "Z":
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.group("hours", "minutes", "seconds"))
        size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-size if offset["sign"] == "-" else size)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise FixRequest(
            "TS2155",
            f"time zone {name!r} is not known",
            why=f"expected a region such as Europe/Berlin or an offset such as +02:00; {error}",
            fix="set spark.sql.session.timeZone to one of them",
        ) from error


def _with_z(moment: datetime, precision: str) -> str:
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
