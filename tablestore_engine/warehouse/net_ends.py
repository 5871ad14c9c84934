"""Which rows two states of a table differ in, out of the changes between them: numbers of the rows before and after.

Steps      key columns → the first and the last change of each key → rows of keys that were there before and after are
           read and compared · without a key: equal rows that came and went cancel out
INVARIANT  equal as in store.rows.row_equality: NULL equals NULL, NaN equals NaN, -0.0 differs from 0.0. A key that came
           and went, or whose row is the same before and after, is no change.
Memory     rows of PASS_ROWS changes at once: more are read again, in turns by the hash of their key or row
EXAMPLE    +I a, -U a, +U b, -D b → nothing · -U a, +U b, -U b, +U a → nothing · -U a, +U b, -U b, +U c → updated (a, c)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask, order_columns
from tablestore_engine.store.rows.row_equality import comparable_rows, rows_identical
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID

PASS_ROWS, _COMPARED_ROWS = 1_000_000, 100_000
ReadChanges = Callable[
    [Sequence[str] | None], Iterable[pa.RecordBatch]
]  # columns (None: all) → changes in order


@dataclass(frozen=True)
class NetEnds:
    """`read` gives the same changes each time; `columns`: some column of the table; `keys`: () without a key."""

    read: ReadChanges
    columns: Sequence[str]
    keys: Sequence[str]

    def frames(self) -> Iterator[pl.DataFrame]:
        """One line per changed key, or per row without a key, in several parts.

        `#first`, `#last`: numbers of the changes with the row before and after. `#existed`, `#exists`: whether there
        is one; never neither.
        """
        if self.keys:
            yield from self._of_keys()
        else:
            yield from self._of_rows()

    def rows_at(self, wanted: Index) -> pa.Table:
        """The rows of these changes, which are ascending and at least one."""
        found: list[pa.Table] = []
        start = 0
        for batch in self.read(None):
            low, high = np.searchsorted(wanted, (start, start + batch.num_rows))
            if low < high:
                found.append(take_rows(_without_helpers(batch), wanted[low:high] - start))
            start += batch.num_rows
        return pa.concat_tables(found)

    # with a key ---------------------------------------------------------------------------------------------

    def _of_keys(self) -> Iterator[pl.DataFrame]:
        turns, ends = self._first_look()
        for number in range(turns):
            if turns > 1:
                ends = self._ends_in_turn(number, turns)
            if ends is not None:
                ends = ends.filter(pl.col("#existed") | pl.col("#exists"))
                yield ends.filter(pl.Series(~self._unchanged(ends), dtype=pl.Boolean))

    def _first_look(self) -> tuple[int, pl.DataFrame | None]:
        """The number of turns, and the keys if it is one: few changes are read once for both."""
        held, count = _Held(), 0
        for batch in self.read(self.keys):
            if count + batch.num_rows > PASS_ROWS:
                held = _Held()  # turns read them again
            else:
                held.add(self._part(batch, count, 0, 1))
            count += batch.num_rows
        turns = _count_turns(count)
        return turns, held.settled() if turns == 1 else None

    def _ends_in_turn(self, number: int, turns: int) -> pl.DataFrame | None:
        """The keys of one turn, in the order in which they first changed; None without any."""
        held, count = _Held(), 0
        for batch in self.read(self.keys):
            held.add(self._part(batch, count, number, turns))
            count += batch.num_rows
        return held.settled()

    def _part(self, batch: pa.RecordBatch, start: int, number: int, turns: int) -> pl.DataFrame:
        keys = order_columns(pa.Table.from_batches([batch]), self.keys)  # -0.0 is another key than 0.0
        return _in_turn(keys, batch, start, number, turns)

    def _unchanged(self, ends: pl.DataFrame) -> Mask:
        """For each key whether its row is there before and after, and is the same."""
        same = np.zeros(ends.height, np.bool_)
        pairs = pl.col("#existed") & pl.col("#exists") & pl.col("#told")
        at = np.flatnonzero(ends.select(pairs).to_series().to_numpy())
        if not len(at):
            return same
        first, last = (ends.get_column(name).to_numpy()[at] for name in ("#first", "#last"))
        wanted = np.unique(np.concatenate([first, last]))
        rows = self.rows_at(wanted)
        for start in range(0, len(at), _COMPARED_ROWS):
            part = slice(start, start + _COMPARED_ROWS)
            before, after = (take_rows(rows, np.searchsorted(wanted, one[part])) for one in (first, last))
            same[at[part]] = rows_identical(before, after)
        return same

    # without a key ------------------------------------------------------------------------------------------

    def _of_rows(self) -> Iterator[pl.DataFrame]:
        """Rows that came, and rows that went, which cancel out only if there are both."""
        count = came = 0
        for batch in self.read(self.columns[:1]):
            count, came = count + batch.num_rows, came + int(pc.sum(_exists(batch)).as_py() or 0)
        if came in (0, count):
            start = 0
            for batch in self.read(self.columns[:1]):
                yield _ends(batch, start).with_columns(~pl.col("#exists").alias("#existed"))
                start += batch.num_rows
            return
        turns = _count_turns(count)
        for number in range(turns):
            yield self._left_in_turn(number, turns)

    def _left_in_turn(self, number: int, turns: int) -> pl.DataFrame:
        """Of each group of equal rows as many as came more often than they went, or the reverse."""
        held: list[pl.DataFrame] = []
        start = 0
        for batch in self.read(None):
            rows = comparable_rows(_without_helpers(batch))
            held.append(_in_turn(rows, batch, start, number, turns))
            start += batch.num_rows
        found = pl.concat(held)
        names = [name for name in found.columns if not name.startswith("#")]
        exists = pl.col("#exists")
        more = exists.cast(pl.Int64).sum().over(names) - (~exists).cast(pl.Int64).sum().over(names)
        nth = pl.int_range(pl.len()).over([*names, "#exists"])
        left = found.filter(nth < pl.when(exists).then(more).otherwise(-more))
        return left.select("#first", "#last", (~exists).alias("#existed"), "#exists")


@dataclass
class _Held:
    """Ends of changes in their order, one line per key as soon as there are twice as many."""

    parts: list[pl.DataFrame] = field(default_factory=list)
    lines: int = 0
    more: int = 0  # lines that came after the first part

    def add(self, part: pl.DataFrame) -> None:
        self.parts.append(part)
        self.more += part.height
        if self.more > self.lines:
            self.parts = [_settled(pl.concat(self.parts))]
            self.lines, self.more = self.parts[0].height, 0

    def settled(self) -> pl.DataFrame | None:
        """One line per key; None without any change."""
        return _settled(pl.concat(self.parts)) if self.parts else None


def _ends(batch: pa.RecordBatch, start: int) -> pl.DataFrame:
    """Each change as the first and the last one of its key; `#told`: it has the row that was there before."""
    return _as_ends(pl.Series(batch.column(ROW_KIND)), np.arange(start, start + batch.num_rows))


def _as_ends(kinds: pl.Series, numbers: Index) -> pl.DataFrame:
    """The same of changes with these numbers."""
    return pl.DataFrame(
        {
            "#first": numbers,
            "#last": numbers,
            "#existed": kinds != "+I",
            "#exists": kinds.is_in(["+I", "+U"]),
            "#told": kinds.is_in(["-U", "-D"]),
        }
    )


def _settled(rows: pl.DataFrame) -> pl.DataFrame:
    """One line per key."""
    keys = [name for name in rows.columns if not name.startswith("#")]
    firsts = (pl.col(name).first() for name in ("#first", "#existed", "#told"))
    lasts = (pl.col(name).last() for name in ("#last", "#exists"))
    return rows.group_by(keys, maintain_order=True).agg(*firsts, *lasts).select(rows.columns)


def _exists(batch: pa.RecordBatch) -> pa.Array:
    return pc.is_in(batch.column(ROW_KIND), pa.array(["+I", "+U"]))


def _without_helpers(batch: pa.RecordBatch) -> pa.Table:
    names = [name for name in batch.schema.names if name not in (ROW_KIND, SNAPSHOT_ID)]
    return pa.Table.from_batches([batch]).select(names)


def _count_turns(count: int) -> int:
    """In how many turns so many changes are looked at, so that memory holds those of one."""
    return max(1, -(-count // PASS_ROWS))


def _in_turn(rows: pl.DataFrame, batch: pa.RecordBatch, start: int, number: int, turns: int) -> pl.DataFrame:
    """Comparable columns and ends of the changes whose key, or row, belongs to this turn; only they are built."""
    if turns == 1:
        return rows.hstack(_ends(batch, start))
    at = np.flatnonzero((rows.hash_rows() % turns == number).to_numpy())
    return rows[at].hstack(_as_ends(pl.Series(batch.column(ROW_KIND))[at], at + start))
