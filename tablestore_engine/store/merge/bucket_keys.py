"""Keys on their way to a look-up: comparable, in order, each once, and those alone that a bucket can have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Mask, order_columns, order_permutation, starts_of_groups
from tablestore_engine.store.table_traits import TableTraits


def sorted_keys(rows: pa.Table, schema: TableSchema) -> pl.DataFrame:
    """Comparable keys, ascending and each once."""
    frame = order_columns(rows, schema.trimmed_primary_keys)
    if frame.height < 2:
        return frame
    frame = frame[order_permutation(frame)]
    return frame.filter(starts_of_groups(frame))


def keys_of_partition(keys: pa.Table, partition: tuple[object, ...], schema: TableSchema) -> pa.Table:
    """Of rows of the whole primary key those of one partition, without the partition's columns."""
    for field, value in zip(schema.fields_of(schema.partition_keys), partition, strict=True):
        if field.name not in schema.primary_keys:  # such a key may lie in each partition
            continue
        wanted = arrow_values([value], field.type)[0]
        keys = keys.filter(pc.fill_null(pc.equal(keys.column(field.name), wanted), False))
    return keys.select(list(schema.trimmed_primary_keys))


class KeysByBucket:
    """Which of the keys can be in a bucket: by their hash, where that is known."""

    def __init__(self, keys: pa.Table, schema: TableSchema) -> None:
        self._keys, self._schema = keys, schema
        self._parts: dict[tuple[int, int], pl.DataFrame] = {}
        self._numbers: dict[int, Mapping[int, Mask]] = {}

    def of(self, bucket: int, total: int | None) -> pl.DataFrame:
        """Sorted keys that can be in a bucket of so many; REQUIRES that the types of keys did not change."""
        names = self._schema.bucket_keys
        if total is None or total <= 1 or bucket < 0 or not set(names) <= set(self._keys.column_names):
            return self._all
        place = (total, bucket)
        if place not in self._parts:
            mask = self._masks(total).get(bucket)
            rows = self._keys.slice(0, 0) if mask is None else self._keys.filter(pa.array(mask))
            self._parts[place] = sorted_keys(rows, self._schema)
        return self._parts[place]

    @cached_property
    def _all(self) -> pl.DataFrame:
        return sorted_keys(self._keys, self._schema)

    def _masks(self, total: int) -> Mapping[int, Mask]:
        if total not in self._numbers:
            fields = self._schema.fields_of(self._schema.bucket_keys)
            columns = [self._keys.column(field.name) for field in fields]
            function = TableTraits(self._schema).bucket_function
            numbers = assign_buckets(columns, [field.type for field in fields], total, function)
            self._numbers[total] = {int(one): numbers == one for one in np.unique(numbers)}
        return self._numbers[total]
