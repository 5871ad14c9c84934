"""The last row of each key of a batch.

Order      of a key's changes: that of its partition. A key in two partitions of one batch is an error (TS1428), since
           nothing says which change is the later one
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.ingest.target_columns import Shaped
from tablestore_engine.log.message_source import RawMessages

_AT, _PART = "at", "part"  # beside key columns, which are numbered


def last_of_each_key(
    shaped: Shaped, key: tuple[str, ...], raw: RawMessages, *, is_one_line: bool, empties: bool
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Rows, and which of them are put. Raises FixData TS1428."""
    have = {one.lower() for one in key}
    names = [name for name in shaped.rows.column_names if name.lower() in have]
    frame = pl.from_arrow(shaped.rows.select(names).rename_columns([str(at) for at in range(len(names))]))
    assert isinstance(frame, pl.DataFrame)
    keys = frame.columns
    at = frame.with_columns(
        pl.int_range(pl.len()).alias(_AT), pl.Series(_PART, raw.partitions[shaped.numbers])
    )
    if not is_one_line:
        _check_partitions(at, names, lambda row: raw.place(int(shaped.numbers[row])))
    last = (
        at.unique(subset=keys, keep="last", maintain_order=True)[_AT].to_numpy()
        if keys
        else at[_AT].to_numpy()
    )
    if empties:
        last = last[shaped.is_put[last]]
    if len(last) == len(shaped.numbers):
        return shaped.rows, shaped.is_put
    return shaped.rows.take(pa.array(last)), shaped.is_put[last]


def _check_partitions(at: pl.DataFrame, names: list[str], place: Callable[[int], str]) -> None:
    keys = [one for one in at.columns if one not in (_AT, _PART)]
    per_part = at.unique(subset=[*keys, _PART], keep="first", maintain_order=True)
    twice = per_part.filter(per_part.select(keys).is_duplicated())
    if not twice.height:
        return
    same = [pl.col(one).eq_missing(pl.lit(twice[one][0], twice[one].dtype)) for one in keys]
    first, other = (place(one) for one in twice.filter(pl.all_horizontal(same))[_AT].to_list()[:2])
    shown = ", ".join(f"{name}={twice[one][0]!r}" for name, one in zip(names, keys, strict=True))
    raise FixData(
        "TS1428",
        f"key {shown} has changes in two partitions",
        why=f"at {first} and at {other}; nothing says which is the later one",
        fix="let the source write a key into one partition always (by its primary key), or a topic of one partition",
    )
