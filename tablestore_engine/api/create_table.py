"""Creating an empty table from a schema, and what an existing one of the name means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import pyarrow as pa

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField, DataType, is_fine_timestamp
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_from_arrow
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.arrow_rows import ArrowRows
from tablestore_engine.warehouse.write.incoming_rows import from_arrow, to_arrow
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec

IfExists = Literal["fail", "keep", "replace"]


def rows_of_schema(name: str, schema: object) -> pa.Table:
    """No rows, with the columns of a schema or of rows. Raises what reading the rows and writing them later raises.

    A schema with nanoseconds keeps them. Raises FixRequest TS1580 for rows whose nanoseconds would be lost.
    """
    if isinstance(schema, pa.Schema) or (
        hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__")
    ):
        return pa.schema(schema).empty_table()
    rows = from_arrow(to_arrow(schema))
    _check_times(name, {one.name: one.type for one in rows.fields})
    return rows.table.slice(0, 0)


def _check_times(name: str, columns: Mapping[str, DataType]) -> None:
    for column, type_ in columns.items():
        if any(map(is_fine_timestamp, type_.walk())):
            why = f"column {column!r} has timestamps in nanoseconds; SQL reads no column that keeps them"
            fix = "cast it to pa.timestamp('us'), keep nanoseconds in a BIGINT, or give a pa.schema to keep them"
            raise _refused(name, why, fix)


def table_spec(
    rows: pa.Table,
    *,
    primary_key: str | Sequence[str],
    partition_by: str | Sequence[str],
    options: Mapping[str, str | int | bool] | None,
) -> TableSpec:
    """The spec of a new table with the columns of `rows`."""
    return TableSpec(
        primary_key=_names(primary_key),
        partition_by=_names(partition_by),
        options={key: _option(value) for key, value in (options or {}).items()},
        not_null=tuple(field.name for field in rows.schema if not field.nullable),
    )


def _option(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def create_table(
    warehouse: Warehouse, identifier: Identifier, rows: pa.Table, spec: TableSpec, if_exists: IfExists
) -> None:
    """Create it, or do with the table that is there what `if_exists` says. Raises FixRequest TS1580, TS1415."""
    if if_exists not in get_args(IfExists):
        raise _refused(identifier, f"if_exists is {if_exists!r}", "use 'fail', 'keep' or 'replace'")
    if not rows.column_names:
        raise _refused(identifier, "the schema has no columns", "name the columns")
    store = None if if_exists == "fail" else warehouse.stores.find(identifier)
    if store is None:
        warehouse.writer.create_empty(identifier, _asked(rows), spec, makes_database=True)
    elif if_exists == "keep":
        _check_same(identifier, store.schema, rows, spec)
    else:
        replacing = WriteSpec(spec, mode=WriteMode.OVERWRITE_TABLE, on_schema_change=OnSchemaChange.REPLACE)
        with warehouse.running(needs_spark=warehouse.session.is_started):
            warehouse.write_incoming(identifier, _asked(rows), replacing)


def _asked(rows: pa.Table) -> ArrowRows:
    """No rows, with the very types of their columns. Raises FixRequest TS1104."""
    types = {one.name: type_from_arrow(one.type, may_be_void=True) for one in rows.schema}
    return ArrowRows(tuple(DataField(0, name, type_) for name, type_ in types.items()), rows)


def _check_same(identifier: Identifier, found: TableSchema, rows: pa.Table, spec: TableSpec) -> None:
    asked = {field.name: field.type.with_nullable(True) for field in _asked(rows).fields}
    stored = {field.name: field.type.with_nullable(True) for field in found.fields}
    differing = {
        "columns": (asked, stored),
        "primary_key": (spec.primary_key, found.primary_keys),
        "partition_by": (spec.partition_by, found.partition_keys),
        "options": (dict(spec.options), {key: found.options.get(key) for key in spec.options}),
    }
    wrong = [what for what, (one, other) in differing.items() if one != other]
    if wrong:
        why = f"the table that is there has other {', '.join(wrong)}"
        raise _refused(identifier, why, "use it as it is, or pass if_exists='replace'")


def _refused(name: Identifier | str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1580", f"table {name} is not created", why=why, fix=fix)
