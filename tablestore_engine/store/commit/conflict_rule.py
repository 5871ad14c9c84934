"""May a planned commit move to a newer base as it is, or must it be planned again? Pure.

CHANGE     when two writers conflict
Example    plan: upsert into (dt=1, bucket 0); between: a commit to (dt=1, bucket 1) → only manifests are rebased.
           between: a fold of (dt=1, bucket 0) → planned again, its files and positions are gone.
INVARIANT  a plan that looked at a bucket never lands on a base where that bucket is different: deletion vectors
           and levels would be wrong. This includes commits that only changed vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tablestore_engine.format.index_manifest import IndexEntry
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.store.files.bucket_state import BucketId


@dataclass(frozen=True)
class ConflictScope:
    """What a plan depends on: the whole table, partitions (bytes) with all their buckets, single buckets.

    The empty scope depends on nothing: rows appended without buckets.
    """

    everything: bool = False
    partitions: frozenset[bytes] = frozenset()
    buckets: frozenset[BucketId] = frozenset()

    def meets(self, touched: Collection[BucketId]) -> bool:
        if self.everything:
            return bool(touched)
        return any(one in self.buckets or one[0] in self.partitions for one in touched)


@dataclass(frozen=True)
class Step:
    """One snapshot after the plan's base."""

    schema_id: int
    touched: frozenset[BucketId]


def can_rebase(scope: ConflictScope, schema_id: int, steps: Sequence[Step]) -> bool:
    """Whether a plan made with that schema stays right after these steps."""
    return all(step.schema_id <= schema_id and not scope.meets(step.touched) for step in steps)


def touched_buckets(
    entries: Iterable[ManifestEntry], index_before: Sequence[IndexEntry], index_after: Sequence[IndexEntry]
) -> frozenset[BucketId]:
    """Buckets with files in `entries` (delta and changelog) or with another index file than before."""
    files = {(entry.partition, entry.bucket) for entry in entries}
    before = {(one.partition, one.bucket, one.index_type, one.file_name) for one in index_before}
    after = {(one.partition, one.bucket, one.index_type, one.file_name) for one in index_after}
    return frozenset(files | {(partition, bucket) for partition, bucket, _, _ in before ^ after})
