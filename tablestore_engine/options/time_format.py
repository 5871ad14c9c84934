"""Times in texts, read as Java's DateTimeFormatter and Paimon read them: `partition.timestamp-formatter`. Pure.

CHANGE     the spelling of a partition's time
INVARIANT  what is a time here is the same time in Java; years before 1 and years with a sign are none here. What a
           pattern cannot say exactly is refused, never approximated.
JAVA       a pattern resolves smartly: February 31 is its last day, 24:00 the next midnight, month 13 no time. The
           default resolves leniently: month 13 is next January, February 31 is March 2 or 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tablestore_engine.errors import Unsupported

_DAY, _SECOND = 86_400, 1_000_000_000
_YEAR_MAX = 999_999_999  # of Java
_FIELDS = {"y": "year", "u": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_RESERVED = frozenset("[]{}#")
_ONE = r"[0-9]{1,2}"
_LENIENT = re.compile(
    rf"(?P<year>[0-9]{{1,10}})-(?P<month>{_ONE})-(?P<day>{_ONE})"
    rf"(?: (?P<hour>{_ONE}):(?P<minute>{_ONE}):(?P<second>{_ONE})(?:\.(?P<fraction>[0-9]{{1,9}}))?)?"
)


@dataclass(frozen=True)
class TimeFormat:
    """`pattern` of Java, None for the default; `text_form` is the same as a regular expression of a whole text."""

    pattern: str | None
    text_form: re.Pattern[str]

    def find_nanos(self, text: str) -> int | None:
        """Nanoseconds since 1970-01-01T00:00 of the wall clock that `text` shows; None when it shows none."""
        found = self.text_form.fullmatch(text)
        if found is None:
            return None
        words = {name: digits for name, digits in found.groupdict().items() if digits is not None}
        fraction = int(words.pop("fraction", "").ljust(9, "0"))
        numbers = {name: int(digits) for name, digits in words.items()}
        seconds = _lenient_seconds(numbers) if self.pattern is None else self._smart_seconds(numbers)
        return None if seconds is None else seconds * _SECOND + fraction

    def _smart_seconds(self, numbers: Mapping[str, int]) -> int | None:
        year, month, day = numbers["year"], numbers["month"], numbers["day"]
        clock = [numbers.get(name, 0) for name in ("hour", "minute", "second")]
        if year < 1 or not 1 <= month <= 12 or not 1 <= day <= 31:
            return None
        if clock != [24, 0, 0] and (clock[0] > 23 or clock[1] > 59 or clock[2] > 59):
            return None
        days = _days(year, month, min(day, _month_length(year, month)))
        return days * _DAY + clock[0] * 3600 + clock[1] * 60 + clock[2]


DEFAULT_FORMAT = TimeFormat(None, _LENIENT)


def parse_time_format(pattern: str) -> TimeFormat:
    """Raises Unsupported TS1136 for a letter or a form that is not read here."""
    pieces = _pieces(pattern)
    form, seen = "", set[str]()
    for number, (letter, text) in enumerate(pieces):
        if not letter:
            form += re.escape(text)
            continue
        name, count = _FIELDS.get(letter), len(text)
        if name is None or count not in ((4,) if name == "year" else (1, 2)):
            raise _refused(pattern, f"{text!r} is not read here")
        if name in seen:
            raise _refused(pattern, f"it names the {name} twice")
        beside = [*pieces[max(0, number - 1) : number], *pieces[number + 1 : number + 2]]
        if count == 1 and any(other or words[:1].isdigit() for other, words in beside):
            raise _refused(pattern, f"{text!r} beside another number has no fixed width; write it twice")
        seen.add(name)
        digits = "[0-9]{4}" if name == "year" else ("[0-9]{2}" if count == 2 else "[0-9]{1,19}")
        form += f"(?P<{name}>{digits})"
    _check_whole(pattern, seen)
    return TimeFormat(pattern, re.compile(form, re.DOTALL))


def _pieces(pattern: str) -> Sequence[tuple[str, str]]:
    """(letter, the letters) of a field, ('', text) of a literal, in order."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "'":
            text, at = _quoted(pattern, at)
            found.append(("", text))
        elif char.isascii() and char.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == char:
                end += 1
            found.append((char, pattern[at:end]))
            at = end
        elif char in _RESERVED:
            raise _refused(pattern, f"{char!r} is not read here")
        else:
            found.append(("", char))
            at += 1
    return found


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    """The literal between single quotes, and where it ends; two quotes are one, inside and outside."""
    text, at = "", start + 1
    while at < len(pattern):
        if pattern[at] != "'":
            text, at = text + pattern[at], at + 1
        elif pattern[at + 1 : at + 2] == "'":
            text, at = text + "'", at + 2
        else:
            return text or "'", at + 1
    raise _refused(pattern, "a quote is not closed")


def _check_whole(pattern: str, seen: set[str]) -> None:
    """A time needs its date, and of the clock no unit without the larger ones."""
    names = ("year", "month", "day", "hour", "minute", "second")
    missing = [name for name in names[:3] if name not in seen]
    clock = [name in seen for name in names[3:]]
    if clock != sorted(clock, reverse=True):
        missing += [name for name in names[3:5] if name not in seen]
    if missing:
        raise _refused(pattern, f"no time comes of it without the {missing[0]}")


def _refused(pattern: str, why: str) -> Unsupported:
    return Unsupported(
        "TS1136",
        f"partition.timestamp-formatter {pattern!r} is not supported",
        why=f"{why}; known are yyyy, uuuu, MM, M, dd, d, HH, H, mm, m, ss, s and literals",
        fix="write it with these, as in yyyyMMdd or yyyy-MM-dd HH:mm:ss",
    )


# ---- the calendar, for years of any length -----------------------------------------------------------------


def _lenient_seconds(numbers: Mapping[str, int]) -> int | None:
    if not 1 <= numbers["year"] <= _YEAR_MAX:
        return None
    months = numbers["year"] * 12 + numbers["month"] - 1
    days = _days(months // 12, months % 12 + 1, 1) + numbers["day"] - 1
    hour, minute, second = (numbers.get(name, 0) for name in ("hour", "minute", "second"))
    return days * _DAY + hour * 3600 + minute * 60 + second


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; years begin in March, so that leap days end them."""
    shifted = year - (month < 3)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + of_year - 719_468


def _month_length(year: int, month: int) -> int:
    return _days(year + month // 12, month % 12 + 1, 1) - _days(year, month, 1)
