"""Values as our Java programs write them in JSON, in the form of rows.py: floats are bits, times microseconds."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from integration_tests.interop.rows import plain_float

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - rows.py has no zones


def plain_value(given: Any) -> Any:
    """A JSON value, or `{form: value}`."""
    if not isinstance(given, dict):
        return given
    ((tag, value),) = given.items()
    return _FORMS[tag](value)


def _moment(value: list[int]) -> dt.datetime:
    seconds, nanos = value
    assert nanos % 1000 == 0
    return _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000)


def _time(nanos: int) -> dt.time:
    assert nanos % 1000 == 0
    return (_EPOCH + dt.timedelta(microseconds=nanos // 1000)).time()


_FORMS: dict[str, Callable[[Any], Any]] = {
    "float": lambda bits: plain_float(struct.unpack("<f", struct.pack("<i", bits))[0]),
    "double": lambda bits: plain_float(struct.unpack("<d", struct.pack("<q", bits))[0]),
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "day": lambda days: _EPOCH.date() + dt.timedelta(days=days),
    "time": _time,
    "moment": _moment,
    "array": lambda values: tuple(map(plain_value, values)),
    "row": lambda values: tuple(map(plain_value, values)),
    "map": lambda pairs: (
        "map",
        tuple(sorted(((plain_value(k), plain_value(v)) for k, v in pairs), key=repr)),
    ),
}
