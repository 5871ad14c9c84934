"""The part of the table that a write is about whose keys may come out of other partitions (key_moves).

INVARIANT  the rows of other partitions are only deleted by key: an overwrite replaces the partitions that it names.
INVARIANT  the plan depends on every bucket: another writer may have put a key somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.rows.conformed_rows import conform
from tablestore_engine.store.rows.routing import RoutedRows, first_values, partition_codes
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.write_request import Extent, WriteRequest, plan_extent


@dataclass(frozen=True)
class _Covers:
    """What the write replaces, and buckets that keys come out of."""

    covers: Callable[[BucketId], bool]
    also: frozenset[BucketId]

    def __call__(self, key: BucketId) -> bool:
        return key in self.also or self.covers(key)


def check_can_move(traits: TableTraits, table: str) -> None:
    """Raises Unsupported TS1152."""
    if traits.schema.crosses_partitions and traits.merge_engine.newest_wins and traits.ignores_deletes:
        raise _no_moves(
            f"{table} ignores deletes, and its keys may move between partitions",
            "the old row of a key that moves would stay: Paimon then has the key twice",
            "leave deletes out of the rows instead of 'ignore-delete', or use another merge engine",
        )


def check_stage(schema: TableSchema, table: str) -> None:
    """Of a second write into a staged snapshot. Raises Unsupported TS1152."""
    if schema.crosses_partitions:
        raise _no_moves(
            f"a staged snapshot of {table} takes one write, since its keys may move between partitions",
            "nothing orders the changes of two writes to a key in two partitions, and one snapshot would have both",
            "write all rows at once (in dbt: no microbatch), or add the partition columns to the key",
        )


def _no_moves(what: str, why: str, fix: str) -> Unsupported:
    return Unsupported("TS1152", what, why=why, fix=fix)


def partitions_of(rows: pa.Table, schema: TableSchema) -> frozenset[bytes]:
    """The partitions that rows name. Raises FixData TS1602, TS1603, TS1604."""
    if not rows.num_rows:
        return frozenset()
    made = conform(rows, schema, np.ones(rows.num_rows, np.bool_))
    _, firsts = np.unique(partition_codes(made, schema)[0], return_index=True)
    spec = PartitionSpec.of(schema)
    return frozenset(spec.encode(first_values(made.slice(int(at), 1), schema)) for at in firsts)


def covered_by(request: WriteRequest, schema: TableSchema) -> Callable[[BucketId], bool]:
    """The buckets whose rows a large write replaces: its `emptied` are all partitions that its rows name."""
    named = [(one, 0) for one in request.emptied]
    return plan_extent(request.mode, schema, named, request.partition, request.replaces).covers


def with_moved(extent: Extent, buckets: Collection[BucketId]) -> Extent:
    """The extent with these buckets, as a plan that depends on the whole table."""
    covers = _Covers(extent.covers, frozenset(buckets))
    return replace(extent, scope=ConflictScope(everything=True), covers=covers)


def split_moved(
    extent: Extent, routed: Sequence[RoutedRows]
) -> tuple[tuple[RoutedRows, ...], tuple[RoutedRows, ...]]:
    """Rows inside of what the write replaces, and outside."""
    inside = tuple(one for one in routed if extent.covers((one.partition_bytes, one.bucket)))
    return inside, tuple(one for one in routed if not extent.covers((one.partition_bytes, one.bucket)))


def check_nothing_moves(context: TableContext, *, may_move: bool) -> None:
    """Of a write that gives partitions another bucket count. Raises FixRequest TS1151."""
    if may_move:
        raise FixRequest(
            "TS1151",
            f"partitions of {context.layout.location} cannot get another bucket count with these rows",
            why="rows of their keys may be in other partitions, and would have to be deleted there in the same write",
            fix="overwrite the whole table, or rescale it first: `tablestore rescale DATABASE.TABLE N`",
        )
