"""ALTER TABLE on a field inside a column: each change gives the next schema, nothing is written (format.md#evolution).

INVARIANT  a field keeps its id under every change but add, which takes a new one: readers match fields by id.
INVARIANT  names match without case, as in SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tablestore_engine.errors import NotFound
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import TableSchema, assign_ids
from tablestore_engine.format.schema_change import check_no_key, next_schema, refused, widened
from tablestore_engine.format.type_text import type_to_text

NestedPath = tuple[str, ...]
_Fields = tuple[DataField, ...]


def add_nested(schema: TableSchema, path: NestedPath, added: DataField) -> TableSchema:
    """The next schema with a new nullable field, the last one of its ROW.

    Raises FixRequest TS1125 (NOT NULL, a name that is there, no ROW, a key column), NotFound TS1574.
    """
    if not added.type.nullable:
        raise refused(
            "add", _text(path), "old rows have no value for it, so it must be nullable", "leave NOT NULL out"
        )
    (field,), highest = assign_ids([replace(added, name=path[-1])], highest=schema.highest_field_id)

    def append(fields: _Fields) -> _Fields:
        if any(one.name.lower() == path[-1].lower() for one in fields):
            raise refused("add", _text(path), "there is a field of that name", "choose another name")
        return (*fields, field)

    return _changed(schema, path, "add", append, highest=highest)


def drop_nested(schema: TableSchema, path: NestedPath) -> TableSchema:
    """The next schema without the field; its id stays used. Raises TS1125 for the only field of a ROW, TS1574."""

    def remove(fields: _Fields) -> _Fields:
        gone = _find(fields, path)
        if len(fields) == 1:
            raise refused("drop", _text(path), "it is the only field", "drop the whole column instead")
        return tuple(one for one in fields if one.id != gone.id)

    return _changed(schema, path, "drop", remove)


def rename_nested(schema: TableSchema, path: NestedPath, new_name: str) -> TableSchema:
    """The next schema with the field under its new name. Raises TS1125 for a name that is there, TS1574."""

    def rename(fields: _Fields) -> _Fields:
        old = _find(fields, path)
        if any(one.name.lower() == new_name.lower() and one.id != old.id for one in fields):
            raise refused("rename", _text(path), f"there is a field {new_name!r}", "choose another name")
        return _swapped(fields, replace(old, name=new_name))

    return _changed(schema, path, "rename", rename)


def retype_nested(schema: TableSchema, path: NestedPath, type_: DataType) -> TableSchema:
    """The next schema with the field's type widened. Raises TS1125 where values would be lost, TS1574."""
    highest = schema.highest_field_id

    def retype(fields: _Fields) -> _Fields:
        nonlocal highest
        old = _find(fields, path)
        merged, highest = widened(old.type, type_.with_nullable(old.type.nullable), _text(path), highest)
        return _swapped(fields, replace(old, type=merged))

    changed = _changed(schema, path, "retype", retype)
    return replace(changed, highest_field_id=highest)


def describe_nested(schema: TableSchema, path: NestedPath, description: str | None) -> TableSchema:
    """The next schema with another description of the field. Raises TS1574."""

    def describe(fields: _Fields) -> _Fields:
        return _swapped(fields, replace(_find(fields, path), description=description))

    return _changed(schema, path, "describe", describe)


def relax_nested(schema: TableSchema, path: NestedPath) -> TableSchema:
    """The next schema with the field nullable. Raises TS1574."""

    def relax(fields: _Fields) -> _Fields:
        old = _find(fields, path)
        return _swapped(fields, replace(old, type=old.type.with_nullable(True)))

    return _changed(schema, path, "relax", relax)


def has_nested(schema: TableSchema, path: NestedPath) -> bool:
    try:
        describe_nested(schema, path, None)
    except NotFound:
        return False
    return True


def _changed(
    schema: TableSchema,
    path: NestedPath,
    change: str,
    edit: Callable[[_Fields], _Fields],
    *,
    highest: int | None = None,
) -> TableSchema:
    """`edit` gets the fields of the innermost ROW."""
    top = _find(schema.fields, path[:1])
    check_no_key(schema, top.name, change)
    new = replace(top, type=_edited(top.type, path, 1, change, edit))
    fields = _swapped(schema.fields, new)
    return next_schema(schema, fields=fields, highest_field_id=highest or schema.highest_field_id)


def _edited(
    type_: DataType, path: NestedPath, at: int, change: str, edit: Callable[[_Fields], _Fields]
) -> DataType:
    part, is_inside = path[at].lower(), at < len(path) - 1
    if type_.root == "ROW":
        if not is_inside:
            return replace(type_, fields=edit(type_.fields))
        child = _find(type_.fields, path[: at + 1])
        new = replace(child, type=_edited(child.type, path, at + 1, change, edit))
        return replace(type_, fields=_swapped(type_.fields, new))
    inner = {("ARRAY", "element"): type_.element, ("MAP", "value"): type_.value}.get((type_.root, part))
    if inner is not None and is_inside:
        return replace(type_, **{part: _edited(inner, path, at + 1, change, edit)})  # type: ignore[arg-type]
    raise refused(
        change,
        _text(path),
        f"{_text(path[:at])!r} is {type_to_text(type_)}, which has no field {path[at]!r}",
        "name a field of a struct: column.field, column.element.field of an array, column.value.field of a map",
    )


def _find(fields: _Fields, path: NestedPath) -> DataField:
    """The field of the last name, in its very spelling if there is one. Raises NotFound TS1574."""
    same = [one for one in fields if one.name.lower() == path[-1].lower()]
    if not same:
        raise NotFound(
            "TS1574",
            f"column {_text(path)!r} does not exist",
            why=f"the names beside it are {', '.join(one.name for one in fields)}",
            fix="correct the name of the column",
        )
    return next((one for one in same if one.name == path[-1]), same[0])


def _swapped(fields: _Fields, field: DataField) -> _Fields:
    return tuple(field if one.id == field.id else one for one in fields)


def _text(path: NestedPath) -> str:
    return ".".join(path)
