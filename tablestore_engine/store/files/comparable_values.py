"""Values in the form in which conditions and statistics compare them.

Values     BOOLEAN and integers int · FLOAT, DOUBLE float · DECIMAL Decimal · VARCHAR str · DATE days · TIMESTAMP(_LTZ)
           microseconds since 1970, both int. Other types are never compared.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.scalar import days_from_date, nanos_from_timestamp
from tablestore_engine.format.type_arrow import type_to_arrow

Comparable = int | float | Decimal | str
MICROSECONDS = 6  # Spark's precision: what is finer is cut off when it reads, so it cannot be compared before


def is_comparable(type_: DataType) -> bool:
    """Whether values of the type are compared. CHAR is padded by some, bytes are signed for some: they are not."""
    if type_.root in TIMESTAMP_ROOTS:
        return (type_.precision or 0) <= MICROSECONDS
    return type_.root in (*INTEGER_ROOTS, "BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE")


def comparable(value: object, type_: DataType) -> Comparable | None:
    """A value that is not NULL, in the form of Values; None for types that have none, NaN, and misfits."""
    if not is_comparable(type_):
        return None
    if type_.root == "DATE":
        return days_from_date(value) if isinstance(value, dt.date | np.datetime64) else None
    if type_.root in TIMESTAMP_ROOTS:
        if not isinstance(value, dt.datetime | np.datetime64):
            return None
        return nanos_from_timestamp(value, type_) // 1000
    return _plain(value, type_.root)


def _plain(value: object, root: str) -> Comparable | None:
    if root == "BOOLEAN":
        return int(value) if isinstance(value, bool) else None
    if root == "VARCHAR":
        return value if isinstance(value, str) else None
    if root == "DECIMAL":
        return Decimal(value) if isinstance(value, Decimal | int) else None
    if root in INTEGER_ROOTS:
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if not isinstance(value, float | int) or math.isnan(value):
        return None
    return float(np.float32(value)) if root == "FLOAT" else float(value)


def comparable_column(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray:
    """A column of a comparable type in the same form."""
    if type_.root == "BOOLEAN":
        return column.cast(pa.int8())
    if type_.root == "DATE":
        return column.cast(pa.int32())
    if type_.root in TIMESTAMP_ROOTS:
        return column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
    return column


def stored_form(values: Sequence[Comparable], type_: DataType) -> pa.Array:
    arrow = type_to_arrow(type_)
    if type_.root == "BOOLEAN":
        return pa.array([bool(value) for value in values], arrow)
    if type_.root == "DATE":
        return pa.array(values, pa.int32()).cast(arrow)
    if type_.root in TIMESTAMP_ROOTS:
        return pa.array(values, pa.timestamp("us", getattr(arrow, "tz", None))).cast(arrow)
    return pa.array(values, arrow)
