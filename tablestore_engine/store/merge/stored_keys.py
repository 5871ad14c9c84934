"""Where keys are stored, in any partition: what a write has to know of a table whose keys may move between partitions.

Steps      keys → of each file those that can lie in it (partition columns of the key, hash of fixed buckets, key range)
           → positions of visible rows (lookup)
MEMORY     the keys, and the key columns of as many files as are read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Index, Mask, order_columns, take_keys
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import FileHits, KeyCache, hits_of_file, may_hit
from tablestore_engine.store.table_traits import TableTraits


def find_keys(
    reader: FileReader,
    files: Sequence[StoredFile],
    keys: pa.Table,
    cache: KeyCache | None,
    *,
    remembers: bool = True,
) -> list[FileHits]:
    """The visible rows of these keys by file; `incoming`: row numbers of `keys`.

    REQUIRES the columns of the primary key, each key once, in the order of the primary key. `remembers`: hits_of_file.
    """
    frame, places = (
        order_columns(keys, reader.schema.trimmed_primary_keys),
        _KeysOfPlaces(keys, reader.schema),
    )
    reads, numbers = [], []
    for file in files:
        at = places.of(file)
        mine = take_keys(frame, at)
        if len(at) and may_hit(reader.schema, file, mine):
            numbers.append(at)
            reads.append(partial(hits_of_file, reader, file, mine, cache, remembers=remembers))
    found = reader.fileio.run_together(reads)
    return [
        FileHits(one.file, at[one.incoming], one.positions)
        for at, one in zip(numbers, found, strict=True)
        if len(one.incoming)
    ]


class _KeysOfPlaces:
    """Which keys can lie in a bucket of a partition, ascending."""

    def __init__(self, keys: pa.Table, schema: TableSchema) -> None:
        self._keys, self._schema = keys, schema
        self._fields = [
            (at, field)
            for at, field in enumerate(schema.fields_of(schema.partition_keys))
            if field.name in schema.primary_keys
        ]
        self._buckets: dict[int, Index] = {}
        self._found: dict[tuple[bytes, int, int], Index] = {}

    def of(self, file: StoredFile) -> Index:
        """Row numbers of the keys; REQUIRES that the types of keys did not change."""
        fixed = self._schema.bucket_count > 0 and (file.total_buckets or 0) > 1 and file.bucket >= 0
        place = (
            file.partition_bytes if self._fields else b"",
            file.total_buckets if fixed else 0,
            file.bucket if fixed else 0,
        )
        if place not in self._found:
            mask = self._of_partition(file)
            if fixed:
                mask = mask & (self._numbers(file.total_buckets) == file.bucket)
            self._found[place] = np.flatnonzero(mask)
        return self._found[place]

    def _of_partition(self, file: StoredFile) -> Mask:
        mask = np.ones(self._keys.num_rows, np.bool_)
        for at, field in self._fields:
            same = pc.equal(self._keys.column(field.name), arrow_values([file.partition[at]], field.type)[0])
            mask &= np.asarray(pc.fill_null(same, False))
        return mask

    def _numbers(self, total: int) -> Index:
        if total not in self._buckets:
            fields = self._schema.fields_of(self._schema.bucket_keys)
            columns, types = [self._keys.column(one.name) for one in fields], [one.type for one in fields]
            function = TableTraits(self._schema).bucket_function
            self._buckets[total] = assign_buckets(columns, types, total, function).astype(np.int64)
        return self._buckets[total]
