"""Sums of whole numbers of up to 128 bits by group, without rounding and without wrapping around.

How        a number is four words of 32 bits, the highest one signed; each word is summed in 64 bits, then carries move
           up. Up to 2**31 numbers of a group fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.lsm.key_order import Index, Mask

Words = npt.NDArray[np.int64]
_LOW = np.int64(0xFFFF_FFFF)


@dataclass(frozen=True)
class Wide:
    """`high` * 2**64 + `low`."""

    low: npt.NDArray[np.uint64]
    high: Words

    @classmethod
    def of(cls, array: pa.Array) -> Wide:
        """Of integers or a decimal128, without NULL."""
        if pa.types.is_decimal(array.type):
            words = np.frombuffer(array.buffers()[1], dtype=np.uint64)[2 * array.offset :][: 2 * len(array)]
            return cls(words[0::2].copy(), words[1::2].view(np.int64).copy())
        values = array.to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(values.view(np.uint64), values >> np.int64(63))

    def within(self, least: int, most: int) -> Mask:
        """Which are from `least` to `most`."""
        return self._at_most(most) & ~self._at_most(least - 1)

    def _at_most(self, bound: int) -> Mask:
        high, low = np.int64(bound >> 64), np.uint64(bound & (2**64 - 1))
        return np.asarray((self.high < high) | ((self.high == high) & (self.low <= low)))

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """REQUIRES that the numbers fit the type."""
        if not pa.types.is_decimal(kind):
            return pa.array(self.low.view(np.int64)).cast(kind)
        words = np.empty(2 * len(self.low), dtype=np.uint64)
        words[0::2], words[1::2] = self.low, self.high.view(np.uint64)
        return pa.Array.from_buffers(kind, len(self.low), [None, pa.py_buffer(words)])


def exact_sums(numbers: Wide, negative: Mask, starts: Index) -> tuple[Wide, Mask]:
    """The sum of each group, and whether it fits 128 bits; numbers of `negative` places are subtracted."""
    short = numbers.low.view(np.int64)
    longest = int(np.diff(np.append(starts, len(short))).max(initial=1))
    bound = 2**62 // longest
    if bool(numbers.within(-bound, bound).all()):  # then 64 bits are enough for every sum
        plain = np.add.reduceat(np.where(negative, -short, short), starts)
        return Wide(plain.view(np.uint64), plain >> np.int64(63)), np.ones(len(plain), dtype=np.bool_)
    sign = np.where(negative, np.int64(-1), np.int64(1))
    words = (
        (numbers.low & np.uint64(_LOW)).astype(np.int64),
        (numbers.low >> np.uint64(32)).astype(np.int64),
        numbers.high & _LOW,
        numbers.high >> np.int64(32),
    )
    sums = [np.add.reduceat(word * sign, starts) for word in words]
    for lower, upper in ((0, 1), (1, 2), (2, 3)):
        sums[upper] += sums[lower] >> np.int64(32)
        sums[lower] &= _LOW
    fits = (sums[3] >= -(2**31)) & (sums[3] < 2**31)
    low = sums[0].view(np.uint64) | (sums[1].view(np.uint64) << np.uint64(32))
    return Wide(low, (sums[3] << np.int64(32)) | sums[2]), fits
