"""Reading a file of an old schema with a newer one: match by field id, then cast (format.md#evolution).

Steps      by id → old name → read → nested children by id → cast; no match → nulls; partition values → constants
INVARIANT  names never decide: a column that was dropped and added again under its old name is all nulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.evolution_cast import cast_column, check_cast
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import field_to_arrow, type_to_arrow


@dataclass(frozen=True)
class ColumnPlan:
    """One column of the result: `source` is its name in the file, None when the file has no such column."""

    field: DataField
    source: str | None
    source_type: DataType | None


def plan_columns(
    file_schema: TableSchema, table_schema: TableSchema, columns: Sequence[str] | None = None
) -> tuple[ColumnPlan, ...]:
    """For each wanted column (None: all of `table_schema`, in order) its column in a file of `file_schema`.

    Raises NotFound TS1110 for an unknown column, Unsupported TS1123 for a change of type that is not readable.
    """
    by_id = {field.id: field for field in file_schema.fields}
    plans = []
    for field in table_schema.fields if columns is None else table_schema.fields_of(columns):
        old = by_id.get(field.id)
        if old is not None:
            check_cast(old.type, field.type, column=field.name)
        plans.append(ColumnPlan(field, old.name if old else None, old.type if old else None))
    return tuple(plans)


def evolve(
    table: pa.Table,
    file_schema: TableSchema,
    table_schema: TableSchema,
    columns: Sequence[str] | None = None,
    *,
    partition: Mapping[str, object] | None = None,
    keep: Sequence[str] = (),
) -> pa.Table:
    """Rows of a file as `table_schema` has them: `keep` columns unchanged (`_SEQUENCE_NUMBER` …), then the wanted ones.
    Rows of all files of a table have one schema, whatever NOT NULL their writers gave columns.

    `table` has at least the columns of `source_columns`; `partition` maps partition columns (today's names) to
    values that replace what the file holds. The result has Arrow types of `table_schema`.
    Raises FixData TS1124 when the file lacks a column of its own schema, TS1117 for values that do not fit, and
    what plan_columns raises.
    """
    constants = partition or {}
    arrays: list[pa.ChunkedArray | pa.Array] = [table.column(name) for name in keep]
    fields: list[pa.Field] = [pa.field(name, table.schema.field(name).type) for name in keep]
    for plan in plan_columns(file_schema, table_schema, columns):
        fields.append(field_to_arrow(plan.field))
        if plan.field.name in constants:
            [value] = arrow_values([constants[plan.field.name]], plan.field.type)
            arrays.append(pa.repeat(value, table.num_rows))
        else:
            arrays.append(_column(table, plan, file_schema))
    if not fields:
        return table.select([])
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _column(table: pa.Table, plan: ColumnPlan, file_schema: TableSchema) -> pa.ChunkedArray | pa.Array:
    target = type_to_arrow(plan.field.type)
    if plan.source is None or plan.source_type is None:
        return pa.nulls(table.num_rows, target)
    if plan.source not in table.column_names:
        raise FixData(
            "TS1124",
            f"a data file lacks column {plan.source!r}",
            why=f"its schema {file_schema.id} has it; the file has {', '.join(table.column_names)}",
            fix="the file is damaged or was written by a broken writer: verify the table",
        )
    return cast_column(table.column(plan.source), plan.source_type, plan.field.type)
