"""Which files can hold a row that a condition is true of, by their file indexes: bloom filters and bitmaps.

CHANGE     which file indexes readers use (option file-index.read.enabled)
Steps      columns of which the condition leaves some values alone → the index of each file, from the manifest or from
           the file beside → a file whose index has none of the values is left out
REQUIRES   files of a ScanPlan, as file_pruning does: their dead positions are known already.
INVARIANT  an index that is missing, damaged or of another version leaves nothing out; a warning says so, once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.bitmap_index import BITMAP, decode_bitmaps
from tablestore_engine.format.bloom_filter import BLOOM_FILTER, decode_bloom_filter
from tablestore_engine.format.checksum import verify_name_checksum
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.file_index import INDEX_SUFFIX, FileIndex, decode_file_index
from tablestore_engine.format.file_index_columns import value_code
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.store.files.column_facts import StoredColumns
from tablestore_engine.store.files.comparable_values import Comparable, stored_form
from tablestore_engine.store.files.file_index_output import hashes_of, index_values
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.rows.row_condition import BoundCondition
from tablestore_engine.store.table_traits import TableTraits

_LOGGER = logging.getLogger("tablestore_engine.store")
_REMEMBERED = 1024
_VALUES_MAX = 10_000  # of a condition; more are hardly missing from a file


def prune_by_indexes(
    fileio: FileIO, files: Iterable[StoredFile], wanted: BoundCondition, schema: TableSchema
) -> tuple[StoredFile, ...]:
    """The files that may hold such a row, in the same order; those without an index stay."""
    left = tuple(files)
    indexed = [file for file in left if _index_name(file) is not None or file.meta.embedded_file_index]
    if not indexed or not TableTraits(schema).reads_indexes:
        return left
    asked = {name: found[0] for name in wanted.columns if (found := wanted.key_values([name])) is not None}
    asked = {name: values for name, values in asked.items() if len(values) <= _VALUES_MAX}
    if not asked:
        return left
    columns = StoredColumns(schema)
    answers = fileio.run_together([partial(_is_excluded, fileio, file, asked, columns) for file in indexed])
    gone = {file.path for file, excluded in zip(indexed, answers, strict=True) if excluded}
    return tuple(file for file in left if file.path not in gone)


def read_index(fileio: FileIO, file: StoredFile) -> FileIndex | None:
    """The indexes of a file; None without. Raises ValueError, FixData TS1160 for damage, what FileIO.read raises."""
    if file.meta.embedded_file_index:
        return decode_file_index(file.meta.embedded_file_index)
    name = _index_name(file)
    if name is None:
        return None
    data = (file.fileio or fileio).read(f"{file.path.rpartition('/')[0]}/{name}")
    verify_name_checksum(data, "file index", name.partition(".")[0])
    return decode_file_index(data)


def held_values(index: FileIndex, field: DataField, values: pa.Array) -> Mask:
    """For each of some stored values of a column, none of them NULL, whether a row may have it. Raises ValueError."""
    code = value_code(field.type)
    held = np.ones(len(values), np.bool_)
    if code is None:
        return held
    known = index_values(pa.chunked_array([values]), field.type).combine_chunks()
    bitmap, bloom = index.find(field.name, BITMAP), index.find(field.name, BLOOM_FILTER)
    if bitmap == b"" or bloom == b"":
        return ~held
    if bitmap is not None:
        found = decode_bitmaps(bitmap, code)
        held &= np.array([found.holds(value) for value in known.to_pylist()], np.bool_)
    if bloom is not None:
        held &= decode_bloom_filter(bloom).held(hashes_of(known))
    return held


def _index_name(file: StoredFile) -> str | None:
    names = [one for one in file.meta.extra_files if one.endswith(INDEX_SUFFIX) and "/" not in one]
    return names[0] if len(names) == 1 else None


def _is_excluded(
    fileio: FileIO, file: StoredFile, asked: Mapping[str, frozenset[Comparable]], columns: StoredColumns
) -> bool:
    try:
        index = read_index(fileio, file)
        if index is None:
            return False
        for name, values in asked.items():
            column = columns.by_name.get(name)
            stored, is_alike = (None, False) if column is None else columns.stored_as(file.schema, column)
            if column is None or stored is None or not is_alike or stored.name not in index.places:
                continue
            known = _stored_values(values, stored.type)
            if known is not None and not held_values(index, stored, known).any():
                return True
    except (TablestoreError, OSError, ValueError) as error:
        _warn(file.path, str(error))
    return False


def _stored_values(values: frozenset[Comparable], type_: DataType) -> pa.Array | None:
    """Those of the condition, as the column stores them; None: it can not store one of them."""
    try:
        return stored_form(sorted(values, key=repr), type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        return None


@lru_cache(maxsize=_REMEMBERED)
def _warn(path: str, why: str) -> None:
    _LOGGER.warning("file index of %s is not used, the file is read: %s", path, why)
