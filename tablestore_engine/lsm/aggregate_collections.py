"""Aggregate functions that put texts, arrays and maps together: listagg, collect and merge_map.

CHANGE     the aggregate functions listagg, collect and merge_map
PAIMON     the order of distinct elements and of map entries is that of Java's hash tables; here it is that of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.lsm.aggregate_function import AggregatedColumn, AggregateFunction, wrong_type
from tablestore_engine.lsm.key_order import Index, order_frame
from tablestore_engine.lsm.version_groups import (
    NO_ROW,
    VersionGroups,
    as_series,
    list_offsets,
    pick_values,
)

# what Java calls white space: separators without the non-breaking ones, and these control characters
_BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
_STRING_LENGTH = 2**31 - 1


@dataclass(frozen=True)
class ListAgg(AggregateFunction):
    """Texts joined by the delimiter; blank ones and NULL count as nothing."""

    column: AggregatedColumn
    is_ordered = True

    @property
    def changes_lone(self) -> bool:
        """Blank text counts as nothing."""
        return True

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """NULL where every text is blank. `distinct`: later texts are split, and only new parts are added."""
        mine = groups.late_first().valid(values)
        frame = pl.DataFrame({"key": mine.keys, "text": as_series(mine.values(values))})
        frame = frame.filter(~_is_blank("text"))
        if self.column.distinct:
            frame = _distinct_parts(frame, self.column.delimiter)
        joined = frame.group_by("key", maintain_order=True).agg(
            pl.col("text").str.join(self.column.delimiter)
        )
        every = pl.DataFrame({"key": np.arange(groups.count)})
        texts = every.join(joined, on="key", how="left", maintain_order="left").get_column("text")
        return pa.chunked_array([texts.to_arrow().cast(values.type)])


def _is_blank(name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars(_BLANKS) == ""


def _distinct_parts(frame: pl.DataFrame, delimiter: str) -> pl.DataFrame:
    """The first text of each key as it is, then the parts of the others that are not blank and not there yet."""
    first = pl.col("at") == pl.col("at").min().over("key")
    parts = (
        frame.with_row_index("at")
        .with_columns(is_first=first, part=pl.col("text").str.split(delimiter))
        .explode("part")
    )
    parts = parts.filter(pl.col("is_first") | ~_is_blank("part"))
    is_new = parts.select(pl.struct("key", "part").is_first_distinct()).to_series()
    opening = parts.get_column("is_first")
    later = parts.filter(~opening & is_new).select("key", "at", text="part")
    whole = frame.with_row_index("at").filter(first).select("key", "at", "text")
    return pl.concat([whole, later]).sort("key", "at", maintain_order=True).select("key", "text")


@dataclass(frozen=True)
class Collect(AggregateFunction):
    """Arrays put one after the other; `distinct`: of equal elements the first. A retraction removes its elements."""

    column: AggregatedColumn
    retracts = True
    is_ordered = True
    appends_late = True

    @property
    def changes_lone(self) -> bool:
        """Equal elements of one array count once, too."""
        return self.column.distinct

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """NULL where every array is NULL. Retractions are taken one by one, for their keys alone."""
        mine = groups.valid(values)
        slow = np.unique(mine.keys[mine.retracts])
        fast = mine.only(~np.isin(mine.keys, slow)) if len(slow) else mine
        made = self._joined(values, fast)
        if not len(slow):
            return made
        lists = [self._one_by_one(values, mine.only(mine.keys == key)) for key in slow]
        at = np.arange(groups.count)
        at[slow] = groups.count + np.arange(len(slow))
        return pick_values(pa.chunked_array([*made.chunks, pa.array(lists, values.type)]), at)

    def _joined(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        lists = groups.values(values).combine_chunks()
        elements = lists.flatten()
        keys = np.repeat(groups.keys, np.asarray(lists.value_lengths()).astype(np.int64))
        if self.column.distinct:
            pairs = pl.DataFrame({"key": keys, "element": as_series(elements)})
            fresh = pairs.select(pl.struct("key", "element").is_first_distinct()).to_series().to_numpy()
            elements, keys = elements.filter(pa.array(fresh)), keys[fresh]
        absent = np.ones(groups.count, dtype=np.bool_)
        absent[groups.present] = False
        made = pa.ListArray.from_arrays(
            list_offsets(keys, groups.count), elements, type=values.type, mask=pa.array(absent)
        )
        return pa.chunked_array([made])

    def _one_by_one(self, values: pa.ChunkedArray, groups: VersionGroups) -> list[Any] | None:
        made: list[Any] | None = None
        for elements, away in zip(groups.values(values).to_pylist(), groups.retracts, strict=True):
            if not away:
                made = [*(made or []), *elements]
                if self.column.distinct:
                    made = [one for at, one in enumerate(made) if one not in made[:at]]
            elif made is not None:
                left = list(elements)
                made = [one for one in made if not _removed(left, one)]
        return made


def _removed(left: list[Any], element: object) -> bool:
    """Whether the element is one of those that are left to remove; then it is not any more."""
    if element not in left:
        return False
    left.remove(element)
    return True


@dataclass(frozen=True)
class MergeMap(AggregateFunction):
    """Maps put together, of equal keys the newest value. A retraction removes its keys."""

    column: AggregatedColumn
    retracts = True
    is_ordered = True

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """NULL where no version adds a map."""
        mine = groups.valid(values)
        maps = mine.values(values).combine_chunks()
        lengths = np.diff(np.asarray(maps.offsets)) if len(maps) else np.zeros(0, dtype=np.int64)
        start = int(maps.offsets[0].as_py()) if len(maps) else 0
        count = int(lengths.sum())
        keys, items = maps.keys.slice(start, count), maps.items.slice(start, count)
        entries = order_frame([keys]).with_columns(
            pl.Series("group", np.repeat(mine.keys, lengths)),
            pl.Series("away", np.repeat(mine.retracts, lengths)),
            pl.Series(
                "late", np.zeros(count, np.bool_) if mine.late is None else np.repeat(mine.late, lengths)
            ),
        )
        at = self._last_entries(entries)
        added = np.zeros(groups.count, dtype=np.bool_)
        added[mine.keys[~mine.retracts]] = True
        owners = entries.get_column("group").to_numpy()[at]
        made = pa.MapArray.from_arrays(
            list_offsets(owners, groups.count), keys.take(pa.array(at)), items.take(pa.array(at)), values.type
        )
        return pick_values(pa.chunked_array([made]), np.where(added, np.arange(groups.count), NO_ROW))

    def _last_entries(self, entries: pl.DataFrame) -> Index:
        """Places of the newest entry of each key of a map, unless it retracts; in the order of their maps."""
        names = [name for name in entries.columns if name not in ("away", "late")]
        counted = entries.with_row_index("at").filter(~pl.col("late"))
        newest = counted.unique(names, keep="last", maintain_order=True)
        late = entries.with_row_index("at").filter(pl.col("late") & ~pl.col("away"))
        if late.height:  # a late entry counts where nothing is when it comes: of these the first
            found = late.join(
                newest.select(*names, "away", last="at"), on=names, how="left", suffix="_of_last"
            )
            is_free = pl.col("last").is_null() | (pl.col("away_of_last") & (pl.col("at") > pl.col("last")))
            free = found.filter(is_free).unique(names, keep="first", maintain_order=True)
            newest = pl.concat([newest.filter(~pl.col("away")), free.select(newest.columns)])
        kept = newest.filter(~pl.col("away")).sort("group", "at")
        return kept.get_column("at").cast(pl.Int64).to_numpy()


def make_listagg(column: AggregatedColumn) -> ListAgg:
    """Raises FixRequest TS1662, TS1665."""
    if column.type.root != "VARCHAR" or column.type.length != _STRING_LENGTH:
        raise wrong_type(column, "listagg", "STRING")
    if column.distinct and not column.delimiter:
        raise FixRequest(
            "TS1665",
            f"column {column.name}: listagg cannot be distinct without a delimiter",
            why="texts are split at the delimiter to find parts that are there already",
            fix=f"set 'fields.{column.name}.list-agg-delimiter'",
        )
    return ListAgg(column)


def make_collect(column: AggregatedColumn) -> Collect:
    """Raises FixRequest TS1662."""
    if column.type.root != "ARRAY":
        raise wrong_type(column, "collect", "ARRAY")
    return Collect(column)


def make_merge_map(column: AggregatedColumn) -> MergeMap:
    """Raises FixRequest TS1662."""
    if column.type.root != "MAP":
        raise wrong_type(column, "merge_map", "MAP")
    return MergeMap(column)
