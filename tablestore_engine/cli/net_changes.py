"""Net changes between two snapshots as sample rows: what a key looked like before, and what it looks like after.

Names      NetChange    one key: row before (None: it did not exist) and after (None: it is gone)
           pick_samples changelog rows in order → up to `limit` samples of each kind
Steps      rows of one key: the first says whether and how the key existed, the last whether and how it exists
INVARIANT  the kinds are those of warehouse/snapshot_diff.count_changes: a key that came and went is no change.
EXAMPLE    +I a, -U a, +U b, -D b → nothing · -U a, +U b, -U b, +U c → updated (a, c)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from tablestore_engine.lsm.key_order import order_columns

ROW_KIND = "_row_kind"
_HELPERS = (ROW_KIND, "_snapshot_id")
Row = Mapping[str, object]


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


def pick_samples(changes: pa.Table, keys: Sequence[str], limit: int) -> tuple[NetChange, ...]:
    """Inserted, then updated, then deleted keys, each in the order in which they first changed."""
    kinds = pl.Series(changes.column(ROW_KIND).to_pylist(), dtype=pl.String)
    numbered = pl.DataFrame(
        {"at": range(changes.num_rows), "kind": kinds}, schema={"at": pl.Int64, "kind": pl.String}
    )
    if not keys:
        came = numbered.filter(pl.col("kind").is_in(["+I", "+U"])).head(limit)["at"].to_list()
        went = numbered.filter(pl.col("kind").is_in(["-D", "-U"])).head(limit)["at"].to_list()
        return tuple(_change(changes, None, at) for at in came) + tuple(
            _change(changes, at, None) for at in went
        )
    key_columns = order_columns(changes, keys)  # groups as keys do: -0.0 is another key than 0.0
    ends = (
        numbered.hstack(key_columns)
        .group_by(key_columns.columns, maintain_order=True)
        .agg(
            pl.col("at").first().alias("first"),
            pl.col("at").last().alias("last"),
            (pl.col("kind").first() != "+I").alias("existed"),
            pl.col("kind").last().is_in(["+I", "+U"]).alias("exists"),
        )
    )
    found: list[NetChange] = []
    for existed, exists in ((False, True), (True, True), (True, False)):
        chosen = ends.filter((pl.col("existed") == existed) & (pl.col("exists") == exists)).head(limit)
        found += [
            _change(changes, first if existed else None, last if exists else None)
            for first, last in chosen.select("first", "last").rows()
        ]
    return tuple(found)


def _change(changes: pa.Table, before: int | None, after: int | None) -> NetChange:
    return NetChange(_row(changes, before), _row(changes, after))


def _row(changes: pa.Table, at: int | None) -> Row | None:
    if at is None:
        return None
    row = changes.drop_columns([name for name in _HELPERS if name in changes.column_names]).slice(at, 1)
    found: Row = row.to_pylist()[0]
    return found
