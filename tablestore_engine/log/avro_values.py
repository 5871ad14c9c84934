"""Arrow columns as Avro binary, one value per row, by whole columns.

CHANGE     a value in an Avro message
Values     int, long: zigzag, seven bits a byte · float, double: little-endian · boolean: a byte ·
           string, bytes: length and bytes · decimal: shortest two's complement, big-endian ·
           array, map: count and items, then 0; only 0 if empty · record: its fields · nullable: 0, or 2 and the value
Steps      1 numbers become a matrix, a row of bytes per value, and a mask of the bytes that count: what the mask
           keeps is the data 2 items of a list lie side by side already, so its bytes are cut by the list's own
           offsets 3 parts are joined once per row, at the end
INVARIANT  where a value is null, parts are empty, whatever lies under the null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.log.avro_schema import entry_types

Part: TypeAlias = "pa.LargeBinaryArray | bytes"
_BINARY = pa.large_binary()
_EMPTY, _ZERO, _TWO = (pa.scalar(text, _BINARY) for text in (b"", b"\0", b"\2"))
_VARINT_BYTES = 10
_DECIMAL_BYTES = 16
Mask = npt.NDArray[np.bool_]


def column_parts(column: pa.ChunkedArray | pa.Array, kind: DataType) -> list[Part]:
    """Raises FixData TS1765 for a value that its type in the schema cannot hold."""
    arrow = type_to_arrow(kind)
    try:
        column = column if column.type == arrow else column.cast(arrow)
    except pa.ArrowInvalid as error:
        raise _no_value(kind, str(error)) from error
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combine_chunks keeps chunks when text exceeds 2 GiB
        chunks = [join_parts(_parts(chunk, kind), len(chunk)) for chunk in array.chunks]
        return [pa.concat_arrays(chunks)]
    return _parts(array, kind)


def join_parts(parts: Sequence[Part], rows: int) -> pa.LargeBinaryArray:
    if all(isinstance(part, bytes) for part in parts):
        return pa.repeat(pa.scalar(b"".join(parts), _BINARY), rows)
    operands: list[pa.LargeBinaryArray | pa.LargeBinaryScalar] = []
    constant = b""
    for part in parts:
        if isinstance(part, bytes):
            constant += part
            continue
        operands += [pa.scalar(constant, _BINARY), part] if constant else [part]
        constant = b""
    operands += [pa.scalar(constant, _BINARY)] if constant else []
    return pc.binary_join_element_wise(*operands, _EMPTY) if len(operands) > 1 else operands[0]


def _parts(array: pa.Array, kind: DataType, parent: pa.Array | None = None) -> list[Part]:
    """`parent`: the struct that the array is a member of; where it is null, a null means nothing."""
    if not kind.nullable:
        if array.null_count and (
            parent is None or pc.any(pc.and_not(array.is_null(), parent.is_null())).as_py()
        ):
            raise _no_value(kind, "it is NULL")
        return _values(array, kind)
    if not array.null_count:
        return [b"\2", *_values(array, kind)]
    return [pc.if_else(array.is_valid(), _TWO, _ZERO), *_values(array, kind)]


def _no_value(kind: DataType, why: str) -> FixData:
    return FixData(
        "TS1765",
        "a value cannot be published as Avro",
        why=f"expected one of type {type_to_text(kind)}: {why}",
        fix="correct the value; nothing of its snapshot was published",
    )


def _values(array: pa.Array, kind: DataType) -> list[Part]:
    """Without the branch of a union; empty where the array is null."""
    if kind.root in CHARACTER_ROOTS or kind.root in BINARY_ROOTS:
        return _texts(array)
    match kind.root:
        case "ROW":
            members = [_parts(array.field(i), field.type, array) for i, field in enumerate(kind.fields)]
            parts = [part for member in members for part in member]
            return parts if not array.null_count else [_masked(join_parts(parts, len(array)), array)]
        case "ARRAY":
            assert kind.element is not None  # type_to_arrow has refused it
            return _items(array, [(array.values, kind.element)])
        case "MAP" | "MULTISET":
            key, value = entry_types(kind)
            return _items(array, [(array.keys, key), (array.items, value)])
        case _:
            return [_NUMBERS[kind.root](array)]


def _texts(array: pa.Array) -> list[Part]:
    binary = array.cast(_BINARY)
    lengths = _varints(np.asarray(pc.fill_null(pc.binary_length(binary), 0)), _valid(array))
    return [lengths, pc.fill_null(binary, _EMPTY) if binary.null_count else binary]


def _items(array: pa.Array, children: Sequence[tuple[pa.Array, DataType]]) -> list[Part]:
    """Count, items, 0. Only the children that this slice means are encoded."""
    ends = np.asarray(array.offsets, dtype=np.int64)
    first, length = int(ends[0]), int(ends[-1] - ends[0])
    parts = [part for child, kind in children for part in _parts(child.slice(first, length), kind)]
    items = join_parts(parts, length)
    valid = _valid(array)
    counts = np.diff(ends)
    body = _binary(np.asarray(_offsets(items))[ends - first], items.buffers()[2])
    header = _varints(counts, (counts > 0) & valid)
    if not array.null_count:
        return [header, body, b"\0"]
    return [header, _masked(body, array), pc.if_else(array.is_valid(), _ZERO, _EMPTY)]


def _offsets(items: pa.LargeBinaryArray) -> npt.NDArray[np.int64]:
    buffer = items.buffers()[1]
    if buffer is None:
        return np.zeros(len(items) + 1, np.int64)
    return np.frombuffer(buffer, np.int64)[items.offset : items.offset + len(items) + 1]


def _masked(binary: pa.LargeBinaryArray, like: pa.Array) -> pa.LargeBinaryArray:
    return pc.if_else(like.is_valid(), binary, _EMPTY)


def _valid(array: pa.Array) -> Mask:
    return np.asarray(array.is_valid()) if array.null_count else np.ones(len(array), dtype=bool)


def _integers(array: pa.Array) -> pa.LargeBinaryArray:
    """Dates, times and timestamps are their counts."""
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    numbers = np.asarray(pc.fill_null(array, 0) if array.null_count else array)
    return _varints(numbers, _valid(array))


def _varints(numbers: npt.NDArray[np.integer], valid: Mask) -> pa.LargeBinaryArray:
    """Zigzag, then groups of seven bits, the lowest first; all but the last have the high bit."""
    signed = numbers.astype(np.int64)
    rest = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    lengths = np.ones(len(rest), np.int64)
    for count in range(1, _VARINT_BYTES):
        more = rest >= np.uint64(1 << 7 * count)
        if not more.any():
            break
        lengths += more
    lengths[~valid] = 0
    width = int(lengths.max(initial=0))
    matrix = np.empty((len(rest), width), np.uint8)
    for place in range(width):
        matrix[:, place] = ((rest >> np.uint64(7 * place)) & np.uint64(0x7F)) | np.uint64(0x80)
    ending = np.flatnonzero(valid)
    matrix[ending, lengths[ending] - 1] &= 0x7F
    return _kept(matrix, np.arange(width) < lengths[:, None], lengths)


def _fixed(dtype: str) -> Callable[[pa.Array], pa.LargeBinaryArray]:
    def encode(array: pa.Array) -> pa.LargeBinaryArray:
        numbers = np.asarray(pc.fill_null(array, 0) if array.null_count else array).astype(dtype)
        matrix = numbers.view(np.uint8).reshape(len(numbers), numbers.itemsize)
        valid = _valid(array)
        return _kept(matrix, np.broadcast_to(valid[:, None], matrix.shape), valid * matrix.shape[1])

    return encode


def _booleans(array: pa.Array) -> pa.LargeBinaryArray:
    return _fixed("u1")(array.cast(pa.uint8()))


def _decimals(array: pa.Array) -> pa.LargeBinaryArray:
    """Sixteen bytes each, without the leading ones that only repeat the sign."""
    size = len(array)
    raw = np.frombuffer(array.buffers()[1], np.uint8)
    matrix = raw.reshape(-1, _DECIMAL_BYTES)[array.offset : array.offset + size, ::-1]
    negative = matrix[:, 0] >= 0x80
    repeats = matrix == np.where(negative, 0xFF, 0)[:, None].astype(np.uint8)
    leading = np.logical_and.accumulate(repeats, axis=1).sum(axis=1)
    rows = np.arange(size)
    first = matrix[rows, np.minimum(leading, _DECIMAL_BYTES - 1)]
    # the sign bit of the first byte that stays must be the number's
    leading -= ((first >= 0x80) != negative) | (leading == _DECIMAL_BYTES)
    lengths = _DECIMAL_BYTES - leading
    valid = _valid(array)
    sizes = np.where(valid, lengths + 1, 0)
    whole = np.concatenate([(2 * lengths).astype(np.uint8)[:, None], matrix], axis=1)
    mask = np.arange(_DECIMAL_BYTES + 1) > leading[:, None]
    mask[:, 0] = True
    mask[~valid] = False
    return _kept(whole, mask, sizes)


def _kept(matrix: npt.NDArray[np.uint8], mask: Mask, lengths: npt.NDArray[np.int64]) -> pa.LargeBinaryArray:
    """The bytes that the mask keeps, `lengths` of them in each row."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _binary(offsets, pa.py_buffer(np.ascontiguousarray(matrix[mask])))


def _binary(offsets: npt.NDArray[np.int64], data: pa.Buffer | None) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), data]
    return pa.Array.from_buffers(_BINARY, len(offsets) - 1, buffers)


_NUMBERS: dict[str, Callable[[pa.Array], pa.LargeBinaryArray]] = {
    "BOOLEAN": _booleans,
    "FLOAT": _fixed("<f4"),
    "DOUBLE": _fixed("<f8"),
    "DECIMAL": _decimals,
    **dict.fromkeys((*INTEGER_ROOTS, "DATE", "TIME", *TIMESTAMP_ROOTS), _integers),
}
