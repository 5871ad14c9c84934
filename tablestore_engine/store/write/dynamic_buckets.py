"""The hash index of a table with dynamic buckets, around a write: opened on its base, changed with its buckets.

INVARIANT  a bucket whose files change has an index with the hashes of all of its keys, in the same snapshot.
INVARIANT  a plan that gives a bucket to a new key depends on its whole partition: another writer may have given it one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from tablestore_engine.format.index_manifest import HASH
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.scalar import python_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.store.files.bucket_state import BucketChange, HashChange
from tablestore_engine.store.metadata.hash_files import HashFiles
from tablestore_engine.store.rows.bucket_assigner import BucketAssigner
from tablestore_engine.store.rows.routing import RoutedRows
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.write.write_request import Extent


def find_assigner(
    context: TableContext,
    base: Snapshot | None,
    schema: TableSchema,
    *,
    rewrites: bool = False,
    rows_expected: Mapping[bytes, int] | None = None,
) -> BucketAssigner | None:
    """For writes on `base`; None of a table without dynamic buckets. The arguments are BucketAssigner's."""
    if not schema.has_dynamic_buckets:
        return None
    index = context.manifests.read_index(None if base is None else base.index_manifest)
    entries = {(one.partition, one.bucket): one for one in index if one.index_type == HASH}
    live = () if base is None else context.scanner.live_entries(base)
    return BucketAssigner(
        HashFiles(context.fileio, context.layout),
        schema,
        entries,
        frozenset((one.partition, one.bucket) for one in live) - entries.keys(),
        rows_expected,
        rewrites,
    )


def with_hashes(
    changes: Iterable[BucketChange], routed: Iterable[RoutedRows], assigner: BucketAssigner | None
) -> list[BucketChange]:
    """The changes with what they change of the indexes; of a rewrite that of a bucket without rows gets empty."""
    if assigner is None:
        return list(changes)
    came = {(one.partition_bytes, one.bucket): one for one in routed}
    made = []
    for change in changes:
        key = (change.partition_bytes, change.bucket)
        rows = came.get(key)
        hashes: HashChange | None = None
        if rows is not None and rows.assigned is not None:
            hashes = assigner.index_change(*key, rows.assigned)
        elif assigner.rewrites:
            hashes = HashChange(None)
        made.append(change if change.is_empty else replace(change, hashes=hashes))
    return made


def expected_rows(counted: pa.Table, schema: TableSchema) -> dict[bytes, int]:
    """How many rows come to each partition; `counted`: the partition columns, then their number of rows."""
    fields = schema.fields_of(schema.partition_keys)
    columns = [
        python_values(counted.column(at).cast(type_to_arrow(field.type)), field.type)
        for at, field in enumerate(fields)
    ]
    counts = counted.column(counted.num_columns - 1).to_pylist()
    places = zip(*columns, strict=True) if columns else [()] * len(counts)
    spec = PartitionSpec.of(schema)
    return {spec.encode(values): count for values, count in zip(places, counts, strict=True)}


def widened(extent: Extent, partitions: Iterable[bytes]) -> Extent:
    scope = extent.scope
    return replace(extent, scope=replace(scope, partitions=scope.partitions | frozenset(partitions)))


def partitions_of_new_keys(routed: Iterable[RoutedRows]) -> frozenset[bytes]:
    """Where rows have keys that the index lacks."""
    return frozenset(
        one.partition_bytes for one in routed if one.assigned is not None and one.assigned.is_new.any()
    )
