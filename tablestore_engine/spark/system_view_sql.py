"""A system view in Spark: few rows are a JSON literal, many are a Parquet file where Spark reads the driver's disk.

WHY        a literal reaches any cluster and costs no file. Spark parses, folds and copies it: 20,000 rows of `$files`
           took 98 s as a literal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from tablestore_engine.runtime.moments import datetime_text
from tablestore_engine.sql.scanner import quote_name, quote_string

LITERAL_ROWS = 300
_ARROW_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp_ntz": pa.timestamp("us"),
    "array<string>": pa.list_(pa.string()),
}


def system_view_sql(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> str:
    """The rows as a literal. `columns`: (name, Spark type)."""
    names = [name for name, _ in columns]
    texts = json.dumps(
        [dict(zip(names, row, strict=True)) for row in rows], ensure_ascii=False, default=_moment_text
    )
    shape = f"array<struct<{', '.join(f'`{name}`: {kind}' for name, kind in columns)}>>"
    return of_this_moment(f"(select inline(from_json({quote_string(texts)}, {quote_string(shape)})))")


def of_this_moment(source: str) -> str:
    """A query that reads a system view is another one at each moment, and says so by a function that no run fixes: what
    is computed from changes alone must not take the view for a constant.
    """
    return f"select * from {source} where current_user() is not null"


def rows_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> pa.Table:
    """The rows for a Parquet file."""
    values = zip(*rows, strict=True)
    arrays = [pa.array(one, _ARROW_TYPES[kind]) for one, (_, kind) in zip(values, columns, strict=True)]
    return pa.table(arrays, names=[name for name, _ in columns])


def columns_text(columns: Sequence[tuple[str, str]]) -> str:
    """For CREATE TABLE."""
    return ", ".join(f"{quote_name(name)} {kind}" for name, kind in columns)


def _moment_text(value: object) -> str:
    if isinstance(value, datetime):
        return datetime_text(value)
    raise TypeError(type(value).__name__)
