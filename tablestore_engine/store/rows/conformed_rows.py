"""Incoming rows as their table wants them: columns by name, types by safe casts, every rule of a column checked.

Steps      columns by name → cast that loses nothing → lengths → defaults for NULL → NOT NULL → keys without null
INVARIANT  nothing is rounded, cut or wrapped: a value that does not fit stops the whole batch (P7). DOUBLE that becomes
           FLOAT is the exception: it has no exact form.
INVARIANT  a row that deletes needs only its key: NOT NULL of other columns is not asked of it.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.error_values import count_of, sql_literal, sql_row
from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, STRING_LENGTH, DataField
from tablestore_engine.format.row_values import row_dicts, row_values
from tablestore_engine.format.safe_cast import safe_cast
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.lsm.key_order import Mask

SAMPLES = 5


def conform(rows: pa.Table, schema: TableSchema, deletes: Mask | None = None) -> pa.Table:
    """`rows` with the columns and types of `schema`. A missing nullable column is NULL; NULL is the column's default.

    Raises FixData TS1602 (null in a key), TS1603 (a value that does not fit), TS1604 (an unknown column).
    """
    unknown = [name for name in rows.column_names if name not in schema.field_names]
    if unknown:
        raise FixData(
            "TS1604",
            f"rows have a column {unknown[0]!r} that the table does not have",
            why=f"the columns are {', '.join(schema.field_names)}",
            fix="leave the column out, or add it to the table first",
        )
    arrays = [_conform_column(rows, field) for field in schema.fields]
    made = pa.Table.from_arrays(arrays, schema=schema.arrow_schema())
    _check_keys(made, schema)
    for field in schema.fields:
        if not field.type.nullable and field.name not in schema.primary_keys:
            _check_not_null(made, field, deletes)
    return made


def _conform_column(rows: pa.Table, field: DataField) -> pa.ChunkedArray | pa.Array:
    target = type_to_arrow(field.type)
    if field.name not in rows.column_names:
        return _filled(pa.nulls(rows.num_rows, target), field)
    column = rows.column(field.name)
    is_as_wanted = column.type.equals(target) and not any(
        part.root == "VARIANT" for part in field.type.walk()
    )
    made = column if is_as_wanted else _cast(column, target, field)
    _check_length(made, field)
    return _filled(made, field)


def _filled(column: pa.ChunkedArray | pa.Array, field: DataField) -> pa.ChunkedArray | pa.Array:
    if field.default_value is None:
        return column
    from tablestore_engine.format.column_default import filled  # noqa: PLC0415 - decision 0137

    return filled(column, field)


def _cast(column: pa.ChunkedArray, target: pa.DataType, field: DataField) -> pa.ChunkedArray:
    try:
        return safe_cast(column, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as wrong:
        sample = _first_misfit(column, target)
        raise _misfit(field, why=str(wrong).splitlines()[0], sample=sample) from wrong


def _first_misfit(column: pa.ChunkedArray, target: pa.DataType) -> list[object]:
    """The first value that cannot be cast, found by halving."""
    while len(column) > 1:
        half = column.slice(0, len(column) // 2)
        try:
            safe_cast(half, target)
            column = column.slice(len(column) // 2)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            column = half
    return row_values(column)


def _check_length(column: pa.ChunkedArray | pa.Array, field: DataField) -> None:
    limit = field.type.length
    if limit is None or limit == STRING_LENGTH:
        return
    if field.type.root in CHARACTER_ROOTS:
        too_long = pc.greater(pc.utf8_length(column), limit)
    elif field.type.root in BINARY_ROOTS:
        too_long = pc.greater(pc.binary_length(column), limit)
    else:
        return
    if pc.any(too_long).as_py():
        sample = pc.filter(column, too_long).slice(0, 1).to_pylist()
        raise _misfit(field, why=f"a value is longer than {limit}", sample=sample)


def _check_not_null(rows: pa.Table, field: DataField, deletes: npt.NDArray[np.bool_] | None) -> None:
    column = rows.column(field.name)
    if not column.null_count:
        return
    missing = np.asarray(pc.is_null(column))
    count = int((missing & ~deletes).sum() if deletes is not None else missing.sum())
    if count:
        raise _misfit(field, why=f"{count_of(count, 'row has', 'rows have')} no value", sample=[None])


def _check_keys(rows: pa.Table, schema: TableSchema) -> None:
    null = [name for name in schema.primary_keys if rows.column(name).null_count]
    if not null:
        return
    missing = pc.is_null(rows.column(null[0]))
    for name in null[1:]:
        missing = pc.or_(missing, pc.is_null(rows.column(name)))
    sample = row_dicts(rows.filter(missing).slice(0, SAMPLES))
    rows_have = count_of(int(pc.sum(missing).as_py()), "row has", "rows have")
    raise FixData(
        "TS1602",
        f"{rows_have} no key",
        why=f"primary key column {', '.join(null)} is NULL, for example in {sql_row(sample[0])[:300]}",
        fix="filter these rows out, or give them a key",
        columns=null,
        samples=sample,
    )


def _misfit(field: DataField, *, why: str, sample: list[object]) -> FixData:
    shown = sql_literal(sample[0]) if sample and sample[0] is not None else None
    is_named = shown is None or _has_word(why, shown)
    return FixData(
        "TS1603",
        f"a value does not fit column {field.name!r} ({type_to_text(field.type)})",
        why=why if is_named else f"{why}; for example {shown}",
        fix="correct or cast the value, or change the type of the column",
        column=field.name,
        sample=sample,
    )


def _has_word(text: str, word: str) -> bool:
    """2 is in `2 is too large`, not in `int32`."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def frame_samples(
    rows: pa.Table, names: tuple[str, ...], at: npt.NDArray[np.int64]
) -> list[dict[str, object]]:
    """Up to SAMPLES rows of the named columns, for messages."""
    return row_dicts(rows.select(names).take(pa.array(at[:SAMPLES])))
