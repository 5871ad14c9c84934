"""Key columns as the 8-byte words that their BinaryRow would hold, one array per word (format.md#binaryrow, #buckets).

INVARIANT  little-endian words; a null has a zero slot, or its offset where space is reserved (format.md#binaryrow).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.binary_row import INLINE_BYTES, header_bytes, no_row_bytes
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.murmur import U64Array
from tablestore_engine.format.scalar import cast_exact
from tablestore_engine.format.type_arrow import timestamp_unit, type_to_arrow

T = TypeVar("T", bound=np.generic)
Rows = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
# the low `n` bytes of a word
_KEEP = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)
_SIGNED = {"TINYINT": "i1", "SMALLINT": "<i2", "INT": "<i4", "DATE": "<i4", "TIME": "<i4", "BIGINT": "<i8"}
_FLOATS = {"FLOAT": "<u4", "DOUBLE": "<u8"}


@dataclass(frozen=True)
class FixedWords:
    """`slot` uint64[rows]; with `extra`, the slot still lacks the row offset in its high half."""

    slot: U64Array
    nulls: BoolArray | None
    extra: tuple[U64Array, ...] = ()


@dataclass(frozen=True)
class TextWords:
    """`start` and `size` in bytes of `source`, whose last 8 bytes are zero; `padded` = words behind the slots."""

    start: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    padded: U64Array
    source: npt.NDArray[np.uint64]
    nulls: BoolArray | None


KeyColumn = FixedWords | TextWords


def key_column(column: pa.Array | pa.ChunkedArray, type_: DataType) -> KeyColumn:
    """The words of one key column. Raises Unsupported TS1115 for nested types, FixData TS1117 if a value is lost."""
    if not type_.is_atomic:
        raise no_row_bytes(type_)
    column = cast_exact(column, _wanted_arrow(type_), type_)
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # no chunks at all
        array = pa.array([], array.type)
    nulls = np.asarray(array.is_null()) if array.null_count else None
    if type_.root in CHARACTER_ROOTS or type_.root in BINARY_ROOTS:
        return _text_words(array, nulls)
    if type_.root == "DECIMAL":
        return _decimal_words(array, type_, nulls)
    if type_.root in TIMESTAMP_ROOTS:
        return _timestamp_words(array, type_, nulls)
    return FixedWords(_zero_nulls(_plain_slot(array, type_), nulls), nulls)


def row_words(keys: Sequence[KeyColumn], rows: Rows | None) -> list[U64Array | int]:
    """All words of the given rows (None: all rows), whose texts must have equal padded lengths."""
    header = _header_words(keys, rows)
    slots: list[U64Array | int] = []
    variable: list[U64Array] = []
    base = header_bytes(len(keys)) + 8 * len(keys)
    for key in keys:
        offset = np.uint64((base + 8 * len(variable)) << 32)
        if isinstance(key, TextWords):
            slot, extra = _text_group(key, rows, offset)
        else:
            extra = [_pick(word, rows) for word in key.extra]
            slot = _pick(key.slot, rows)
            slot = slot | offset if extra else slot
        slots.append(slot)
        variable.extend(extra)
    return [*header, *slots, *variable]


def _header_words(keys: Sequence[KeyColumn], rows: Rows | None) -> list[U64Array | int]:
    """Null bits, behind the eight bits of the row kind, which is always 0 here."""
    words: list[U64Array | int] = [0] * (header_bytes(len(keys)) // 8)
    for i, key in enumerate(keys):
        if key.nulls is not None:
            word, bit = divmod(8 + i, 64)
            bits: U64Array = _pick(key.nulls, rows).astype(np.uint64) << np.uint64(bit)
            before = words[word]
            words[word] = bits if isinstance(before, int) else before | bits
    return words


def _pick(values: npt.NDArray[T], rows: Rows | None) -> npt.NDArray[T]:
    return values if rows is None else values[rows]


def _zero_nulls(values: U64Array, nulls: BoolArray | None) -> U64Array:
    """The bytes below an Arrow null are undefined: make them zero."""
    return values if nulls is None else np.where(nulls, np.uint64(0), values)


def _wanted_arrow(type_: DataType) -> pa.DataType:
    if type_.root in CHARACTER_ROOTS:
        return pa.large_string()
    return pa.large_binary() if type_.root in BINARY_ROOTS else type_to_arrow(type_)


def _values(array: pa.Array, dtype: str) -> npt.NDArray[np.generic]:
    """The data buffer of a fixed-width array as numpy values, offset applied."""
    item = np.dtype(dtype).itemsize
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * item)


def _plain_slot(array: pa.Array, type_: DataType) -> U64Array:
    root = type_.root
    if root == "BOOLEAN":
        return np.asarray(array.cast(pa.uint8()).fill_null(0)).astype(np.uint64)
    if root in _FLOATS:
        return _values(array, _FLOATS[root]).astype(np.uint64)
    signed = np.dtype(_SIGNED[root])
    return _values(array, f"<u{signed.itemsize}").astype(np.uint64)


def _timestamp_words(array: pa.Array, type_: DataType, nulls: BoolArray | None) -> FixedWords:
    ticks = _values(array, "<i8").astype(np.int64)
    if nulls is not None:
        ticks = np.where(nulls, 0, ticks)
    if type_.is_compact:
        return FixedWords(ticks.view(np.uint64), nulls)
    per_milli, nanos = (1000, 1000) if timestamp_unit(type_.precision or 0) == "us" else (1_000_000, 1)
    millis = ticks // per_milli  # floor, also before 1970
    return FixedWords(
        ((ticks - millis * per_milli) * nanos).view(np.uint64), nulls, (millis.view(np.uint64),)
    )


def _decimal_words(array: pa.Array, type_: DataType, nulls: BoolArray | None) -> FixedWords:
    pairs = _decimal_pairs(array)
    low, high = _zero_nulls(pairs[:, 0], nulls), _zero_nulls(pairs[:, 1], nulls)
    if type_.is_compact:
        return FixedWords(low, nulls)
    size = _minimal_sizes(low, high)
    shift = np.uint64(8) * (np.uint64(16) - size)  # bits to the left, so that the first wanted byte leads
    inner = shift & np.uint64(63)
    carry = np.where(inner == 0, np.uint64(0), low >> ((np.uint64(64) - inner) & np.uint64(63)))
    far = shift >= 64
    first = np.where(far, low << inner, (high << inner) | carry)
    second = np.where(far, np.uint64(0), low << inner)
    if nulls is not None:
        size = np.where(nulls, np.uint64(0), size)
    return FixedWords(size, nulls, (first.byteswap(), second.byteswap()))


def _decimal_pairs(array: pa.Array) -> U64Array:
    """(low, high) halves of each 16-byte two's complement value: uint64[rows, 2]."""
    if not len(array):
        return np.empty((0, 2), np.uint64)
    flat = np.frombuffer(array.buffers()[1], "<u8", 2 * len(array), 16 * array.offset)
    return flat.reshape(-1, 2)


def _minimal_sizes(low: U64Array, high: U64Array) -> U64Array:
    """Bytes of the shortest two's complement: 1 + how many of the bits 7, 15, 23 … are at or below the top bit."""
    sign = (high.view(np.int64) >> 63).view(np.uint64)
    low, high = low ^ sign, high ^ sign
    size = np.ones(len(low), np.uint64)
    for bit in range(7, 64, 8):
        size += (high != 0) | (low >= np.uint64(1 << bit))
        size += high >= np.uint64(1 << bit)
    return size


def _text_words(array: pa.Array, nulls: BoolArray | None) -> TextWords:
    _validity, offset_buffer, data_buffer = array.buffers()
    if not len(array):
        offsets = np.zeros(1, np.int64)
    else:
        offsets = np.frombuffer(offset_buffer, "<i8", len(array) + 1, 8 * array.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    source = np.zeros(last - first + 16, np.uint8)
    if last > first:
        source[: last - first] = np.frombuffer(data_buffer, np.uint8, last - first, first)
    size = np.diff(offsets)
    if nulls is not None:
        size = np.where(nulls, 0, size)
    padded = np.where(size <= INLINE_BYTES, 0, (size + 7) // 8).astype(np.uint64)
    # one 8-byte window at each byte: unaligned reads, at most 8 bytes behind the last text
    windows = np.lib.stride_tricks.as_strided(
        source[:8].view("<u8"), (len(source) - 8,), (1,), writeable=False
    )
    return TextWords(offsets[:-1] - first, size, padded, windows, nulls)


def _text_group(key: TextWords, rows: Rows | None, offset: np.uint64) -> tuple[U64Array, list[U64Array]]:
    """Slot and padded words of texts that all need the same number of words."""
    start, size = _pick(key.start, rows), _pick(key.size, rows)
    count = int(_pick(key.padded, rows)[0]) if len(start) else 0
    if count:
        slot = size.astype(np.uint64) | offset
        return slot, [_window(key, start, size, 8 * j) for j in range(count)]
    mark = (size.astype(np.uint64) | np.uint64(0x80)) << np.uint64(56)
    slot = _window(key, start, size, 0) | mark
    return (slot if key.nulls is None else _zero_nulls(slot, _pick(key.nulls, rows))), []


def _window(key: TextWords, start: npt.NDArray[np.int64], size: npt.NDArray[np.int64], skip: int) -> U64Array:
    """Eight bytes of each text from byte `skip` on, zero behind its end."""
    left = np.clip(size - skip, 0, 8)
    return np.asarray(key.source[start + skip] & _KEEP[left], np.uint64)
