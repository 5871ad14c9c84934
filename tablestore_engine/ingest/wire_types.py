"""What a value of a message means, as the message's own schema says it; values → Arrow columns.

Names      Reading        how a raw value is read
           WireType       that, and the type of the column that it makes
           wire_column    raw values of one column → an Arrow array of that type
           in_calendar    dates and times, if all of them have years from 1 to 9999
Raw        what a JSON parser or an Avro reader gives: numbers, texts, lists, objects; bytes are base64 in JSON
INVARIANT  a date or time can be read back: infinity, years BC and those of five digits raise.
INVARIANT  no value loses digits: what does not fit raises, nothing is rounded but to the bits of a FLOAT.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.data_type import (
    BIGINT,
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
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_EXACT = Context(prec=200_000)  # more digits than a numeric of any database has


class Reading(StrEnum):
    """How a raw value is read."""

    PLAIN = "plain"  # as it is
    COUNT = "count"  # a number of units since 1970, or of a day
    CLOCK = "clock"  # so many microseconds or nanoseconds of a day → text, which keeps them all
    BYTES = "bytes"
    DECIMAL = "decimal"  # the unscaled number, big-endian
    UNSCALED = "unscaled"  # the same, with more digits than a DECIMAL has → text
    SCALED = "scaled"  # {scale, value}: each value has a scale of its own → text
    INSTANT = "instant"  # text with a zone
    TEXT = "text"  # any scalar, written as text; its type says what it is


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
    """A list."""
    return WireType(DataType("ARRAY", element=element.type), element=element)


def map_of(key: WireType, value: WireType) -> WireType:
    """Keys and values."""
    made = DataType("MAP", key=key.type.with_nullable(False), value=value.type)
    return WireType(made, key=key, element=value)


def row_of(members: Mapping[str, WireType]) -> WireType:
    """A record."""
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
LONG = WireType(BIGINT)


def moments(unit: str) -> WireType:
    """Units since 1970, of a wall clock."""
    return WireType(
        DataType("TIMESTAMP", precision={"ms": 3, "us": 6, "ns": 9}[unit]), Reading.COUNT, unit=unit
    )


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
        counts = pa.array(raw, pa.int64())
        return in_calendar(counts.cast(pa.int32()).cast(arrow) if wire.unit == "" else counts.cast(arrow))
    if wire.how is Reading.INSTANT:
        return in_calendar(pa.array(raw, pa.string()).cast(arrow))
    if wire.how is Reading.TEXT and wire.type.root in ("DATE", *TIMESTAMP_ROOTS):
        return in_calendar(json_column(raw, wire.type))
    convert = _CONVERT.get(wire.how)
    if convert is not None:
        return pa.array([None if one is None else convert(one, wire) for one in raw], arrow)
    if wire.type.root in ("FLOAT", "DOUBLE"):
        return pa.array([None if one is None else float(one) for one in raw], arrow)
    return pa.array(raw, arrow)


def in_calendar(values: pa.Array) -> pa.Array:
    """The same. Raises ValueError with the number of the first one that is not; times of a day all are."""
    if pa.types.is_date32(values.type):
        per_day, counts = 1, values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        per_day, counts = _PER_DAY[values.type.unit], values.cast(pa.int64())
    else:
        return values
    most = min((_LAST_DAY + 1) * per_day, 1 << 63) - 1
    found = pc.min_max(counts)
    for one in (found["min"].as_py(), found["max"].as_py()):
        if one is not None and not max(_FIRST_DAY * per_day, -1 << 63) <= one <= most:
            raise ValueError(f"{one} lies outside of the years 1 to 9999: infinity, BC, or five digits")
    return values


def check_integers(raw: Sequence[Any]) -> None:
    """Arrow would cut 1.5 to 1. Raises TypeError."""
    for one in raw:
        if one is not None and type(one) is not int:
            raise TypeError(f"no whole number: {one!r}")


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
        raise TypeError(f"no bytes: {value!r}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {value!r}") from error


def to_decimal(value: Any, scale: int) -> Decimal:  # noqa: ANN401 - parsed JSON
    """The number whose unscaled form these bytes are. Raises ValueError, TypeError."""
    return Decimal(int.from_bytes(to_bytes(value), "big", signed=True)).scaleb(-scale, _EXACT)


def _scaled(value: Any, _: WireType) -> str:  # noqa: ANN401 - parsed JSON
    return f"{to_decimal(value['value'], value['scale']):f}"


def _clock(value: int, wire: WireType) -> str:
    """12:00:01.5 of a number of units; 24:00:00 is the last moment of a day."""
    per_second, places = (1_000_000, 6) if wire.unit == "us" else (1_000_000_000, 9)
    seconds, fraction = divmod(value, per_second)
    if not 0 <= seconds <= 86_400 or (seconds == 86_400 and fraction):
        raise ValueError(f"no time of a day: {value}")
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{places}}".rstrip("0").rstrip(".") if fraction else text


def _of_text(value: Any, wire: WireType) -> Any:  # noqa: ANN401 - as its type has it
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r}")
    read = _TEXTS.get(wire.type.root)
    if read is None:
        return value
    if "_" in value and wire.type.root != "VARBINARY":  # Python's own numbers may have it
        raise ValueError(f"no number: {value!r}")
    return read(value)


def _flag(text: str) -> bool:
    if text not in ("0", "1", "true", "false"):
        raise ValueError(f"no truth value: {text!r}")
    return text in ("1", "true")


_TEXTS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGER_ROOTS, int),
    **dict.fromkeys(("FLOAT", "DOUBLE"), float),
    "DECIMAL": Decimal,
    "BOOLEAN": _flag,
    "VARBINARY": lambda text: text.encode("latin-1"),
}
_CONVERT: dict[Reading, Callable[[Any, WireType], Any]] = {
    Reading.BYTES: lambda value, _: to_bytes(value),
    Reading.DECIMAL: lambda value, wire: to_decimal(value, wire.scale),
    Reading.UNSCALED: lambda value, wire: f"{to_decimal(value, wire.scale):f}",
    Reading.SCALED: _scaled,
    Reading.CLOCK: _clock,
    Reading.TEXT: _of_text,
}
