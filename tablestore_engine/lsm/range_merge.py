"""Merges sorted sources one key range after the other, so that a merge of any size holds one range in memory.

CHANGE     where a large bucket is cut into key ranges
Steps      1 each chain is read on until it holds its share  2 the range ends with the smallest of the last keys that
           are held, so every row up to there is at hand  3 those rows are given out, what is behind stays
Example    shares of 2, chains 1 3 5 7 and 2 4 9: held 1 3 | 2 4 → to 3: 1 3, 2 · held 5 7 | 4 9 → to 7: 5 7, 4 · 9
INVARIANT  every row is given once, a chain's rows in their order; ranges ascend and no key is in two of them.
INVARIANT  a range has at most the shares and, of each chain, one piece as it was read.
WHY        no statistics: the keys that are read anyway say where to cut, so texts whose bounds are shortened, columns
           without bounds and keys of several columns are no other case than integers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Generic, Protocol, Self, TypeVar

import polars as pl

from tablestore_engine.errors import FixData
from tablestore_engine.lsm.key_order import fixed_words, key_at

Key = tuple[Any, ...]


class Rows(Protocol):
    """What can be cut: an Arrow table, a batch."""

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """`length` rows from `offset` on."""


S = TypeVar("S")
R = TypeVar("R", bound=Rows)


@dataclass(frozen=True)
class Piece(Generic[S, R]):
    """`keys` and `rows` of `source` from its position `first` on; at least one row."""

    source: S
    first: int
    keys: pl.DataFrame
    rows: R

    @property
    def last_key(self) -> Key:
        return key_at(self.keys, -1)

    def part(self, start: int, stop: int) -> Piece[S, R]:
        """Rows start … stop - 1 of it."""
        length = stop - start
        return replace(
            self,
            first=self.first + start,
            keys=self.keys.slice(start, length),
            rows=self.rows.slice(start, length),
        )


def chains_of(ranges: Sequence[tuple[Key, Key]]) -> list[list[int]]:
    """Numbers of the ranges (smallest, largest key) in chains: each ascending and without overlap."""
    chains: list[list[int]] = []
    ends: list[tuple[Key, int]] = []  # the largest key of each chain
    for number in sorted(range(len(ranges)), key=lambda one: ranges[one][0]):
        low, high = ranges[number]
        if ends and ends[0][0] < low:
            _, at = heappop(ends)
            chains[at].append(number)
        else:
            at = len(chains)
            chains.append([number])
        heappush(ends, (high, at))
    return chains


def share_rows(counts: Sequence[int], step: int) -> list[int]:
    """Rows held of each chain of so many rows; more than all of them when all chains together are one step."""
    total = max(sum(counts), 1)
    return [count * step // total + 1 for count in counts]


def merge_ranges(
    chains: Sequence[Iterator[Piece[S, R]]], shares: Sequence[int]
) -> Iterator[list[Piece[S, R]]]:
    """The pieces of one key range after the other, chain by chain. Raises FixData TS1697 for rows out of order."""
    cursors = [_RangeCursor(pieces, share) for pieces, share in zip(chains, shares, strict=True)]
    while True:
        for cursor in cursors:
            cursor.fill()
        bound = min((cursor.last_key for cursor in cursors if not cursor.has_ended), default=None)
        taken = [piece for cursor in cursors for piece in cursor.take(bound)]
        if not taken:
            return
        yield taken


class _RangeCursor(Generic[S, R]):
    """One chain: what was read of it and not given out yet."""

    def __init__(self, pieces: Iterator[Piece[S, R]], share: int) -> None:
        self._pieces = pieces
        self._share = share
        self._held: deque[Piece[S, R]] = deque()
        self._rows = 0
        self._last: Key | None = None
        self.has_ended = False

    @property
    def last_key(self) -> Key:
        return self._held[-1].last_key

    def fill(self) -> None:
        while not self.has_ended and self._rows < self._share:
            piece = next(self._pieces, None)
            if piece is None:
                self.has_ended = True
                return
            _check_order(piece, self._last)
            self._last = piece.last_key
            self._held.append(piece)
            self._rows += piece.keys.height

    def take(self, bound: Key | None) -> Iterator[Piece[S, R]]:
        """Everything up to and with `bound`; None: everything."""
        while self._held:
            piece = self._held.popleft()
            count = piece.keys.height if bound is None else rows_up_to(piece.keys, bound)
            if count:
                self._rows -= count
                yield piece if count == piece.keys.height else piece.part(0, count)
            if count < piece.keys.height:
                self._held.appendleft(piece.part(count, piece.keys.height))
                return


def rows_up_to(keys: pl.DataFrame, bound: Key) -> int:
    """How many of the sorted keys are not behind `bound`."""
    return bisect_right(range(keys.height), bound, key=lambda row: key_at(keys, row))


def _check_order(piece: Piece[S, R], before: Key | None) -> None:
    if is_ascending(piece.keys) and (before is None or before < key_at(piece.keys, 0)):
        return
    raise FixData(
        "TS1697",
        "the rows of a sorted run are not in key order",
        why=f"found between rows {piece.first} and {piece.first + piece.keys.height} of {piece.source}",
        fix="run tablestore verify --deep, which names the file; roll back to a snapshot without it",
    )


def is_ascending(keys: pl.DataFrame) -> bool:
    """Whether no key is smaller than the one before; equal ones may follow each other."""
    words = fixed_words(keys)
    if words is not None:
        return bool((words[1:] >= words[:-1]).all())
    ok = pl.repeat(True, max(keys.height - 1, 0), dtype=pl.Boolean, eager=True)  # all columns equal
    for column in reversed(keys.get_columns()):  # by the first column, then by the rest
        before, after = column.slice(0, keys.height - 1), column.slice(1)
        smaller = (before < after).fill_null(False) | (before.is_null() & after.is_not_null())
        ok = smaller | (before.eq_missing(after) & ok)
    return bool(ok.all())
