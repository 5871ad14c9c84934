"""Changes between snapshots as rows and as counts.

Steps      counts: the first and last row kind of each key decide; a key that came and went counts as nothing
Memory     keys of PASS_ROWS changed rows at once: more are read again, and counted in turns by the hash of their key
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.change_source import ROW_KIND, check_change_columns, result_schema
from tablestore_engine.stream.open_stream import ReadMode, StreamRequest, open_stream
from tablestore_engine.stream.startup_mode import StartupMode, StartupRequest

PASS_ROWS = 2_000_000
ReadBatches = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]  # columns → changes in order
_COUNTED = ("inserted", "updated", "deleted")


@dataclass(frozen=True)
class ChangeCounts:
    """Net changes: `updated` keys existed before and after with at least one change."""

    inserted: int
    updated: int
    deleted: int


def read_changes_table(store: TableStore, since: int, until: int | None) -> pa.Table:
    """All rows of read_change_batches. Raises what that raises."""
    batches = read_change_batches(store, since, until)
    context = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(context) if context else result_schema(store.schema).empty_table()


def read_change_batches(
    store: TableStore, since: int, until: int | None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Changes of the snapshots in (since, until] in order, a step at a time, as a reader gets them that ends there.

    Raises FixRequest TS1016, TS1362, NotFound TS1302 (until), TS1333 (since), TS1337 (while they are read).
    """
    last = until if until is not None else store.snapshots.find_latest_id() or since
    if last < since:
        raise FixRequest(
            "TS1016",
            "changes are read forward",
            why=f"from snapshot {since} to {last}",
            fix="swap the two snapshots",
        )
    check_change_columns(store.schema, columns)
    if last == since:
        return iter(())
    store.snapshots.get(last)
    start = StartupRequest(StartupMode.FROM_SNAPSHOT, snapshot_id=since + 1)
    request = StreamRequest(start=start, until=last, columns=columns, read_mode=ReadMode.FILE)
    return open_stream(store.context, request)


def count_net_changes(read: ReadBatches, keys: Sequence[str], any_column: Sequence[str]) -> ChangeCounts:
    """Net counts of changes that `read` gives in order; append-only tables, which have no keys, count rows."""
    if not keys:
        came = went = 0
        for batch in read(any_column):
            kinds = batch.column(ROW_KIND)
            came, went = came + _count(kinds, "+I"), went + _count(kinds, "-D")
        return ChangeCounts(came, 0, went)
    turns = count_turns(read(keys))
    found = [_count_turn(read, keys, (number, turns)) for number in range(turns)]
    return ChangeCounts(*(sum(getattr(one, name) for one in found) for name in _COUNTED))


def _count_turn(read: ReadBatches, keys: Sequence[str], turn: tuple[int, int]) -> ChangeCounts:
    """Of the keys whose hash falls to this turn (number, of how many)."""
    number, turns = turn
    ends = NetKinds()
    for batch in read(keys):
        rows = pa.Table.from_batches([batch])
        frame = order_columns(rows, keys)  # groups as keys do: -0.0 is another than 0.0
        mine = in_turn(frame, number, turns)
        ends.add(frame.filter(mine), rows.column(ROW_KIND).filter(mine.to_arrow()))
    return ends.count()


def count_turns(changes: Iterable[pa.RecordBatch]) -> int:
    """In how many turns keys of so many changes are looked at, so that memory holds those of one."""
    rows: int = sum(batch.num_rows for batch in changes)
    return max(1, -(-rows // PASS_ROWS))


def in_turn(keys: pl.DataFrame, number: int, turns: int) -> pl.Series:
    """For each row whether its key belongs to this turn."""
    return keys.hash_rows() % turns == number


def _count(kinds: pa.Array, kind: str) -> int:
    return int(pc.sum(pc.equal(kinds, kind)).as_py() or 0)


class NetKinds:
    """The first and the last kind of each key, of changes that come in order. Holds keys and two flags, no rows."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._settled = 0

    def add(self, keys: pl.DataFrame, kinds: pa.ChunkedArray) -> None:
        """The next changes; now and then what came is settled, so that at most twice the keys are held."""
        first = pl.Series("#came", np.asarray(pc.equal(kinds, "+I")))
        last = pl.Series("#stays", np.asarray(pc.is_in(kinds, pa.array(["+I", "+U"]))))
        self._parts.append(keys.with_columns(first, last))
        if sum(part.height for part in self._parts[1:]) > self._settled:
            self._settle()

    def count(self) -> ChangeCounts:
        """Keys that came, that changed, that went."""
        if not self._parts:
            return ChangeCounts(0, 0, 0)
        self._settle()
        came, stays = pl.col("#came"), pl.col("#stays")
        counted = (
            self._parts[0]
            .select(
                (came & stays).sum().alias("inserted"),
                (~came & stays).sum().alias("updated"),
                (~came & ~stays).sum().alias("deleted"),
            )
            .row(0)
        )
        return ChangeCounts(*(int(value) for value in counted))

    def _settle(self) -> None:
        rows = pl.concat(self._parts)
        keys = [name for name in rows.columns if not name.startswith("#")]
        ends = rows.group_by(keys, maintain_order=True).agg(pl.col("#came").first(), pl.col("#stays").last())
        self._parts, self._settled = [ends], ends.height
