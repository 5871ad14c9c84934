"""Small files of many buckets, encoded in memory from one table: each as rolling_writer would write it alone.

CHANGE     how the files of many small buckets are written
Steps      one table in the order of the buckets → facts and dictionaries of all its parts → Parquet, part by part
REQUIRES   each part makes one file of one row group (FILE_ROWS_MAX, option parquet.row-group-rows).
INVARIANT  bytes and metadata are those of DataFiles.open_run and open_changelog, but for names and time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.format.data_file import SOURCE_APPEND, DataFileMeta
from tablestore_engine.lsm.key_order import order_frame
from tablestore_engine.store.files.data_files import DICTIONARY_SHARE, DataFiles, RunRows
from tablestore_engine.store.files.file_facts import keyed_metas
from tablestore_engine.store.files.parquet_output import encode_parquet
from tablestore_engine.store.files.rolling_writer import SAMPLE_ROWS

FILE_ROWS_MAX = SAMPLE_ROWS  # dictionaries are chosen by all rows of a file


@dataclass(frozen=True)
class EncodedFile:
    meta: DataFileMeta
    data: bytes


def encoded_files(
    files: DataFiles, run: RunRows, sizes: npt.NDArray[np.int64], levels: Sequence[int], *, prefix: str
) -> list[EncodedFile | None]:
    """One file of each part of the rows, with these sizes and levels; None for no rows."""
    filled = np.flatnonzero(sizes)
    found: list[EncodedFile | None] = [None] * len(sizes)
    if not len(filled):
        return found
    starts = (np.cumsum(sizes) - sizes)[filled]
    keyed = files.keyed_rows(run).combine_chunks()
    metas = keyed_metas(files.facts(level=0, source=SOURCE_APPEND), keyed, starts)
    repeating = _repeating(files, keyed, starts)
    options: dict[tuple[tuple[str, ...], int], dict[str, Any]] = {}
    for place, start, meta, names in zip(filled.tolist(), starts.tolist(), metas, repeating, strict=True):
        kind = names, levels[place]
        if kind not in options:
            options[kind] = files.parquet_options(*kind)
        data = encode_parquet(keyed.slice(start, meta.row_count), options[kind])
        name = files.new_name(prefix)
        named = replace(meta, file_name=name, file_size=len(data), level=levels[place])
        found[place] = EncodedFile(named, data)
    return found


def _repeating(files: DataFiles, rows: pa.Table, starts: npt.NDArray[np.int64]) -> Sequence[tuple[str, ...]]:
    """For each part the columns whose values repeat (data_files.DICTIONARY_SHARE)."""
    sizes, names = np.diff(np.append(starts, rows.num_rows)), files.dictionaries
    if not names:
        return [()] * len(starts)
    frame = order_frame([rows.column(name) for name in names])
    numbers = pl.Series("part", np.repeat(np.arange(len(sizes)), sizes))
    counts = frame.with_columns(numbers).group_by("part", maintain_order=True).agg(pl.all().n_unique())
    repeats = counts.drop("part").to_numpy() <= DICTIONARY_SHARE * sizes[:, None]
    return [tuple(name for name, one in zip(names, row, strict=True) if one) for row in repeats.tolist()]
