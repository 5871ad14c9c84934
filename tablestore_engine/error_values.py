"""Values in error texts, as SQL literals: what an error shows can be pasted into a WHERE clause.

INVARIANT  long values are cut inside, with their length named: a message stays readable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal

LENGTH_MAX = 120


def sql_literal(value: object) -> str:
    """The literal of a Python value as Arrow and Spark deliver it; an unknown kind is shown as text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | Decimal():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"double({_text(str(value))})"
        case bytes():
            shown, cut = value[: LENGTH_MAX // 2].hex().upper(), len(value) > LENGTH_MAX // 2
            return f"X'{shown}…' ({len(value)} bytes)" if cut else f"X'{shown}'"
        case datetime():
            return f"TIMESTAMP {_text(value.isoformat(sep=' '))}"
        case date():
            return f"DATE {_text(value.isoformat())}"
        case time():
            return f"TIME {_text(value.isoformat())}"
        case _:
            return _nested(value)


def sql_row(row: Mapping[str, object]) -> str:
    """`id = 7, name = 'x'`; NULL reads `IS NULL`."""
    return ", ".join(
        f"{name} IS NULL" if value is None else f"{name} = {sql_literal(value)}"
        for name, value in row.items()
    )


def count_of(number: int, one: str, many: str) -> str:
    """`1 key occurs`, `2 keys occur`."""
    return f"{number} {one if number == 1 else many}"


def _nested(value: object) -> str:
    if isinstance(value, Mapping):
        parts = ", ".join(f"{_text(str(name))}, {sql_literal(part)}" for name, part in value.items())
        return _cut(f"named_struct({parts})")
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and all(isinstance(one, tuple) and len(one) == 2 for one in value):  # Arrow's form of a map
            return _cut(f"map({', '.join(sql_literal(part) for one in value for part in one)})")
        return _cut(f"array({', '.join(map(sql_literal, value))})")
    text = str(value)
    return (
        _text(text)
        if len(text) <= LENGTH_MAX
        else f"{_text(text[:LENGTH_MAX] + '…')} ({len(text)} characters)"
    )


def _text(text: str) -> str:
    """Doubled quotes, escaped backslashes; what a terminal would act on is escaped too."""
    plain = text.replace("\\", "\\\\").replace("'", "''")
    return (
        "'"
        + "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in plain)
        + "'"
    )


def _cut(text: str) -> str:
    return text if len(text) <= 2 * LENGTH_MAX else text[: 2 * LENGTH_MAX] + "…"
