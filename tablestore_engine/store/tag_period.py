"""Which tag a commit makes, and its name: a tag for each period that has ended. Pure.

CHANGE     the periods and the names of tags that commits make (options tag.creation-period,
           tag.creation-delay)
INVARIANT  a name says its period alone: from the newest name follows when the next tag is due.
PAIMON     the same names at the same times, but of UTC (there: the zone of the JVM).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tablestore_engine.errors import FixRequest

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- wall clocks of UTC, as tags have them
_PERIODS = {
    "daily": (timedelta(days=1), "%Y-%m-%d"),
    "hourly": (timedelta(hours=1), "%Y-%m-%d %H"),
    "two-hours": (timedelta(hours=2), "%Y-%m-%d %H"),
}


@dataclass(frozen=True)
class TagRule:
    """`pattern`: of strftime; `most` of these tags stay, and each for `retained`, None: without end."""

    period: timedelta
    pattern: str
    delay: timedelta = timedelta(0)
    most: int | None = None
    retained: timedelta | None = None

    def name_of(self, start: datetime) -> str:
        """The tag of the period that begins at `start`."""
        return start.strftime(self.pattern)

    def start_of(self, name: str) -> datetime | None:
        """The beginning of the period of a tag; None for a name that a user chose."""
        try:
            start = datetime.strptime(name, self.pattern)  # noqa: DTZ007 -- as _EPOCH
        except ValueError:
            return None
        return start if self.name_of(start) == name else None

    def find_last(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that are tags of periods, the newest period first."""
        starts = {name: start for name in names if (start := self.start_of(name)) is not None}
        return tuple(sorted(starts, key=lambda name: starts[name], reverse=True))

    def find_due(self, time_ms: int, last: str | None) -> str | None:
        """The tag that a snapshot of this time gets, None before the period after `last` has ended for `delay`.

        Without a `last` tag it is that of the period before the snapshot.
        """
        time = wall_clock(time_ms)
        start = None if last is None else self.start_of(last)
        if start is not None and time - self.delay < start + 2 * self.period:
            return None
        return self.name_of(_EPOCH + ((time - _EPOCH) // self.period - 1) * self.period)


def wall_clock(time_ms: int) -> datetime:
    """A time as tags have it: of UTC, without a zone. `time_ms`: since 1970."""
    return _EPOCH + timedelta(milliseconds=time_ms)


def make_rule(word: str, delay_ms: int, most: int | None, retained: timedelta | None) -> TagRule:
    """Of a value of tag.creation-period. Raises FixRequest TS1376 for a delay of a period or longer."""
    period, pattern = _PERIODS[word]
    delay = timedelta(milliseconds=delay_ms)
    if delay >= period:
        raise FixRequest(
            "TS1376",
            "tag.creation-delay is not shorter than the period of the tags",
            why=f"the delay is {delay}, the period {period}",
            fix="set a shorter tag.creation-delay, or a longer tag.creation-period",
        )
    return TagRule(period, pattern, delay, most, retained)
