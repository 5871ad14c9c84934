"""Laws of cutting keys into ranges: nothing is lost, given twice or out of order, and no key is in two ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import FixData
from tablestore_engine.lsm.key_order import key_at, order_columns
from tablestore_engine.lsm.range_merge import (
    Piece,
    chains_of,
    is_ascending,
    merge_ranges,
    rows_up_to,
    share_rows,
)

Key = tuple[object, ...]
_TEXTS = st.text(alphabet="ab\u00e9\U0001f600", max_size=3)
_TYPES = st.sampled_from(
    [
        ([pa.int64()], st.tuples(st.integers(-20, 20))),
        ([pa.string()], st.tuples(_TEXTS)),
        ([pa.string(), pa.int32()], st.tuples(_TEXTS, st.integers(0, 3))),
        ([pa.float64()], st.tuples(st.sampled_from([-0.0, 0.0, 1.5, float("nan"), float("-inf")]))),
        ([pa.decimal128(38, 0)], st.tuples(st.integers(-(10**30), 10**30).map(Decimal))),
    ]
)


@st.composite
def _runs(draw: st.DrawFn) -> list[list[pa.Table]]:
    """Some sorted runs, each cut into pieces; keys are unique in a run and occur in several."""
    types, keys = draw(_TYPES)
    names = [f"k{i}" for i in range(len(types))]
    runs = []
    for number in range(draw(st.integers(1, 4))):
        found = draw(st.lists(keys, unique_by=repr, max_size=25))
        rows = pa.table([[key[i] for key in found] for i in range(len(types))], names=names).cast(
            pa.schema(list(zip(names, types, strict=True)))
        )
        frame = order_columns(rows, names)
        order = frame.with_row_index("#").sort(frame.columns).get_column("#").to_list()
        rows = rows.take(pa.array(order, pa.int64())).append_column(
            "run", pa.array([number] * rows.num_rows, pa.int64())
        )
        runs.append(_cut(rows, draw(st.lists(st.integers(1, 9), min_size=1, max_size=30))))
    return runs


def _cut(rows: pa.Table, sizes: Sequence[int]) -> list[pa.Table]:
    pieces, at, turn = [], 0, 0
    while at < rows.num_rows:
        pieces.append(rows.slice(at, sizes[turn % len(sizes)]))
        at, turn = at + pieces[-1].num_rows, turn + 1
    return pieces


def _pieces(run: Sequence[pa.Table], number: int) -> Iterator[Piece[int, pa.Table]]:
    at = 0
    for rows in run:
        yield Piece(number, at, _keys(rows), rows)
        at += rows.num_rows


def _keys(rows: pa.Table) -> pl.DataFrame:
    return order_columns(rows, [name for name in rows.column_names if name != "run"])


@given(_runs(), st.integers(1, 40))
def test_ranges_have_every_row_once_in_order(runs: list[list[pa.Table]], step: int) -> None:
    """The pieces of a source, put together, are the source; `first` says where each begins."""
    counts = [sum(rows.num_rows for rows in run) for run in runs]
    chains = [_pieces(run, number) for number, run in enumerate(runs)]
    seen: dict[int, list[object]] = {number: [] for number in range(len(runs))}
    for pieces in merge_ranges(chains, share_rows(counts, step)):
        for piece in pieces:
            assert piece.first == len(seen[piece.source])
            assert piece.keys.height == piece.rows.num_rows > 0
            assert piece.keys.equals(_keys(piece.rows))
            seen[piece.source] += map(repr, piece.rows.to_pylist())
    assert seen == {
        number: [repr(row) for rows in run for row in rows.to_pylist()] for number, run in enumerate(runs)
    }


@given(_runs(), st.integers(1, 40))
def test_ranges_ascend_share_no_key_and_are_bounded(runs: list[list[pa.Table]], step: int) -> None:
    """Each range lies behind the one before; it has at most the shares and one piece more of each run."""
    counts = [sum(rows.num_rows for rows in run) for run in runs]
    shares = share_rows(counts, step)
    chains = [_pieces(run, number) for number, run in enumerate(runs)]
    most = sum(shares) + sum(max((rows.num_rows for rows in run), default=0) for run in runs)
    before: Key | None = None
    ranges = list(merge_ranges(chains, shares))
    for pieces in ranges:
        assert before is None or before < min(key_at(piece.keys, 0) for piece in pieces)
        before = max(piece.last_key for piece in pieces)
        assert sum(piece.keys.height for piece in pieces) <= most
    if sum(counts) <= step:
        assert len(ranges) <= 1


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=20))
def test_chains_are_disjoint_and_as_few_as_can_be(spans: list[tuple[int, int]]) -> None:
    """Each range is in one chain, a chain ascends without overlap, and there are as many as meet in one place."""
    ranges = [((low,), (low + length,)) for low, length in spans]
    chains = chains_of(ranges)
    assert sorted(number for chain in chains for number in chain) == list(range(len(ranges)))
    for chain in chains:
        for one, following in pairwise(chain):
            assert ranges[one][1] < ranges[following][0]
    deepest = max((sum(low <= at <= low + length for low, length in spans) for at in range(60)), default=0)
    assert len(chains) == deepest


@given(_runs())
def test_rows_up_to_and_order_are_those_of_the_keys(runs: list[list[pa.Table]]) -> None:
    """A cut by search is the count by comparing all; a run is ascending, and no longer when two rows are swapped."""
    for run in runs:
        for rows in run:
            keys = _keys(rows)
            every = [key_at(keys, row) for row in range(keys.height)]
            assert is_ascending(keys)
            for bound in every:
                assert rows_up_to(keys, bound) == sum(key <= bound for key in every)
            if keys.height > 1:
                assert not is_ascending(keys[[1, 0, *range(2, keys.height)]])


def test_rows_out_of_order_are_refused() -> None:
    """Blocks of a chain that do not follow each other are damage: merging them would lose the order of the output."""
    one, two = pa.table({"k": [5, 6]}), pa.table({"k": [1, 2]})
    with pytest.raises(FixData, match="TS1697"):
        list(merge_ranges([_pieces([one, two], 0)], [10]))
    with pytest.raises(FixData, match="TS1697"):
        list(merge_ranges([_pieces([pa.table({"k": [2, 1]})], 0)], [10]))
