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
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tablestore_engine.store.files.data_files import RunRows
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.range_read import FilePiece, read_ranges
from tablestore_engine.store.rows.incoming_batch import sequence_of
from tablestore_engine.store.table_traits import TableTraits


def read_merged(reader: FileReader, files: Sequence[StoredFile], traits: TableTraits) -> Iterator[RunRows]:
    """Rows in key order, each with the number of its newest version. Raises as read_ranges and MergeEngine.merge."""
    for pieces in read_ranges(reader, files, keep=(SEQUENCE_NUMBER, VALUE_KIND)):
        rows = pa.concat_tables([piece.rows for piece in pieces])
        counted = _counted(pieces) if traits.merges_by_lookup else None
        pieces.clear()  # gone before the next range is read
        yield _merged(rows if counted is None else rows.filter(pa.array(counted)), traits)


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


def _merged(rows: pa.Table, traits: TableTraits) -> RunRows:
    kinds = np.asarray(rows.column(VALUE_KIND)).astype(np.int8)
    if traits.ignores_deletes and retracts(kinds).any():
        rows, kinds = rows.filter(pa.array(~retracts(kinds))), kinds[~retracts(kinds)]
    numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
    rows, gone = rows.drop_columns([SEQUENCE_NUMBER, VALUE_KIND]), retracts(kinds)
    order = SequenceOrder.of_stored(sequence_of(rows, traits), numbers, ~gone)
    keys = order_columns(rows, traits.schema.trimmed_primary_keys)
    versions = sort_versions(keys, gone, order, rows, np.asarray(kinds == RowKind.UPDATE_BEFORE))
    merged = merge_versions(traits.merge_engine, versions)
    made, numbers = merged_rows(rows, merged), numbers[merged.winners]
    if not merged.deletes.any():
        return RunRows(made, numbers)
    left = np.flatnonzero(~merged.deletes)
    return RunRows(take_rows(made, left), numbers[left])
