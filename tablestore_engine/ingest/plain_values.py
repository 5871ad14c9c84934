"""Values of messages that carry no schema: the column says what they mean, or they are looked at.

CHANGE     values of change messages without a schema
Rules      DATE: a text, or days · TIME and TIMESTAMP: a text, or a number of the units that the column has (precision
           up to 3 milliseconds, up to 6 microseconds, else nanoseconds) · DECIMAL: a number, or a text that `decimals`
           says how to read · binaries: base64 · STRING: a text, or the JSON of a document · all else as JSON has it
INVARIANT  a text of a DECIMAL is never guessed at: `1234` is a number and base64 as well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_type import (
    BIGINT,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    STRING,
    TIMESTAMP_ROOTS,
    DataType,
)
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.ingest.wire_types import (
    PER_DAY,
    RefusedError,
    check_integers,
    in_calendar,
    in_day,
    to_bytes,
    to_decimal,
    to_float,
)
from tablestore_engine.log.json_decode import json_column

BASE64, TEXT = "base64", "text"
DECIMALS = (BASE64, TEXT)
_TIMES = frozenset({"DATE", "TIME", *TIMESTAMP_ROOTS})


def plain_column(raw: Sequence[Any], kind: DataType, decimals: str | None = None) -> pa.Array:
    """`decimals`: what a text of a DECIMAL is, BASE64 or TEXT.

    Raises ArrowException, ValueError, TypeError, ArithmeticError for a value that is none of the column.
    """
    if kind.root in INTEGER_ROOTS:
        check_integers(raw)
    if kind.root == "DECIMAL":
        values = [None if one is None else _decimal(one, kind, decimals) for one in raw]
        return pa.array(values, type_to_arrow(kind))
    if kind.root in ("BINARY", "VARBINARY"):
        return pa.array([None if one is None else to_bytes(one) for one in raw], type_to_arrow(kind))
    if kind.root in _TIMES:
        return _times(raw, kind)
    if kind.root in ("FLOAT", "DOUBLE"):
        return pa.array(
            [None if one is None else to_float(one, kind.root) for one in raw], type_to_arrow(kind)
        )
    if kind.root in CHARACTER_ROOTS:
        return pa.array([json_text(one) for one in raw], type_to_arrow(kind))
    return json_column(raw, kind)


def json_text(value: Any) -> str | None:  # noqa: ANN401 - parsed JSON
    """A text as it is; a document, a list, a number or a truth value as JSON. Raises RefusedError."""
    if value is None or isinstance(value, str):
        return value
    return _encoded(value)


def _encoded(value: Any) -> str:  # noqa: ANN401 - parsed JSON
    """Numbers with all their digits, which Python's own encoder does not know."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_encoded(name)}: {_encoded(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_encoded, value)) + "]"
        case Decimal():
            return str(value)
        case str() | bool() | int() | None:
            return json.dumps(value, ensure_ascii=False)
    raise RefusedError("it is no JSON")


def _decimal(value: Any, kind: DataType, decimals: str | None) -> Decimal:  # noqa: ANN401 - parsed JSON
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise RefusedError("expected a number")
    if not isinstance(value, str):
        return Decimal(value)
    if decimals is None:
        raise RefusedError(
            "a text for a DECIMAL: say decimals='base64' (Debezium's decimal.handling.mode=precise) or "
            "decimals='text'"
        )
    return to_decimal(value, kind.scale or 0) if decimals == BASE64 else Decimal(value)


def _times(raw: Sequence[Any], kind: DataType) -> pa.Array:
    """Texts and numbers may stand beside each other."""
    is_count = np.array([isinstance(one, int) for one in raw], dtype=bool)
    if not is_count.any():
        return in_calendar(json_column(raw, kind))
    check_integers([one for one in raw if isinstance(one, int)])
    counts = counted(pa.array([one if isinstance(one, int) else None for one in raw], pa.int64()), kind)
    if is_count.all():
        return counts
    texts = in_calendar(json_column([None if isinstance(one, int) else one for one in raw], kind))
    return pa.chunked_array([counts, texts]).take(
        pa.array(np.where(is_count, np.arange(len(raw)), len(raw) + np.arange(len(raw))))
    ).combine_chunks()  # fmt: skip


def counted(counts: pa.Array, kind: DataType) -> pa.Array:
    """Numbers as a column of dates or times. Raises ArrowException, ValueError."""
    arrow = type_to_arrow(kind)
    if kind.root == "DATE":
        return in_calendar(counts.cast(pa.int32()).cast(arrow))
    precision = kind.precision or 0
    unit = "ms" if precision <= 3 else "us" if precision <= 6 else "ns"
    if kind.root == "TIME":
        if unit == "ms":
            return in_day(counts.cast(pa.int32())).cast(pa.time32("ms")).cast(arrow)
        return in_day(counts, PER_DAY[unit]).cast(pa.time64(unit)).cast(arrow)
    return in_calendar(counts.cast(pa.timestamp(unit, arrow.tz)).cast(arrow))


def inferred_type(raw: Sequence[Any]) -> DataType | None:
    """BOOLEAN, BIGINT, DOUBLE or STRING; None while all values are null. Raises TypeError for other values, and for
    values of several kinds.
    """
    kinds = {_kind_of(one) for one in raw if one is not None}
    if kinds == {"BIGINT", "DOUBLE"}:
        kinds = {"DOUBLE"}
    if len(kinds) > 1:
        raise TypeError(f"values of several kinds: {', '.join(sorted(kinds))}")
    if not kinds:
        return None
    (found,) = kinds
    return {"BIGINT": BIGINT, "STRING": STRING}.get(found) or DataType(found)


def _kind_of(value: Any) -> str:  # noqa: ANN401 - parsed JSON
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT"
        case float() | Decimal():
            return "DOUBLE"
    return "STRING"  # a text, or a document or list, which becomes one
