"""Compaction of sorted runs: several become one without deleted rows; readers see no difference.

Steps      per group: visible rows of its files, one key range after the other → one version per key (lsm.merge) → one
           run of disjoint files on the output level
INVARIANT  visible rows, and the sequence number of each, are the same before and after.
INVARIANT  no two versions meet here, whatever the merge engine: merge-on-write left one visible row of each key.
Memory     a step of rows (row_budget), however large the bucket: ranges come, are merged and are written.
INVARIANT  vectors of removed files go, all others stay as they are; no changelog, since nothing changed.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.errors import EngineBug, StorageError
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, SOURCE_COMPACT, DataFileMeta
from tablestore_engine.lsm.compaction_strategy import CompactionUnit
from tablestore_engine.lsm.key_versions import sort_versions
from tablestore_engine.lsm.merge import merge_versions
from tablestore_engine.lsm.merge_records import merged_rows
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.merge.range_read import FilePiece, read_ranges


def compact_runs(files: DataFiles, state: BucketState, unit: CompactionUnit) -> BucketChange:
    """Perform `unit`. Raises EngineBug TS1654 when a key is visible twice."""
    by_name = {file.meta.file_name: file for file in state.files}
    added: list[DataFileMeta] = []
    try:
        for group in unit.groups:
            with files.open_run(state, level=unit.output_level, source=SOURCE_COMPACT) as output:
                chosen = [by_name[name] for name in group]
                for pieces in read_ranges(files.reader, chosen, keep=(SEQUENCE_NUMBER,), visible=True):
                    output.add(_merged(files, pieces))
                    pieces.clear()  # gone before the next range is read
            added.extend(output.metas)
    except StorageError:
        files.discard(state, added)
        raise
    removed = [file.meta for file in state.files if file.meta.file_name in unit.file_names]
    return state.rewritten(removed, added)


def _merged(files: DataFiles, pieces: list[FilePiece]) -> RunRows:
    rows = pa.concat_tables([piece.rows for piece in pieces])
    keys = pl.concat([piece.keys for piece in pieces])
    versions = sort_versions(keys, np.zeros(rows.num_rows, dtype=np.bool_))
    if not versions.are_single:
        raise EngineBug(
            "TS1654",
            "a compaction found a key that is visible twice",
            why=f"files {', '.join(dict.fromkeys(piece.source.meta.file_name for piece in pieces))} share a key",
            fix="stop writing to the table, verify it, and report this with the facts",
        )
    rows = merged_rows(rows, merge_versions(files.traits.merge_engine, versions))
    return RunRows(rows.drop_columns([SEQUENCE_NUMBER]), np.asarray(rows.column(SEQUENCE_NUMBER)))
