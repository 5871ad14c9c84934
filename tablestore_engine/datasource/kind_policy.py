"""Which kinds of rows a stream gives to Spark, whose state knows no rows that are taken back. Pure.

CHANGE     which row kinds format("tablestore") returns
INVARIANT  a row is left out only where that was asked for, or where the row that follows it says the same (-U before
           +U); any other row that the choice has no place for is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_kind import RowKind


class RowKinds(StrEnum):
    ALL = "all"
    UPSERTS = "upserts"
    APPENDS = "appends"


_TAKEN = {
    RowKinds.ALL: frozenset(RowKind),
    RowKinds.UPSERTS: frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER}),
    RowKinds.APPENDS: frozenset({RowKind.INSERT}),
}
_SILENT = {RowKinds.UPSERTS: frozenset({RowKind.UPDATE_BEFORE})}


@dataclass(frozen=True)
class KindPolicy:
    """`skips_deletes`: -D is left out."""

    kinds: RowKinds = RowKinds.ALL
    skips_deletes: bool = False

    @property
    def takes_all(self) -> bool:
        return self.kinds is RowKinds.ALL and not self.skips_deletes

    def keep_rows(self, kinds: pa.Array, *, table: str, snapshot_id: int) -> pa.Array | None:
        """Which rows go on, by their kinds (numbers); None: all. Raises FixRequest TS1443."""
        if self.takes_all:
            return None
        taken = set(_TAKEN[self.kinds])
        left_out = set(_SILENT.get(self.kinds, ()))
        if self.skips_deletes:
            taken.discard(RowKind.DELETE)
            left_out.add(RowKind.DELETE)
        there = {RowKind(number) for number in pc.unique(kinds).to_pylist()}
        refused = sorted(there - taken - left_out)
        if refused:
            raise self._refused(refused[0], table, snapshot_id)
        if there <= taken:
            return None
        return pc.is_in(kinds, pa.array([int(kind) for kind in taken], kinds.type))

    def _refused(self, kind: RowKind, table: str, snapshot_id: int) -> FixRequest:
        skip = ", or leave deletes out (skipDeletes)" if kind is RowKind.DELETE else ""
        return FixRequest(
            "TS1443",
            f"snapshot {snapshot_id} of {table} has a row of kind {kind.short_string}, which the stream does not give",
            why=f"its rowKinds is {self.kinds}: later steps would count the row as a new one, or not at all",
            fix="take all kinds with their column (read.changelog, rowKinds=all), "
            f"or rowKinds=upserts where the newest row of a key is enough{skip}",
        )


ALL_KINDS = KindPolicy()
