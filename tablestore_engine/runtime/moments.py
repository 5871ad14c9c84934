"""Moments as text: the one format that commands and messages print, and what they accept.

Form       2026-01-31T12:00:00.123Z: ISO 8601, UTC, milliseconds. Values of columns keep their microseconds
           input: the same, with another offset or without one (UTC), or milliseconds since 1970
INVARIANT  the time zone of the machine has no effect. tests/house/test_moments.py: no other module formats a moment.
"""

from __future__ import annotations

from datetime import UTC, datetime


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
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _with_z(moment: datetime, precision: str) -> str:
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
