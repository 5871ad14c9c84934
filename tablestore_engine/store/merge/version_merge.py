"""Merge-on-read under an engine that combines values: the rows of a bucket, made of all versions of its keys.

CHANGE     the rows of a table without deletion vectors under aggregation and partial-update
Steps      files of all levels, one key range after the other → versions that count, in merge order → merge engine →
           rows that add
Lookup     with `changelog-producer` = `lookup`, Java merges a row of level 0 with the newest stored version when it
           moves it up, and leaves the older one where it is: above level 0 the lowest level has the whole row
INVARIANT  what lies in the files is all there is: a retraction that wins means that the key has no row.
PAIMON     a lone version passes as it is. So it does here: this merge does not settle its keys (lsm.combining_merge).
Memory     a step of rows (row_budget), however large the bucket is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Mask, order_columns
from tablestore_engine.lsm.key_versions import retracts, sort_versions
from tablestore_engine.lsm.merge import merge_versions
from tablestore_engine.lsm.merge_records import merged_rows
from tablestore_engine.lsm.runs_by_age import order_by_age
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tablestore_engine.store.files.data_files import RunRows
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.range_read import FilePiece, read_ranges
from tablestore_engine.store.rows.incoming_batch import sequence_of
from tablestore_engine.store.table_traits import TableTraits


def read_merged(
    reader: FileReader, files: Sequence[StoredFile], traits: TableTraits, *, visible: bool = False
) -> Iterator[RunRows]:
    """Rows in key order, each with the number of its newest version. Raises as read_ranges and MergeEngine.merge.

    `visible`: versions that vectors hide do not count.
    """
    for pieces in read_ranges(reader, files, keep=(SEQUENCE_NUMBER, VALUE_KIND), visible=visible):
        aged = None if traits.sequence_fields else _by_age(pieces)
        pieces[:] = aged or pieces
        rows = pa.concat_tables([piece.rows for piece in pieces])
        counted = _counted(pieces) if traits.merges_by_lookup else None
        pieces.clear()  # gone before the next range is read
        rows = rows if counted is None else rows.filter(pa.array(counted))
        yield _merged(rows, traits, is_by_age=aged is not None)


def _counted(pieces: Sequence[FilePiece]) -> Mask | None:
    """Which rows are no older version of a stored row that holds it already; None: all."""
    levels = [piece.source.meta.level for piece in pieces]
    if len({level for level in levels if level > 0}) < 2:
        return None
    keys = pl.concat([piece.keys for piece in pieces])
    each = np.repeat(np.asarray(levels, np.int64), [piece.keys.height for piece in pieces])
    stored = pl.when(pl.col("level") > 0).then(pl.col("level"))
    frame = keys.with_columns(level=pl.Series(each)).select(stored.min().over(keys.columns).fill_null(0))
    lowest: npt.NDArray[np.int64] = frame.to_series().to_numpy()
    counted: Mask = (each == 0) | (each == lowest)
    return counted


def _by_age(pieces: Sequence[FilePiece]) -> list[FilePiece] | None:
    """The pieces in the order of time, as long as that is one of whole files."""
    runs = [list(mine) for _, mine in groupby(pieces, key=lambda piece: piece.source.path)]
    numbers = [[np.asarray(piece.rows.column(SEQUENCE_NUMBER)) for piece in mine] for mine in runs]
    aged = order_by_age(
        [([piece.keys for piece in mine], found) for mine, found in zip(runs, numbers, strict=True)]
    )
    return None if aged is None else [piece for number in aged for piece in runs[number]]


def _merged(rows: pa.Table, traits: TableTraits, *, is_by_age: bool) -> RunRows:
    """`is_by_age`: of each key the rows lie in merge order."""
    kinds = np.asarray(rows.column(VALUE_KIND)).astype(np.int8)
    if traits.ignores_deletes and retracts(kinds).any():
        rows, kinds = rows.filter(pa.array(~retracts(kinds))), kinds[~retracts(kinds)]
    numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
    rows, gone = rows.drop_columns([SEQUENCE_NUMBER, VALUE_KIND]), retracts(kinds)
    order = None if is_by_age else SequenceOrder.of_stored(sequence_of(rows, traits), numbers, ~gone)
    keys = order_columns(rows, traits.schema.trimmed_primary_keys)
    versions = sort_versions(keys, gone, order, rows, np.asarray(kinds == RowKind.UPDATE_BEFORE))
    merged = merge_versions(traits.merge_engine, versions)
    made, numbers = merged_rows(rows, merged), numbers[merged.winners]
    if not merged.deletes.any():
        return RunRows(made, numbers)
    left = np.flatnonzero(~merged.deletes)
    return RunRows(take_rows(made, left), numbers[left])
