"""What an operation on one branch of one table needs: file system, layout, stores of its metadata, caches, task runner.

INVARIANT  a context belongs to one table identity (`guard`): an operation takes it once and keeps it, so that it
           commits to the table that it read, or not at all.
INVARIANT  branches share data, manifest and index files, so one ManifestStore and one KeyCache serve all of them.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.merge.lookup import KeyCache
from tablestore_engine.store.metadata.identity import TableGuard
from tablestore_engine.store.metadata.manifests import ManifestStore
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.metadata.seen_table import SeenTable
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.read.scan import Scanner
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.task_runner import run_tasks

if TYPE_CHECKING:
    from tablestore_engine.fileio.external_folders import ExternalFolders
    from tablestore_engine.store.commit.commit import Committer
    from tablestore_engine.store.commit.orphan_notice import Sweeps
    from tablestore_engine.store.files.bucket_state import BucketChange
    from tablestore_engine.store.metadata.consumer_files import ConsumerStore
    from tablestore_engine.store.tasks.bucket_task import BucketTask, TaskTable
    from tablestore_engine.store.tasks.prepublish_rows import TaskReceiver
    from tablestore_engine.store.tasks.task_runner import FileAccess, RunTasks


@dataclass(frozen=True)
class TableContext:
    """Of one table identity and branch. `runner` performs bucket tasks.

    `seen`: what the operation has looked up, so that its steps do not ask again; None in a context that is kept.
    """

    fileio: FileIO
    layout: TableLayout
    runtime: Runtime
    snapshots: SnapshotStore
    schemas: SchemaStore
    manifests: ManifestStore
    scanner: Scanner
    key_cache: KeyCache
    guard: TableGuard
    runner: RunTasks
    seen: SeenTable | None = None

    @classmethod
    def of(
        cls,
        fileio: FileIO,
        layout: TableLayout,
        runtime: Runtime,
        identity: str | None,
        runner: RunTasks = run_tasks,
        reads_for: str = "",
        external: ExternalFolders | None = None,
    ) -> TableContext:
        """A fresh context of the table with that identity (None: there is no table). `reads_for`: see TableGuard;
        `external`: where else its data files may lie.
        """
        manifests = ManifestStore(fileio, layout, runtime)
        guard = TableGuard(fileio, layout.location, identity, reads_for)
        return cls._made(fileio, layout, runtime, manifests, KeyCache(), guard, runner, external)

    def on_branch(self, name: str) -> TableContext:
        """The context of another branch of the same table; memory is shared."""
        layout, external = self.layout.on_branch(name), self.scanner.external
        return self._made(
            self.fileio,
            layout,
            self.runtime,
            self.manifests,
            self.key_cache,
            self.guard,
            self.runner,
            external,
        )

    @classmethod
    def _made(
        cls,
        fileio: FileIO,
        layout: TableLayout,
        runtime: Runtime,
        manifests: ManifestStore,
        key_cache: KeyCache,
        guard: TableGuard,
        runner: RunTasks,
        external: ExternalFolders | None,
    ) -> TableContext:
        schemas = SchemaStore(fileio, layout)
        return cls(
            fileio=fileio,
            layout=layout,
            runtime=runtime,
            snapshots=SnapshotStore(fileio, layout, guard.identity),
            schemas=schemas,
            manifests=manifests,
            scanner=Scanner(fileio, layout, manifests, schemas, external),
            key_cache=key_cache,
            guard=guard,
            runner=runner,
        )

    def newest_snapshot(self) -> Snapshot | None:
        """The newest snapshot, now or as the operation saw it."""
        return self.snapshots.find_latest() if self.seen is None else self.seen.snapshot

    def tells_all(self, since: int, until: int | None = None) -> bool:
        """Whether changelogs have both rows of each change of the snapshots (since, until], None: the newest. Their
        schemas may name several producers; a snapshot that is gone may have had any schema before.
        """
        start = self.snapshots.find(since + 1) or self.snapshots.find(since)
        end = self.newest_snapshot() if until is None else self.snapshots.find(until)
        last = (self.latest_schema() if end is None else self.schema_at(end)).id
        first = min(last, 0 if start is None else start.schema_id)
        return all(TableTraits(self.schemas.get(number)).tells_all for number in range(first, last + 1))

    def get_snapshot(self, number: int) -> Snapshot:
        """Snapshot N, read unless the operation saw it. Raises NotFound TS1302."""
        seen = None if self.seen is None else self.seen.snapshot
        return seen if seen is not None and seen.id == number else self.snapshots.get(number)

    def latest_schema(self) -> TableSchema:
        """The table's schema, now or as the operation saw it. Raises NotFound TS1310: no such table (or branch)."""
        return self.seen.schema if self.seen is not None else self.schema_at(self.snapshots.find_latest())

    def schema_at(self, newest: Snapshot | None) -> TableSchema:
        """The table's schema while `newest` is its newest snapshot. Raises NotFound TS1310."""
        if self.seen is not None and self.seen.snapshot == newest:
            return self.seen.schema
        found = self.find_schema_at(newest, self.schemas.list_ids())
        if found is None:
            raise NotFound(
                "TS1310",
                f"{self.layout.root} is no table",
                why="it has no schema folder with a schema in it",
                fix="create the table first, or correct the name of the branch",
            )
        return found

    def seeing(self, base: Snapshot | None) -> TableContext:
        """The same for a plan on `base`: its steps do not ask for the schema again. Raises NotFound TS1310."""
        if self.seen is not None and self.seen.snapshot == base:
            return self
        return replace(self, seen=SeenTable(self.guard.identity, base, self.schema_at(base)))

    def find_schema_at(self, newest: Snapshot | None, ids: Sequence[int]) -> TableSchema | None:
        """The same with numbers of schemas that were listed already; None when there is no such table."""
        return self.schemas.find_current(None if newest is None else newest.schema_id, ids)

    @property
    def consumers(self) -> ConsumerStore:
        """Named readers of this branch."""
        from tablestore_engine.store.metadata.consumer_files import ConsumerStore

        return ConsumerStore(self.fileio, self.layout, self.runtime, self.guard)

    @property
    def sweeps(self) -> Sweeps:
        """Shared by the deletion of orphan files and by commits."""
        from tablestore_engine.store.commit.orphan_notice import Sweeps

        return Sweeps(self.fileio, self.layout, self.manifests, self.schemas)

    @property
    def access(self) -> FileAccess:
        """What performing a task needs beside the task."""
        from tablestore_engine.store.tasks.task_runner import FileAccess

        return FileAccess(self.fileio, self.runtime, self.key_cache)

    def run(self, tasks: Sequence[BucketTask], early: TaskReceiver | None = None) -> list[BucketChange]:
        """The changes of these tasks, in order, wherever they are performed. Raises what run_task raises.

        `early`: who gets their changelog rows before they are committed.
        """
        return self.runner(tasks, replace(self.access, early=early))

    def task_table(self, schema: TableSchema, options: Mapping[str, str] | None = None) -> TaskTable:
        """The table as tasks see it; `schema` may not exist yet; `options` replace the table's for this write."""
        from tablestore_engine.store.tasks.bucket_task import TaskTable

        return TaskTable(self.layout, TableTraits(schema, options or {}))


def committer_of(context: TableContext) -> Committer:
    """The commit loop of one branch."""
    from tablestore_engine.store.commit.commit import Committer
    from tablestore_engine.store.commit.snapshot_claim import MainDestination
    from tablestore_engine.store.commit.snapshot_files import SnapshotFiles

    return Committer(
        fileio=context.fileio,
        layout=context.layout,
        files=SnapshotFiles(context.fileio, context.layout, context.manifests, context.runtime),
        manifests=context.manifests,
        main=MainDestination(
            replace(context.snapshots, seen=None),  # a claim looks at what is there
            context.schemas,
            context.guard,
            context.sweeps,
            context.runtime,
            None if context.seen is None else context.seen.newest_schema_id,
        ),
        runtime=context.runtime,
    )
