"""Keyed tables without deletion vectors: which positions of a bucket's files a merging reader would drop.

Names      merged_positions   files of one bucket → file name → positions to skip
Steps      one sorted run without deletes → nothing to do; else key, sequence and kind columns → lsm.merge_on_read
Only for   engines that take rows whole; the others raise Unsupported TS1656.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pyroaring import BitMap

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.lsm.merge_on_read import VersionFile, deleted_positions
from tablestore_engine.store.file_read import FileReader
from tablestore_engine.store.incoming_batch import sequence_of
from tablestore_engine.store.stored_file import StoredFile
from tablestore_engine.store.table_traits import TableTraits


def merged_positions(reader: FileReader, files: Sequence[StoredFile]) -> Mapping[str, BitMap]:
    """Positions that merging would drop; files without any are left out."""
    if _is_raw(files):
        return {}
    engine = TableTraits(reader.schema).merge_engine
    return deleted_positions(engine, [_version_file(reader, file) for file in files])


def _is_raw(files: Sequence[StoredFile]) -> bool:
    """One sorted run above level 0 whose files say that they hold no deletes."""
    levels = {file.meta.level for file in files}
    return len(levels) == 1 and 0 not in levels and all(file.meta.delete_row_count == 0 for file in files)


def _version_file(reader: FileReader, file: StoredFile) -> VersionFile:
    """All physical rows: a vector of such a table is none of ours, and merging alone decides."""
    schema, traits = reader.schema, TableTraits(reader.schema)
    columns = dict.fromkeys([*schema.trimmed_primary_keys, *traits.sequence_fields])
    rows = reader.read(file, list(columns), keep=(SEQUENCE_NUMBER, VALUE_KIND))
    return VersionFile(
        name=file.meta.file_name,
        keys=order_columns(rows, schema.trimmed_primary_keys),
        sequence_numbers=np.asarray(rows.column(SEQUENCE_NUMBER)),
        kinds=np.asarray(rows.column(VALUE_KIND)).astype(np.int8),
        sequence=sequence_of(rows, traits),
    )
