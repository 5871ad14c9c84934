"""Rows of Arrow as Python values, for people and programs that read rows: messages, commands, results of statements.

INVARIANT  every value of Arrow has one. Python's dates end at the years 1 and 9999, and its datetime at microseconds; a
           date or timestamp beyond is text in ISO 8601 with a sign before the year, in UTC if its column has a zone:
           `+10000-01-01T04:59:59Z`. Only then: other values of the column stay dates and datetimes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def row_dicts(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Each row by column name, as `to_pylist`. REQUIRES names that differ."""
    columns = [row_values(column) for column in rows.columns]
    if not columns:
        return [{} for _ in range(rows.num_rows)]
    return [dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def row_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values of one column, as `to_pylist`."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # of dates, far away or finer than microseconds
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:  # noqa: ANN401 - values of any type
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(scalar[at]) for at, name in enumerate(scalar.type.names)}
    if isinstance(scalar, pa.MapScalar):
        return [(_value(item[0]), _value(item[1])) for item in scalar.values]
    if isinstance(scalar, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):
        return [_value(item) for item in scalar.values]
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return _far_text(scalar)


def _far_text(scalar: pa.Scalar) -> str:
    if isinstance(scalar, pa.Date32Scalar | pa.Date64Scalar):
        return _signed(str(np.datetime64(scalar.cast(pa.date32()).value, "D")))
    text = _signed(str(np.datetime64(scalar.value, scalar.type.unit)))
    head, point, digits = text.partition(".")
    digits = digits.rstrip("0")
    return head + (point + digits if digits else "") + ("" if scalar.type.tz is None else "Z")


def _signed(text: str) -> str:
    """numpy writes `10000-…` and `-044-…`; ISO 8601 has a sign and at least four digits."""
    sign, rest = ("-", text[1:]) if text.startswith("-") else ("", text)
    year, dash, tail = rest.partition("-")
    year = year.zfill(4)
    return f"{sign or ('+' if len(year) > 4 else '')}{year}{dash}{tail}"
