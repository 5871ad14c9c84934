"""Statistics of row groups in a Parquet footer, as facts of the table's column.

INVARIANT  bounds are used only where the physical and logical type of the file are those that the table's type has.
           Any other combination has no bounds: FLOAT and DOUBLE (a NaN is in no bound, -0.0 may be), INT96, unsigned
           integers, nanoseconds, decimals of another scale, bytes, CHAR, TIME, nested columns.
WHY        Spark lost rows of NaN under `x > 1` by skipping row groups. Writers also shorten the bounds of texts: they
           enclose the values and are no values themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.store.files.column_facts import ColumnFacts
from tablestore_engine.store.files.comparable_values import Comparable, is_comparable

Decode = Callable[
    [Any], Comparable | None
]  # a bound as the file has it → as conditions compare it; None: unknown
_MICROS = {"milliseconds": 1000, "microseconds": 1}


def read_group_facts(metadata: pq.FileMetaData, leaf: int, type_: DataType) -> tuple[ColumnFacts, ...]:
    """One for each row group; REQUIRES a column that is not nested. `type_`: of the column in the file's schema."""
    decode = _decoder(metadata.schema.column(leaf), type_) if is_comparable(type_) else None
    is_exact = type_.root != "VARCHAR"
    found = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(leaf).statistics
        if statistics is None:
            found.append(ColumnFacts(group.num_rows))
            continue
        nulls = statistics.null_count if statistics.has_null_count else None
        low = high = None
        if decode is not None and statistics.has_min_max:
            low, high = decode(statistics.min_raw), decode(statistics.max_raw)
        if low is None or high is None or low > high:  # type: ignore[operator]  # both are of one type
            low = high = None
        found.append(ColumnFacts(group.num_rows, nulls, low, high, is_exact))
    return tuple(found)


def _decoder(column: pq.ColumnSchema, type_: DataType) -> Decode | None:
    physical, logical = column.physical_type, json.loads(column.logical_type.to_json())
    kind, root = logical["Type"], type_.root
    if root in INTEGER_ROOTS:
        is_signed = kind == "None" or (kind == "Int" and logical["isSigned"])
        return _integer if physical in ("INT32", "INT64") and is_signed else None
    if root == "BOOLEAN":
        return int if physical == "BOOLEAN" else None
    if root == "DATE":
        return _integer if physical == "INT32" and kind == "Date" else None
    if root in TIMESTAMP_ROOTS:
        factor = _MICROS.get(logical.get("timeUnit", "")) if kind == "Timestamp" else None
        return None if factor is None or physical != "INT64" else lambda value: int(value) * factor
    if root == "DECIMAL":
        return _decimals(physical, type_) if kind == "Decimal" and logical["scale"] == type_.scale else None
    if root == "VARCHAR":
        return _text if physical == "BYTE_ARRAY" and kind == "String" else None
    return None


def _integer(value: Any) -> Comparable | None:  # noqa: ANN401 - see Decode
    return value if isinstance(value, int) else None


def _text(value: Any) -> Comparable | None:  # noqa: ANN401 - see Decode
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return None  # shortened within a character


def _decimals(physical: str, type_: DataType) -> Decode | None:
    scale = type_.scale or 0

    def of_bytes(value: bytes) -> Comparable | None:
        return _decimal(int.from_bytes(value, "big", signed=True), scale)

    if physical in ("INT32", "INT64"):
        return lambda value: _decimal(int(value), scale)
    return of_bytes if physical == "FIXED_LEN_BYTE_ARRAY" else None


def _decimal(unscaled: int, scale: int) -> Decimal:
    """Exact: Decimal's own arithmetic rounds to 28 digits."""
    return Decimal((int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled))), -scale))
