"""Keyed tables whose readers merge: which positions of a bucket's files a merging reader would drop.

Steps      one sorted run without deletes → nothing to do; else key, sequence and kind columns, one key range after the
           other → lsm.merge_on_read
Memory     a step of those columns (row_budget), and the bitmaps
Only for   engines that take rows whole; rows of the others are made (version_merge).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import polars as pl
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.lsm.merge_on_read import VersionFile, deleted_positions
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask
from tablestore_engine.store.merge.range_read import FilePiece, read_ranges
from tablestore_engine.store.rows.incoming_batch import sequence_of
from tablestore_engine.store.table_traits import TableTraits


def merged_positions(reader: FileReader, files: Sequence[StoredFile]) -> Mapping[str, BitMap]:
    """Positions that merging would drop; files without any are left out."""
    if is_one_run(files):
        return {}
    schema, traits = reader.schema, TableTraits(reader.schema)
    columns = list(dict.fromkeys([*schema.trimmed_primary_keys, *traits.sequence_fields]))
    found: dict[str, BitMap] = {}
    for pieces in read_ranges(reader, files, columns, keep=(SEQUENCE_NUMBER, VALUE_KIND)):
        firsts = {piece.source.meta.file_name: piece.first for piece in reversed(pieces)}
        versions = [_version_file(list(mine), traits) for _, mine in groupby(pieces, key=_file_name)]
        dead = deleted_positions(traits.merge_engine, versions, ignores_deletes=traits.ignores_deletes)
        for name, hidden in dead.items():
            found[name] = found.get(name, BitMap()) | hidden.shift(firsts[name])
    return found


def is_one_run(files: Sequence[StoredFile]) -> bool:
    """Whether they are one sorted run above level 0 without deletes by their counts: merging drops nothing."""
    levels = {file.meta.level for file in files}
    return len(levels) == 1 and 0 not in levels and all(file.meta.delete_row_count == 0 for file in files)


def _file_name(piece: FilePiece) -> str:
    return piece.source.meta.file_name


def _version_file(pieces: Sequence[FilePiece], traits: TableTraits) -> VersionFile:
    """Physical rows of one range. Without the option for it a vector of such a table says nothing: merging decides."""
    rows = pa.concat_tables([piece.rows for piece in pieces])
    return VersionFile(
        name=_file_name(pieces[0]),
        keys=pl.concat([piece.keys for piece in pieces]),
        sequence_numbers=np.asarray(rows.column(SEQUENCE_NUMBER)),
        kinds=np.asarray(rows.column(VALUE_KIND)).astype(np.int8),
        sequence=sequence_of(rows, traits),
        gone=_gone(pieces) if traits.has_vectors else None,
    )


def _gone(pieces: Sequence[FilePiece]) -> Mask | None:
    """Rows of one range of one file that its vector hides."""
    vector = pieces[0].source.deleted
    if not vector:
        return None
    found = [visible_mask(pieces[0].source)[one.first : one.first + one.keys.height] for one in pieces]
    return ~np.concatenate(found)
