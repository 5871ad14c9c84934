"""The columns of a write's rows against those of the table: what is refused, and which type one without values has.

CHANGE     columns that the rows or the table lack
INVARIANT  fields of structs follow the rule of columns: one that the table lacks is refused, added or dropped, as
           `on_schema_change` says; one that the rows lack becomes NULL only when that was asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import VOID, DataField, DataType, is_fine_timestamp
from tablestore_engine.format.nested_fields import FieldDifference, field_differences, fill_void, find_void
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, WriteSpec

_KEEPS = (OnSchemaChange.SAME_COLUMNS, OnSchemaChange.IGNORE)
_Fields = Mapping[str, DataField]


def check_columns(
    current: TableSchema, columns: Sequence[DataField], spec: WriteSpec, *, only_deletes: bool, table: str
) -> None:
    """The names of a write that keeps the table's columns, and of structs inside. Raises FixRequest TS1062, TS1063."""
    have = {field.name.lower(): field for field in current.fields}
    given = {field.name.lower(): field for field in columns}
    if not given:
        raise FixRequest(
            "TS1063",
            f"the rows for {table} have no columns",
            why=f"the columns of the table are {', '.join(current.field_names)}",
            fix="check how the rows were read; to delete all rows, use overwrite([])",
        )
    if spec.on_schema_change not in _KEEPS:
        return
    inside = list(_inside(have, given))
    gone = [_text(found) for found in inside if found.added is None]
    may_be_null = spec.missing_columns == "null"
    if spec.on_schema_change is OnSchemaChange.IGNORE:
        if gone and not may_be_null:
            raise _lacking(table, gone, "a struct is written as a whole, so these fields would become NULL")
        return
    _refuse_unknown(have, given, inside, table)
    lacked = (field for name, field in have.items() if name not in given)
    gone = [*(field.name for field in lacked if field.default_value is None), *gone]
    replaces_rows = current.is_keyed and not spec.mode.is_overwrite and not only_deletes
    if gone and replaces_rows and not may_be_null:
        raise _lacking(table, gone, "an upsert replaces whole rows, so these columns would become NULL")


def check_times(wanted: TableSchema, current: TableSchema | None, table: str) -> None:
    """Rows give a table no column of nanoseconds: pandas has that unit for all times. Raises FixRequest TS1165."""
    known = {} if current is None else {one.id: one.type for one in current.fields}
    for field in wanted.fields:
        if _is_fine(field.type) and not (field.id in known and _is_fine(known[field.id])):
            raise FixRequest(
                "TS1165",
                f"column {field.name!r} of {table} would keep nanoseconds",
                why="its rows have times finer than microseconds, and SQL reads no column that keeps them",
                fix="cast it to microseconds, or keep nanoseconds in a BIGINT; to keep them as they are, create the "
                "table first: Engine.create_table with a pyarrow schema that has timestamp('ns')",
            )


def _is_fine(type_: DataType) -> bool:
    return any(map(is_fine_timestamp, type_.walk()))


def _inside(have: _Fields, given: _Fields) -> Iterator[FieldDifference]:
    for name, field in given.items():
        if name in have:
            yield from field_differences(have[name].type, field.type, (have[name].name,))


def _refuse_unknown(have: _Fields, given: _Fields, inside: Sequence[FieldDifference], table: str) -> None:
    columns = tuple(field.name for field in have.values())
    unknown = [
        FieldDifference((field.name,), field.type, columns) for key, field in given.items() if key not in have
    ]
    unknown += [found for found in inside if found.added is not None]
    if not unknown:
        return
    first = unknown[0]
    names = {name.lower(): name for name in first.beside}
    near = difflib.get_close_matches(first.path[-1].lower(), names, n=1, cutoff=0.6)
    meant = f"; the nearest is {names[near[0]]!r}" if near else ""
    whose = "its columns" if len(first.path) == 1 else f"the fields of {'.'.join(first.path[:-1])}"
    raise FixRequest(
        "TS1062",
        f"{table} has no column {_text(first)!r}",
        why=f"{whose} are {', '.join(first.beside)}{meant}",
        fix="correct the name or leave the column out; to add it, set on_schema_change='append_new_columns'",
    )


def _lacking(table: str, names: Sequence[str], why: str) -> FixRequest:
    return FixRequest(
        "TS1063",
        f"the rows for {table} lack {', '.join(names)}",
        why=why,
        fix="give all of them; or ask for NULL: missing_columns='null' in Python, on_schema_change="
        "'append_new_columns' in dbt",
    )


def _text(found: FieldDifference) -> str:
    return ".".join(found.path)


def with_types(
    columns: Sequence[DataField], current: TableSchema | None, on_change: OnSchemaChange
) -> list[DataField]:
    """Columns and parts without a value get the table's type. Raises FixRequest TS1026 for those that it lacks."""
    have = {} if current is None else {field.name.lower(): field for field in current.fields}
    typed = []
    for field in columns:
        known = have.get(field.name.lower())
        filled = fill_void(field.type, None if known is None else known.type)
        void = find_void(filled, (field.name,))
        if void is not None and (current is None or on_change not in _KEEPS):
            raise FixRequest(
                "TS1026",
                f"column {'.'.join(void)!r} has no type",
                why="all its values are NULL or empty, and the table has no column of that name",
                fix="cast the column, for example to STRING, BIGINT or TIMESTAMP, or leave it out",
            )
        if filled.root != VOID.root:
            typed.append(replace(field, type=filled))
    return typed
