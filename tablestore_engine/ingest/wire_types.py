"""What a value of a message means, as the message's own schema says it; values → Arrow columns.

Raw        what a JSON parser or an Avro reader gives: numbers, texts, lists, objects; bytes are base64 in JSON
INVARIANT  a date or time can be read back: infinity, years BC and those of five digits raise.
INVARIANT  no value loses digits: what does not fit raises, nothing is rounded but to the bits of FLOAT and DOUBLE.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.data_type import (
    BINARY_ROOTS,
    BYTES,
    INTEGER_ROOTS,
    STRING,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.log.json_decode import json_column

LTZ = DataType("TIMESTAMP_LTZ", precision=6)
_DIGITS_MAX = 38
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999, since 1970
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_DAY_MS = 86_400_000
_PLACES = {"ms": 3, "us": 6, "ns": 9}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
_SECONDS, _ZONE = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", r"(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_INSTANT = re.compile(rf"({_SECONDS})(?:\.(\d+))?({_ZONE})", re.ASCII)
_PLAIN_INSTANT = rf"^{_SECONDS}(?:\.\d{{1,6}})?{_ZONE}$"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
_AS_STRING = "as a STRING (columns, --column) it is kept whole"
_FINER = f"a timestamp of the table has microseconds: {_AS_STRING}"
_EXACT = Context(prec=200_000)  # more digits than a numeric of any database has


class Reading(StrEnum):
    PLAIN = "plain"  # as it is
    COUNT = "count"  # a number of units since 1970, or of a day
    CLOCK = "clock"  # units of a time → text, which keeps all digits, signs and more hours than a day has
    MOMENT = "moment"  # nanoseconds since 1970 → text, which keeps all digits
    BYTES = "bytes"
    DECIMAL = "decimal"  # the unscaled number, big-endian
    UNSCALED = "unscaled"  # the same, with more digits than a DECIMAL has → text
    SCALED = "scaled"  # {scale, value}: each value has a scale of its own → text
    INSTANT = "instant"  # text with a zone
    TEXT = "text"  # any scalar, written as text; its type says what it is


class RefusedError(ValueError):
    """A value that is none of its column; its text says why to the user."""


@dataclass(frozen=True)
class WireType:
    """`unit` of counts, `scale` of decimals; parts of nested types."""

    type: DataType
    how: Reading = Reading.PLAIN
    unit: str = ""
    scale: int = 0
    element: WireType | None = None
    key: WireType | None = None
    members: Mapping[str, WireType] = field(default_factory=dict)


def array_of(element: WireType) -> WireType:
    return WireType(DataType("ARRAY", element=element.type), element=element)


def map_of(key: WireType, value: WireType) -> WireType:
    made = DataType("MAP", key=key.type.with_nullable(False), value=value.type)
    return WireType(made, key=key, element=value)


def row_of(members: Mapping[str, WireType]) -> WireType:
    fields = tuple(DataField(0, name, one.type) for name, one in members.items())
    return WireType(DataType("ROW", fields=fields), members=members)


def scalar(root: str, **parameters: int) -> WireType:
    """A value that is read as it is."""
    return WireType(DataType(root, **parameters))  # type: ignore[arg-type]  # length, precision, scale


TEXT = WireType(STRING)
BINARY = WireType(BYTES, Reading.BYTES)
DAYS = WireType(DataType("DATE"), Reading.COUNT)
MILLIS_OF_DAY = WireType(DataType("TIME", precision=3), Reading.COUNT)
MICROS_OF_DAY = WireType(STRING, Reading.CLOCK, unit="us")
NANOS_OF_DAY = WireType(STRING, Reading.CLOCK, unit="ns")
INSTANT = WireType(LTZ, Reading.INSTANT)
SCALED = WireType(STRING, Reading.SCALED)


def moments(unit: str) -> WireType:
    """Units since 1970, of a wall clock; tables have microseconds."""
    return WireType(DataType("TIMESTAMP", precision=3 if unit == "ms" else 6), Reading.COUNT, unit=unit)


def as_text(wire: WireType) -> WireType:
    """For a column that is a STRING: with all digits where the type of a table has fewer, else as it is."""
    is_count, root = wire.how is Reading.COUNT, wire.type.root
    if wire.how is Reading.INSTANT:
        return TEXT
    if wire.how is Reading.TEXT and root not in BINARY_ROOTS:
        return WireType(STRING, Reading.TEXT)
    if is_count and root == "TIME":
        return WireType(STRING, Reading.CLOCK, unit="ms")
    if is_count and wire.unit == "ns":
        return WireType(STRING, Reading.MOMENT)
    return wire


def decimals(precision: int, scale: int) -> WireType:
    """The unscaled number in bytes. A scale may be negative, or more than the digits; what no DECIMAL holds is text."""
    digits = max(precision, scale, precision - scale)
    if digits > _DIGITS_MAX:
        return WireType(STRING, Reading.UNSCALED, scale=scale)
    kind = DataType("DECIMAL", precision=digits, scale=max(scale, 0))
    return WireType(kind, Reading.DECIMAL, scale=scale)


def wire_column(raw: Sequence[Any], wire: WireType) -> pa.Array:
    """Raises ArrowException, ValueError, TypeError, ArithmeticError, KeyError for a value that is no such thing."""
    if wire.type.root in ("ARRAY", "MAP", "ROW"):
        return _nested(raw, wire)
    arrow = type_to_arrow(wire.type)
    if wire.how is Reading.COUNT or (wire.how is Reading.PLAIN and wire.type.root in INTEGER_ROOTS):
        check_integers(raw)
    if wire.how is Reading.COUNT:
        return counted_column(pa.array(raw, pa.int64()), wire)
    if wire.how is Reading.INSTANT:
        return instant_column(pa.array([_text(one) for one in raw], pa.string()), wire)
    if wire.how is Reading.TEXT and wire.type.root in ("DATE", *TIMESTAMP_ROOTS):
        return in_calendar(json_column(raw, wire.type))
    convert = _CONVERT.get(wire.how)
    if convert is not None:
        return pa.array([None if one is None else convert(one, wire) for one in raw], arrow)
    if wire.type.root in ("FLOAT", "DOUBLE"):
        return pa.array([None if one is None else to_float(one, wire.type.root) for one in raw], arrow)
    return pa.array(raw, arrow)


def counted_column(counts: pa.Array, wire: WireType) -> pa.Array:
    """Counts of a wire type. Raises ArrowException, RefusedError."""
    arrow = type_to_arrow(wire.type)
    if wire.unit == "":
        days = counts.cast(pa.int32())
        return in_day(days).cast(arrow) if pa.types.is_time(arrow) else in_calendar(days.cast(arrow))
    if wire.unit != "ns":
        return in_calendar(counts.cast(arrow))
    try:
        return in_calendar(counts.cast(pa.timestamp("ns")).cast(arrow))
    except pa.ArrowInvalid as error:
        raise RefusedError(_FINER) from error


def in_day(counts: pa.Array, per_day: int = _DAY_MS) -> pa.Array:
    """The same counts, if all are of a day. Raises RefusedError."""
    found = pc.min_max(counts)
    for one in (found["min"].as_py(), found["max"].as_py()):
        if one is not None and not 0 <= one < per_day:
            raise RefusedError(f"a TIME of the table is less than a day: {_AS_STRING}")
    return counts


def instant_column(texts: pa.Array, wire: WireType) -> pa.Array:
    """Texts with a zone. Raises ArrowException, RefusedError."""
    if pc.all(pc.match_substring_regex(texts, _PLAIN_INSTANT)).as_py() is False:
        texts = pa.array([None if one is None else _instant(one) for one in texts.to_pylist()], pa.string())
    return in_calendar(texts.cast(type_to_arrow(wire.type)))


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise RefusedError("expected a text")
    return value


def _instant(value: str) -> str:
    """Its digits below a microsecond, which must be zeros, left out."""
    parts = _INSTANT.fullmatch(value)
    if parts is None:
        raise RefusedError("expected a date, a time and a zone")
    if (parts[2] or "")[6:].strip("0"):
        raise RefusedError(_FINER)
    digits = (parts[2] or "")[:6]
    return f"{parts[1]}{'.' if digits else ''}{digits}{parts[3]}"


def to_float(value: object, root: str) -> float:
    """Of a JSON number, of a text with one, or of Java's words for what none is. Raises RefusedError."""
    if isinstance(value, str):
        if value not in _NO_NUMBERS and not _NUMBER.fullmatch(value):
            raise RefusedError("expected a number")
        found, is_word = float(value), value in _NO_NUMBERS
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        found, is_word = _float(value), isinstance(value, float) and math.isinf(value)
    else:
        raise RefusedError("expected a number")
    with np.errstate(over="ignore"):
        is_infinite = bool(np.isinf(np.float32(found) if root == "FLOAT" else found))
    if is_infinite and not is_word:
        raise RefusedError("it is too large")
    return found


def _float(value: float | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def in_calendar(values: pa.Array) -> pa.Array:
    """The same. Raises ValueError with the number of the first one that is not; times of a day all are."""
    if pa.types.is_date32(values.type):
        per_day, counts = 1, values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        per_day, counts = PER_DAY[values.type.unit], values.cast(pa.int64())
    else:
        return values
    most = min((_LAST_DAY + 1) * per_day, 1 << 63) - 1
    found = pc.min_max(counts)
    for one in (found["min"].as_py(), found["max"].as_py()):
        if one is not None and not max(_FIRST_DAY * per_day, -1 << 63) <= one <= most:
            raise RefusedError(f"{one} lies outside of the years 1 to 9999: infinity, BC, or five digits")
    return values


def check_integers(raw: Sequence[Any]) -> None:
    """Arrow would cut 1.5 to 1. Raises TypeError."""
    for one in raw:
        if one is not None and type(one) is not int:
            raise RefusedError(f"no whole number: {one!r}")


def _nested(raw: Sequence[Any], wire: WireType) -> pa.Array:
    arrow = type_to_arrow(wire.type)
    valid = np.array([one is not None for one in raw], dtype=bool)
    mask = None if valid.all() else pa.array(~valid)
    if wire.type.root == "ROW":
        children = [
            wire_column([None if one is None else one.get(name) for one in raw], part)
            for name, part in wire.members.items()
        ]
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    offsets = np.zeros(len(raw) + 1, dtype=np.int32)
    np.cumsum([0 if one is None else len(one) for one in raw], out=offsets[1:])
    assert wire.element is not None
    if wire.type.root == "ARRAY":
        items = wire_column([item for one in raw if one is not None for item in one], wire.element)
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow, mask=mask)
    assert wire.key is not None
    pairs = [pair for one in raw if one is not None for pair in _pairs(one)]
    keys = wire_column([key for key, _ in pairs], wire.key)
    values = wire_column([value for _, value in pairs], wire.element)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values, type=arrow, mask=mask)


def _pairs(value: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 - parsed JSON
    """An object, or an array of pairs or of entries, as keys that are no texts have it."""
    if isinstance(value, dict):
        return list(value.items())
    return [(one["key"], one["value"]) if isinstance(one, dict) else (one[0], one[1]) for one in value]


def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - parsed JSON
    """Base64 of JSON, or what Avro gives. Raises ValueError, TypeError."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise RefusedError("expected a text in base64")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise RefusedError("expected a text in base64") from error


def to_decimal(value: Any, scale: int) -> Decimal:  # noqa: ANN401 - parsed JSON
    """The number whose unscaled form these bytes are. Raises ValueError, TypeError."""
    return Decimal(int.from_bytes(to_bytes(value), "big", signed=True)).scaleb(-scale, _EXACT)


def _scaled(value: Any, _: WireType) -> str:  # noqa: ANN401 - parsed JSON
    return f"{to_decimal(value['value'], value['scale']):f}"


def _clock(value: object, wire: WireType) -> str:
    """12:00:01.5 of a number of units; MySQL's TIME goes from -838:59:59 to 838:59:59."""
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise RefusedError("expected a whole number of 64 bits")
    places = _PLACES[wire.unit]
    seconds, fraction = divmod(abs(value), 10**places)
    text = f"{'-' if value < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{places}}".rstrip("0").rstrip(".") if fraction else text


def _moment(value: object, _: WireType) -> str:
    """2026-01-01 12:00:01.123456789 of nanoseconds since 1970."""
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise RefusedError("expected a whole number of 64 bits")
    seconds, nanos = divmod(value, 1_000_000_000)
    return f"{_EPOCH + dt.timedelta(seconds=seconds)}.{nanos:09}"


def _of_text(value: Any, wire: WireType) -> Any:  # noqa: ANN401 - as its type has it
    if not isinstance(value, str):
        raise RefusedError("expected a text")
    read = _TEXTS.get(wire.type.root)
    return value if read is None else read(value)


def _number_text(text: str) -> str:
    """Python's own numbers may have more: 1_0, blanks, digits of other scripts. Raises RefusedError."""
    if not _NUMBER.fullmatch(text):
        raise RefusedError("expected a number")
    return text


def _flag(text: str) -> bool:
    if text not in ("0", "1", "true", "false"):
        raise RefusedError("expected 0, 1, true or false")
    return text in ("1", "true")


_TEXTS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGER_ROOTS, lambda text: int(_number_text(text))),
    "FLOAT": lambda text: to_float(text, "FLOAT"),
    "DOUBLE": lambda text: to_float(text, "DOUBLE"),
    "DECIMAL": lambda text: Decimal(_number_text(text)),
    "BOOLEAN": _flag,
    "VARBINARY": lambda text: text.encode("latin-1"),
}
_CONVERT: dict[Reading, Callable[[Any, WireType], Any]] = {
    Reading.BYTES: lambda value, _: to_bytes(value),
    Reading.DECIMAL: lambda value, wire: to_decimal(value, wire.scale),
    Reading.UNSCALED: lambda value, wire: f"{to_decimal(value, wire.scale):f}",
    Reading.SCALED: _scaled,
    Reading.CLOCK: _clock,
    Reading.MOMENT: _moment,
    Reading.TEXT: _of_text,
}
