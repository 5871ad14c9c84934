"""Where the rows of a write go whose keys may lie in another partition: of a table whose primary key lacks a partition
column.

CHANGE     what becomes of a row whose key is stored in another partition
Steps      rows by key, each key's in their order → where their keys are stored on the base (merge.stored_keys)
           → deduplicate: a delete in the old partition before the row · partial-update, aggregation: the row goes to
           the old partition · first-row: the row is left out
INVARIANT  a key has at most one row in the table. What is found is right on snapshots that have the same rows only: the
           plan depends on the whole table (ConflictScope.everything), and another base is looked at again.
INVARIANT  all rows of a key are placed together: a process that has some of the rows has all of their keys.
PAIMON     as its GlobalIndexAssigner, which keeps all keys in a local index and takes one writer; here several may
           write. Neither keeps a hash index of dynamic buckets for such a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.error_values import count_of, sql_row
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.bucket import hash_rows
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask, order_columns, order_permutation, starts_of_groups
from tablestore_engine.lsm.key_versions import retracts
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import KeyCache
from tablestore_engine.store.merge.stored_keys import find_keys
from tablestore_engine.store.rows.bucket_assigner import AssignedRows, spread_hashes
from tablestore_engine.store.rows.conformed_rows import SAMPLES, frame_samples
from tablestore_engine.store.rows.incoming_batch import accepted_rows, batch_of, written_mask
from tablestore_engine.store.rows.routing import Kinds, first_values, partition_codes
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest

_NEW = -1  # a bucket that is not known yet


class MoveRule(Enum):
    """What becomes of a row whose key is stored in another partition."""

    MOVES = "the stored row is deleted"
    STAYS = "the row goes to the stored one"
    SKIPS = "the row is left out"


@dataclass(frozen=True)
class KeyMoves:
    """Places rows on one snapshot. `files`: its live files. `taken`: partitions whose stored rows the write replaces.

    picks_anywhere the write replaces rows by a filter, of any partition
    replaces       stored rows go that the write names, so a delete is a delete
    is_strict      the rule of the merge engine does not say what the write means for a key in another partition
    rows_expected  of a large write about how many rows each partition gets; None: all rows are at hand
    """

    fileio: FileIO
    schema: TableSchema
    files: tuple[StoredFile, ...]
    rule: MoveRule
    taken: frozenset[bytes] = frozenset()
    picks_anywhere: bool = False
    replaces: bool = False
    is_strict: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    rows_expected: Mapping[bytes, int] | None = None
    cache: KeyCache | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "cache": None}

    def replaces_in(self, partition: bytes) -> bool:
        """Whether the filter of the write is for stored rows of this partition, or they leave it by key alone."""
        return not self.replaces or self.picks_anywhere or partition in self.taken

    @property
    def task_options(self) -> dict[str, str]:
        """Options of the tasks that get placed rows: a moved key may come to a bucket and leave it in one write."""
        moves = self.rule is MoveRule.MOVES
        return {**self.options, **({"tablestore.duplicates": "last"} if moves else {})}

    def place(
        self, rows: pa.Table, kinds: Kinds | None
    ) -> tuple[pa.Table, Kinds | None, AssignedRows | None]:
        """The rows to write, in the partitions where they belong, with their kinds and (dynamic) buckets.

        REQUIRES conformed rows. Raises FixData TS1148, TS1150, TS1601, TS1657, FixRequest TS1149.
        """
        traits = TableTraits(self.schema, self.options)
        if kinds is not None and not self.replaces:
            written = written_mask(kinds, traits)
            if written is not None:
                rows, kinds = rows.filter(pa.array(written)), kinds[written]
            rows, kinds, _ = accepted_rows(rows, kinds, np.arange(len(kinds)), traits)
        if not rows.num_rows:
            return rows, kinds, None
        keyed = _by_key(rows, kinds, self.schema)
        stored = self._find(keyed)
        if self.rule is MoveRule.MOVES:
            if not keyed.is_single and not traits.last_wins:
                batch_of(rows, kinds, traits, replaces=self.replaces, names=self.schema.primary_keys)
            placed = _moved(keyed, stored, keeps_all=traits.changelog_producer.writes_input)
        else:
            placed = self._kept(keyed, stored, is_ordered=traits.last_wins)
        assigned = self._assigned(keyed, placed, traits) if self.schema.bucket_count == -1 else None
        return _rows_of(keyed, placed, self.schema), placed.kinds, assigned

    # --------------------------------------------------------------------------------------------------------

    def _find(self, keyed: _Keyed) -> _StoredKeys:
        """Where the keys are stored; partitions that no row has get numbers behind the others."""
        keys = take_rows(keyed.rows.select(self.schema.primary_keys), keyed.firsts)
        hits = find_keys(FileReader(self.fileio, self.schema), self.files, keys, self.cache)
        numbers = {one: at for at, one in enumerate(keyed.partitions)}
        found: list[tuple[Index, int, int]] = []
        for hit in hits:
            number = numbers.setdefault(hit.file.partition_bytes, len(numbers))
            if number == len(keyed.partitions):
                keyed.partitions.append(hit.file.partition_bytes)
                keyed.values.append(hit.file.partition)
            found.append((hit.incoming, number, hit.file.bucket))
        none = np.empty(0, np.int64)
        key = np.concatenate([none, *(one for one, _, _ in found)])
        partition = np.concatenate([none, *(np.full(len(one), at) for one, at, _ in found)])
        bucket = np.concatenate([none, *(np.full(len(one), at) for one, _, at in found)])
        order = np.lexsort((bucket, partition, key))
        return _StoredKeys(key[order], partition[order], bucket[order], len(keyed.partitions))

    def _kept(self, keyed: _Keyed, stored: _StoredKeys, *, is_ordered: bool) -> _Placed:
        """Rows in the partition where their key is stored; of a new key in that of its first row."""
        outside = ~np.isin(
            stored.partition, [at for at, one in enumerate(keyed.partitions) if one in self.taken]
        )
        key, partition = stored.key[outside], stored.partition[outside]
        repeated = key[1:][key[1:] == key[:-1]]
        if len(repeated):
            raise _stored_twice(keyed, self.schema, repeated)
        target = keyed.partition[keyed.firsts]
        if self.is_strict:
            elsewhere = key[partition != target[key]]
            if len(elsewhere):
                raise _lies_elsewhere(keyed, self.schema, elsewhere)
        is_new = np.ones(len(target), np.bool_)
        is_new[key], target[key] = False, partition
        wanted = target[keyed.key]
        others = np.flatnonzero((keyed.partition != wanted) & is_new[keyed.key])
        if len(others) and not is_ordered:
            raise _unordered(keyed, self.schema, others)
        at = np.arange(keyed.rows.num_rows)
        if self.rule is MoveRule.SKIPS:
            at = np.flatnonzero(keyed.partition == wanted)
        kinds = None if keyed.kinds is None else keyed.kinds[at]
        return _Placed(at, wanted[at], kinds, stored.buckets(keyed.key[at], wanted[at]))

    def _assigned(self, keyed: _Keyed, placed: _Placed, traits: TableTraits) -> AssignedRows:
        """Buckets: of stored keys their own, of new ones by their hash."""
        buckets = placed.buckets.astype(np.int32)
        fields = self.schema.fields_of(self.schema.trimmed_primary_keys)
        hashes = hash_rows([keyed.rows.column(one.name) for one in fields], [one.type for one in fields])
        hashes = hashes[placed.at]
        for number in np.unique(placed.partition[buckets == _NEW]):
            new = np.flatnonzero((placed.partition == number) & (buckets == _NEW))
            unique, back = np.unique(hashes[new], return_inverse=True)
            partition = keyed.partitions[number]
            expected = None if self.rows_expected is None else max(self.rows_expected.get(partition, 0), 1)
            buckets[new] = spread_hashes(unique, self._held(partition), traits, expected)[back]
        return AssignedRows(buckets, hashes, np.zeros(len(hashes), np.bool_))

    def _held(self, partition: bytes) -> dict[int, int]:
        """How many rows each bucket of a partition has."""
        held: dict[int, int] = {}
        for file in self.files:
            if file.partition_bytes == partition:
                held[file.bucket] = held.get(file.bucket, 0) + file.visible_rows
        return held


def find_moves(
    context: TableContext,
    base: Snapshot | None,
    schema: TableSchema,
    request: WriteRequest,
    covers: Callable[[BucketId], bool],
    rows_expected: Mapping[bytes, int] | None = None,
) -> KeyMoves | None:
    """For a write on `base`; None of a table whose keys stay in their partitions. `covers`: buckets whose rows the
    write replaces (of overwrites). `rows_expected`: KeyMoves's.
    """
    if not schema.crosses_partitions:
        return None
    states = context.scanner.bucket_states(base, schema)
    files = tuple(file for state in states.values() for file in state.files if file.meta.level)
    mode, engine = request.mode, TableTraits(schema).merge_engine
    names_keys = isinstance(request.replaces, SameKeys) and request.replaces.keys is None
    by_key = mode is WriteMode.REPLACE and names_keys and request.replaces.is_key_of(schema)  # type: ignore[union-attr]
    rule = MoveRule.SKIPS if engine.keeps_stored else MoveRule.STAYS
    if engine.newest_wins or by_key:
        rule = MoveRule.MOVES
    overwrites = mode.is_overwrite and mode is not WriteMode.REPLACE
    return KeyMoves(
        context.fileio,
        schema,
        files,
        rule,
        frozenset(one for one, _ in states if covers((one, 0))) if overwrites else frozenset(),
        picks_anywhere=mode is WriteMode.REPLACE,
        replaces=mode.is_overwrite,
        is_strict=mode.is_overwrite,
        options=request.options_of_write,
        rows_expected=rows_expected,
        cache=context.key_cache,
    )


# ---- rows by key -------------------------------------------------------------------------------------------


@dataclass
class _Keyed:
    """Rows by key, each key's in the order of their arrival. Keys and partitions are numbers."""

    rows: pa.Table
    kinds: Kinds | None
    key: Index
    firsts: Index
    partition: Index
    partitions: list[bytes]
    values: list[tuple[object, ...]]

    @property
    def is_single(self) -> bool:
        return len(self.firsts) == len(self.key)


@dataclass(frozen=True)
class _StoredKeys:
    """(key, partition, bucket) of stored rows, ascending."""

    key: Index
    partition: Index
    bucket: Index
    partitions: int

    @property
    def codes(self) -> Index:
        """Key and partition as one number, ascending."""
        return self.key * self.partitions + self.partition

    def buckets(self, key: Index, partition: Index) -> Index:
        """The bucket of each of these keys in that partition, _NEW where it is not stored."""
        wanted, codes = key * self.partitions + partition, self.codes
        if not len(codes):
            return np.full(len(wanted), _NEW, np.int64)
        at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
        return np.where(codes[at] == wanted, self.bucket[at], _NEW)


@dataclass(frozen=True)
class _Placed:
    """Rows to write: their numbers, the partitions and buckets that they go to, their kinds (None: all add)."""

    at: Index
    partition: Index
    kinds: Kinds | None
    buckets: Index


def _by_key(rows: pa.Table, kinds: Kinds | None, schema: TableSchema) -> _Keyed:
    frame = order_columns(rows, schema.primary_keys)
    order = order_permutation(frame)
    starts = starts_of_groups(frame[order])
    rows = take_rows(rows, order)
    codes, count = partition_codes(rows, schema)
    _, firsts = np.unique(codes, return_index=True)
    values = [first_values(rows.slice(int(at), 1), schema) for at in firsts]
    assert len(values) == count
    spec = PartitionSpec.of(schema)
    return _Keyed(
        rows,
        None if kinds is None else kinds[order],
        np.cumsum(starts) - 1,
        np.flatnonzero(starts),
        codes,
        [spec.encode(one) for one in values],
        values,
    )


def _moved(keyed: _Keyed, stored: _StoredKeys, *, keeps_all: bool) -> _Placed:
    """Each row where it says, after a delete where its key was. `keeps_all`: a changelog has all rows that came.

    A row that retracts its key acts where the key is; elsewhere it is left out.
    """
    count = keyed.rows.num_rows
    is_first: Mask = np.zeros(count, np.bool_)
    is_first[keyed.firsts] = True
    before = np.where(is_first, _NEW, np.roll(keyed.partition, 1))
    later = np.flatnonzero(~is_first & (before != keyed.partition))
    codes = stored.codes
    is_nearest = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
    stays = is_nearest & (stored.partition == keyed.partition[keyed.firsts[stored.key]])
    has_place = ~is_first & (before == keyed.partition)
    has_place[keyed.firsts[stored.key[stays]]] = True
    kinds = np.zeros(count, np.int8) if keyed.kinds is None else keyed.kinds
    own = np.flatnonzero(keeps_all | has_place | ~retracts(kinds))
    gone = ~stays
    at = np.concatenate([keyed.firsts[stored.key[gone]], later, own])
    partition = np.concatenate([stored.partition[gone], before[later], keyed.partition[own]])
    buckets = np.concatenate(
        [
            stored.bucket[gone],
            stored.buckets(keyed.key[later], before[later]),
            stored.buckets(keyed.key[own], keyed.partition[own]),
        ]
    )
    deletes = np.full(len(at) - len(own), RowKind.DELETE, np.int8)
    order = np.lexsort((np.arange(len(at)) >= len(deletes), at))
    all_kinds = np.concatenate([deletes, kinds[own]])
    if not keeps_all:
        order = order[_last_of_each(keyed.key[at][order], partition[order], buckets[order])]
    adds = keyed.kinds is None and not len(deletes)
    return _Placed(at[order], partition[order], None if adds else all_kinds[order], buckets[order])


def _last_of_each(*columns: Index) -> Index:
    """Ascending numbers of the rows that no equal row follows."""
    order = np.lexsort(columns)
    differs = np.zeros(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        differs |= column[order][1:] != column[order][:-1]
    return np.sort(order[np.append(differs, True)[: len(order)]])


def _rows_of(keyed: _Keyed, placed: _Placed, schema: TableSchema) -> pa.Table:
    """The rows with the partition columns of their places."""
    rows = take_rows(keyed.rows, placed.at)
    if np.array_equal(placed.partition, keyed.partition[placed.at]):
        return rows
    for at, column in enumerate(schema.fields_of(schema.partition_keys)):
        values = arrow_values([one[at] for one in keyed.values], column.type)
        place = rows.schema.get_field_index(column.name)
        rows = rows.set_column(place, rows.schema.field(place), values.take(pa.array(placed.partition)))
    return rows


# ---- refusals ----------------------------------------------------------------------------------------------


def _samples(keyed: _Keyed, schema: TableSchema, rows: npt.NDArray[np.int64]) -> str:
    found = frame_samples(keyed.rows, schema.primary_keys, rows)
    return f"keys, {min(len(rows), SAMPLES)} of {len(rows)}: " + "; ".join(map(sql_row, found))


def _stored_twice(keyed: _Keyed, schema: TableSchema, keys: Index) -> FixData:
    return FixData(
        "TS1148",
        f"{count_of(len(keys), 'key has', 'keys have')} rows in several partitions",
        why="another engine wrote them without a look at other partitions, and nothing says which row is the key's: "
        + _samples(keyed, schema, keyed.firsts[keys]),
        fix="delete these rows with DELETE, then write the key again",
    )


def _lies_elsewhere(keyed: _Keyed, schema: TableSchema, keys: Index) -> FixRequest:
    return FixRequest(
        "TS1149",
        f"{count_of(len(keys), 'key is', 'keys are')} in a partition that the write does not replace",
        why="the merge engine keeps a key in its partition, and an overwrite puts it into another one: "
        + _samples(keyed, schema, keyed.firsts[keys]),
        fix="overwrite the whole table, or write these rows without overwrite",
    )


def _unordered(keyed: _Keyed, schema: TableSchema, rows: Index) -> FixData:
    firsts = keyed.firsts[np.unique(keyed.key[rows])]
    return FixData(
        "TS1150",
        f"{count_of(len(firsts), 'new key comes', 'new keys come')} with several partitions",
        why="the first row of a key decides its partition, and nothing orders the rows: "
        + _samples(keyed, schema, firsts),
        fix="give all rows of a key one partition, or accept their order with duplicates='last'",
    )
