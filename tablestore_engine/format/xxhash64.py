"""xxHash64 with seed 0 of many byte strings at once: the hash of texts in Paimon's bloom filters.

INVARIANT  the values are those of the reference algorithm: its test vectors are in test_file_index_bytes.
WHY        strings of one length are hashed together, each step as one operation over all of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(one)
    for one in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
)  # fmt: skip
_STRIPE, _LANE, _HALF = 32, 8, 4


def xxhash64(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> U64:
    """One hash for each string, given by its first byte in `data` and its length in bytes."""
    found = np.empty(len(starts), np.uint64)
    for length in np.unique(lengths).tolist():
        mine = np.flatnonzero(lengths == length)
        found[mine] = _of_length(data[starts[mine][:, None] + np.arange(length)], length)
    return found


def _of_length(rows: npt.NDArray[np.uint8], length: int) -> U64:
    count, at = len(rows), 0
    with np.errstate(over="ignore"):
        if length >= _STRIPE:
            lanes = [
                np.full(count, seed, np.uint64)
                for seed in (_P1 + _P2, _P2, np.uint64(0), ~_P1 + np.uint64(1))
            ]
            while at + _STRIPE <= length:
                lanes = [
                    _round(lane, _words(rows, at + number * _LANE, "<u8"))
                    for number, lane in enumerate(lanes)
                ]
                at += _STRIPE
            value = np.zeros(count, np.uint64)
            for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
                value = value + _rotated(lane, bits)
            for lane in lanes:
                value = (value ^ _round(np.zeros(count, np.uint64), lane)) * _P1 + _P4
        else:
            value = np.full(count, _P5, np.uint64)
        value = _tail(value + np.uint64(length), rows, at, length)
        value = (value ^ (value >> np.uint64(33))) * _P2
        value = (value ^ (value >> np.uint64(29))) * _P3
        return np.asarray(value ^ (value >> np.uint64(32)), np.uint64)


def _tail(value: U64, rows: npt.NDArray[np.uint8], at: int, length: int) -> U64:
    while at + _LANE <= length:
        mixed = value ^ _round(np.zeros(len(rows), np.uint64), _words(rows, at, "<u8"))
        value, at = _rotated(mixed, 27) * _P1 + _P4, at + _LANE
    if at + _HALF <= length:
        mixed = value ^ (_words(rows, at, "<u4") * _P1)
        value, at = _rotated(mixed, 23) * _P2 + _P3, at + _HALF
    for place in range(at, length):
        value = _rotated(value ^ (rows[:, place].astype(np.uint64) * _P5), 11) * _P1
    return value


def _words(rows: npt.NDArray[np.uint8], at: int, kind: str) -> U64:
    width = np.dtype(kind).itemsize
    words = np.ascontiguousarray(rows[:, at : at + width]).view(kind)[:, 0]
    return np.asarray(words, np.uint64)


def _round(lane: U64, word: U64) -> U64:
    return _rotated(lane + word * _P2, 31) * _P1


def _rotated(value: U64, bits: int) -> U64:
    return np.asarray((value << np.uint64(bits)) | (value >> np.uint64(64 - bits)), np.uint64)
