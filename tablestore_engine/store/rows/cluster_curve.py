"""The places of rows on the curve of a clustering order, by which files are cut and rows are sorted.

CHANGE     how rows are numbered along a clustering order
Steps      a sample of each column → ranks of its values → one number for each row: concatenated, interleaved, or the
           place on a Hilbert curve
INVARIANT  a rank never falls when its value grows, and NULL has the lowest, so ranges of numbers are ranges of values.
WHY        ranks of a sample: Java interleaves the bits of values, so that of two columns the one with larger numbers
           alone decides, and texts count by their first eight bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.cluster_order import ClusterOrder

TEXT_BYTES = 32  # of a text or binary value
_BITS, _RANK_BITS_MAX = 63, 16

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class ClusterCurve:
    """`bounds`: of each column ascending sample values; numbers are below 2 ** 63."""

    order: ClusterOrder
    bounds: tuple[npt.NDArray[np.generic], ...]
    bits: int

    @classmethod
    def of_sample(cls, order: ClusterOrder, sample: pa.Table) -> ClusterCurve:
        """Ranks that are about equally frequent in the sample."""
        bits = min(_RANK_BITS_MAX, _BITS // len(order.columns))
        bounds = []
        for name in order.columns:
            values, is_null = _comparable(sample.column(name))
            there = np.sort(values[~is_null])
            most = (1 << bits) - 2  # the lowest rank is of NULL
            places = np.linspace(0, len(there) - 1, num=min(len(there), most)).astype(np.int64)
            bounds.append(np.unique(there[places]) if len(there) else there)
        return cls(order, tuple(bounds), bits)

    def numbers(self, rows: pa.Table) -> Numbers:
        ranks = []
        for name, bounds in zip(self.order.columns, self.bounds, strict=True):
            values, is_null = _comparable(rows.column(name))
            found = np.searchsorted(bounds, values, side="right").astype(np.uint64) + np.uint64(1)
            ranks.append(np.where(is_null, np.uint64(0), found).astype(np.uint64))
        if self.order.strategy == "order":
            return _concatenated(ranks, self.bits)
        return interleaved(
            hilbert_axes(ranks, self.bits) if self.order.strategy == "hilbert" else ranks, self.bits
        )

    def sort(self, rows: pa.Table) -> pa.Table:
        """Rows in the order of their numbers; by `order` in that of their values."""
        if self.order.strategy != "order":
            return rows.take(pa.array(np.argsort(self.numbers(rows), kind="stable")))
        keys: dict[str, pa.ChunkedArray] = {}  # versions of Arrow place NULLs by different arguments
        for at, name in enumerate(self.order.columns):
            keys |= {f"there{at}": rows.column(name).is_valid(), f"value{at}": rows.column(name)}
        return rows.take(pc.sort_indices(pa.table(keys), [(key, "ascending") for key in keys]))


def interleaved(ranks: Sequence[Numbers], bits: int) -> Numbers:
    """The z-order number: the highest bit of each rank, then the next ones."""
    found = np.zeros_like(ranks[0])
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            found = (found << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return found


def hilbert_axes(ranks: Sequence[Numbers], bits: int) -> list[Numbers]:
    """Ranks whose interleaved bits are the place on a Hilbert curve, by J. Skilling's transform (2004)."""
    axes = [rank.copy() for rank in ranks]
    for bit in range(bits - 1, 0, -1):
        at, below = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for number in range(len(axes)):
            is_set = (axes[number] & at) != 0
            moved = np.where(is_set, np.uint64(0), (axes[0] ^ axes[number]) & below)
            axes[0] = np.where(is_set, axes[0] ^ below, axes[0] ^ moved)
            if number:
                axes[number] = axes[number] ^ moved
    for number in range(1, len(axes)):
        axes[number] = axes[number] ^ axes[number - 1]
    turned = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        turned ^= np.where((axes[-1] & np.uint64(1 << bit)) != 0, np.uint64((1 << bit) - 1), np.uint64(0))
    return [axis ^ turned for axis in axes]


def _concatenated(ranks: Sequence[Numbers], bits: int) -> Numbers:
    found = np.zeros_like(ranks[0])
    for rank in ranks:
        found = (found << np.uint64(bits)) | rank
    return found


def _comparable(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]:
    """Values that numpy orders as the type does, and which are NULL; a long text by its first bytes."""
    whole = column.combine_chunks()
    is_null = np.asarray(whole.is_null())
    type_ = whole.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return _first_bytes(whole.cast(pa.binary())), is_null
    if pa.types.is_decimal(type_):
        whole = whole.cast(pa.float64())
    elif pa.types.is_boolean(type_):
        whole = whole.cast(pa.uint8())
    elif pa.types.is_temporal(type_):
        whole = whole.cast(pa.int32() if type_.bit_width == 32 else pa.int64())
    return np.asarray(whole.fill_null(0)), is_null


def _first_bytes(values: pa.BinaryArray) -> npt.NDArray[np.bytes_]:
    if not len(values) or values.buffers()[2] is None:
        return np.zeros(len(values), f"S{TEXT_BYTES}")
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    stored = np.frombuffer(values.buffers()[2], np.uint8)
    places = offsets[:-1, None].astype(np.int64) + np.arange(TEXT_BYTES)
    there = places < offsets[1:, None]
    bytes_ = np.where(there, stored[np.minimum(places, max(len(stored) - 1, 0))] if len(stored) else 0, 0)
    return np.ascontiguousarray(bytes_.astype(np.uint8)).view(f"S{TEXT_BYTES}").ravel()
