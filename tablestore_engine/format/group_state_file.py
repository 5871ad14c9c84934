"""The files with the state of the groups of a `changed_keys` model.

Bytes      of a part: one Parquet file, zstd, a checksum for each page; the header as JSON in its footer. Of each count
           of values the file has the number of NULLs instead, which is 0 nearly everywhere and takes no room
Parts      a run adds a part with the groups that it has changed. Of each group the last row counts; `n` is GONE in that
           of a group without rows. A part takes in those before it that have at most GROWS times its rows, so there are
           few parts, and a row is written again a few times. With the first part among them all groups are written.
INVARIANT  a state is read under the header that its last part was written with: the version of this form, what its
           columns mean, the query of its rows, and how far each input was read. Another header is no state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

VERSION = 2
GONE = -1
GROWS = 4
_HEADER = b"tablestore.group-state"
_COUNT, _KEY = "m", "g"  # of the names of counts of values, and of the columns of the key


class UnusableState(Exception):
    """`why`: a part of a sentence."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class GroupState:
    """`rows`: of all parts, the first part first. `parts`: of those that are stored, the name and the number of rows;
    what is behind them is new.
    """

    rows: pa.Table
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> list[str]:
        """Names of the columns of the key, in their order; none: there is one group at most."""
        return [name for name in self.rows.column_names if name.startswith(_KEY)]

    def positions(self, keys: pa.Table) -> pa.Array:
        """For each key the number of its row, or NULL. NULL is a group. `keys` has the columns of the key."""
        if not self.key:
            last = self.rows.num_rows - 1
            return pa.array([last if last >= 0 else None] * keys.num_rows, pa.int64())
        asked = _frame(keys.select(self.key).cast(self.rows.select(self.key).schema), "at")
        rows = _frame(self.rows.select(self.key), "found")
        last_of = rows.join(asked, on=self.key, nulls_equal=True).group_by("at").agg(pl.col("found").max())
        found = np.full(keys.num_rows, -1, np.int64)
        found[last_of["at"].to_numpy()] = last_of["found"].to_numpy()
        is_there = found >= 0
        counts = np.asarray(self.rows.column("n").take(pa.array(found[is_there])))
        is_there[is_there] = counts != GONE
        return pa.array(found, mask=~is_there)

    def changed(self, keys: pa.Table, rows: pa.Table) -> GroupState:
        """With `rows` in place of the groups of `keys`; those without a row are gone."""
        if not self.key:
            return GroupState(rows.cast(self.rows.schema))
        index = GroupState(rows).positions(keys)
        gone = keys.select(self.key).filter(pc.is_null(index))
        nothing = {"n": pa.array(np.full(gone.num_rows, GONE), pa.int64())}
        nothing |= {name: gone.column(name) for name in self.key}
        columns = [nothing.get(field.name, pa.nulls(gone.num_rows, field.type)) for field in self.rows.schema]
        left = pa.table(columns, names=self.rows.column_names).cast(self.rows.schema)
        made = pa.concat_tables([self.rows, rows.cast(self.rows.schema), left])
        return replace(self, rows=made)

    def whole(self) -> pa.Table:
        """The state of all groups, each once."""
        return _last(self.rows, self.key, is_first=True)

    def count(self) -> int:
        """How many groups there are: those of the first part, and what the others add and remove."""
        first = self.parts[0][1] if self.parts else 0
        later = _last(self.rows.slice(first), self.key, is_first=False)
        is_gone = np.asarray(later.column("n")) == GONE
        is_known = np.asarray(GroupState(self.rows.slice(0, first)).positions(later).is_valid())
        return first + int(np.count_nonzero(~is_gone & ~is_known)) - int(np.count_nonzero(is_gone & is_known))

    def unwritten(self) -> tuple[tuple[tuple[str, int], ...], pa.Table]:
        """(the parts that stay, the rows of the next part)."""
        stored, count = list(self.parts), self.rows.num_rows - sum(rows for _, rows in self.parts)
        while stored and stored[-1][1] <= GROWS * count:
            count += stored.pop()[1]
        rows = self.rows.slice(self.rows.num_rows - count)
        return tuple(stored), _last(rows, self.key, is_first=not stored)


def _last(rows: pa.Table, key: Sequence[str], *, is_first: bool) -> pa.Table:
    """Of each group the last row. `is_first`: no part is before them, so nothing is kept of groups that are gone."""
    if not key:
        return rows.slice(max(rows.num_rows - 1, 0))
    numbers = _frame(rows.select(key), "at").unique(list(key), keep="last")["at"].sort()
    found = rows.take(numbers.to_arrow())
    return found.filter(pc.not_equal(found.column("n"), GONE)) if is_first else found


def _frame(rows: pa.Table, number: str) -> pl.DataFrame:
    return pl.DataFrame(rows).with_row_index(number)


def group_state_header(text: str, query: str, positions: Mapping[str, str]) -> str:
    """`text`: what the columns mean. `positions`: source → how far it was read."""
    meaning = hashlib.sha256(text.encode()).hexdigest()
    inputs = hashlib.sha256(json.dumps(sorted(positions.items())).encode()).hexdigest()
    return json.dumps({"version": VERSION, "columns": meaning, "query": query, "inputs": inputs})


def encode_group_state(state: pa.Table, header: str) -> bytes:
    """`state`: as spark/merged_state.py has it."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        _counted(state).replace_schema_metadata({_HEADER: header.encode()}),
        sink,
        compression="zstd",
        write_page_checksum=True,
        write_statistics=False,
        store_schema=True,
    )
    found: bytes = sink.getvalue().to_pybytes()
    return found


def decode_group_state(data: bytes, header: str, *, is_last: bool = True) -> pa.Table:
    """`is_last`: of the parts; the others were written when their run had read its inputs. Raises UnusableState."""
    try:
        found = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise UnusableState(f"it is damaged: {error}") from error
    known = json.loads((found.schema.metadata or {}).get(_HEADER, b"{}"))
    wanted = json.loads(header)
    if not is_last:
        del wanted["inputs"]
    other = [name for name in wanted if known.get(name) != wanted[name]]
    if other:
        raise UnusableState(f"it is of another {' and '.join(other)}")
    return _counted(found.replace_schema_metadata(None)).combine_chunks()


def _counted(state: pa.Table) -> pa.Table:
    """Counts of values as numbers of NULLs, and back."""
    for at, name in enumerate(state.column_names):
        if name.startswith(_COUNT):
            less = pc.subtract(state.column("n"), state.column(name))
            state = state.set_column(at, name, less)
    return state
