"""Python values ⇄ the integers that the format stores for them (format.md#binaryrow).

INVARIANT  exact: a decimal that would lose digits is refused; timestamps keep nanoseconds; floor before 1970.
INVARIANT  TIMESTAMP takes naive values, TIMESTAMP_LTZ values with a zone; nothing guesses a zone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.type_arrow import timestamp_unit, type_to_arrow
from tablestore_engine.format.type_text import type_to_text

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 — wall-clock values have no zone
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)
_DAY_MILLIS = 86_400_000
_NANOS = {"ms": 1_000_000, "us": 1000, "ns": 1}
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation])


def days_from_date(value: object) -> int:
    """Days since 1970-01-01 of a date or numpy.datetime64. Raises TypeError for anything else."""
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[D]").astype(np.int64))
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.toordinal() - _EPOCH_DAY
    raise TypeError(f"a date is expected, got {type(value).__name__}")


def date_from_days(days: int) -> dt.date | np.datetime64:
    """The date; numpy.datetime64[D] beyond the years 1 to 9999."""
    ordinal = days + _EPOCH_DAY
    return (
        dt.date.fromordinal(ordinal) if 1 <= ordinal <= dt.date.max.toordinal() else np.datetime64(days, "D")
    )


def millis_from_time(value: object) -> int:
    """Milliseconds of day of a time, microseconds cut off. Raises TypeError for anything else."""
    if not isinstance(value, dt.time):
        raise TypeError(f"a time is expected, got {type(value).__name__}")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_from_millis(millis: int) -> dt.time:
    """The time of day. Raises FixData TS1117 outside one day."""
    if not 0 <= millis < _DAY_MILLIS:
        raise _bad_value(millis, "TIME", f"milliseconds of day are in 0 … {_DAY_MILLIS - 1}")
    seconds, milli = divmod(millis, 1000)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, milli * 1000)


def nanos_from_timestamp(value: object, type_: DataType) -> int:
    """Nanoseconds since the epoch of a datetime (zone as the type demands) or a numpy.datetime64.

    Raises FixData TS1117 for a zone that is missing or not wanted; TypeError for other values.
    """
    if isinstance(value, np.datetime64):
        return _nanos_from_numpy(value)
    if not isinstance(value, dt.datetime):
        raise TypeError(f"a datetime is expected, got {type(value).__name__}")
    zoned = type_.root == "TIMESTAMP_LTZ"
    if (value.tzinfo is not None) != zoned:
        why = "a value with a time zone is expected" if zoned else "a value without time zone is expected"
        raise _bad_value(value, type_to_text(type_), why)
    nanos = (value - (_EPOCH_UTC if zoned else _EPOCH)) // _MICRO * 1000
    return nanos + int(getattr(value, "nanosecond", 0))  # pandas.Timestamp keeps the last three digits there


def timestamp_from_nanos(nanos: int, type_: DataType) -> dt.datetime | np.datetime64:
    """datetime when it is exact; numpy.datetime64 (ns, or us far away) for other values."""
    micros, rest = divmod(nanos, 1000)
    if rest == 0 and (type_.precision or 0) <= 6:
        try:
            return (_EPOCH_UTC if type_.root == "TIMESTAMP_LTZ" else _EPOCH) + dt.timedelta(
                microseconds=micros
            )
        except OverflowError:
            return np.datetime64(micros, "us")
    return np.datetime64(nanos, "ns") if abs(nanos) < 2**63 else np.datetime64(micros, "us")


def unscaled_from_decimal(value: object, type_: DataType) -> int:
    """The unscaled integer of a Decimal (or int) at the type's scale. Raises FixData TS1117 if digits would be lost."""
    if not isinstance(value, Decimal | int) or isinstance(value, bool):
        raise TypeError(f"a Decimal is expected, got {type(value).__name__}")
    scale, precision = type_.scale or 0, type_.precision or 0
    try:
        exact = _EXACT.quantize(Decimal(value), Decimal(1).scaleb(-scale))
        unscaled = int(_EXACT.scaleb(exact, scale))
    except (DecimalException, ValueError, OverflowError) as wrong:
        raise _bad_value(value, type_to_text(type_), "it has too many digits, or is no number") from wrong
    if abs(unscaled) >= 10**precision:
        raise _bad_value(value, type_to_text(type_), f"it has more than {precision} digits")
    return unscaled


def decimal_from_unscaled(unscaled: int, type_: DataType) -> Decimal:
    """The Decimal with the type's full scale."""
    return _EXACT.scaleb(Decimal(unscaled), -(type_.scale or 0))


def python_values(column: pa.Array | pa.ChunkedArray, type_: DataType) -> list[object]:
    """The column's values as `binary_row` takes them, after a safe cast to the type's Arrow form.

    Raises FixData TS1117 when the cast would lose something.
    """
    arrow = type_to_arrow(type_)
    column = cast_exact(column, arrow, type_)
    if type_.root in TIMESTAMP_ROOTS or type_.root == "DATE":
        integers = column.cast(pa.int32() if type_.root == "DATE" else pa.int64()).to_pylist()
        if type_.root == "DATE":
            return [None if v is None else date_from_days(v) for v in integers]
        factor = _NANOS[timestamp_unit(type_.precision or 0)]
        return [None if v is None else timestamp_from_nanos(v * factor, type_) for v in integers]
    return list(column.to_pylist())


def arrow_values(values: Sequence[object], type_: DataType) -> pa.Array:
    """Values of an atomic type as `python_values` gives them: Arrow takes no numpy.datetime64 of a time with a zone."""
    arrow = type_to_arrow(type_)
    if type_.root == "DATE":
        return pa.array([None if v is None else days_from_date(v) for v in values], pa.int32()).cast(arrow)
    if type_.root in TIMESTAMP_ROOTS:
        factor = _NANOS[timestamp_unit(type_.precision or 0)]
        counts = [None if v is None else nanos_from_timestamp(v, type_) // factor for v in values]
        return pa.array(counts, pa.int64()).cast(arrow)
    return pa.array(values, arrow)


def cast_exact(
    column: pa.Array | pa.ChunkedArray, arrow: pa.DataType, type_: DataType
) -> pa.Array | pa.ChunkedArray:
    """The column as that Arrow type. Raises FixData TS1117 when a value does not fit."""
    if column.type == arrow:
        return column
    try:
        return column.cast(arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as wrong:
        raise _bad_value(column.type, type_to_text(type_), str(wrong)) from wrong


def _nanos_from_numpy(value: np.datetime64) -> int:
    unit, count = np.datetime_data(value.dtype)
    factor = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}.get(unit)
    if factor is None:
        return int(value.astype("datetime64[s]").astype(np.int64)) * 1_000_000_000
    return int(value.astype(np.int64)) * count * factor


def _bad_value(value: object, type_name: str, why: str) -> FixData:
    return FixData(
        "TS1117",
        f"the value {value!s:.80} does not fit {type_name}",
        why=why,
        fix="cast or correct the values of that column",
    )
