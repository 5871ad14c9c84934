"""Parsed JSON values → Arrow columns: the other direction of log/json_values.py.

INVARIANT  no value loses digits: decimals never pass through a float.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_type import BINARY_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.type_arrow import type_to_arrow

_MOMENT = re.compile(r"([+-]?\d{4,6})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?Z?")
_CLOCK = re.compile(r"(\d\d?):(\d\d):(\d\d)(?:\.(\d+))?", re.ASCII)
_EPOCH = dt.date(1970, 1, 1).toordinal()
_PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def parse_object(data: bytes | None) -> dict[str, Any]:
    """Raises ValueError, TypeError."""
    if data is None:
        raise ValueError("neither key nor value")
    parsed = json.loads(data, parse_float=Decimal)
    if not isinstance(parsed, dict):
        raise TypeError("not a JSON object")
    return parsed


def json_column(raw: Sequence[Any], kind: DataType) -> pa.Array:
    """Parsed JSON values of one column as an Arrow array of the column's type. Raises ValueError for a VARIANT."""
    arrow = type_to_arrow(kind)
    if kind.root == "VARIANT":
        raise ValueError("a VARIANT is not made of JSON here: its numbers and dates would be of other types")
    if kind.root in ("ARRAY", "MAP", "MULTISET", "ROW"):
        return _nested(raw, kind, arrow)
    if kind.root in TIMESTAMP_ROOTS or kind.root == "DATE":
        return _moments(raw, arrow)
    convert = _CONVERT.get(kind.root)
    if convert is not None:
        raw = [None if value is None else convert(value) for value in raw]
    if kind.root == "TIME":
        return pa.array(raw, pa.int32()).cast(arrow)
    return pa.array(raw, arrow)


def _moments(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    """Dates and timestamps from their texts; Arrow's parser knows years 0 to 9999, not the first second."""
    try:
        return pa.array(raw, pa.string()).cast(arrow)
    except pa.ArrowInvalid:
        counts = [None if text is None else _count(text, arrow) for text in raw]
        return pa.array(counts, pa.int32() if pa.types.is_date(arrow) else pa.int64()).cast(arrow)


def _count(text: str, arrow: pa.DataType) -> int:
    """Days, or units of the timestamp, since 1970. Raises ValueError."""
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        raise ValueError(f"no date or timestamp: {text!r}")
    year, cycle = int(parts[1]), 2000 + int(parts[1]) % 400  # the calendar repeats after 400 years
    days = dt.date(cycle, int(parts[2]), int(parts[3])).toordinal() - _EPOCH + (year - cycle) // 400 * 146_097
    if pa.types.is_date(arrow):
        if parts[4] is not None:
            raise ValueError(f"a date with a time: {text!r}")
        return days
    clock = dt.time(int(parts[4] or 0), int(parts[5] or 0), int(parts[6] or 0))
    seconds = days * 86_400 + (clock.hour * 60 + clock.minute) * 60 + clock.second
    places: int = _PLACES[arrow.unit]
    fraction = parts[7] or ""
    if fraction[places:].strip("0"):
        raise ValueError(f"finer than the column: {text!r}")
    return int(seconds * 10**places + int((fraction + "0" * places)[:places] or 0))


def _nested(raw: Sequence[Any], kind: DataType, arrow: pa.DataType) -> pa.Array:
    valid = np.array([value is not None for value in raw], dtype=bool)
    if kind.root == "ROW":
        children = [json_column([v and v.get(f.name) for v in raw], f.type) for f in kind.fields]
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(~valid))
    offsets = np.zeros(len(raw) + 1, dtype=np.int32)
    np.cumsum([0 if value is None else len(value) for value in raw], out=offsets[1:])
    mask = pa.array(~valid) if not valid.all() else None
    if kind.root == "ARRAY":
        assert kind.element is not None
        items = json_column([item for value in raw if value is not None for item in value], kind.element)
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow, mask=mask)
    entries = [pair for value in raw if value is not None for pair in value.items()]
    key, value = (
        (kind.key, kind.value) if kind.root == "MAP" else (kind.element, DataType("INT", nullable=False))
    )
    assert key is not None
    assert value is not None
    keys = json_column([_key_value(text, key) for text, _ in entries], key)
    values = json_column([item for _, item in entries], value)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values, type=arrow, mask=mask)


def _key_value(text: str, kind: DataType) -> object:
    """A map key is always text in JSON; numbers and booleans are parsed again."""
    if kind.root in ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT"):
        return json.loads(text)
    return text


def _time_ms(text: str) -> int:
    """Milliseconds of a day. Raises ValueError for another text, and where digits would be lost."""
    parts = _CLOCK.fullmatch(text)
    if parts is None or int(parts[1]) > 23 or int(parts[2]) > 59 or int(parts[3]) > 59:
        raise ValueError(f"no time of a day: {text!r}")
    fraction = parts[4] or ""
    if fraction[3:].strip("0"):
        raise ValueError(f"finer than the column: {text!r}")
    seconds = (int(parts[1]) * 60 + int(parts[2])) * 60 + int(parts[3])
    return seconds * 1000 + int((fraction + "000")[:3])


_CONVERT: dict[str, Callable[[Any], object]] = {
    "FLOAT": float,
    "DOUBLE": float,
    "DECIMAL": Decimal,
    "TIME": _time_ms,
    **dict.fromkeys(BINARY_ROOTS, base64.b64decode),
}
