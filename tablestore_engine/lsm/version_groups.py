"""The versions of keys that have several, as aggregate functions take them.

INVARIANT  places ascend by key, of each key the oldest version first; a key may have no place left after `only`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask

NO_ROW = -1


@dataclass(frozen=True)
class VersionGroups:
    """By place: `rows` (numbers of rows), `keys` (0 … count - 1) and `retracts`.

    late   versions that their sequence group calls older than one before them: they count as if they had come first
           (None: none)
    """

    rows: Index
    keys: Index
    count: int
    retracts: Mask
    late: Mask | None = None

    def only(self, places: Mask) -> VersionGroups:
        """Without the other versions; the keys keep their numbers."""
        if bool(places.all()):
            return self
        late = None if self.late is None else self.late[places]
        return VersionGroups(self.rows[places], self.keys[places], self.count, self.retracts[places], late)

    def late_first(self) -> VersionGroups:
        """Late versions before the others, the last of them first: each was put before all that was there."""
        if self.late is None or not self.late.any():
            return self
        places = np.arange(len(self.rows))
        order = np.lexsort((np.where(self.late, -places, places), ~self.late, self.keys))
        return VersionGroups(self.rows[order], self.keys, self.count, self.retracts[order])

    def valid(self, column: pa.ChunkedArray) -> VersionGroups:
        """Only versions whose value is not NULL."""
        if not column.null_count:
            return self
        return self.only(np.asarray(pc.is_valid(column))[self.rows])

    @cached_property
    def starts(self) -> Index:
        """Places where the keys that have any begin."""
        begins = np.ones(len(self.keys), dtype=np.bool_)
        begins[1:] = self.keys[1:] != self.keys[:-1]
        return np.flatnonzero(begins)

    @cached_property
    def sizes(self) -> Index:
        """How many versions each of these keys has."""
        return np.diff(np.append(self.starts, len(self.keys)))

    @property
    def ends(self) -> Index:
        """Places of their newest versions."""
        return self.starts + self.sizes - 1

    @property
    def present(self) -> Index:
        """Numbers of the keys that have any."""
        return self.keys[self.starts]

    def row_of_each(self, places: Index) -> Index:
        """Row numbers by key: of these places, one for each key that has any, else NO_ROW."""
        found = np.full(self.count, NO_ROW, dtype=np.int64)
        found[self.present] = self.rows[places]
        return found

    def values(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return take_rows(pa.table([column], ["v"]), self.rows).column(0)

    def spread(self, values: pa.Array) -> pa.ChunkedArray:
        """One value for each present key as one value for every key: NULL for the others."""
        if len(values) == self.count:
            return pa.chunked_array([values])
        at = np.full(self.count, NO_ROW, dtype=np.int64)
        at[self.present] = np.arange(len(values))
        return pick_values(pa.chunked_array([values]), at)


def pick_values(column: pa.ChunkedArray, rows: Index) -> pa.ChunkedArray:
    """The values of these rows; NULL for NO_ROW."""
    missing = rows == NO_ROW
    if missing.any():
        column = pa.chunked_array([*column.chunks, pa.nulls(1, column.type)], type=column.type)
        rows = np.where(missing, len(column) - 1, rows)
    return take_rows(pa.table([column], ["v"]), rows).column(0)


def as_series(values: pa.ChunkedArray | pa.Array) -> pl.Series:
    made = pl.from_arrow(values)
    assert isinstance(made, pl.Series)
    return made


def list_offsets(keys: npt.NDArray[Any], count: int) -> pa.Array:
    """Offsets of one list for each key, from the key of each element, ascending."""
    sizes = np.bincount(keys, minlength=count)
    return pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
