"""Schemas of the format as Iceberg schemas: types, field ids, and which tables Iceberg can describe.

CHANGE     which columns and type changes a table with Iceberg metadata may have
INVARIANT  ids are those in the data files (format.type_arrow.field_with_ids): Iceberg readers find columns by id.
INVARIANT  only key columns are required: a column that becomes NOT NULL later may have NULL in older files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import NESTED_ID_BASE, NESTED_ID_STEP
from tablestore_engine.format.type_text import type_to_text

STORAGE_OPTION = "metadata.iceberg.storage"
CATALOG_OPTION = "metadata.iceberg.catalog"
_PLAIN = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
}
_TIMESTAMP_DIGITS = 6
_PROMOTIONS = (("int", "long"), ("float", "double"))
_FLOATING = ("FLOAT", "DOUBLE")
_TURN_OFF = f"leave {STORAGE_OPTION} out"


def has_iceberg(schema: TableSchema) -> bool:
    """Whether the table's options ask for Iceberg metadata."""
    return schema.options.get(STORAGE_OPTION, "disabled").strip().lower() not in ("", "disabled")


def check_iceberg(schema: TableSchema, older: Callable[[], Iterable[TableSchema]] = tuple) -> None:
    """Raises FixRequest TS1588 (a catalog alone), TS1143 (types), TS1144 (type changes), TS1145 (no deletion vectors).

    `older`: earlier schemas of the table, whose files its snapshots may have. Nothing is asked without the option.
    """
    if not has_iceberg(schema):
        if schema.options.get(CATALOG_OPTION):
            raise FixRequest(
                "TS1588",
                f"{CATALOG_OPTION} has no effect",
                why=f"the table has no Iceberg metadata: {STORAGE_OPTION} is not set",
                fix=f"set {STORAGE_OPTION} to table-location too, or leave {CATALOG_OPTION} out",
            )
        return
    vectors = schema.options.get("deletion-vectors.enabled", "false").strip().lower() == "true"
    if schema.is_keyed and not vectors:
        raise FixRequest(
            "TS1145",
            "the table cannot have Iceberg metadata",
            why="deletion-vectors.enabled is false: its rows are merged when they are read, and Iceberg merges none",
            fix=f"convert it: `tablestore convert DATABASE.TABLE`; or {_TURN_OFF}",
        )
    for field in schema.fields:
        _check_type(field.name, field.type)
    now = dict(_typed(schema.fields))
    for before in older():
        for number, (name, was) in _typed(before.fields):
            if number in now and not _is_promotion(was, now[number][1]):
                raise _no_promotion(name, was, now[number][1])


def iceberg_schema(schema: TableSchema) -> dict[str, object]:
    keys = schema.fields_of(schema.primary_keys)
    fields = [_field(one, required=one.name in schema.primary_keys) for one in schema.fields]
    out: dict[str, object] = {"type": "struct", "schema-id": schema.id, "fields": fields}
    if keys and not any(one.type.root in _FLOATING for one in keys):  # Iceberg takes no float as identifier
        out["identifier-field-ids"] = [one.id for one in keys]
    return out


def last_column_id(schemas: Iterable[TableSchema]) -> int:
    """The largest id of any column, element, key or value."""
    return max((number for one in schemas for number in _ids(one.fields)), default=0)


def iceberg_type(type_: DataType) -> str:
    """The name of an atomic type, which is partition and column alike. REQUIRES a checked type."""
    root = type_.root
    if root in CHARACTER_ROOTS:
        return "string"
    if root in BINARY_ROOTS:
        return "binary"
    if root == "DECIMAL":
        return f"decimal({type_.precision}, {type_.scale or 0})"
    if root in TIMESTAMP_ROOTS:
        return "timestamptz" if root == "TIMESTAMP_LTZ" else "timestamp"
    return _PLAIN[root]


def _field(field: DataField, *, required: bool) -> dict[str, object]:
    out: dict[str, object] = {
        "id": field.id,
        "name": field.name,
        "required": required,
        "type": _type(field.type, owner=field.id, depth=0),
    }
    if field.description:
        out["doc"] = field.description
    return out


def _type(type_: DataType, *, owner: int, depth: int) -> object:
    root = type_.root
    if root == "ROW":
        return {"type": "struct", "fields": [_field(one, required=False) for one in type_.fields]}
    if root not in ("ARRAY", "MULTISET", "MAP"):
        return iceberg_type(type_)
    key_id, value_id = _nested_ids(owner, depth)
    key, value = _parts(type_)
    inner = _type(value, owner=owner, depth=depth + 1)
    if key is None:
        return {"type": "list", "element-id": value_id, "element": inner, "element-required": False}
    return {
        "type": "map",
        "key-id": key_id,
        "key": _type(key, owner=owner, depth=depth + 1),
        "value-id": value_id,
        "value": inner,
        "value-required": False,
    }


def _nested_ids(owner: int, depth: int) -> tuple[int, int]:
    """Ids of the key, and of the value or element."""
    distance = NESTED_ID_STEP * owner + depth + 1
    return NESTED_ID_BASE - distance, NESTED_ID_BASE + distance


def _parts(type_: DataType) -> tuple[DataType | None, DataType]:
    """Key (None: a list) and value of a collection; a MULTISET is a map of element to count."""
    if type_.root == "MULTISET":
        return type_.element, DataType("INT", nullable=False)
    inner = type_.element if type_.root == "ARRAY" else type_.value
    assert inner is not None  # a stored type has its parts
    return type_.key, inner


def _ids(fields: Sequence[DataField]) -> Iterator[int]:
    for one in fields:
        yield one.id
        yield from _ids_inside(one.type, one.id, 0)


def _ids_inside(type_: DataType, owner: int, depth: int) -> Iterator[int]:
    if type_.root == "ROW":
        yield from _ids(type_.fields)
    elif not type_.is_atomic:
        yield from _nested_ids(owner, depth)
        for part in filter(None, _parts(type_)):
            yield from _ids_inside(part, owner, depth + 1)


# ---- checks ----------------------------------------------------------------------------------------------------


def _check_type(column: str, type_: DataType) -> None:
    for part in type_.walk():
        is_fine_time = part.root in TIMESTAMP_ROOTS and (part.precision or 0) > _TIMESTAMP_DIGITS
        known = part.root in _PLAIN or part.root in ("DECIMAL", "ARRAY", "MULTISET", "MAP", "ROW")
        known = known or part.root in (*CHARACTER_ROOTS, *BINARY_ROOTS, *TIMESTAMP_ROOTS)
        if not known or is_fine_time:
            raise FixRequest(
                "TS1143",
                f"column {column!r} cannot be in Iceberg metadata",
                why=f"Iceberg readers cannot read {type_to_text(part)} as it is in the data files",
                fix=f"{_TURN_OFF}, or store the column as another type (a TIME as INT of milliseconds)",
            )


def _typed(fields: Sequence[DataField], path: str = "") -> Iterator[tuple[int, tuple[str, DataType]]]:
    """Field id → (name, type), of columns and of fields inside structs and collections."""
    for one in fields:
        name = f"{path}{one.name}"
        yield one.id, (name, one.type)
        for inner in one.type.walk():
            if inner.root == "ROW":
                yield from ((child.id, (f"{name}.{child.name}", child.type)) for child in inner.fields)


def _is_promotion(old: DataType, new: DataType) -> bool:
    """Whether Iceberg reads values of `old` under a schema that says `new`. Structs are compared by their fields."""
    if old.root == "ROW" or new.root == "ROW":
        return old.root == new.root
    if not old.is_atomic or not new.is_atomic:
        if old.root != new.root:
            return False
        return all(_is_promotion(one, two) for one, two in zip(_inside(old), _inside(new), strict=True))
    if old.root == new.root == "DECIMAL":
        return old.scale == new.scale and (old.precision or 0) <= (new.precision or 0)
    before, after = iceberg_type(old), iceberg_type(new)
    return before == after or (before, after) in _PROMOTIONS


def _inside(type_: DataType) -> list[DataType]:
    return [part for part in _parts(type_) if part is not None]


def _no_promotion(column: str, old: DataType, new: DataType) -> FixRequest:
    return FixRequest(
        "TS1144",
        f"column {column!r} cannot become {type_to_text(new)} in a table with Iceberg metadata",
        why=f"its older files have {type_to_text(old)}, and Iceberg knows no such promotion: only int to bigint, "
        "float to double, and more digits of a decimal",
        fix=f"{_TURN_OFF}, or add a column of the new type and copy the values",
    )
