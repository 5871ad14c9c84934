"""One bucket on disk with its tasks, for tests: apply changes, read back rows and changelogs as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND, DataFileMeta
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.lsm.compaction_strategy import needs_compaction, pick, pick_full
from tablestore_engine.lsm.levels import Levels
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import KeyCache
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.rows.row_filter import EVERY_ROW
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.bucket_plan import levels_of, plan_bucket, plan_preparation
from tablestore_engine.store.tasks.bucket_task import BucketTask, CompactLevelZero, CompactRuns, TaskTable
from tablestore_engine.store.tasks.task_runner import FileAccess, run_and_hand_on

Row = dict[str, object]
TABLE_OPTIONS = {"changelog-producer": "lookup", "num-levels": "20", "deletion-vectors.enabled": "true"}


def make_schema(
    columns: Mapping[str, str], keys: Sequence[str] = ("id",), options: Mapping[str, str] | None = None
) -> TableSchema:
    """A schema from column name → type text."""
    fields = [DataField(0, name, parse_type(text)) for name, text in columns.items()]
    chosen = {**(TABLE_OPTIONS if keys else {}), **(options or {})}
    return new_schema(fields, primary_keys=tuple(keys), options=chosen)


def write_run(files: DataFiles, state: BucketState, run: RunRows, *, level: int) -> tuple[DataFileMeta, ...]:
    """A run whose rows are all there."""
    with files.open_run(state, level=level) as output:
        output.add(run)
    return output.metas


@dataclass
class World:
    """The bucket as it stands; every operation replaces `state`."""

    root: Path
    schema: TableSchema
    state: BucketState = field(default_factory=lambda: BucketState((), bytes(12), "", 0))
    cache: KeyCache = field(default_factory=KeyCache)
    open_fileio: Callable[[str], FileIO] = LocalFileIO

    @property
    def task_table(self) -> TaskTable:
        """The table as tasks see it, with the present schema."""
        return TaskTable(TableLayout(str(self.root / "t")), TableTraits(self.schema))

    @property
    def access(self) -> FileAccess:
        """Real files, real clock."""
        return FileAccess(self.open_fileio(str(self.root)), SYSTEM, self.cache)

    @property
    def files(self) -> DataFiles:
        """Writing and reading of single files."""
        table = self.task_table
        return DataFiles(self.access.fileio, table.layout, table.traits, self.access.runtime)

    @property
    def levels(self) -> Levels:
        """The bucket's runs."""
        return levels_of(self.state, self.task_table.traits)

    def run(self, task: BucketTask) -> BucketChange:
        """Perform a task; the state stays."""
        return run_and_hand_on(task, self.access)

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Rows as Arrow in the table's types."""
        return pa.Table.from_pylist(list(rows), schema=self.schema.arrow_schema())

    def upsert(
        self, rows: Sequence[Row], kinds: Sequence[int] | None = None, *, replace: bool = False
    ) -> BucketChange:
        """Compact if it must be, upsert, and take the change as committed."""
        if needs_compaction(self.levels):
            self.fold()
        return self.take(self.run(self.plan(rows, kinds, replace=replace)))

    def plan(
        self, rows: Sequence[Row], kinds: Sequence[int] | None = None, *, replace: bool = False
    ) -> BucketTask:
        """The task of these rows, checked and routed as in a write."""
        given = None if kinds is None else np.array(kinds, np.int8)
        routed = route_rows(self.table(rows), given, self.schema)
        (one,) = routed or (None,)
        return plan_bucket(self.task_table, self.state, one, EVERY_ROW if replace else None)

    def fold(self, *, full: bool = False) -> BucketChange | None:
        """Compact what pick (or pick_full) chooses."""
        unit = (pick_full if full else pick)(self.levels, target_bytes=self.task_table.traits.target_bytes)
        return None if unit is None else self.take(self.run(CompactRuns(self.task_table, self.state, unit)))

    def compact_level_zero(self) -> BucketChange:
        """Take in what lies in level 0."""
        (task,) = plan_preparation(self.task_table, [self.state])
        assert isinstance(task, CompactLevelZero)
        return self.take(self.run(task))

    def take(self, change: BucketChange) -> BucketChange:
        """Make the change the present state."""
        state, layout = self.state, self.task_table.layout
        removed = {(meta.file_name, meta.level) for meta in change.removed}
        kept = [file for file in state.files if (file.meta.file_name, file.meta.level) not in removed]
        added = [
            StoredFile(
                state.partition,
                state.partition_bytes,
                state.partition_path,
                state.bucket,
                self.schema.bucket_count,
                meta,
                layout.data_file(state.partition_path, state.bucket, meta.file_name),
                self.schema,
            )
            for meta in change.added
        ]
        vectors = state.deletion_vectors if change.deletion_vectors is None else change.deletion_vectors
        files = (replace(file, deleted=vectors.get(file.meta.file_name)) for file in [*kept, *added])
        self.state = replace(state, files=tuple(files))
        return change

    def rows(self) -> list[Row]:
        """All visible rows, sorted by their text."""
        tables = [self.files.reader.read_visible(file) for file in self.state.files]
        return sorted((row for table in tables for row in table.to_pylist()), key=repr)

    def changelog(self, change: BucketChange) -> list[tuple[int, Row]]:
        """(kind, row) of the changelog files, in file order."""
        names = self.schema.field_names
        return [
            (int(str(row[VALUE_KIND])), {name: row[name] for name in names})
            for meta in change.changelog
            for row in self.physical(meta)
        ]

    def physical(self, meta: DataFileMeta) -> list[Row]:
        """All rows of a file with all its columns, deleted ones included."""
        path = self.task_table.layout.data_file("", self.state.bucket, meta.file_name)
        with self.access.fileio.open_input(str(path)) as file:
            return list(pq.ParquetFile(file).read().to_pylist())

    def numbers(self) -> dict[str, int]:
        """Row text → sequence number, of visible rows."""
        found = {}
        for file in self.state.files:
            for row in self.files.reader.read_visible(file, keep=(SEQUENCE_NUMBER,)).to_pylist():
                number = row.pop(SEQUENCE_NUMBER)
                found[repr(row)] = number
        return found

    def add_level_zero(self, rows: Sequence[tuple[int, int, Row]]) -> DataFileMeta:
        """A level 0 file of (number, kind, row), as another engine's writer would leave it."""
        run = RunRows(
            self.table([row for _, _, row in rows]),
            np.array([number for number, _, _ in rows], dtype=np.int64),
            np.array([kind for _, kind, _ in rows], dtype=np.int8),
        )
        (meta,) = write_run(self.files, self.state, run, level=0)
        self.take(BucketChange(self.state.partition_bytes, self.state.bucket, added=(meta,)))
        return meta
