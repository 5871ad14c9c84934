"""File indexes of one data file, made of its rows while it is written.

CHANGE     when an index is embedded in the manifest (option file-index.in-manifest-threshold)
Steps      rows → values as Paimon hashes and stores them → one index for each column → embedded, or a file beside
INVARIANT  the index file is durable before the metadata that names it exists.
Memory     a byte for each bit of a bloom filter; for a bitmap index its values with the positions of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap
from xxhash import xxh64_intdigest

from tablestore_engine.format.bitmap_index import BITMAP, Value, encode_bitmaps
from tablestore_engine.format.bloom_filter import BloomFilterBuilder, Hashes, hash_integers
from tablestore_engine.format.checksum import name_with_checksum
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.file_index import INDEX_SUFFIX, encode_file_index
from tablestore_engine.format.file_index_columns import IndexedColumn, value_code
from tablestore_engine.store.files.comparable_values import comparable_column
from tablestore_engine.store.files.rolling_writer import FileFacts

_MILLIS = 3


class IndexBuilder(Protocol):
    def add(self, column: pa.ChunkedArray) -> None:
        """The next values, NULL too."""

    def encode(self) -> bytes | None:
        """The bytes of the index; None: the values do not fit into one."""


class IndexedFacts:
    """Facts of a file with its indexes. `write` makes a durable file beside it. Implements FileFacts."""

    def __init__(
        self,
        facts: FileFacts,
        columns: Sequence[IndexedColumn],
        embedded_max: int,
        write: Callable[[str, bytes], None],
    ) -> None:
        self._facts, self._embedded_max, self._write = facts, embedded_max, write
        self._builders = [(one, index_builder(one)) for one in columns]

    def add(self, rows: pa.Table) -> None:
        self._facts.add(rows)
        for one, builder in self._builders:
            builder.add(rows.column(one.field.name))

    def to_meta(self, name: str, size: int) -> DataFileMeta:
        """REQUIRES at least one row. Raises StorageError."""
        found: dict[str, dict[str, bytes]] = {}
        for one, builder in self._builders:
            data = builder.encode()
            if data is not None:
                found.setdefault(one.field.name, {})[one.kind] = data
        meta = self._facts.to_meta(name, size)
        if not found:
            return meta
        index = encode_file_index(found)
        if len(index) <= self._embedded_max:
            return replace(meta, embedded_file_index=index)
        stem, dot, ending = name.rpartition(".")
        beside = name_with_checksum(stem, index) + dot + ending + INDEX_SUFFIX
        self._write(beside, index)
        return replace(meta, extra_files=(beside,))


def index_values(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray:
    """Bytes of texts, 64-bit integers of all else: milliseconds of TIMESTAMP(3) and coarser, else microseconds."""
    if type_.root == "VARCHAR":
        return column.cast(pa.binary())
    if type_.root in TIMESTAMP_ROOTS and (type_.precision or 0) <= _MILLIS:
        return column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    return comparable_column(column, type_).cast(pa.int64())


def hashes_of(values: pa.Array) -> Hashes:
    """Of values as index_values gives them, without NULL."""
    if not len(values):
        return np.empty(0, np.uint64)
    if pa.types.is_integer(values.type):
        return hash_integers(np.asarray(values, np.int64))
    return np.fromiter(map(xxh64_intdigest, values.cast(pa.binary()).to_pylist()), np.uint64, len(values))


def index_builder(one: IndexedColumn) -> IndexBuilder:
    return _Bitmaps(one) if one.kind == BITMAP else _Bloom(one)


class _Bloom:
    def __init__(self, one: IndexedColumn) -> None:
        self._type, self._filter = one.field.type, BloomFilterBuilder(one.items, one.fpp)

    def add(self, column: pa.ChunkedArray) -> None:
        self._filter.add(hashes_of(pc.unique(index_values(column, self._type)).drop_null()))

    def encode(self) -> bytes:
        return self._filter.encode()


class _Bitmaps:
    def __init__(self, one: IndexedColumn) -> None:
        self._type, self._rows = one.field.type, 0
        self._found: dict[Value, BitMap] = {}
        self._nulls = BitMap()

    def add(self, column: pa.ChunkedArray) -> None:
        values = index_values(column, self._type).combine_chunks()
        coded = pc.dictionary_encode(values)
        codes = np.asarray(coded.indices.fill_null(-1), np.int64)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(-1, len(coded.dictionary) + 1))
        for at, value in enumerate([None, *coded.dictionary.to_pylist()]):
            rows = BitMap(order[bounds[at] : bounds[at + 1]] + self._rows)
            if value is None:
                self._nulls |= rows
            else:
                self._found[value] = self._found[value] | rows if value in self._found else rows
        self._rows += len(values)

    def encode(self) -> bytes | None:
        code = value_code(self._type)
        assert code is not None  # checked: else the column has no index
        for one in (self._nulls, *self._found.values()):
            one.run_optimize()
        return encode_bitmaps(self._found, self._nulls, self._rows, code)
