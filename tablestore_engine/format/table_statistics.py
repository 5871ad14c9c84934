"""The file `statistics/stat-<uuid>-<n>`: what ANALYZE has counted of a snapshot, as Paimon writes it.

Values     min and max are texts, as Java's serializers write them: days of a date, UTC of timestamps with as many
           digits as their type has; none for texts and bytes, as in Spark. Moments of more than 6 digits come as whole
           nanoseconds since 1970: Python's own type ends at microseconds
INVARIANT  None is never written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from tablestore_engine.format.data_type import DataType, is_fine_timestamp

_COLUMN_KEYS = ("distinctCount", "min", "max", "nullCount", "avgLen", "maxLen")
_SIZES = {
    "BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8, "DATE": 4, "TIME": 4,
    "TIMESTAMP": 8, "TIMESTAMP_LTZ": 8,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
_EPOCH_DAY = _EPOCH.toordinal()


@dataclass(frozen=True)
class ColumnStatistics:
    """Of the values that are not NULL, but `null_count`; lengths in characters or bytes. None: not known."""

    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    avg_len: int | None = None
    max_len: int | None = None


@dataclass(frozen=True)
class TableStatistics:
    """`size`: bytes of the files, in proportion to the rows that are visible."""

    snapshot_id: int
    schema_id: int
    row_count: int
    size: int
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)


def encode_statistics(statistics: TableStatistics) -> bytes:
    made = {
        "snapshotId": statistics.snapshot_id,
        "schemaId": statistics.schema_id,
        "mergedRecordCount": statistics.row_count,
        "mergedRecordSize": statistics.size,
        "colStats": {name: _column(one) for name, one in statistics.columns.items()},
    }
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()


def _column(one: ColumnStatistics) -> dict[str, object]:
    values = (one.distinct_count, one.min, one.max, one.null_count, one.avg_len, one.max_len)
    return {key: value for key, value in zip(_COLUMN_KEYS, values, strict=True) if value is not None}


def fixed_size(kind: DataType) -> int | None:
    """Bytes of a value, as Spark counts them; None for texts, bytes and nested values."""
    if kind.root == "DECIMAL":
        return 8 if (kind.precision or 0) <= 18 else 16
    return _SIZES.get(kind.root)


def value_text(value: object, kind: DataType) -> str | None:
    """A bound as Java's serializer of the type writes it; None for what has no bound here."""
    if value is None or fixed_size(kind) is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return _moment(value.replace(tzinfo=None), kind.precision or 0)
    if isinstance(value, int) and is_fine_timestamp(kind):
        micros, nanos = divmod(value, 1000)
        return _moment(_EPOCH + timedelta(microseconds=micros), kind.precision or 0, nanos)
    if isinstance(value, date):
        return str(value.toordinal() - _EPOCH_DAY)
    if isinstance(value, time):
        of_day = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
        return str(of_day // timedelta(milliseconds=1) + value.microsecond // 1000)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _moment(value: datetime, digits: int, nanos: int = 0) -> str:
    """With `digits` of a second, more where the value has them; `nanos`: beyond its microseconds."""
    fraction = f"{value.microsecond:06d}{nanos:03d}"
    while len(fraction) > digits and fraction.endswith("0"):
        fraction = fraction[:-1]
    text = f"{value.year:04d}-{value.month:02d}-{value.day:02d} {value:%H:%M:%S}"
    return f"{text}.{fraction}" if fraction else text
