"""Hashes of values: equal for equal values however an array is made, and another for every other value."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.certify.table_sums import TableSums, has_emptied
from tablestore_engine.certify.value_hashes import hash_values

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
VALUES: dict[str, tuple[pa.DataType, Sequence[object]]] = {
    "bool": (pa.bool_(), [True, False, None]),
    "int8": (pa.int8(), [-128, -1, 0, 1, 127, None]),
    "int64": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1, None]),
    "float32": (pa.float32(), [0.0, -0.0, float("nan"), float("inf"), 1.5, None]),
    "float64": (pa.float64(), [0.0, -0.0, float("nan"), NAN, -float("inf"), 5e-324, None]),
    "decimal": (pa.decimal128(38, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal(2**64), Decimal(0), None]),
    "text": (pa.string(), ["", "a", "b", "ab", "é", "\0", None]),
    "bytes": (pa.binary(), [b"", b"\0", b"\0\0", None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "time": (pa.time32("ms"), [0, 1, 86_399_999, None]),
    "timestamp": (pa.timestamp("us"), [-62_135_596_800_000_000, 0, 1, 253_402_300_799_999_999, None]),
    "list": (pa.list_(pa.int32()), [[], [None], [0], [0, 0], [1, 2], [2, 1], None]),
    "nested list": (pa.list_(pa.list_(pa.int32())), [[], [[]], [None], [[], []], [[1], [2]], [[1, 2]], None]),
    "map": (
        pa.map_(pa.string(), pa.int32()),
        [[], [("a", 1)], [("a", None)], [("b", 1)], [("a", 1), ("b", 2)], [("a", 2), ("b", 1)], None],
    ),
    "struct": (STRUCT, [{"a": 1, "b": []}, {"a": 1, "b": None}, {"a": None, "b": None}, {"a": None, "b": []}, None]),
    "list of structs": (pa.list_(STRUCT), [[], [None], [{"a": None, "b": None}], None]),
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_other_values_have_other_hashes(kind: str) -> None:
    """No two of them are taken for each other, NULL and empty included."""
    type_, values = VALUES[kind]
    found = hash_values(pa.array(values, type_), type_)
    assert len(set(found.tolist())) == len(values)


@pytest.mark.parametrize("kind", VALUES)
def test_the_array_around_a_value_does_not_count(kind: str) -> None:
    """Alone, in another place, in a slice: the same hash."""
    type_, values = VALUES[kind]
    found = hash_values(pa.array(values, type_), type_)
    twice = pa.array([*values, *reversed(values)], type_)
    part = hash_values(twice.slice(len(values)), type_)
    assert part.tolist() == found.tolist()[::-1]
    for value, expected in zip(values, found, strict=True):
        assert hash_values(pa.array([value], type_), type_).tolist() == [expected]
    assert len(hash_values(pa.array([], type_), type_)) == 0


def test_what_is_below_a_null_does_not_count() -> None:
    """Readers leave different bytes there."""
    valid = pa.py_buffer(bytes([0b101]))
    for type_, one, two in (
        (pa.int64(), [1, 2, 3], [1, 9, 3]),
        (pa.string(), ["a", "b", "c"], ["a", "xyz", "c"]),
        (pa.list_(pa.int32()), [[1], [2], [3]], [[1], [8, 9], [3]]),
        (STRUCT, [{"a": n, "b": []} for n in (1, 2, 3)], [{"a": n, "b": []} for n in (1, 9, 3)]),
        (pa.decimal128(9, 2), [Decimal(n) for n in (1, 2, 3)], [Decimal(n) for n in (1, 9, 3)]),
    ):
        hidden = []
        for values in (one, two):
            array = pa.array(values, type_)
            children = [] if not pa.types.is_nested(type_) else _children(array)
            hidden.append(
                pa.Array.from_buffers(
                    type_, 3, [valid, *array.buffers()[1 : type_.num_buffers]], children=children
                )
            )
        first, second = (hash_values(array, type_) for array in hidden)
        assert first.tolist() == second.tolist()


def test_the_order_of_a_map_does_not_count() -> None:
    """Entries have no order."""
    type_ = pa.map_(pa.string(), pa.int32())
    one, two = ([("a", 1), ("b", None)], [("b", None), ("a", 1)])
    first, second = hash_values(pa.array([one, two], type_), type_)
    assert first == second


def test_sums_are_those_of_any_batches() -> None:
    """In other batches and another order."""
    rows = pa.table({"id": list(range(100)), "text": [f"{one % 7}" for one in range(100)]})
    whole, parts = TableSums(rows.schema), TableSums(rows.schema)
    whole.add(rows.to_batches()[0])
    shuffled = rows.take(np.random.default_rng(1).permutation(100))
    for batch in shuffled.to_batches(max_chunksize=7):
        parts.add(batch)
    assert whole == parts
    assert whole.differences(parts) == ()


def test_empty_lists_for_null_ones_are_told_apart_from_other_faults() -> None:
    """A NULL list of structs that became empty is that fault alone; a NULL struct in a list is not."""
    schema = pa.schema([("id", pa.int64()), ("parts", pa.list_(STRUCT))])
    assert [has_emptied(one.type) for one in schema] == [False, True]

    def sums(*values: object) -> TableSums:
        found = TableSums(schema)
        found.add(
            pa.record_batch(
                [pa.array(range(len(values)), pa.int64()), pa.array(values, schema[1].type)], schema=schema
            )
        )
        return found

    ours = sums(None, [], [{"a": 1, "b": None}])
    emptied, other = sums([], [], [{"a": 1, "b": None}]), sums([], [], [{"a": 1, "b": []}])
    assert ours.differences(emptied) == ours.differences(other) == ("values of parts",)
    assert ours.is_emptied_by(emptied)
    assert not ours.is_emptied_by(other)


def _children(array: pa.Array) -> list[pa.Array]:
    return [array.values] if pa.types.is_list(array.type) else [array.field(at) for at in range(2)]
