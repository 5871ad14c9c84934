"""What one bucket holds, and what one task changes of it: the values that planning, tasks and commits exchange.

INVARIANT  both are immutable: a lost race throws the change away and plans again on a newer state.
INVARIANT  `deletion_vectors` of a change is the complete map of the bucket, or None when no vector changed;
           the index manifest has exactly one entry per bucket, which holds all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap

from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.hash_index import NO_HASHES, Hashes
from tablestore_engine.format.index_manifest import IndexEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.stored_file import StoredFile

BucketId = tuple[bytes, int]


@dataclass(frozen=True)
class BucketState:
    """The live files of one bucket; `partition` values are python objects in partition-key order."""

    partition: tuple[object, ...]
    partition_bytes: bytes
    partition_path: str
    bucket: int
    files: tuple[StoredFile, ...] = ()

    @property
    def total_buckets(self) -> int | None:
        """How many buckets its partition had when its files were written; None without files."""
        return self.files[0].total_buckets if self.files else None

    @property
    def next_sequence(self) -> int:
        """First free sequence number: one above the live maximum over all levels, 0 for an empty bucket."""
        return 1 + max((file.meta.max_sequence_number for file in self.files), default=-1)

    @property
    def deletion_vectors(self) -> dict[str, BitMap]:
        """File name → vector, for the files that have one."""
        return {file.meta.file_name: file.deleted for file in self.files if file.deleted}

    def rewritten(self, removed: Sequence[DataFileMeta], added: Sequence[DataFileMeta]) -> BucketChange:
        """The change that puts `added` in the place of `removed`: their vectors go, all others stay as they are."""
        gone, before = {meta.file_name for meta in removed}, self.deletion_vectors
        kept = {name: vector for name, vector in before.items() if name not in gone}
        return BucketChange(
            self.partition_bytes,
            self.bucket,
            added=tuple(added),
            removed=tuple(removed),
            deletion_vectors=None if len(kept) == len(before) else kept,
        )


@dataclass(frozen=True, eq=False)
class HashChange:
    """The hash index of a bucket: what `entry` has, and the hashes `added` (int32, each once)."""

    entry: IndexEntry | None
    added: Hashes = field(default_factory=NO_HASHES.copy)


@dataclass(frozen=True)
class BucketChange:
    """What one operation did to one bucket. Counts are of keys, as the user sees them.

    `total_buckets`: of its partition, as entries of its files say; None: as the schema says. An entry that removes a
    file has to say what the one that added it said, since other engines look for a key by it.
    `hashes`: of dynamic buckets, whose files change with it; None: the index stays.
    `early`: the answer of the receiver of its changelog rows (tasks.prepublish_rows); None: nothing was
    handed on, or not everything arrived.
    """

    partition_bytes: bytes
    bucket: int
    added: tuple[DataFileMeta, ...] = ()
    removed: tuple[DataFileMeta, ...] = ()
    changelog: tuple[DataFileMeta, ...] = ()
    deletion_vectors: Mapping[str, BitMap] | None = field(default=None, hash=False)
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    total_buckets: int | None = None
    hashes: HashChange | None = field(default=None, compare=False)
    early: object | None = field(default=None, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be committed for this bucket."""
        return not (self.added or self.removed or self.changelog) and self.deletion_vectors is None

    @property
    def created(self) -> tuple[DataFileMeta, ...]:
        """Files that this change made; one that only gets another level is added and removed, and not its own."""
        old = {meta.file_name for meta in self.removed}
        return tuple(meta for meta in (*self.added, *self.changelog) if meta.file_name not in old)


def empty_bucket(schema: TableSchema, partition: tuple[object, ...], bucket: int) -> BucketState:
    spec = PartitionSpec.of(schema)
    return BucketState(partition, spec.encode(partition), spec.path(partition), bucket)
