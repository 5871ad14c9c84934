"""Fields inside of columns: rows against a table, field by field, without looking at a value.

CHANGE     struct fields that the rows or the table lack
INVARIANT  names match without case, as in SQL; a field in the very spelling comes first, and no field is matched twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tablestore_engine.format.data_type import CHARACTER_ROOTS, VOID, DataType

_Path = tuple[str, ...]


@dataclass(frozen=True)
class FieldDifference:
    """A field that one side lacks: `added` is its type in the rows, None for a field that the rows lack.

    `beside`: the table's fields in the same struct.
    """

    path: _Path
    added: DataType | None
    beside: tuple[str, ...] = ()


def match_names(wanted: Sequence[str], given: Sequence[str]) -> tuple[int | None, ...]:
    """For each wanted name the index of its given one, or None."""
    exact: dict[str, int] = {}
    for at, name in enumerate(given):
        exact.setdefault(name, at)
    found = [exact.get(name) for name in wanted]
    free: dict[str, int] = {}
    for at, name in enumerate(given):
        if at not in found:
            free.setdefault(name.lower(), at)
    return tuple(
        free.pop(name.lower(), None) if at is None else at for at, name in zip(found, wanted, strict=True)
    )


def field_differences(have: DataType, given: DataType, path: _Path) -> Iterator[FieldDifference]:
    """Fields of structs that only one side has, wherever structs lie inside. Types that differ are not reported.

    `path`: names from the column on, with element, key and value for the parts of lists and maps.
    """
    if have.root == given.root == "ROW":
        yield from _row_differences(have, given, path)
        return
    parts = _parts(given)
    for name, part in _parts(have).items():
        if name in parts:
            yield from field_differences(part, parts[name], (*path, name))


def _row_differences(have: DataType, given: DataType, path: _Path) -> Iterator[FieldDifference]:
    names = tuple(one.name for one in have.fields)
    places = match_names(names, [one.name for one in given.fields])
    for at, field in enumerate(given.fields):
        if at not in places:
            yield FieldDifference((*path, field.name), field.type, names)
    for field, place in zip(have.fields, places, strict=True):
        if place is None:
            yield FieldDifference((*path, field.name), None, names)
        else:
            yield from field_differences(field.type, given.fields[place].type, (*path, field.name))


def fill_void(given: DataType, have: DataType | None) -> DataType:
    """The given type, where parts without a type (VOID) take that of the table's type, if it has the part.

    A text that the table has is stored without its collation, as Spark's INSERT casts it.
    """
    if have is None:
        return given
    if given.collation is not None and have.root in CHARACTER_ROOTS:
        return replace(given, collation=None)
    if given.root == VOID.root:
        return have
    if have.root == given.root == "ROW":
        places = match_names([one.name for one in have.fields], [one.name for one in given.fields])
        known = {at: field.type for at, field in zip(places, have.fields, strict=True) if at is not None}
        fields = tuple(
            replace(one, type=fill_void(one.type, known.get(at))) for at, one in enumerate(given.fields)
        )
        return replace(given, fields=fields)
    known_parts = _parts(have)
    filled = {name: fill_void(part, known_parts.get(name)) for name, part in _parts(given).items()}
    return replace(given, **filled) if given.root != "MULTISET" else given  # type: ignore[arg-type]


def find_void(type_: DataType, path: _Path) -> _Path | None:
    """Where the first part without a type is; None: each part has one."""
    if type_.root == VOID.root:
        return path
    inside = [*_parts(type_).items(), *((one.name, one.type) for one in type_.fields)]
    found = (find_void(part, (*path, name)) for name, part in inside)
    return next((one for one in found if one is not None), None)


def _parts(type_: DataType) -> Mapping[str, DataType]:
    """Of lists and maps; the elements of a MULTISET are the keys of the map as which it travels."""
    if type_.root == "MULTISET" and type_.element is not None:
        return {"key": type_.element}
    parts = {"element": type_.element, "key": type_.key, "value": type_.value}
    return {name: part for name, part in parts.items() if part is not None}
