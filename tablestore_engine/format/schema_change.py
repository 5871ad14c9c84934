"""ALTER TABLE on the schema object: each change gives the next schema, nothing is written (format.md#evolution).

INVARIANT  the result has id + 1; ids of columns are never reused; highest_field_id never shrinks.
INVARIANT  keys are neither dropped nor retyped; partition columns are not renamed: they are in directory names.
INVARIANT  old files stay readable: only types that `evolution_cast.is_widening` knows are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.evolution_cast import is_widening
from tablestore_engine.format.schema import (
    TableSchema,
    assign_ids,
    assign_type_ids,
    check_column_names,
    check_keys,
    split_names,
)
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.options import column_of_index_option

FIRST = ""  # the `after` of a column that comes before all others
_COLUMN_LISTS = (
    "bucket-key",
    "sequence.field",
    "rowkind.field",
    "record-level.time-field",
    "changelog-producer.row-deduplicate-ignore-fields",
)  # options whose value names columns
_INDEXED_COLUMNS = (
    "file-index.bloom-filter.columns",
    "file-index.bitmap.columns",
)  # they end with their column
_FIELDS = "fields."
_GROUP = ".sequence-group"


def add_column(
    schema: TableSchema,
    name: str,
    type_: DataType,
    *,
    after: str | None = None,
    description: str | None = None,
) -> TableSchema:
    """The next schema with a new nullable column: last, or behind column `after` (FIRST: before all).

    Raises FixRequest TS1112 (name), TS1125 (NOT NULL: old rows have no value), NotFound TS1110 (`after`).
    """
    if not type_.nullable:
        raise refused(
            "add", name, "old rows have no value for it, so it must be nullable", "leave NOT NULL out"
        )
    check_column_names((*schema.field_names, name), new=name)
    (added,), highest = assign_ids([DataField(0, name, type_, description)], highest=schema.highest_field_id)
    fields = list(schema.fields)
    fields.insert(_position(schema, after), added)
    return next_schema(schema, fields=tuple(fields), highest_field_id=highest)


def drop_column(schema: TableSchema, name: str) -> TableSchema:
    """The next schema without the column; its id stays used. Raises FixRequest TS1125 for keys, ordering columns
    and the only column; NotFound TS1110.
    """
    schema.field(name)
    check_no_key(schema, name, "drop")
    for option, value in schema.options.items():
        if name in _named_columns(option, value):
            raise refused("drop", name, f"option {option}={value} uses it", "change the option first")
    rest = tuple(f for f in schema.fields if f.name != name)
    if not rest:
        raise refused("drop", name, "it is the only column", "drop the table instead")
    return next_schema(schema, fields=rest, options=_options_without(schema, name))


def rename_column(schema: TableSchema, name: str, new_name: str) -> TableSchema:
    """The next schema with the column under its new name, also in keys and options that name it.

    Raises FixRequest TS1112 (new name), TS1125 (partition columns), NotFound TS1110.
    """
    schema.field(name)
    if name in schema.partition_keys:
        raise refused("rename", name, "partition directories carry its name", "create a new table")
    check_column_names((new_name if f.name == name else f.name for f in schema.fields), new=new_name)
    fields = tuple(replace(f, name=new_name) if f.name == name else f for f in schema.fields)
    keys = tuple(new_name if key == name else key for key in schema.primary_keys)
    options = dict(_renamed_option(k, v, name, new_name) for k, v in schema.options.items())
    return next_schema(schema, fields=fields, primary_keys=keys, options=options)


def retype_column(schema: TableSchema, name: str, type_: DataType) -> TableSchema:
    """The next schema with the column's type widened; children of ROWs are matched by name and may be added.

    NOT NULL may be dropped, not added. Raises FixRequest TS1125 for keys and types that would lose values.
    """
    old = schema.field(name)
    check_no_key(schema, name, "retype")
    merged, highest = widened(old.type, type_, name, schema.highest_field_id)
    return next_schema(schema, fields=_swapped(schema, replace(old, type=merged)), highest_field_id=highest)


def relax_column(schema: TableSchema, name: str) -> TableSchema:
    """The next schema with the column nullable. Raises FixRequest TS1125 for primary key columns."""
    old = schema.field(name)
    if name in schema.primary_keys:
        raise refused("relax", name, "primary key columns are NOT NULL", "choose another column")
    return next_schema(schema, fields=_swapped(schema, replace(old, type=old.type.with_nullable(True))))


def describe_column(schema: TableSchema, name: str, description: str | None) -> TableSchema:
    """The next schema with another description of the column (None: none)."""
    return next_schema(schema, fields=_swapped(schema, replace(schema.field(name), description=description)))


def set_options(schema: TableSchema, changes: Mapping[str, str | None]) -> TableSchema:
    """The next schema with options set, or removed where the value is None. Who may change what: table_options."""
    options = dict(schema.options)
    for key, value in changes.items():
        if value is None:
            options.pop(key, None)
        else:
            options[key] = value
    changed = next_schema(schema, options=options)
    check_keys(changed)
    return changed


def set_comment(schema: TableSchema, comment: str | None) -> TableSchema:
    """The next schema with another comment (None: none)."""
    return next_schema(schema, comment=comment)


def next_schema(schema: TableSchema, **changes: object) -> TableSchema:
    """With the next id."""
    return replace(schema, id=schema.id + 1, **changes)  # type: ignore[arg-type]


def _swapped(schema: TableSchema, field: DataField) -> tuple[DataField, ...]:
    return tuple(field if f.id == field.id else f for f in schema.fields)


def _position(schema: TableSchema, after: str | None) -> int:
    if after is None:
        return len(schema.fields)
    return 0 if after == FIRST else schema.fields.index(schema.field(after)) + 1


def check_no_key(schema: TableSchema, name: str, change: str) -> None:
    """Raises FixRequest TS1125."""
    for what, keys in (
        ("primary key", schema.primary_keys),
        ("partition", schema.partition_keys),
        ("bucket key", schema.bucket_keys),
    ):
        if name in keys:
            raise refused(change, name, f"it is a {what} column", "create a new table with the other column")


def widened(old: DataType, new: DataType, path: str, highest: int) -> tuple[DataType, int]:
    """`new` with the ids of `old` where they are the same columns, fresh ids elsewhere, and the highest id."""
    if old.nullable and not new.nullable:
        raise refused("retype", path, "old rows may hold NULL", "keep it nullable")
    if old.is_atomic and new.is_atomic:
        if not is_widening(old, new):
            why = f"{type_to_text(old)} to {type_to_text(new)} may lose values"
            raise refused(
                "retype",
                path,
                why,
                "keep the type, add a new column and fill it, or build the table anew (dbt run --full-refresh)",
            )
        return new, highest
    if old.root != new.root:
        why = f"{type_to_text(old)} is no {type_to_text(new)}"
        raise refused("retype", path, why, "add a new column and fill it")
    if old.root == "ROW":
        fields, highest = _widened_row(old.fields, new.fields, path, highest)
        return replace(new, fields=fields), highest
    if old.key != new.key or old.length != new.length:
        raise refused("retype", path, "the key of a MAP stays as it is", "add a new column and fill it")
    parts: dict[str, DataType] = {}
    for part in ("element", "value"):
        was: DataType | None = getattr(old, part)
        now: DataType | None = getattr(new, part)
        if was is not None and now is not None:
            parts[part], highest = widened(was, now, f"{path}.{part}", highest)
    return replace(new, **parts), highest  # type: ignore[arg-type]


def _widened_row(
    old: Sequence[DataField], new: Sequence[DataField], path: str, highest: int
) -> tuple[tuple[DataField, ...], int]:
    known = {field.name: field for field in old}
    missing = [name for name in known if name not in {field.name for field in new}]
    if missing:
        raise refused("retype", path, f"child {missing[0]!r} would be lost", "keep all children of the ROW")
    out: list[DataField] = []
    for field in new:
        was = known.get(field.name)
        if was is None:
            own = highest + 1
            type_, highest = assign_type_ids(field.type.with_nullable(True), highest=own)
            out.append(replace(field, id=own, type=type_))
        else:
            type_, highest = widened(was.type, field.type, f"{path}.{field.name}", highest)
            out.append(replace(field, id=was.id, type=type_))
    return tuple(out), highest


def _options_without(schema: TableSchema, name: str) -> dict[str, str]:
    """Those of the table without what is said of one column alone."""
    found = {}
    for option, value in schema.options.items():
        of_index = column_of_index_option(option)
        if option.startswith(f"{_FIELDS}{name}.") or (of_index is not None and of_index[1] == name):
            continue
        if option in _INDEXED_COLUMNS and name in split_names(value):
            value = ",".join(part for part in split_names(value) if part != name)
            if not value:
                continue
        found[option] = value
    return found


def _named_columns(option: str, value: str) -> tuple[str, ...]:
    """Columns that an option needs to exist; `fields.<c>.*` without a group only decorates its column."""
    if option in _COLUMN_LISTS:
        return split_names(value)
    if option.startswith(_FIELDS) and option.endswith(_GROUP):
        return split_names(option[len(_FIELDS) : -len(_GROUP)]) + split_names(value)
    return ()


def _renamed_option(option: str, value: str, name: str, new_name: str) -> tuple[str, str]:
    """The option with the column's new name in its key and value, where these name columns."""

    def swap(text: str) -> str:
        return ",".join(new_name if part == name else part for part in split_names(text))

    if option in (*_COLUMN_LISTS, *_INDEXED_COLUMNS):
        return option, swap(value) if name in split_names(value) else value
    if option.startswith(_FIELDS) and option.endswith(_GROUP):
        return f"{_FIELDS}{swap(option[len(_FIELDS) : -len(_GROUP)])}{_GROUP}", swap(value)
    of_index = column_of_index_option(option)
    if of_index is not None and of_index[1] == name:
        return option.replace(f".{name}.", f".{new_name}."), value
    if option.startswith(f"{_FIELDS}{name}."):
        return f"{_FIELDS}{new_name}.{option[len(_FIELDS) + len(name) + 1 :]}", value
    return option, value


def refused(change: str, name: str, why: str, fix: str) -> FixRequest:
    """The error TS1125 of a change that a column does not allow."""
    return FixRequest("TS1125", f"column {name!r}: {change} is not possible", why=why, fix=fix)
