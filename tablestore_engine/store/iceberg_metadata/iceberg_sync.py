"""Brings the Iceberg metadata of a table up to its snapshots and tags, in a new version.

CHANGE     when a version of the Iceberg metadata is written, and what a writer does that was overtaken
Steps      1 the newest version  2 the table's newest snapshot, its tags  3 which states are missing (find_wanted)
           4 their files (iceberg_snapshots)  5 the claim: `vN.metadata.json`, exclusively  6 the hint
           7 files that only dropped states had (iceberg_cleanup)
INVARIANT  a version is planned on the one before it, and the table is looked at behind that: no version is older than
           the one before it. A writer whose version was taken plans again.
INVARIANT  only snapshots of the main branch are listed: a staged one never is.
INVARIANT  no file of the table is written or deleted here; what a version names is durable before the version is.
CRASH      before 5: files that nothing names; orphan cleaning deletes them. After it: the hint is one version old until
           the next call; readers that list, or look for the next version, see the newest.
INVARIANT  listed states are states of this table: the newest one is compared by its uuid, and what is older is what it
           was made on. A rollback takes away what it deleted.
INVARIANT  nothing is listed that has expired, but for what a tag keeps.
WHY        STATES_MAX: the metadata is written whole with each commit; more states cost more than their use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from tablestore_engine.errors import FixData, NotFound, RetryError, TablestoreError
from tablestore_engine.fileio.base import find
from tablestore_engine.format.layout import MAIN_BRANCH
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.iceberg.schema_mapping import STORAGE_OPTION
from tablestore_engine.iceberg.table_metadata import (
    IcebergSnapshot,
    IcebergTable,
    encode_iceberg_table,
)
from tablestore_engine.store.iceberg_metadata.iceberg_cleanup import (
    KEPT_VERSIONS,
    delete_dropped,
    drop_former,
)
from tablestore_engine.store.iceberg_metadata.iceberg_manifests import read_manifests, remember
from tablestore_engine.store.iceberg_metadata.iceberg_place import (
    IcebergPlace,
    find_place,
    find_version,
    put_hint,
    read_table,
    table_uuid,
)
from tablestore_engine.store.iceberg_metadata.iceberg_snapshots import Described, Numbers, SnapshotFilesPlan
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits

STATES_MAX = 500


@dataclass(frozen=True)
class WantedStates:
    """`kept`: in their order; `missing`: ascending; `tags`: name → number."""

    kept: tuple[IcebergSnapshot, ...]
    missing: tuple[Snapshot, ...]
    newest: Snapshot
    tags: Mapping[str, int]


def find_wanted(context: TableContext, table: IcebergTable, newest: Snapshot, grace_ms: int) -> WantedStates:
    """`newest`: of the table, read after `table` was. `grace_ms`: what is younger stays whatever its number."""
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    named = dict(tags.list_all())
    first = max(context.snapshots.find_earliest_id() or newest.id, 1)
    known = _last_known(context, table, newest)
    line = [one for one in table.snapshots if one.number <= known]
    since = context.runtime.now_ms() - grace_ms
    recent = newest.id - STATES_MAX
    kept = tuple(
        one
        for one in line
        if one.number in named.values()
        or (one.number >= first and (one.number > recent or one.time_millis >= since))
    )
    have = {one.number for one in kept}
    numbers = range(max(known + 1, first, recent + 1), newest.id)
    found = [context.snapshots.find(number) for number in numbers]
    missing = {one.id: one for one in (*found, newest) if one is not None and one.id not in have}
    for name, number in named.items():
        if number not in have and number not in missing:
            missing[number] = tags.get(name).snapshot
    listed = have | missing.keys()
    return WantedStates(
        kept,
        tuple(missing[number] for number in sorted(missing)),
        newest,
        {name: number for name, number in named.items() if number in listed},
    )


def _last_known(context: TableContext, table: IcebergTable, newest: Snapshot) -> int:
    """The highest number whose listed state is still the table's; 0: none."""
    by_number = {one.number: one.unique for one in table.snapshots}
    for number in sorted((one for one in by_number if one <= newest.id), reverse=True):
        found = newest if number == newest.id else context.snapshots.find_file(number)
        if found is None and number < newest.id:
            continue
        if found is not None and found.unique == by_number[number]:
            return number
    return 0


_ATTEMPTS = 20


@dataclass(frozen=True)
class IcebergReport:
    """The newest version, and the numbers of states that this call added and dropped."""

    metadata: str
    version: int
    snapshot_id: int
    added: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


def sync_iceberg(context: TableContext) -> IcebergReport | None:
    """None for a table without Iceberg metadata, for one without a snapshot, and on a branch: it lists main alone.

    Raises RetryError TS1371, TS1365, what damaged metadata of the table raises, OSError.
    """
    newest = context.snapshots.find_latest()
    if newest is None or context.layout.branch != MAIN_BRANCH:
        return None
    schema = context.schemas.get(newest.schema_id)
    if STORAGE_OPTION in schema.options:
        drop_former(context, schema)
    traits = TableTraits(schema)
    place = find_place(context.layout, traits.iceberg_storage)
    if place is None:
        return None
    for _ in range(_ATTEMPTS):
        done = _Sync(context, place, traits).run()
        if done is not None and not _has_expired(context, done):
            return done
    raise RetryError(
        "TS1371",
        f"the Iceberg metadata of {context.layout.location} was not written",
        why=f"other writers made the next version {_ATTEMPTS} times meanwhile",
        fix="nothing: the next commit writes it; or run tablestore iceberg sync",
    )


def _has_expired(context: TableContext, done: IcebergReport) -> bool:
    """Whether an expiry began while older states were described: it may not have seen them listed."""
    if len(done.added) < 2:
        return False
    return (context.snapshots.find_earliest_id() or 0) > done.added[0]


@dataclass(frozen=True)
class _Sync:
    context: TableContext
    place: IcebergPlace
    traits: TableTraits

    def run(self) -> IcebergReport | None:
        """None when another writer was first, or took away what this one read."""
        context = self.context
        table = read_table(context, self.place)
        start = self._usable(table)
        newest = context.snapshots.find_latest()
        if newest is None:
            return None
        wanted = find_wanted(context, start, newest, self.traits.retention.grace_ms)
        stay = {one.number for one in wanted.kept}
        dropped = tuple(one for one in start.snapshots if one.number not in stay)
        if table is start and not (wanted.missing or dropped) and wanted.tags == dict(start.tags):
            if find(context.fileio, self.place.hint) != str(start.version).encode():
                put_hint(context.fileio, self.place, start.version)  # of a writer that died behind its claim
            return IcebergReport(self.place.metadata(start.version), start.version, newest.id)
        try:
            return self._write(start, wanted, dropped)
        except NotFound:
            if context.snapshots.find_latest() == newest and find_version(context.fileio, self.place) == (
                None if table is None else table.version
            ):
                raise
            return None

    def _usable(self, table: IcebergTable | None) -> IcebergTable:
        """The version that the next one continues. One that cannot be used has no snapshots here: all are new."""
        fresh = IcebergTable(
            version=0,
            format_version=self.traits.iceberg_format,
            uuid=table_uuid(self.traits.schema, self.context.layout.location),
            location=self.place.location,
        )
        if table is None:
            return fresh
        same = (fresh.format_version, fresh.uuid, fresh.location)
        if table.is_ours and (table.format_version, table.uuid, table.location) == same:
            return table
        return replace(
            fresh, version=table.version, last_sequence=table.last_sequence, next_row_id=table.next_row_id
        )

    def _write(
        self, start: IcebergTable, wanted: WantedStates, dropped: Sequence[IcebergSnapshot]
    ) -> IcebergReport | None:
        context, fileio = self.context, self.context.fileio
        plan = SnapshotFilesPlan(context, self.place, start.format_version)
        made, numbers = self._describe(plan, start, wanted)
        after = replace(
            start,
            version=start.version + 1,
            last_sequence=numbers.sequence - 1,
            next_row_id=numbers.row_id,
            updated_ms=max(context.runtime.now_ms(), start.updated_ms),
            newest=wanted.newest.id,
            snapshots=(*wanted.kept, *(one.snapshot for one in made)),
            tags=wanted.tags,
            log=self._log(start),
        )
        context.guard.check()
        fileio.run_together([partial(fileio.write, path, data) for path, data in plan.files.items()])
        context.runtime.crash_point("iceberg.files")

        def check() -> None:
            context.guard.check()
            context.sweeps.check_paths(plan.files)

        if not fileio.create_exclusive(self.place.metadata(after.version), self._encode(after), check=check):
            fileio.delete_many(list(plan.files))
            return None
        context.runtime.crash_point("iceberg.claimed")
        for one in made:
            remember(context, one)
        put_hint(fileio, self.place, after.version)
        delete_dropped(context, self.place, start, after)
        return IcebergReport(
            self.place.metadata(after.version),
            after.version,
            wanted.newest.id,
            tuple(one.snapshot.number for one in made),
            tuple(one.number for one in dropped),
        )

    def _describe(
        self, plan: SnapshotFilesPlan, start: IcebergTable, wanted: WantedStates
    ) -> tuple[list[Described], Numbers]:
        """Each missing state on the one before it, the first on the newest of those that stay."""
        base = self._base(start, wanted) if wanted.missing else None
        numbers = Numbers(start.last_sequence + 1, start.next_row_id)
        made: list[Described] = []
        for state in wanted.missing:
            base, numbers = plan.describe(state, base, numbers)
            made.append(base)
        return made, numbers

    def _base(self, start: IcebergTable, wanted: WantedStates) -> Described | None:
        """What the missing states are described on: the last one, whether it stays or not."""
        last = (wanted.kept or start.snapshots)[-1:]
        if not last:
            return None
        try:
            manifests = read_manifests(self.context, self.place, last[0])
        except (FixData, NotFound):  # damaged: states that are described again need none
            return None
        return Described(last[0], manifests, self._state_of(last[0]))

    def _state_of(self, described: IcebergSnapshot) -> Snapshot | None:
        found = self.context.snapshots.find_file(described.number)
        return found if found is not None and found.unique == described.unique else None

    def _log(self, start: IcebergTable) -> tuple[tuple[str, int], ...]:
        if start.version == 0:
            return ()
        last = (self.place.metadata(start.version), start.updated_ms)
        return (*start.log, last)[-KEPT_VERSIONS:]

    def _encode(self, table: IcebergTable) -> bytes:
        schemas = self.context.schemas
        current = schemas.get(next(one.schema_id for one in table.snapshots if one.number == table.newest))
        numbers = sorted({current.id, *(one.schema_id for one in table.snapshots)})
        return encode_iceberg_table(table, [schemas.get(number) for number in numbers], current)


def follow_iceberg(context: TableContext) -> str | None:
    """`sync_iceberg` behind a change that stands: why it failed, None when it did not."""
    try:
        sync_iceberg(context)
    except (TablestoreError, OSError) as error:
        return str(error)
    return None


def follow_alter(context: TableContext, schema: TableSchema) -> None:
    """Behind ALTER TABLE of main, to `schema`. What fails is left to the next commit."""
    if context.layout.branch != MAIN_BRANCH:
        return
    with suppress(TablestoreError, OSError):
        drop_former(context, schema)
    follow_iceberg(context)
