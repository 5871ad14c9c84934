"""Which columns of a table have file indexes, and of which type.

CHANGE     the types of file indexes and their columns (options file-index.bloom-filter.columns,
           file-index.bitmap.columns, file-index.bloom-filter.<column>.fpp, file-index.bloom-filter.<column>.items)
INVARIANT  indexed types are those whose equality is the same in every reader: not FLOAT and DOUBLE (0.0 equals -0.0 for
           some), not CHAR (padded by some). Columns of another engine's table that do not fit have no index here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.bitmap_index import BITMAP, TEXT
from tablestore_engine.format.bloom_filter import BLOOM_FILTER, DEFAULT_FPP, DEFAULT_ITEMS
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.options import OptionSet, column_of_index_option

_MICROS = 6
# root of the type → code of struct for a value in a bitmap index
_CODES = {
    "BOOLEAN": "?",
    "TINYINT": "b",
    "SMALLINT": "h",
    "INT": "i",
    "BIGINT": "q",
    "DATE": "i",
    "VARCHAR": TEXT,
}


@dataclass(frozen=True)
class IndexedColumn:
    """`items` and `fpp` of a bloom filter: values that it is made for, and its share of false positives then."""

    field: DataField
    kind: str
    items: int = DEFAULT_ITEMS
    fpp: float = DEFAULT_FPP


def value_code(type_: DataType) -> str | None:
    """How values of the type stand in a bitmap index; None for types without file indexes."""
    if type_.root in TIMESTAMP_ROOTS:
        return "q" if (type_.precision or 0) <= _MICROS else None
    return _CODES.get(type_.root)


def indexed_columns(schema: TableSchema) -> tuple[IndexedColumn, ...]:
    """Those that writers of this engine index, in the order of the options."""
    fields = {field.name: field for field in schema.fields}
    found = []
    for kind, names in _named(schema).items():
        for name in names:
            field = fields.get(name)
            if field is not None and _fault(kind, field) is None:
                items = int(_of_column(schema, kind, name, "items") or DEFAULT_ITEMS)
                fpp = float(_of_column(schema, kind, name, "fpp") or DEFAULT_FPP)
                found.append(IndexedColumn(field, kind, items, fpp))
    return tuple(found)


def _of_column(schema: TableSchema, kind: str, column: str, name: str) -> str | None:
    return schema.options.get(f"file-index.{kind}.{column}.{name}")


def check_file_indexes(schema: TableSchema) -> None:
    """Raises FixRequest TS1147 for columns that cannot be indexed, and for options of columns without an index."""
    fields = {field.name: field for field in schema.fields}
    named = _named(schema)
    for kind, names in named.items():
        for name in names:
            field = fields.get(name)
            why = "the table has no such column" if field is None else _fault(kind, field)
            if why is not None:
                raise _refused(f"file-index.{kind}.columns", name, why)
    for key in schema.options:
        of_column = column_of_index_option(key)
        if of_column is not None and of_column[1] not in named.get(of_column[0], ()):
            raise _refused(key, of_column[1], f"file-index.{of_column[0]}.columns does not name it")


def _named(schema: TableSchema) -> dict[str, tuple[str, ...]]:
    options = OptionSet(schema.options)
    return {
        BLOOM_FILTER: options.columns("file-index.bloom-filter.columns"),
        BITMAP: options.columns("file-index.bitmap.columns"),
    }


def _fault(kind: str, field: DataField) -> str | None:
    if value_code(field.type) is None:
        return f"values of type {type_to_text(field.type)} are not indexed"
    if kind == BLOOM_FILTER and field.type.root == "BOOLEAN":
        return "Paimon has no bloom filter of BOOLEAN"
    return None


def _refused(key: str, column: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1147",
        f"option {key!r} cannot name column {column!r}",
        why=why,
        fix="name columns of integers, BOOLEAN (bitmap), VARCHAR, DATE or TIMESTAMP up to microseconds",
    )
