"""Paimon's murmur3 over the words of a BinaryRow, seed 42: over arrays of rows (format.md#buckets).

INVARIANT  the input is a multiple of 8 bytes, so there is never a tail; the byte length is mixed in last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

U64Array = npt.NDArray[np.uint64]
U32Array = npt.NDArray[np.uint32]
SEED = 42
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_STEP, _ADD = 5, 0xE6546B64
_MASK = 0xFFFFFFFF
_FINAL = ((16, 0x85EBCA6B), (13, 0xC2B2AE35))


def hash_words(words: Sequence[U64Array | int], rows: int) -> npt.NDArray[np.int32]:
    """The hashes of `rows` rows of equal size: words[j] holds the j-th 8 bytes of all rows (an int: of each row)."""
    constant = SEED  # leading words that are equal for all rows are mixed once
    at = 0
    while at < len(words) and isinstance(words[at], int):
        word = int(words[at])
        constant = _mix_number(_mix_number(constant, word & _MASK), word >> 32)
        at += 1
    state: U32Array = np.full(rows, constant, np.uint32)
    for wide in words[at:]:
        both = np.full(rows, wide, "<u8") if isinstance(wide, int) else np.ascontiguousarray(wide, "<u8")
        halves = both.view("<u4")
        _mix_array(state, halves[0::2])
        _mix_array(state, halves[1::2])
    state ^= np.uint32(8 * len(words))
    for shift, factor in _FINAL:
        state ^= state >> np.uint32(shift)
        state *= np.uint32(factor)
    state ^= state >> np.uint32(16)
    return state.view(np.int32)


def _mix_number(state: int, word: int) -> int:
    word = (word * _C1) & _MASK
    word = ((word << 15) | (word >> 17)) & _MASK
    state ^= (word * _C2) & _MASK
    state = ((state << 13) | (state >> 19)) & _MASK
    return (state * _STEP + _ADD) & _MASK


def _mix_array(state: U32Array, words: U32Array) -> None:
    """One murmur step in place; uint32 wraps around as Java's int does."""
    word = words * np.uint32(_C1)
    word = (word << np.uint32(15)) | (word >> np.uint32(17))
    word *= np.uint32(_C2)
    state ^= word
    np.right_shift(state, np.uint32(19), out=word)
    state <<= np.uint32(13)
    state |= word
    state *= np.uint32(_STEP)
    state += np.uint32(_ADD)
