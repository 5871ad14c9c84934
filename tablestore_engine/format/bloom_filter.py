"""Paimon's bloom filter of a column of one data file, in its bytes (index type `bloom-filter`).

Bytes      number of hash functions, 4 bytes big endian · bits, the first one the lowest of its byte
PAIMON     integers, dates and times are hashed by Thomas Wang's function, texts by xxHash64; NULL is in no filter.
INVARIANT  a value that was added is found. Values of FLOAT and DOUBLE are never asked: 0.0 equals -0.0, and has
           another hash.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOOM_FILTER = "bloom-filter"
DEFAULT_ITEMS, DEFAULT_FPP = 1_000_000, 0.1
_COUNT_BYTES = 4
_FUNCTIONS_MAX = 1_000  # a rate of 1e-9 has 30
_WANG = ((24, 3, 8), (14, 2, 4))
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class BloomFilter:
    functions: int
    bits: npt.NDArray[np.uint8]

    def held(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each value whether it may have been added."""
        set_ = np.ones(len(hashes), np.bool_)
        for places in _places(hashes, self.functions, len(self.bits) * 8):
            set_ &= (self.bits[places >> 3] >> (places & 7).astype(np.uint8)) & 1 == 1
        return set_


class BloomFilterBuilder:
    """Of one file; `items` and `fpp` decide its size alone: 600 KB by default."""

    def __init__(self, items: int = DEFAULT_ITEMS, fpp: float = DEFAULT_FPP) -> None:
        bits = int(-items * math.log(fpp) / (math.log(2) * math.log(2)))
        bits += 8 - bits % 8
        self._functions = max(1, math.floor(bits / items * math.log(2) + 0.5))
        self._bits = np.zeros(bits, np.bool_)

    def add(self, hashes: Hashes) -> None:
        for places in _places(hashes, self._functions, len(self._bits)):
            self._bits[places] = True

    def encode(self) -> bytes:
        return (
            self._functions.to_bytes(_COUNT_BYTES, "big")
            + np.packbits(self._bits, bitorder="little").tobytes()
        )


def decode_bloom_filter(data: bytes) -> BloomFilter:
    """Raises ValueError for bytes that are none."""
    functions = int.from_bytes(data[:_COUNT_BYTES], "big")
    if not 0 < functions <= _FUNCTIONS_MAX or len(data) <= _COUNT_BYTES:
        raise ValueError(f"a bloom filter of {functions} functions and {len(data)} bytes")
    return BloomFilter(functions, np.frombuffer(data, np.uint8, offset=_COUNT_BYTES))


def _places(hashes: Hashes, functions: int, bits: int) -> list[npt.NDArray[np.int64]]:
    """For each function the bit of each value, in Java's 32-bit arithmetic."""
    low, high = (
        hashes.astype(np.uint32).astype(np.int32),
        (hashes >> np.uint64(32)).astype(np.uint32).astype(np.int32),
    )
    found = []
    with np.errstate(over="ignore"):
        for number in range(1, functions + 1):
            mixed = low + np.int32(number) * high
            found.append(np.where(mixed < 0, ~mixed, mixed).astype(np.int64) % bits)
    return found


def hash_integers(values: npt.NDArray[np.int64]) -> Hashes:
    """Thomas Wang's hash of 64-bit integers, with Java's signed shifts."""
    with np.errstate(over="ignore"):
        key = ~values + (values << 21)
        for shift, first, second in _WANG:
            key = key ^ (key >> shift)
            key = key + (key << first) + (key << second)
        key = key ^ (key >> 28)
        key = key + (key << 31)
    return np.asarray(key).view(np.uint64)
