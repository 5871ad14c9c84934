"""key_order: comparing the comparable columns is comparing the keys, for every key type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tablestore_engine.lsm.key_order import (
    key_at,
    match_sorted,
    order_frame,
    order_of_words,
    order_permutation,
    starts_of_groups,
)

NAN = float("nan")
ORDERED = {
    "bool": pa.array([None, False, True]),
    "int8": pa.array([None, -128, -1, 0, 127], pa.int8()),
    "int64": pa.array([-(2**63), -1, 0, 2**63 - 1], pa.int64()),
    "float32": pa.array([float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), NAN], pa.float32()),
    "float64": pa.array([None, float("-inf"), -1e300, -0.0, 0.0, 5e-324, float("inf"), NAN], pa.float64()),
    "string": pa.array([None, "", "A", "a", "a\0", "ab", "é", "\uffff", "\U0001f600"]),
    "binary": pa.array([b"", b"\0", b"\x7f", b"\x80", b"\xff\x00"]),
    "date": pa.array([None, dt.date(1900, 1, 1), dt.date(1970, 1, 1), dt.date(2026, 1, 1)]),
    "time": pa.array([0, 1, 86_399_999], pa.time32("ms")),
    "timestamp": pa.array([-1, 0, 1], pa.timestamp("us")),
    "instant": pa.array([None, -1, 0, 1], pa.timestamp("ms", "UTC")),
    "decimal": pa.array(
        [None, Decimal("-9.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("9.99")], pa.decimal128(3, 2)
    ),
    "decimal wide": pa.array(
        [
            None,
            Decimal(-(10**37)),
            Decimal(-(2**64)),
            Decimal(-1),
            Decimal(0),
            Decimal(2**63),
            Decimal(2**64),
            Decimal(10**37),
        ],
        pa.decimal128(38, 0),
    ),
}


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("bits", [1, 16, 17, 33, 48, 49, 63])
def test_order_of_words_is_that_of_a_stable_sort(name: str, bits: int) -> None:
    """Integers of each width around each number of 16-bit passes, with repeats and at both ends of their type."""
    limits, span = np.iinfo(name), 1 << (bits - 1)
    rng = np.random.default_rng(bits)
    for low in (limits.min, max(limits.min, -span), max(0, limits.max - span)):
        high = min(limits.max, low + span)
        words = rng.integers(low, high, 5_000, dtype=name, endpoint=True)
        words[:2] = high, low
        words = np.concatenate([words, words[:1_000]])
        assert (order_of_words(words) == np.argsort(words, kind="stable")).all()


@pytest.mark.parametrize("name", ORDERED)
def test_order_of_each_type(name: str) -> None:
    """Shuffled values of each key type come back in the format's order."""
    column = ORDERED[name]
    shuffled = np.random.default_rng(7).permutation(len(column))
    order = order_permutation(order_frame([column.take(pa.array(shuffled))]))
    assert shuffled[order].tolist() == list(range(len(column)))


@pytest.mark.parametrize("name", ORDERED)
def test_order_holds_for_slices_and_chunks(name: str) -> None:
    """A slice of a chunked column is compared by its own values, not by its buffer's first ones."""
    column = pa.chunked_array([ORDERED[name].slice(1, 1), ORDERED[name].slice(2)])
    order = order_permutation(order_frame([column]))
    assert order.tolist() == list(range(len(column)))


@pytest.mark.parametrize("name", ORDERED)
def test_python_keys_have_the_same_order(name: str) -> None:
    """key_at of single rows sorts as the columns do, so key ranges of files may be compared."""
    frame = order_frame([ORDERED[name]])
    keys = [key_at(frame, row) for row in range(frame.height)]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_zeros_and_nans_as_keys() -> None:
    """−0.0 and 0.0 are two keys, all NaN are one (Java's order)."""
    other_nan = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    frame = order_frame([pa.array(np.concatenate([[-0.0, 0.0, NAN], other_nan]))])
    assert starts_of_groups(frame).tolist() == [True, True, True, False, False]


def test_nulls_come_first_in_both_directions() -> None:
    """NULL sorts first ascending and descending: as a sequence value it always loses."""
    frame = order_frame([pa.array([1, None, 2])])
    assert order_permutation(frame).tolist() == [1, 0, 2]
    assert order_permutation(frame, descending=[True]).tolist() == [1, 2, 0]


def test_sort_is_stable() -> None:
    """Equal rows keep their arrival order, with one column and with two."""
    one = pa.array([1, 0, 1, 0, 1])
    assert order_permutation(order_frame([one])).tolist() == [1, 3, 0, 2, 4]
    assert order_permutation(order_frame([one, one])).tolist() == [1, 3, 0, 2, 4]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("needles", "rows"),
    [([1, 3, 5, 9], [0, 1, 2, 3, 4, 9]), ([0, 1, 2, 3, 4, 9], [1, 3]), ([], [1]), ([1], [])],
)
def test_match_sorted(columns: int, needles: list[int], rows: list[int]) -> None:
    """Pairs of equal keys are found whichever side is larger, for one column and for several."""
    left = order_frame([pa.array(needles, pa.int64())] * columns)
    right = order_frame([pa.array(rows, pa.int64())] * columns)
    found = [(needles[i], rows[j]) for i, j in zip(*match_sorted(left, right), strict=True)]
    both = sorted(set(needles) & set(rows))
    assert found == [(key, key) for key in both]


def test_match_sorted_strings() -> None:
    """Text keys are matched by content, in needle order."""
    left, right = order_frame([pa.array(["a", "c", "é"])]), order_frame([pa.array(["b", "c", "é"])])
    needle, row = match_sorted(left, right)
    assert (needle.tolist(), row.tolist()) == ([1, 2], [1, 2])
    assert isinstance(left, pl.DataFrame)
