"""A scalar value as the text that Java makes of it: directory names, CAST to STRING (format.md#partitions, #evolution).

INVARIANT  the text is that of every Java writer, or the type is refused.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.scalar import (
    days_from_date,
    decimal_from_unscaled,
    millis_from_time,
    nanos_from_timestamp,
    unscaled_from_decimal,
)
from tablestore_engine.format.type_text import type_to_text


def legacy_text(value: object, type_: DataType) -> str:
    """Java's toString of a value that is not null. Raises Unsupported TS1122 for binaries and nested types."""
    if type_.root == "DATE":
        return str(days_from_date(value))
    if type_.root == "TIME":
        return str(millis_from_time(value))
    if type_.root in TIMESTAMP_ROOTS:
        return _iso_text(nanos_from_timestamp(value, type_))
    if type_.root in BINARY_ROOTS:
        raise _no_text(type_)
    return _common_text(value, type_)


def cast_text(value: object, type_: DataType) -> str:
    """CAST of a value that is not null to STRING. Raises Unsupported TS1122 for TIMESTAMP_LTZ and nested types."""
    if type_.root == "DATE":
        return _date_text(days_from_date(value))
    if type_.root == "TIME":
        return _time_text(millis_from_time(value), type_.precision or 0)
    if type_.root == "TIMESTAMP":
        return _sql_text(nanos_from_timestamp(value, type_), type_.precision or 0)
    if type_.root in BINARY_ROOTS:
        return bytes(value).decode("utf-8", "replace")  # type: ignore[call-overload,no-any-return]
    return _common_text(value, type_)


def _common_text(value: object, type_: DataType) -> str:
    """Types whose text is the same both ways."""
    root = type_.root
    if root in CHARACTER_ROOTS:
        return str(value)
    if root == "BOOLEAN":
        return "true" if value else "false"
    if root == "DECIMAL":
        return format(decimal_from_unscaled(unscaled_from_decimal(value, type_), type_), "f")
    if root in ("FLOAT", "DOUBLE"):
        return java_float_text(float(value), single=root == "FLOAT")  # type: ignore[arg-type]
    if not type_.is_atomic or root in TIMESTAMP_ROOTS:
        raise _no_text(type_)
    return str(value)


def _no_text(type_: DataType) -> Unsupported:
    return Unsupported(
        "TS1122",
        f"a value of type {type_to_text(type_)} has no text here",
        why="its text is not the same for every writer",
        fix="partition by another column, or cast it to STRING in the query",
    )


def _date_text(days: int) -> str:
    return str(np.datetime64(days, "D"))


def _split_nanos(nanos: int) -> tuple[str, str, str, int]:
    """Date text, ``HH:MM``, ``SS`` and nanoseconds of the second."""
    seconds, nano = divmod(nanos, 1_000_000_000)
    date, clock = str(np.datetime64(seconds, "s")).split("T")
    return date, clock[:5], clock[6:], nano


def _iso_text(nanos: int) -> str:
    """Java's LocalDateTime.toString: seconds left out when zero, fraction of 0, 3, 6 or 9 digits."""
    date, minutes, seconds, nano = _split_nanos(nanos)
    if nano == 0:
        return f"{date}T{minutes}" if seconds == "00" else f"{date}T{minutes}:{seconds}"
    digits = f"{nano:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{date}T{minutes}:{seconds}.{digits}"


def _sql_text(nanos: int, precision: int) -> str:
    """CAST to STRING: at least `precision` digits of fraction, more only while they are not zero."""
    date, minutes, seconds, nano = _split_nanos(nanos)
    digits = f"{nano:09}"
    while len(digits) > precision and digits.endswith("0"):
        digits = digits[:-1]
    return f"{date} {minutes}:{seconds}" + (f".{digits}" if digits else "")


def _time_text(millis: int, precision: int) -> str:
    """CAST of a TIME to STRING: up to `precision` digits of fraction, cut after the last that is not zero."""
    seconds, milli = divmod(millis, 1000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if precision == 0:
        return text
    digits = f"{milli:03}"[: max(precision, 1)].rstrip("0")
    return f"{text}.{digits or '0'}"


def java_float_text(value: float, *, single: bool) -> str:
    """Java's Float.toString or Double.toString: plain from 1e-3 below 1e7, else ``d.ddE±n``."""
    number: np.floating = np.float32(value) if single else np.float64(value)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(float(number)) < 1e7:
        return np.format_float_positional(number, unique=True, trim="0")
    sign, digits, exponent = Decimal(np.format_float_scientific(number, unique=True)).normalize().as_tuple()
    head, tail = str(digits[0]), "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{head}.{tail}E{int(exponent) + len(digits) - 1}"
