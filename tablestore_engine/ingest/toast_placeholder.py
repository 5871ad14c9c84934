"""Debezium's placeholder for a value that PostgreSQL did not log (TOAST, unchanged), in a form of each type.

Forms      a text, as it is, in base64 and in hex · an array of texts, of bytes, of uuids: one element · an array of
           int, of bigint, of dates: the bytes of the text as numbers · hstore: one pair, or that as JSON · a geometry:
           a point that is no place
DANGER     arrays of all other types come as NULL (io.debezium.jdbc.JdbcValueConverters.handleUnknownData).
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import uuid
from collections.abc import Sequence

from tablestore_engine.ingest.wire_types import Reading, WireType

UNAVAILABLE = "__debezium_unavailable_value"
_BYTES = UNAVAILABLE.encode()
_CODES = list(_BYTES)
_EPOCH = dt.date(1970, 1, 1)
_ISO_DATES = [f"{_EPOCH + dt.timedelta(days=code)}Z" for code in _CODES]
_UUID = str(
    uuid.UUID(bytes=hashlib.md5(_BYTES, usedforsecurity=False).digest(), version=3)
)  # nameUUIDFromBytes
_WKBS = tuple(
    bytes.fromhex(text)
    for text in (
        "0101000020E6100000000000FC83D797C1000000FC83D797C1",
        "0101000020E61000000C21E7FDFF7F66401842CEFBFF7F5640",
    )
)
PLACEHOLDER_TEXTS = (
    UNAVAILABLE,
    base64.b64encode(_BYTES).decode(),
    base64.urlsafe_b64encode(_BYTES).decode(),
    _BYTES.hex(),
    f'{{"{UNAVAILABLE}":"{UNAVAILABLE}"}}',
)
_SINGLE = frozenset({*PLACEHOLDER_TEXTS, _BYTES, _UUID})
_POINTS = frozenset({*_WKBS, *(base64.b64encode(one).decode() for one in _WKBS)})
_WITH_FORM = frozenset({"VARCHAR", "INT", "BIGINT"})


def is_toast_placeholder(value: object) -> bool:
    match value:
        case str():
            return value in PLACEHOLDER_TEXTS
        case bytes():
            return value == _BYTES
        case list():
            return _is_list(value)
        case dict():
            is_pair = len(value) == 1 and value.get(UNAVAILABLE) == UNAVAILABLE
            return is_pair or ("wkb" in value and value["wkb"] in _POINTS)
    return False


def _is_list(values: Sequence[object]) -> bool:
    """Of one element; a map in Avro may be a list of its pairs."""
    if len(values) == 1:
        (one,) = values
        if isinstance(one, dict):
            return one.get("key") == UNAVAILABLE
        return isinstance(one, str | bytes) and one in _SINGLE
    return len(values) == len(_CODES) and (values == _ISO_DATES or _is_codes(values))


def _is_codes(values: Sequence[object]) -> bool:
    """Whatever their unit: dates may be counted in days, or in parts of one."""
    whole = [one for one in values if type(one) is int]
    if len(whole) != len(_CODES) or not whole[0]:
        return False
    return all(one * _CODES[0] == code * whole[0] for one, code in zip(whole, _CODES, strict=True))


def is_null_placeholder(wire: WireType) -> bool:
    """Of arrays of such elements, and of geometries: there NULL may be a value that was not logged."""
    if wire.type.root == "ROW":
        return {"wkb", "srid"} <= set(
            wire.members
        ) and "x" not in wire.members  # a point of fixed size is logged
    element = wire.element
    if wire.type.root != "ARRAY" or element is None:
        return False
    if element.how is Reading.COUNT:
        return element.type.root != "DATE"
    is_plain = element.how is Reading.PLAIN and element.type.root in _WITH_FORM
    return not (is_plain or element.how is Reading.BYTES)
