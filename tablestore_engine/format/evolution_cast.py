"""Values of an old column type as values of its new type, on Arrow columns (format.md#evolution).

Casts      same type in another Arrow form · integers to any integer (wraps around as Java does) · integers and
           DECIMAL to FLOAT, DOUBLE · integers to DECIMAL · FLOAT ⇄ DOUBLE · DECIMAL, CHAR, VARCHAR, BINARY,
           TIMESTAMP to a wider one of their kind · DATE to TIMESTAMP · any scalar but binaries and zoned time
           to STRING · ARRAY, MAP, ROW child by child, ROW children by id · VARIANT only to VARIANT
INVARIANT  what is not in that list is refused by name; nothing is read wrong.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    STRING_LENGTH,
    DataField,
    DataType,
)
from tablestore_engine.format.scalar import cast_exact, python_values
from tablestore_engine.format.type_arrow import field_to_arrow, type_to_arrow
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.format.value_text import cast_text

_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_INTEGER_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_EXACT_BITS = {"FLOAT": 24, "DOUBLE": 53}  # integers up to 2^n all have a value of their own
_FLOAT_ROOTS = ("FLOAT", "DOUBLE")
_DEFAULT_TIME = "TIMESTAMP"


def check_cast(old: DataType, new: DataType, *, column: str) -> None:
    """Raises Unsupported TS1123, naming the column and both types, unless `cast_column` can do old → new."""
    if not _is_readable(old, new):
        raise Unsupported(
            "TS1123",
            f"column {column!r} cannot be read as {type_to_text(new)}",
            why=f"an old file holds it as {type_to_text(old)}, and this cast is not supported",
            fix="rewrite the table with an engine that casts it, or change the column's type back",
        )


def is_widening(old: DataType, new: DataType) -> bool:
    """Whether every value of `old` is exactly a value of `new`, and Paimon casts it implicitly (NULL aside)."""
    if old.root == new.root:
        return _is_wider_of_kind(old, new)
    if old.root in INTEGER_ROOTS:
        if new.root in INTEGER_ROOTS:
            return INTEGER_ROOTS.index(old.root) < INTEGER_ROOTS.index(new.root)
        if new.root == "DECIMAL":
            return (new.precision or 0) - (new.scale or 0) >= _INTEGER_DIGITS[old.root]
        return _INTEGER_BITS[old.root] <= _EXACT_BITS.get(new.root, 0)
    if new.root == "DOUBLE":
        return old.root == "FLOAT"
    pair = (old.root, new.root)
    return pair in (("CHAR", "VARCHAR"), ("BINARY", "VARBINARY")) and (old.length or 0) <= (new.length or 0)


def cast_column(
    column: pa.ChunkedArray | pa.Array, old: DataType, new: DataType
) -> pa.ChunkedArray | pa.Array:
    """The column with the Arrow type of `new`. Raises Unsupported TS1123, FixData TS1117 when values do not fit."""
    check_cast(old, new, column="?")
    if old.is_atomic:
        return _cast_atomic(column, old, new)
    if isinstance(column, pa.ChunkedArray):
        chunks = [_cast_nested(chunk, old, new) for chunk in column.chunks]
        return pa.chunked_array(chunks, type_to_arrow(new))
    return _cast_nested(column, old, new)


def _is_readable(old: DataType, new: DataType) -> bool:
    if not old.is_atomic or not new.is_atomic:
        return _is_readable_nested(old, new)
    if is_widening(old, new):
        return True
    if old.root in INTEGER_ROOTS and new.root in INTEGER_ROOTS:
        return True
    if new.root in _FLOAT_ROOTS and (old.root in INTEGER_ROOTS or old.root in ("DECIMAL", *_FLOAT_ROOTS)):
        return True
    if (old.root, new.root) == ("DATE", _DEFAULT_TIME):
        return True
    to_string = new.root == "VARCHAR" and new.length == STRING_LENGTH
    return to_string and old.root not in BINARY_ROOTS and old.root != "TIMESTAMP_LTZ"


def _is_readable_nested(old: DataType, new: DataType) -> bool:
    if old.root != new.root or old.root not in ("ARRAY", "MULTISET", "MAP", "ROW", "VARIANT"):
        return False
    if old.root == "ROW":
        by_id = {field.id: field for field in old.fields}
        return all(f.id not in by_id or _is_readable(by_id[f.id].type, f.type) for f in new.fields)
    pairs = zip(old.children(), new.children(), strict=True)
    return all(_is_readable(a, b) for a, b in pairs)


def _is_wider_of_kind(old: DataType, new: DataType) -> bool:
    if old.root == "DECIMAL":
        scale = (new.scale or 0) - (old.scale or 0)
        return scale >= 0 and (new.precision or 0) - (old.precision or 0) >= scale
    if old.root in ("VARCHAR", "VARBINARY"):
        return (old.length or 0) <= (new.length or 0)
    if old.root in ("CHAR", "BINARY"):
        return old.length == new.length  # a longer CHAR is padded by some readers and not by others
    if old.precision is not None:
        return old.precision <= (new.precision or 0)
    return old.is_atomic


def _cast_atomic(
    column: pa.ChunkedArray | pa.Array, old: DataType, new: DataType
) -> pa.ChunkedArray | pa.Array:
    target = type_to_arrow(new)
    if new.root in CHARACTER_ROOTS and old.root not in CHARACTER_ROOTS:
        return _to_text(column, old)
    if old.root in INTEGER_ROOTS and new.root == "DECIMAL":
        column = cast_exact(column, pa.decimal128(38, 0), old)
        return cast_exact(column.cast(pa.decimal128(38, new.scale)), target, new)
    if old.root == "DECIMAL" and new.root in _FLOAT_ROOTS:
        return column.cast(pa.string()).cast(target)  # Arrow's direct cast is off by one unit now and then
    if old.root != new.root and new.root in (*INTEGER_ROOTS, *_FLOAT_ROOTS):
        return column.cast(target, safe=False)  # rounds and wraps as Java's primitive casts do
    return cast_exact(column, target, new)


def _to_text(column: pa.ChunkedArray | pa.Array, old: DataType) -> pa.ChunkedArray | pa.Array:
    """CAST to STRING; each distinct value is turned into text once."""
    if old.root in INTEGER_ROOTS or old.root == "BOOLEAN":
        return column.cast(pa.string())
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = array.dictionary_encode()
    texts = [None if v is None else cast_text(v, old) for v in python_values(encoded.dictionary, old)]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _cast_nested(array: pa.Array, old: DataType, new: DataType) -> pa.Array:
    """One Arrow array of VARIANT, or of ARRAY, MULTISET, MAP or ROW, rebuilt with cast children."""
    if old.root == "VARIANT":
        from tablestore_engine.format.variant import stored_variant  # noqa: PLC0415 - for such columns alone

        return stored_variant(array)
    target, nulls = type_to_arrow(new), array.is_null()
    if old.root == "ROW":
        return _cast_row(array, old, new)
    offsets = pa.array(np.asarray(array.offsets))  # a copy: sliced offsets cannot take a mask
    if old.root == "ARRAY" and old.element and new.element:
        values = cast_column(array.values, old.element, new.element)
        return pa.ListArray.from_arrays(offsets, values, type=target, mask=nulls)
    if old.root == "MULTISET" and old.element and new.element:
        old_parts, new_parts = (old.element, _COUNT), (new.element, _COUNT)
    else:
        old_parts, new_parts = old.children(), new.children()  # type: ignore[assignment]
    keys = cast_column(array.keys, old_parts[0], new_parts[0])
    items = cast_column(array.items, old_parts[1], new_parts[1])
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=nulls)


_COUNT = DataType("INT", nullable=False)


def _cast_row(array: pa.StructArray, old: DataType, new: DataType) -> pa.Array:
    """A ROW with its children matched by id; a child that the file does not know is null."""
    positions = {field.id: i for i, field in enumerate(old.fields)}

    def child(field: DataField) -> pa.Array:
        at = positions.get(field.id)
        if at is None:
            return pa.nulls(len(array), type_to_arrow(field.type))
        return cast_column(array.field(at), old.fields[at].type, field.type)

    fields = [field_to_arrow(field) for field in new.fields]
    return pa.StructArray.from_arrays(
        [child(field) for field in new.fields], fields=fields, mask=array.is_null()
    )
