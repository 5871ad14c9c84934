"""Dynamic buckets: the bucket of each row of a keyed table with `bucket` = -1 (format.md#buckets, decision 0133).

CHANGE     the bucket of a new key (options dynamic-bucket.target-row-num, dynamic-bucket.max-buckets)
Steps      hash of the key → the bucket whose hash index has it → else, in the order of the hashes, a bucket with room
INVARIANT  a hash has one bucket; keys with the same hash share it. What a plan assigns is right on snapshots with the
           same index files of the partition only (write_on_base widens the ConflictScope).
INVARIANT  a function of the index and of the set of hashes: the order of the rows, and a task that runs twice, change
           nothing. Of a large write, whose hashes nobody has together, of each hash alone.
MEMORY     rows at hand: one index file at a time. A large write: 8 bytes for each key of the partitions of a task.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.bucket import hash_rows
from tablestore_engine.format.hash_index import NO_HASHES, Hashes
from tablestore_engine.format.index_manifest import IndexEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.scalar import python_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.bucket_state import BucketId, HashChange
from tablestore_engine.store.metadata.hash_files import HashFiles
from tablestore_engine.store.table_traits import TableTraits

Numbers = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
BUCKETS_MAX = 32_767  # Java keeps the number of a bucket in 16 bits
_UNKNOWN = -1


@dataclass(frozen=True)
class AssignedRows:
    """For each row its bucket, the hash of its key, and whether the index lacks that hash."""

    buckets: Numbers
    hashes: Hashes
    is_new: Mask

    def take(self, order: npt.NDArray[np.int64]) -> AssignedRows:
        """The rows in another order."""
        return AssignedRows(self.buckets[order], self.hashes[order], self.is_new[order])

    def slice(self, start: int, stop: int) -> AssignedRows:
        return AssignedRows(self.buckets[start:stop], self.hashes[start:stop], self.is_new[start:stop])


@dataclass(frozen=True)
class BucketAssigner:
    """`entries`: the hash indexes of one snapshot by bucket. `unindexed`: buckets with files and without an index.

    `rows_expected`: of a large write about how many rows each partition gets; None: all rows are at hand.
    `rewrites`: the rows take the place of all others, and the index has their hashes alone.
    """

    files: HashFiles
    schema: TableSchema
    entries: Mapping[BucketId, IndexEntry]
    unindexed: frozenset[BucketId] = frozenset()
    rows_expected: Mapping[bytes, int] | None = None
    rewrites: bool = False
    _sorted: dict[bytes, tuple[Hashes, Numbers]] = field(default_factory=dict, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_sorted": {}}

    def assign(self, rows: pa.Table) -> AssignedRows:
        """REQUIRES conformed rows. Raises FixData TS1397 for a partition without an index, TS1195."""
        fields = self.schema.fields_of(self.schema.trimmed_primary_keys)
        hashes = hash_rows([rows.column(one.name) for one in fields], [one.type for one in fields])
        made = AssignedRows(np.zeros(len(hashes), np.int32), hashes, np.zeros(len(hashes), np.bool_))
        for partition, at in self._by_partition(rows):
            made.buckets[at], made.is_new[at] = self._assign(partition, hashes[at])
        return made

    def index_change(self, partition: bytes, bucket: int, assigned: AssignedRows) -> HashChange | None:
        """What rows of one bucket change of its index; None: nothing."""
        if self.rewrites:
            return HashChange(None, np.unique(assigned.hashes))
        added = np.unique(assigned.hashes[assigned.is_new])
        return HashChange(self.entries.get((partition, bucket)), added) if len(added) else None

    def with_keys_of(self, other: BucketAssigner, partition: bytes, bucket: int) -> HashChange:
        """The index of a bucket that also has the hashes which it has in the other snapshot."""
        place = (partition, bucket)
        own, theirs = (
            NO_HASHES if one is None else self.files.read(one)
            for one in (self.entries.get(place), other.entries.get(place))
        )
        return HashChange(self.entries.get(place), np.setdiff1d(theirs, own))

    def disagrees_with(self, other: BucketAssigner) -> bool:
        """Whether a hash that both have is in another bucket there."""
        for place, entry in other.entries.items():
            if self.entries.get(place) == entry:
                continue
            stored, buckets = self._sorted_index(place[0])
            if len(stored):
                theirs = self.files.read(entry)
                at = np.minimum(np.searchsorted(stored, theirs), len(stored) - 1)
                if bool((buckets[at[stored[at] == theirs]] != entry.bucket).any()):
                    return True
        return False

    # --------------------------------------------------------------------------------------------------------

    def _by_partition(self, rows: pa.Table) -> Iterator[tuple[bytes, npt.NDArray[np.int64]]]:
        spec, names = PartitionSpec.of(self.schema), list(self.schema.partition_keys)
        if not names:
            yield spec.encode(()), np.arange(rows.num_rows)
            return
        row = "#".join(["row", *names])  # no column is named so
        numbered = rows.select(names).append_column(row, pa.array(np.arange(rows.num_rows)))
        grouped = numbered.group_by(names, use_threads=False).aggregate([(row, "list")])
        fields = self.schema.fields_of(self.schema.partition_keys)
        columns = [python_values(grouped.column(one.name), one.type) for one in fields]
        for values, at in zip(zip(*columns, strict=True), grouped.column(f"{row}_list"), strict=True):
            yield spec.encode(values), at.values.to_numpy()

    def _assign(self, partition: bytes, hashes: Hashes) -> tuple[Numbers, Mask]:
        self._check_indexed(partition)
        unique, back = np.unique(hashes, return_inverse=True)
        found = self._find(partition, unique)
        is_new = found == _UNKNOWN
        if is_new.any():
            found[is_new] = self._place(partition, unique[is_new], found[~is_new])
        return found[back], is_new[back]

    def _find(self, partition: bytes, unique: Hashes) -> Numbers:
        """The buckets of known hashes, which are sorted and unique."""
        found = np.full(len(unique), _UNKNOWN, np.int32)
        if self.rows_expected is not None:
            stored, buckets = self._sorted_index(partition)
            if len(stored):
                at = np.minimum(np.searchsorted(stored, unique), len(stored) - 1)
                hit = stored[at] == unique
                found[hit] = buckets[at[hit]]
            return found
        for entry in self._by_place.get(partition, ()):
            stored = self.files.read(entry)
            at = np.minimum(np.searchsorted(unique, stored), len(unique) - 1)
            found[at[unique[at] == stored]] = entry.bucket
        return found

    def _sorted_index(self, partition: bytes) -> tuple[Hashes, Numbers]:
        """All hashes of a partition, ascending, with their buckets: asked for each batch of a task."""
        if partition not in self._sorted:
            entries = self._by_place.get(partition, ())
            parts = [self.files.read(entry) for entry in entries]
            hashes = np.concatenate([NO_HASHES, *parts])
            buckets = np.repeat(
                np.array([one.bucket for one in entries], np.int32), [len(one) for one in parts]
            )
            order = np.argsort(hashes, kind="stable")
            self._sorted[partition] = hashes[order], buckets[order]
        return self._sorted[partition]

    def _place(self, partition: bytes, hashes: Hashes, taken: Numbers) -> Numbers:
        """Buckets of new hashes, which are ascending and unique; `taken`: those of the known ones."""
        held = {entry.bucket: entry.row_count for entry in self._by_place.get(partition, ())}
        if self.rewrites and self.rows_expected is None:
            held = dict.fromkeys(held, 0) | dict(zip(*_counted(taken), strict=True))
        expected = None if self.rows_expected is None else max(self.rows_expected.get(partition, 0), 1)
        return spread_hashes(hashes, held, TableTraits(self.schema), expected)

    @cached_property
    def _by_place(self) -> Mapping[bytes, Sequence[IndexEntry]]:
        """The hash indexes of each partition, by bucket."""
        found: dict[bytes, list[IndexEntry]] = {}
        for (partition, _), entry in sorted(self.entries.items(), key=lambda item: item[0]):
            found.setdefault(partition, []).append(entry)
        return found

    def _check_indexed(self, partition: bytes) -> None:
        missing = sorted(bucket for place, bucket in self.unindexed if place == partition)
        if missing:
            raise FixData(
                "TS1397",
                f"{self.files.layout.location} cannot be written: bucket {missing[0]} has rows and no hash index",
                why="the writer of these rows keeps no hash index, and without it a key could come into two buckets",
                fix="give the table fixed buckets: `tablestore convert DATABASE.TABLE --buckets N`",
            )


def spread_hashes(
    hashes: Hashes, held: Mapping[int, int], traits: TableTraits, expected: int | None
) -> Numbers:
    """Buckets of new hashes, ascending and unique, in a partition whose buckets hold so many keys.

    `expected`: how many come to the partition, where nobody has them together; None: these are all.
    """
    rooms = plan_rooms(
        held,
        len(hashes) if expected is None else expected,
        target=traits.bucket_rows_target,
        buckets_max=traits.dynamic_buckets_max or BUCKETS_MAX,
    )
    numbers = np.array([bucket for bucket, _ in rooms], np.int32)
    ends = np.cumsum([room for _, room in rooms])
    at = np.arange(len(hashes))
    if expected is not None:  # hashes are spread evenly: their value stands for their rank
        at = ((hashes.astype(np.int64) + 2**31) * int(ends[-1])) >> 32
    return numbers[np.searchsorted(ends, at, side="right")]


def plan_rooms(
    held: Mapping[int, int], wanted: int, *, target: int, buckets_max: int
) -> list[tuple[int, int]]:
    """(bucket, how many new hashes it takes), `wanted` together: first buckets below `target`, then new ones, the
    smallest free numbers; where there may be no more of these, all buckets take equally many.
    """
    rooms = [(bucket, target - count) for bucket, count in sorted(held.items()) if count < target]
    left = wanted - sum(room for _, room in rooms)
    free = (number for number in itertools.count() if number not in held)
    more = min(max(0, -(-left // target)), max(0, buckets_max - len(held)))
    rooms += [(number, target) for number in itertools.islice(free, more)]
    left -= more * target
    if left > 0:
        every = sorted({*held, *(bucket for bucket, _ in rooms)}) or [0]
        known = dict(rooms)
        share, rest = divmod(left, len(every))
        rooms = [(bucket, known.get(bucket, 0) + share + (at < rest)) for at, bucket in enumerate(every)]
    made, rest = [], wanted
    for bucket, room in rooms:
        if rest > 0 and room > 0:
            made.append((bucket, min(room, rest)))
            rest -= room
    return made


def _counted(numbers: Numbers) -> tuple[list[int], list[int]]:
    values, counts = np.unique(numbers, return_counts=True)
    return values.tolist(), counts.tolist()
