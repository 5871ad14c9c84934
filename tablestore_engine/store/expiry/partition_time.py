"""Which partitions are old enough to go: the rules of partition expiry, over values and texts. Pure.

CHANGE     the time of a partition (options partition.timestamp-pattern, partition.timestamp-formatter)
Steps      values → texts of their columns → the pattern filled in → the formatter → a time of UTC, against now
INVARIANT  no time, no expiry: NULL, a blank text, what the formatter does not read stays for ever, and is counted.
INVARIANT  a time is its partition's beginning: at exactly `retained` it stays, a millisecond later it goes.
PAIMON     the same rules, but: times are UTC (there: the zone of the JVM); a DATE is yyyy-MM-dd (there, up to 1.4, the
           day number, which no formatter reads); of two column names in a pattern the longer one is meant; what goes
           is the oldest (there: the first ones in the order of their texts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.value_text import cast_text, legacy_text
from tablestore_engine.store.retention import PartitionRule
from tablestore_engine.store.table_traits import TableTraits

_MS = 1_000_000  # nanoseconds
_COLUMN = re.compile(r"\$(\w+)")
Values = tuple[object, ...]


@dataclass(frozen=True)
class PartitionChoice:
    """`expired`: partition bytes, the oldest first; `left`: so many more are due; `timeless`: these have no time."""

    expired: tuple[bytes, ...] = ()
    left: int = 0
    timeless: int = 0


def partition_time(spec: PartitionSpec, values: Values, rule: PartitionRule) -> int | None:
    """Nanoseconds since 1970 of the time that the values show, None when they show none.

    Raises Unsupported TS1122 for a column whose type has no text.
    """
    texts = dict(zip(spec.keys, zip(values, spec.types, strict=True), strict=True))
    if not texts:
        return None
    filled = ""
    for word, is_column in _words(rule.pattern, spec.keys):
        text = _text(*texts[word]) if is_column else word
        if text is None:
            return None
        filled += text
    return rule.time_format.find_nanos(filled)


def is_expired(time: int | None, rule: PartitionRule, *, now_ms: int) -> bool:
    """Whether a partition of this time goes. `time`: as partition_time gives it; `now_ms`: epoch milliseconds."""
    return time is not None and time < (now_ms - rule.retained_ms) * _MS


def pick_expired_partitions(
    spec: PartitionSpec, partitions: Iterable[bytes], rule: PartitionRule, *, now_ms: int
) -> PartitionChoice:
    """The choice among these partitions of a table, each given once."""
    times = {one: partition_time(spec, spec.decode(one), rule) for one in partitions}
    due = [one for one, time in times.items() if is_expired(time, rule, now_ms=now_ms)]
    due.sort(key=lambda one: (times[one] or 0, one))
    return PartitionChoice(
        expired=tuple(due[: rule.most]),
        left=max(0, len(due) - rule.most),
        timeless=sum(time is None for time in times.values()),
    )


def check_rule(schema: TableSchema, options: Mapping[str, str]) -> None:
    """Whether what `options` say of expiry and of tags can have an effect on a table of this schema.

    Raises FixRequest TS1340, TS1376.
    """
    _ = TableTraits(schema).tag_rule
    keys = schema.partition_keys
    if "partition.expiration-time" in options and not keys:
        raise _no_effect("partition.expiration-time", "the table has no partitions", "partition the table")
    pattern = options.get("partition.timestamp-pattern")
    if pattern is None:
        return
    words = _words(pattern, keys)
    unknown = [name for text, is_column in words if not is_column for name in _COLUMN.findall(text)]
    if unknown or not any(is_column for _, is_column in words):
        what = f"${unknown[0]} is none of them" if unknown else f"{pattern!r} names none of them"
        raise _no_effect(
            "partition.timestamp-pattern",
            f"the partition columns are {', '.join(keys) or 'none'}; {what}",
            "name partition columns, as in $dt or $year-$month-$day",
        )


def shown_partition(spec: PartitionSpec, values: Values) -> str:
    """`dt=2026-01-31/region=eu`; NULL is the table's default name."""
    shown = [spec.default_name if value is None else str(value) for value in values]
    return "/".join(f"{key}={text}" for key, text in zip(spec.keys, shown, strict=True))


def _words(pattern: str | None, keys: Sequence[str]) -> list[tuple[str, bool]]:
    """The pattern cut at its columns: (name, True) for `$name`, (text, False) for what stands between."""
    if pattern is None:
        return [(keys[0], True)]
    names = "|".join(re.escape(name) for name in sorted(keys, key=len, reverse=True))
    if not names:
        return [(pattern, False)]
    pieces = re.split(rf"\$({names})", pattern)  # every second one is what the group found
    return [(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece]


def _text(value: object, type_: DataType) -> str | None:
    """As Paimon's formatter gets it: Java's text of the stored value; None for NULL."""
    if value is None:
        return None
    return cast_text(value, type_) if type_.root == "DATE" else legacy_text(value, type_)


def _no_effect(key: str, why: str, fix: str) -> FixRequest:
    return FixRequest(
        "TS1340", f"option {key!r} would have no effect", why=why, fix=f"leave it out, or {fix}"
    )
