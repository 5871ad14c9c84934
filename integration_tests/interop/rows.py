"""Rows as values that can be compared: one plain form for what every reader returns.

Form       NaN and -0.0 become text (they are equal to nothing, or to 0.0); timestamps lose their zone after going to
           UTC; arrays are tuples, maps ('map', sorted pairs), structs tuples in field order.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from integration_tests.interop.schemas import Schema

Row = tuple[Any, ...]
Change = tuple[str, Row]
_SHOWN = 4


def plain_rows(table: pa.Table, names: Sequence[str] | None = None) -> list[Row]:
    """Every row as a tuple, columns in the order of `names` (else as they come)."""
    wanted = table.select(list(names)) if names is not None else table
    columns = [[_converter(c.type)(v) for v in _readable(c).to_pylist()] for c in wanted.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def plain_changes(table: pa.Table, kind: str = "rowkind", names: Sequence[str] | None = None) -> list[Change]:
    """(kind, row) of every row, kinds as '+I' '-U' '+U' '-D'."""
    kinds = table.column(kind).to_pylist()
    wanted = names if names is not None else [name for name in table.column_names if name != kind]
    return list(zip(kinds, plain_rows(table, wanted), strict=True))


def arrow_rows(schema: Schema, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The rows as Arrow; a missing column is null."""
    listed = list(rows)
    fields = schema.arrow()
    return pa.table(
        [pa.array([row.get(f.name) for row in listed], f.type) for f in fields],
        schema=fields,
    )


def assert_same(expected: Sequence[Any], got: Sequence[Any], where: str) -> None:
    """Fail with the rows that are missing and the rows that are too much."""
    missing = Counter(expected)
    missing.subtract(Counter(got))
    lost = [row for row, count in missing.items() if count > 0]
    extra = [row for row, count in missing.items() if count < 0]
    if lost or extra:
        lines = [
            f"{where}: expected {len(expected)} rows, got {len(got)}; {len(lost)} missing, {len(extra)} too much"
        ]
        for row in lost[:_SHOWN]:
            near = _nearest(row, extra)
            lines.append(f"  missing  {row!r}" if near is None else f"  differs  {_differences(row, near)}")
        if len(lost) != len(extra):
            lines += [f"  too much {row!r}" for row in extra[:_SHOWN]]
        raise AssertionError("\n".join(lines))


def as_it_is(rows: Sequence[Row]) -> list[Row]:
    """For readers without that fault."""
    return list(rows)


def emptied(rows: Sequence[Row]) -> list[Row]:
    """NULL as an empty collection everywhere: what pyiceberg cannot tell apart."""
    return [_without_null(row) for row in rows]


def _without_null(value: Any) -> Any:
    """NULL as an empty collection, at any depth: what pyiceberg cannot tell apart."""
    if value is None:
        return ()
    return tuple(map(_without_null, value)) if isinstance(value, tuple) else value


def _flat(row: Any) -> Row:
    """A change as one tuple: kind, then columns."""
    return (row[0], *row[1]) if len(row) == 2 and isinstance(row[1], tuple) else tuple(row)


def _nearest(row: Any, others: Sequence[Any]) -> Any:
    """The row that differs in the fewest columns, None when no more than half are equal."""
    wanted = _flat(row)
    scored = [(sum(a == b for a, b in zip(wanted, _flat(other), strict=False)), other) for other in others]
    best = max(scored, key=lambda pair: pair[0], default=(0, None))
    return best[1] if best[0] * 2 > len(wanted) else None


def _differences(expected: Any, got: Any) -> str:
    pairs = zip(_flat(expected), _flat(got), strict=False)
    parts = [f"column {n}: expected {a!r}, got {b!r}" for n, (a, b) in enumerate(pairs) if a != b]
    return f"row {_flat(expected)[:2]!r}: " + "; ".join(parts or ["number of columns"])


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nanoseconds have no Python value; none of our data has more than microseconds."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.timestamp("us", column.type.tz))
    return column


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    """Value of this Arrow type -> plain value."""
    if pa.types.is_dictionary(kind):
        return _converter(kind.value_type)
    if pa.types.is_floating(kind):
        return _optional(plain_float)
    if pa.types.is_timestamp(kind):
        return _optional(_plain_timestamp)
    if pa.types.is_map(kind):
        key, item = _converter(kind.key_type), _converter(kind.item_type)
        return _optional(
            lambda pairs: ("map", tuple(sorted(((key(k), item(v)) for k, v in pairs), key=repr)))
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _converter(kind.value_type)
        return _optional(lambda values: tuple(element(v) for v in values))
    if pa.types.is_struct(kind):
        children = [(field.name, _converter(field.type)) for field in kind]
        return _optional(lambda value: tuple(convert(value[name]) for name, convert in children))
    return _optional(_plain_bytes) if pa.types.is_binary(kind) else lambda value: value


def _optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def plain_float(value: float) -> float | str:
    """NaN and -0.0 as texts."""
    if math.isnan(value):
        return "NaN"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def _plain_timestamp(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def _plain_bytes(value: bytes) -> bytes:
    return bytes(value)
