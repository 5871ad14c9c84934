"""A staged snapshot on a newer base: compactions since then changed no row, so what its tests saw is still true.

Steps      1 everything on main since its base only compacted (or described columns)?
           2 its buckets were left alone → the same data files under new manifests
             a compaction rewrote one of its buckets → its changelog, which is what the tests saw as a difference, is
             written again on top; only with a merge engine where a row put again is that row
INVARIANT  the rows that appear are the ones the tests saw: the keys inserted, updated and deleted are counted again
           and must be as many as when it was staged.
INVARIANT  files of the staged snapshot are never deleted here: while it is not published it stays as it is.
CRASH      the published snapshot has the identity of the staged one: publishing again finds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.errors import (
    RetryError,
    StagedSnapshotOvertaken,
)
from tablestore_engine.format.index_manifest import DELETION_VECTORS, HASH, IndexEntry
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.lsm.key_versions import without_update_before
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.commit.commit import Committer
from tablestore_engine.store.commit.commit_report import CommitIdentity, CommitReport, count_properties
from tablestore_engine.store.commit.conflict_rule import ConflictScope, touched_buckets
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.bucket_state import BucketChange, BucketId, HashChange
from tablestore_engine.store.metadata.manifests import ManifestStore
from tablestore_engine.store.metadata.schemas import is_described, is_same_schema
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.write_on_base import RowsWrite
from tablestore_engine.store.write.write_request import WriteRequest

_COUNTED = ("tablestore.inserted", "tablestore.updated", "tablestore.deleted")
_RETRIES_MAX = 20


@dataclass(frozen=True)
class StoredOutcome:
    """What a test said of a staged snapshot, in its last run."""

    test_id: str
    status: str
    details: str
    time_millis: int


@dataclass(frozen=True)
class StagedSnapshot:
    """`outcomes`: by test id, where they were read (staging.with_outcomes)."""

    name: str
    snapshot: Snapshot
    base: Snapshot | None
    outcomes: tuple[StoredOutcome, ...] = ()

    @property
    def base_id(self) -> int | None:
        """Id of the snapshot it was planned on; None for the first snapshot of a table."""
        return None if self.base is None else self.base.id


def publish_rebased(
    context: TableContext, branch: TableContext, committer: Committer, staged: StagedSnapshot
) -> CommitReport:
    """Commit the staged rows on main's newest snapshot. Raises RetryError TS1305, TS1308, OutcomeUnknown TS1306."""
    plans = _Plans(context, branch, committer, staged)
    snapshot = staged.snapshot
    return committer.commit(
        plans.plan,
        CommitIdentity(snapshot.commit_user, snapshot.commit_identifier),
        properties=snapshot.properties,
        retries_max=lambda: _RETRIES_MAX,
    )


def base_moved(layout: TableLayout, staged: StagedSnapshot, newest: int | None) -> StagedSnapshotOvertaken:
    """TS1308: it has to be planned and tested again."""
    return StagedSnapshotOvertaken(
        "TS1308",
        f"staged snapshot {staged.name} of {layout.location} cannot be published",
        why=f"it was planned on snapshot {staged.base_id}, and main is at {newest} now, with other rows or columns",
        fix="build the model again: it plans on the new base, and its tests run again",
    )


@dataclass
class _Plans:
    """Plans one staged snapshot on whatever base the commit loop finds."""

    context: TableContext
    branch: TableContext
    committer: Committer
    staged: StagedSnapshot
    _replay: RowsWrite | None = None

    def plan(self, base: Snapshot | None) -> Planned:
        """The plan on this base. Raises RetryError TS1308."""
        touched = self._touched_by_compactions(base)
        if base is None or touched is None:
            raise self._moved(base)
        schema = self._schema_on(base)
        if self._leaves_alone(touched) and self._can_read_files(schema):
            return self._same_files(schema)
        return self._replayed(base)

    def _touched_by_compactions(self, base: Snapshot | None) -> frozenset[BucketId] | None:
        """Buckets that were rewritten since the stage's base; None when rows or columns may be others."""
        origin = self.staged.base
        if base is None or origin is None:
            return None
        if base == origin:
            return frozenset()
        steps = self.committer.steps_between(origin, base) if base.id > origin.id else None
        if steps is None:
            return None
        for number, step in enumerate(steps, start=origin.id + 1):
            snapshot = self.context.snapshots.get(number)
            is_compaction = (
                snapshot.commit_kind is CommitKind.COMPACT and snapshot.changelog_manifest_list is None
            )
            if step.touched and not is_compaction:
                return None
        return frozenset(bucket for step in steps for bucket in step.touched)

    def _schema_on(self, base: Snapshot) -> TableSchema:
        """The schema that the stage brings, else main's when it is the stage's up to comments. Raises TS1308."""
        current = self.context.schema_at(base)
        if self._brings_schema and is_same_schema(self._schema_before, current):
            return self._own_schema
        if is_described(self._own_schema, current):
            return current
        raise self._moved(base)

    def _can_read_files(self, schema: TableSchema) -> bool:
        """Whether main can read files that carry the number of the stage's schema, published with `schema`."""
        own, schemas = self._own_schema, self.context.schemas
        on_main = schemas.get(own.id) if own.id in schemas.list_ids() else None
        if schema is own:
            return on_main is None or on_main.claim == own.claim
        return on_main is not None and is_described(on_main, own)

    @property
    def _own_schema(self) -> TableSchema:
        return self.branch.schemas.get(self.staged.snapshot.schema_id)

    @property
    def _schema_before(self) -> TableSchema:
        base = self.staged.base
        return self._own_schema if base is None else self.branch.schemas.get(base.schema_id)

    @property
    def _brings_schema(self) -> bool:
        return not is_same_schema(self._own_schema, self._schema_before)

    # ---- the same files ------------------------------------------------------------------------------------

    def _leaves_alone(self, touched: frozenset[BucketId]) -> bool:
        snapshot, manifests = self.staged.snapshot, self.context.manifests
        delta = manifests.read_entries(snapshot.delta_manifest_list)
        index_before, index_after = _indexes(manifests, self.staged)
        own = touched_buckets(
            [*delta, *manifests.read_changelog_entries(snapshot)], index_before, index_after
        )
        if not own & touched:
            return True
        schema = self.branch.schemas.get(snapshot.schema_id)
        adds_only = all(entry.kind is FileKind.ADD for entry in delta) and index_before == index_after
        return not schema.is_keyed and schema.bucket_count <= 0 and adds_only  # rows without a place

    def _same_files(self, schema: TableSchema) -> Planned:
        snapshot = self.staged.snapshot
        return Planned(
            kind=snapshot.commit_kind,
            schema=schema,
            changes=staged_changes(self.context.manifests, self.staged),
            scope=ConflictScope(everything=True),
            is_forced=True,
            claims_schema=schema is self._own_schema and schema.claim is not None,
            operation=snapshot.operation,
            is_borrowed=True,
        )

    # ---- the same difference -------------------------------------------------------------------------------

    def _replayed(self, base: Snapshot) -> Planned:
        schema = self._own_schema
        has_changelog = self.staged.snapshot.changelog_manifest_list is not None
        traits = TableTraits(schema)
        is_told = schema.is_keyed and has_changelog and traits.tells_all
        if not is_told or not traits.merge_engine.newest_wins:
            raise self._moved(base)
        if self._replay is None:
            self._replay = RowsWrite(self.context, self._request(schema, base))
        planned = self._replay(base)
        if not planned.then_again:
            counted, kept = count_properties(planned), self.staged.snapshot.properties or {}
            if any(counted.get(name) != kept.get(name) for name in _COUNTED):
                self.committer.delete(planned.file_paths(self.context.layout))
                raise self._moved(base)
        return planned

    def _request(self, schema: TableSchema, base: Snapshot) -> WriteRequest:
        """The rows of the changelog as they were after the snapshot, and the keys that it deleted."""
        batches = [one.rows for one in ChangelogReader(self.branch).read(self.staged.snapshot, schema)]
        rows = pa.concat_tables(batches)
        kinds = rows.column(ROW_KIND_COLUMN).to_numpy()
        kept = kinds != RowKind.UPDATE_BEFORE
        if schema.crosses_partitions:  # of a key that moves the row says all: where it was is looked up again
            said = np.where(kinds == RowKind.DELETE, RowKind.UPDATE_BEFORE, RowKind.INSERT)
            kept &= without_update_before(order_columns(rows, schema.primary_keys), said)
        deletes = kinds[kept] == RowKind.DELETE
        current = self.context.schema_at(base)
        return WriteRequest(
            rows=rows.filter(pa.array(kept)).drop_columns([ROW_KIND_COLUMN]),
            kinds=np.where(deletes, int(RowKind.DELETE), int(RowKind.INSERT)).astype(np.int8),
            new_schema=None if is_described(schema, current) else replace(schema, id=current.id + 1),
            operation=self.staged.snapshot.operation,
        )

    def _moved(self, base: Snapshot | None) -> RetryError:
        return base_moved(self.context.layout, self.staged, None if base is None else base.id)


def staged_changes(manifests: ManifestStore, staged: StagedSnapshot) -> tuple[BucketChange, ...]:
    """What the stage changes of its base, without counts."""
    snapshot = staged.snapshot
    return _changes_of(
        manifests.read_entries(snapshot.delta_manifest_list),
        manifests.read_changelog_entries(snapshot),
        _changed_vectors(manifests, staged),
        _changed_hashes(manifests, staged),
    )


def _indexes(
    manifests: ManifestStore, staged: StagedSnapshot
) -> tuple[tuple[IndexEntry, ...], tuple[IndexEntry, ...]]:
    base = staged.base
    before = manifests.read_index(base.index_manifest if base is not None else None)
    return before, manifests.read_index(staged.snapshot.index_manifest)


def _changed_vectors(
    manifests: ManifestStore, staged: StagedSnapshot
) -> dict[BucketId, Mapping[str, BitMap]]:
    before, after = (_by_bucket(entries, DELETION_VECTORS) for entries in _indexes(manifests, staged))
    return {
        key: manifests.read_vectors(after[key]) if key in after else {}
        for key in before | after
        if before.get(key) != after.get(key)
    }


def _changed_hashes(manifests: ManifestStore, staged: StagedSnapshot) -> dict[BucketId, HashChange]:
    """The hash indexes of the stage that its base has not."""
    before, after = (_by_bucket(entries, HASH) for entries in _indexes(manifests, staged))
    changed = [key for key in before | after if before.get(key) != after.get(key)]
    return {key: HashChange(after.get(key)) for key in changed}


def _changes_of(
    delta: Sequence[ManifestEntry],
    changelog: Sequence[ManifestEntry],
    vectors: Mapping[BucketId, Mapping[str, BitMap]],
    hashes: Mapping[BucketId, HashChange],
) -> tuple[BucketChange, ...]:
    files = ((one.partition, one.bucket) for one in (*delta, *changelog))
    keys = dict.fromkeys([*files, *vectors, *hashes])
    return tuple(
        BucketChange(
            *key,
            added=tuple(one.file for one in delta if _is_in(one, key) and one.kind is FileKind.ADD),
            removed=tuple(one.file for one in delta if _is_in(one, key) and one.kind is FileKind.DELETE),
            changelog=tuple(one.file for one in changelog if _is_in(one, key)),
            deletion_vectors=vectors.get(key),
            hashes=hashes.get(key),
        )
        for key in keys
    )


def _is_in(entry: ManifestEntry, key: BucketId) -> bool:
    return (entry.partition, entry.bucket) == key


def _by_bucket(entries: Sequence[IndexEntry], index_type: str) -> dict[BucketId, IndexEntry]:
    return {(one.partition, one.bucket): one for one in entries if one.index_type == index_type}
