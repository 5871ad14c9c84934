"""A hash of each value of an Arrow array: equal values have equal hashes, also if different readers decoded them.

Equal      numbers by value in the type of the column; floats by their bits, so that -0.0 is not 0.0; timestamps to the
           nanosecond; NULL is no value; lists in their order; maps in any order; structs by position.
INVARIANT  an array that another reader decoded is hashed as the type of our column: an integer may be wider and a
           timestamp may have another unit. A value that this type does not have raises pa.ArrowInvalid.
INVARIANT  a value's hash does not depend on the chunk, the slice or what is below a NULL.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_NULL = np.uint64(0x9E6C63D0876A9A47)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hash_values(array: pa.Array, wanted: pa.DataType, *, null_is_empty: bool = False) -> Hashes:
    """One hash a value, of an array whose type is `wanted` or like it.

    `null_is_empty`: a NULL list of structs counts as an empty one (a fault of a reader). Raises pa.ArrowInvalid.
    """
    array = plain(array)
    if is_list(wanted):
        found = _hash_list(array, wanted, null_is_empty=null_is_empty)
    elif pa.types.is_map(wanted):
        found = _hash_map(array, wanted, null_is_empty=null_is_empty)
    elif pa.types.is_struct(wanted):
        found = np.zeros(len(array), np.uint64)
        for at in range(wanted.num_fields):
            part = hash_values(array.field(at), wanted.field(at).type, null_is_empty=null_is_empty)
            found = combine(found, part)
    else:
        found = _hash_atoms(array, wanted)
    if array.null_count and not (null_is_empty and is_emptied(wanted)):
        found = np.where(_is_null(array), _NULL, found)
    return found


def combine(first: Hashes, second: Hashes) -> Hashes:
    """One hash of a pair; the order counts."""
    return _mix(first * _STEP + second)


def add_up(hashes: Hashes) -> int:
    """Sum modulo 2^64: the same in any order."""
    return int(np.add.reduce(hashes, dtype=np.uint64)) if len(hashes) else 0


def is_emptied(type_: pa.DataType) -> bool:
    """A list or map of structs."""
    if is_list(type_):
        return bool(pa.types.is_struct(type_.value_type))
    return bool(pa.types.is_map(type_) and pa.types.is_struct(type_.item_type))


def is_list(type_: pa.DataType) -> bool:
    """Of any size and layout."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def plain(array: pa.Array) -> pa.Array:
    """Without a dictionary, which may be in any array that was read from Parquet."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


# ---- collections -----------------------------------------------------------------------------------------------


def _hash_list(array: pa.Array, wanted: pa.DataType, *, null_is_empty: bool) -> Hashes:
    starts, ends, first, last = _bounds(array)
    values = array.values.slice(first, last - first)
    hashes = hash_values(values, wanted.value_type, null_is_empty=null_is_empty)
    lengths = ends - starts
    places = np.arange(len(hashes), dtype=np.int64) - np.repeat(starts - first, lengths)
    return _summed(combine(places.astype(np.uint64), hashes), starts - first, ends - first)


def _hash_map(array: pa.Array, wanted: pa.DataType, *, null_is_empty: bool) -> Hashes:
    starts, ends, first, last = _bounds(array)
    keys = hash_values(array.keys.slice(first, last - first), wanted.key_type)
    items = array.items.slice(first, last - first)
    values = hash_values(items, wanted.item_type, null_is_empty=null_is_empty)
    return _summed(combine(keys, values), starts - first, ends - first)


def _bounds(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int]:
    """Start and end of each list, ranges without gaps; first and last of all."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(array):
        return offsets[:0], offsets[:0], 0, 0
    return offsets[:-1], offsets[1:], int(offsets[0]), int(offsets[-1])


def _summed(hashes: Hashes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Hashes:
    """Of each range the sum, with its length."""
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return combine((ends - starts).astype(np.uint64), running[ends] - running[starts])


# ---- values without parts --------------------------------------------------------------------------------------


def _hash_atoms(array: pa.Array, wanted: pa.DataType) -> Hashes:
    if pa.types.is_string(wanted) or pa.types.is_large_string(wanted):
        return _hash_bytes(array, pa.large_string())
    if (
        pa.types.is_binary(wanted)
        or pa.types.is_large_binary(wanted)
        or pa.types.is_fixed_size_binary(wanted)
    ):
        return _hash_bytes(array, pa.large_binary())
    if array.type != wanted:
        array = pc.cast(array, wanted, safe=True)
    if pa.types.is_decimal(wanted):
        return _hash_decimals(array)
    if pa.types.is_boolean(wanted):
        array, bits = pc.cast(array, pa.uint8()), 8
    else:
        bits = wanted.bit_width
    numbers = array.view({8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[bits])
    return _mix(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.uint64))


def _hash_bytes(array: pa.Array, wide: pa.DataType) -> Hashes:
    series = pl.Series(values=pc.cast(array, wide))
    return _mix(series.hash(seed=1).to_numpy().astype(np.uint64, copy=False))


def _hash_decimals(array: pa.Array) -> Hashes:
    if not len(array):
        return np.zeros(0, np.uint64)
    words = np.frombuffer(array.buffers()[1], np.uint64).reshape(len(array.buffers()[1]) // 16, -1)
    words = words[array.offset : array.offset + len(array)]
    return combine(words[:, 0], words[:, 1])


def _is_null(array: pa.Array) -> NDArray[np.bool_]:
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _mix(values: Hashes) -> Hashes:
    """The last step of splitmix64: each bit of the result depends on all bits."""
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * _ONE
    values = (values ^ (values >> np.uint64(27))) * _TWO
    return values ^ (values >> np.uint64(31))
