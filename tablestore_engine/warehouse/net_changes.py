"""Net changes between two snapshots as sample rows: what a key looked like before, and what it looks like after.

Steps      rows of one key: the first says whether and how the key existed, the last whether and how it exists
INVARIANT  the kinds are those of warehouse/snapshot_diff.count_net_changes: a key that came and went is no change.
EXAMPLE    +I a, -U a, +U b, -D b → nothing · -U a, +U b, -U b, +U c → updated (a, c)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.warehouse.snapshot_diff import count_turns, in_turn

ROW_KIND = "_row_kind"
_HELPERS = (ROW_KIND, "_snapshot_id")
Row = Mapping[str, object]
ReadChanges = Callable[
    [Sequence[str] | None], Iterable[pa.RecordBatch]
]  # columns (None: all) → changes in order
_Ends = tuple[int | None, int | None]
_KINDS = (
    (False, True),
    (True, True),
    (True, False),
)  # existed before, exists now: inserted, updated, deleted


@dataclass(frozen=True)
class NetChange:
    """One key; both rows None never occurs."""

    before: Row | None
    after: Row | None

    @property
    def kind(self) -> str:
        """inserted, updated or deleted."""
        if self.before is None:
            return "inserted"
        return "deleted" if self.after is None else "updated"

    def swapped(self) -> NetChange:
        """The way back."""
        return NetChange(self.after, self.before)


def pick_samples(read: ReadChanges, keys: Sequence[str], limit: int) -> tuple[NetChange, ...]:
    """Inserted, then updated, then deleted keys, each in the order in which they first changed.

    Changes are read several times: their number, keys and kinds to choose (in turns, where they are many), then the
    rows that were chosen, which alone are held.
    """
    chosen = _choose(read, keys, limit) if keys else _choose_rows(read(None), limit)
    rows = _rows_at(read(None), {at for pair in chosen for at in pair if at is not None})
    return tuple(
        NetChange(*(None if at is None else rows[at] for at in (before, after))) for before, after in chosen
    )


def _choose(read: ReadChanges, keys: Sequence[str], limit: int) -> list[_Ends]:
    """Numbers of the rows before and after, of each sample."""
    turns = count_turns(read(keys))
    picked: dict[tuple[bool, bool], list[tuple[int, int]]] = {kind: [] for kind in _KINDS}
    for number in range(turns):
        ends = _ends_in_turn(read(keys), keys, number, turns)
        if ends is None:
            continue
        for existed, exists in _KINDS:
            found = ends.filter((pl.col("#existed") == existed) & (pl.col("#exists") == exists)).head(limit)
            picked[existed, exists] += found.select("#first", "#last").rows()
    return [
        (first if existed else None, last if exists else None)
        for existed, exists in _KINDS
        for first, last in sorted(picked[existed, exists])[:limit]
    ]


def _ends_in_turn(
    changes: Iterable[pa.RecordBatch], keys: Sequence[str], number: int, turns: int
) -> pl.DataFrame | None:
    """The keys of one turn, in the order in which they first changed; None without any."""
    held: list[pl.DataFrame] = []
    count = settled = 0
    for batch in changes:
        numbered = _numbered(batch, keys, count)
        count += batch.num_rows
        names = [name for name in numbered.columns if not name.startswith("#")]
        held.append(numbered.filter(in_turn(numbered.select(names), number, turns)))
        if sum(one.height for one in held[1:]) > settled:
            held = [_ends_of(pl.concat(held))]
            settled = held[0].height
    return _ends_of(pl.concat(held)) if held else None


def _choose_rows(changes: Iterable[pa.RecordBatch], limit: int) -> list[_Ends]:
    """Of rows without a key: the first that came and the first that went."""
    held: list[pl.DataFrame] = []
    count = 0
    for batch in changes:
        held = [_first_of_each(pl.concat([*held, _numbered(batch, (), count)]), limit)]
        count += batch.num_rows
    if not held:
        return []
    came = held[0].filter(~pl.col("#existed"))["#first"].to_list()
    went = held[0].filter(pl.col("#existed"))["#first"].to_list()
    return [(None, at) for at in came] + [(at, None) for at in went]


def _numbered(batch: pa.RecordBatch, keys: Sequence[str], start: int) -> pl.DataFrame:
    """Comparable keys (they group as keys do: -0.0 is another key than 0.0), and each row as its own first and last."""
    kinds = pl.Series(batch.column(ROW_KIND).to_pylist(), dtype=pl.String)
    numbers = pl.Series(range(start, start + batch.num_rows), dtype=pl.Int64)
    exists = kinds.is_in(["+I", "+U"])
    ends = pl.DataFrame(
        {
            "#first": numbers,
            "#last": numbers,
            "#existed": kinds != "+I" if keys else ~exists,
            "#exists": exists,
        }
    )
    return order_columns(pa.Table.from_batches([batch]), keys).hstack(ends) if keys else ends


def _ends_of(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per key."""
    keys = [name for name in rows.columns if not name.startswith("#")]
    return rows.group_by(keys, maintain_order=True).agg(
        pl.col("#first").first(), pl.col("#last").last(), pl.col("#existed").first(), pl.col("#exists").last()
    )


def _first_of_each(rows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Of rows without a key: the first that came and the first that went."""
    return pl.concat([rows.filter(pl.col("#existed") == went).head(limit) for went in (False, True)])


def _rows_at(changes: Iterable[pa.RecordBatch], wanted: set[int]) -> dict[int, Row]:
    """The rows of these numbers."""
    rows: dict[int, Row] = {}
    start = 0
    for batch in changes if wanted else ():
        here = sorted(at for at in wanted if start <= at < start + batch.num_rows)
        table = pa.Table.from_batches([batch])
        table = table.drop_columns([name for name in _HELPERS if name in table.column_names])
        rows.update(
            zip(here, table.take(pa.array([at - start for at in here], pa.int64())).to_pylist(), strict=True)
        )
        start += batch.num_rows
    return rows
