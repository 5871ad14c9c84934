"""Refuses names and types in a new schema that the format allows and a reader would lose.

Steps      names that differ only in case, collations, structs without fields → encode, decode, compare
INVARIANT  each schema file that this engine makes was checked here (SchemaStore.claim); a copy of one that counts
           already is none. Writes and ALTER check before their first side effect, too.
INVARIANT  what an earlier schema of the table has already is not refused: another engine made it, and it is read as
           far as it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from tablestore_engine.errors import FixRequest, TablestoreError, Unsupported
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema
from tablestore_engine.format.type_text import field_from_json, field_to_json, type_to_text


class _Kind(Enum):
    NAME = auto()
    COLLATION = auto()
    EMPTY_STRUCT = auto()


@dataclass(frozen=True)
class _Fault:
    """`type`: of the field at `path`; `other`: the field that has its name already."""

    kind: _Kind
    path: tuple[str, ...]
    type: DataType
    other: str = ""

    def error(self) -> FixRequest:
        column = ".".join(self.path)
        if self.kind is _Kind.NAME:
            return FixRequest(
                "TS1139",
                f"column {column!r} exists already",
                why=f"{self.other!r} and {self.path[-1]!r} differ only in case, and names in SQL have no case",
                fix="give one of them another name",
            )
        if self.kind is _Kind.COLLATION:
            return FixRequest(
                "TS1140",
                f"column {column!r} cannot keep its collation",
                why=f"its type is {type_to_text(self.type)}; stored text has no collation and is compared by its bytes",
                fix="write `collate utf8_binary` after the column in the query, and the collation where you compare",
            )
        return _not_storable(column, "Parquet has no struct without fields")


def check_schema(schema: TableSchema, older: Callable[[], Iterable[TableSchema]] = tuple) -> None:
    """Raises FixRequest TS1138 (types), TS1139 (names), TS1140 (collations).

    `older`: earlier schemas of the table; asked for only when there is a fault.
    """
    found = list(_faults(schema.fields))
    known = {(one.kind, one.path) for before in older() for one in _faults(before.fields)} if found else set()
    for fault in found:
        if (fault.kind, fault.path) not in known:
            raise fault.error()
    for field in schema.fields:
        try:
            again = field_from_json(field_to_json(field))
        except TablestoreError as wrong:
            raise _not_storable(field.name, wrong.why) from wrong
        if field != again:
            raise _not_storable(
                field.name, f"{type_to_text(field.type)} is read as {type_to_text(again.type)}"
            )
    try:
        decode_schema(encode_schema(schema))
    except TablestoreError as wrong:
        raise _not_storable("", wrong.why) from wrong


def check_collations(fields: Sequence[DataField]) -> None:
    """Raises FixRequest TS1140."""
    for fault in _faults(fields):
        if fault.kind is _Kind.COLLATION:
            raise fault.error()


def check_readable_by_sql(table: str, schema: TableSchema) -> None:
    """Columns of tables of other engines, whose names may differ only in case. Raises Unsupported TS2170."""
    for fault in _faults(schema.fields):
        if fault.kind is _Kind.NAME and len(fault.path) == 1:
            raise Unsupported(
                "TS2170",
                f"SQL cannot read {table}",
                why=f"its columns {fault.other!r} and {fault.path[0]!r} differ only in case, which SQL ignores",
                fix=f"ALTER TABLE {table} RENAME COLUMN one of them, or read it with Python (Table.scan)",
            )


def _faults(fields: Sequence[DataField], path: tuple[str, ...] = ()) -> Iterator[_Fault]:
    seen: dict[str, str] = {}
    for field in fields:
        here = (*path, field.name)
        if field.name.lower() in seen:
            yield _Fault(_Kind.NAME, here, field.type, seen[field.name.lower()])
        seen[field.name.lower()] = field.name
        yield from _type_faults(field.type, here)


def _type_faults(type_: DataType, path: tuple[str, ...]) -> Iterator[_Fault]:
    if type_.collation is not None:
        yield _Fault(_Kind.COLLATION, path, type_)
    if type_.root == "ROW" and not type_.fields:
        yield _Fault(_Kind.EMPTY_STRUCT, path, type_)
    yield from _faults(type_.fields, path)
    for name, part in (("element", type_.element), ("key", type_.key), ("value", type_.value)):
        if part is not None:
            yield from _type_faults(part, (*path, name))


def _not_storable(column: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1138",
        f"column {column!r} cannot be stored" if column else "the columns cannot be stored",
        why=why,
        fix="use types and lengths of the format, for example STRING, VARCHAR(10), DECIMAL(10, 2)",
    )
