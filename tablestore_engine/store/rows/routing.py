"""Rows on their way to (partition, bucket): one pass, order of each key's rows kept.

Steps      conform → kinds, where a column has them → partition codes and bucket numbers per row → stable sort by group,
           and by key where that is an integer or buckets are small → slices
INVARIANT  every rule that rows can break is checked here, before the first file is written (P7), and nowhere again:
           but for repeated keys, which only sorting finds (incoming_batch).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.scalar import python_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.arrow_take import take_all
from tablestore_engine.lsm.key_order import fixed_words, order_columns, order_of_words, order_permutation
from tablestore_engine.lsm.key_versions import retracts
from tablestore_engine.store.rows.bucket_assigner import AssignedRows, BucketAssigner
from tablestore_engine.store.rows.conformed_rows import conform
from tablestore_engine.store.table_traits import TableTraits

Kinds = npt.NDArray[np.int8]
SMALL_BUCKET_ROWS = 8_192  # on average: such buckets cost what each call costs, not what rows do
_THREADS_MAX = 4
_COUNTED_CODES = 1 << 16  # fewer are numbered without a sort


@dataclass(frozen=True)
class RoutedRows:
    """Rows of one bucket, each key's in their order of arrival; `kinds` None means that all rows add."""

    partition: tuple[object, ...]
    partition_bytes: bytes
    bucket: int
    rows: pa.Table
    kinds: Kinds | None
    assigned: AssignedRows | None = None


class PlacesRows(Protocol):
    """Says in which partition and bucket rows belong whose keys may be stored in another partition."""

    def place(
        self, rows: pa.Table, kinds: Kinds | None, /
    ) -> tuple[pa.Table, Kinds | None, AssignedRows | None]:
        """The rows to write, their kinds and dynamic buckets."""


def route_rows(
    rows: pa.Table,
    kinds: Kinds | None,
    schema: TableSchema,
    assigner: BucketAssigner | None = None,
    places: PlacesRows | None = None,
) -> tuple[RoutedRows, ...]:
    """Split a batch. `assigner`: of dynamic buckets; without it their rows are only split by partition. `places`: of
    keys across partitions.

    Raises FixData TS1156, what conform raises (TS1602, TS1603, TS1604), and what `assigner` and `places` raise.
    """
    made, assigned = conform(rows, schema, None if kinds is None else retracts(kinds)), None
    if not made.num_rows:
        return ()
    if kinds is None and "rowkind.field" in schema.options:
        from tablestore_engine.format.kind_column import kinds_of_column  # noqa: PLC0415 - decision 0137

        kinds = kinds_of_column(made, schema)
    if places is not None:
        made, kinds, assigned = places.place(made, kinds)
    elif assigner is not None:
        assigned = assigner.assign(made)
    if not made.num_rows:
        return ()
    groups, count = _groups(made, schema, assigned)
    if count == 1:
        return (_routed(made, kinds, schema, assigned),)
    order = _order(made, groups, count, schema)
    made = take_all(made, order)
    kinds = None if kinds is None else kinds[order]
    assigned = None if assigned is None else assigned.take(order)
    cuts = [0, *(np.flatnonzero(np.diff(groups[order])) + 1).tolist(), made.num_rows]
    parts = [
        _routed(
            made.slice(start, stop - start),
            None if kinds is None else kinds[start:stop],
            schema,
            None if assigned is None else assigned.slice(start, stop),
        )
        for start, stop in pairwise(cuts)
    ]
    return tuple(sorted(parts, key=lambda part: (part.partition_bytes, part.bucket)))


def _order(
    rows: pa.Table, groups: npt.NDArray[np.int64], count: int, schema: TableSchema
) -> npt.NDArray[np.int64]:
    """Row numbers by group; by key too where that spares the buckets a second copy of their rows: of integers, and of
    many small buckets, in one sort for all. Each key's rows stay in their order.
    """
    if not schema.is_keyed:
        return order_of_words(groups)
    keys = order_columns(rows, schema.trimmed_primary_keys)
    words = fixed_words(keys)
    if rows.num_rows > count * SMALL_BUCKET_ROWS:
        order = order_of_words(groups)
        return order if words is None else _order_parts(order, groups, words)
    if words is not None:
        return np.lexsort((words, groups))
    return order_permutation(pl.DataFrame({"#group": groups}).hstack(keys))


def _order_parts(
    order: npt.NDArray[np.int64], groups: npt.NDArray[np.int64], words: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Rows of each group by their words, groups in threads."""

    def ordered(part: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return part[order_of_words(words[part])]

    parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    with ThreadPoolExecutor(min(_THREADS_MAX, os.cpu_count() or 1, len(parts))) as pool:
        return np.concatenate(list(pool.map(ordered, parts)))


def _groups(
    rows: pa.Table, schema: TableSchema, assigned: AssignedRows | None
) -> tuple[npt.NDArray[np.int64], int]:
    """A dense group number per row: equal partition values (NULL is a value) and bucket."""
    columns = []
    if assigned is not None:
        columns.append(assigned.buckets.astype(np.int64))
    elif schema.bucket_count > 1:
        columns.append(_buckets(rows, schema).astype(np.int64))
    return partition_codes(rows, schema, columns)


def partition_codes(
    rows: pa.Table, schema: TableSchema, also: Sequence[npt.NDArray[np.int64]] = ()
) -> tuple[npt.NDArray[np.int64], int]:
    """A dense number per row of equal partition values (NULL is a value), and of equal numbers in `also`."""
    codes: npt.NDArray[np.int64] = np.zeros(rows.num_rows, np.int64)
    columns = [*(_codes(rows.column(name)) for name in schema.partition_keys), *also]
    count = 1
    for column in columns:  # renumbered after each column, so that the combined number never overflows
        codes = codes * (int(column.max()) + 1) + column
        codes, count = _renumbered(codes)
    return codes, count


def _renumbered(codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """The same order in numbers from 0 without gaps, and how many they are."""
    if len(codes) and int(codes.max()) < _COUNTED_CODES:
        occurs = np.bincount(codes) > 0
        number_of = np.cumsum(occurs) - 1
        return number_of[codes], int(occurs.sum())
    unique, found = np.unique(codes, return_inverse=True)
    return found.reshape(-1).astype(np.int64), len(unique)


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number per value; NULL is a value. The chunks share one dictionary: unify_dictionaries() refuses NULL in it."""
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return np.concatenate([np.asarray(chunk.indices) for chunk in encoded.chunks]).astype(np.int64)


def _buckets(rows: pa.Table, schema: TableSchema) -> npt.NDArray[np.int32]:
    fields = schema.fields_of(schema.bucket_keys)
    return assign_buckets(
        [rows.column(field.name) for field in fields],
        [field.type for field in fields],
        schema.bucket_count,
        TableTraits(schema).bucket_function,
    )


def _routed(
    rows: pa.Table, kinds: Kinds | None, schema: TableSchema, assigned: AssignedRows | None
) -> RoutedRows:
    first = rows.slice(0, 1)
    values = first_values(first, schema)
    bucket = int(_buckets(first, schema)[0]) if schema.bucket_count > 1 else 0
    return RoutedRows(
        partition=values,
        partition_bytes=PartitionSpec.of(schema).encode(values),
        bucket=bucket if assigned is None else int(assigned.buckets[0]),
        rows=rows,
        kinds=kinds,
        assigned=assigned,
    )


def first_values(rows: pa.Table, schema: TableSchema) -> tuple[object, ...]:
    fields = schema.fields_of(schema.partition_keys)
    return tuple(python_values(rows.column(field.name), field.type)[0] for field in fields)
