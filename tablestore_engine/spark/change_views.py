"""The SQL of a view over changes: changelog files, read natively, each with its snapshot as a column.

CHANGE     the SQL of a range of changes
Steps      files of one schema → one hidden table, where the snapshot's number is a column, equal in all rows of a file
           (links lie in `<folder>/_snapshot_id=<n>/`) → kinds as texts · rows that only a comparison gives → a file of
           ours there
INVARIANT  a folder never changes once a table reads it: its name carries the state and the range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.format.data_file import VALUE_KIND
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.type_ddl import columns_ddl
from tablestore_engine.spark.view_sql import ROWS, FileGroup, readable_fields, select_columns
from tablestore_engine.store.files.parquet_output import statistics_columns
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID
from tablestore_engine.stream.changes_plan import ChangesOfOne, ChangesPlan


@dataclass(frozen=True)
class ChangelogGroup:
    """`snapshots`: file name → the snapshot whose changes it has. `shows_kinds`: the rows say their kind."""

    group: FileGroup
    snapshots: Mapping[str, int]
    shows_kinds: bool

    def place(self, folder: Path, file: StoredFile) -> Path:
        """Where the link of a file lies, in a folder that says its snapshot."""
        inside = _snapshot_folder(folder, self.snapshots[file.meta.file_name])
        return inside / file.meta.file_name


CreateTable = Callable[[str, str, Path], str]  # name, columns, folder → the hidden table's name
CreateChanges = Callable[[str, str, Path, ChangelogGroup], str]  # the same of changelog files
ScanQuery = Callable[[ScanPlan, str], str]  # plan, digest → the SELECT of its rows
_KIND_TEXTS = ", ".join(f"'{kind.short_string}'" for kind in sorted(RowKind))


class ChangeViews:
    """Of one session; `folder` is its own."""

    def __init__(
        self, folder: Path, create: CreateTable, scan_query: ScanQuery, create_changes: CreateChanges
    ) -> None:
        self._folder, self._create, self._scan_query = folder, create, scan_query
        self._create_changes = create_changes

    def query(self, plan: ChangesPlan, digest: str) -> list[str]:
        """SELECTs of the rows of the state they begin with, and of the changes, all with the columns of changes."""
        selects = []
        if plan.base is not None:
            rows = self._scan_query(plan.base, digest)
            selects.append(f"select *, '+I' as {ROW_KIND}, {plan.base_id}L as {SNAPSHOT_ID} from ({rows})")
        groups: dict[int, list[tuple[StoredFile, int]]] = {}
        for step in plan.steps:
            if step.files is None:
                selects += self._compared(step, plan.schema, digest)
                continue
            for file in step.files:
                groups.setdefault(file.schema.id, []).append((file, step.snapshot_id))
        for number, found in sorted(groups.items()):
            selects.append(self._stored(f"{digest}_{number}", found, plan.schema))
        return selects

    def _stored(self, name: str, found: Sequence[tuple[StoredFile, int]], target: TableSchema) -> str:
        """Files of one schema."""
        schema = found[0][0].schema
        group = FileGroup(schema, has_deletions=False, files=tuple(file for file, _ in found))
        snapshots = {file.meta.file_name: snapshot_id for file, snapshot_id in found}
        files = ChangelogGroup(group, snapshots, schema.is_keyed)
        columns = _columns(schema, has_kinds=schema.is_keyed)
        hidden = self._create_changes(f"c_{name}", columns, self._folder / name, files)
        return _select(hidden, schema, target, has_kinds=schema.is_keyed)

    def _compared(self, step: ChangesOfOne, target: TableSchema, digest: str) -> list[str]:
        """A snapshot whose changes lie in no file: they are written into one."""
        name = f"{digest}_d{step.snapshot_id}"
        folder = self._folder / name
        if not _write_rows(step, _snapshot_folder(folder, step.snapshot_id) / "rows.parquet"):
            return []
        hidden = self._create(f"c_{name}", _columns(step.schema, has_kinds=True), folder)
        return [_select(hidden, step.schema, target, has_kinds=True)]


def _snapshot_folder(folder: Path, snapshot_id: int) -> Path:
    inside = folder / f"{SNAPSHOT_ID}={snapshot_id}"
    inside.parent.mkdir(exist_ok=True)
    inside.mkdir(exist_ok=True)
    return inside


def _columns(schema: TableSchema, *, has_kinds: bool) -> str:
    """Of a hidden table."""
    columns = columns_ddl(readable_fields(schema)) + (f", {VALUE_KIND} tinyint" if has_kinds else "")
    return f"{columns}, {SNAPSHOT_ID} bigint"


def _select(hidden: str, schema: TableSchema, target: TableSchema, *, has_kinds: bool) -> str:
    kind = f"elt({ROWS}.{VALUE_KIND} + 1, {_KIND_TEXTS})" if has_kinds else "'+I'"
    items = f"{select_columns(schema, target)}, {kind} as {ROW_KIND}, {ROWS}.{SNAPSHOT_ID}"
    return f"select {items} from {hidden} as {ROWS}"


def _write_rows(step: ChangesOfOne, path: Path) -> bool:
    """Whether there were any."""
    writer: pq.ParquetWriter | None = None
    try:
        for batch in step.read(step.schema):
            kinds = batch.rows.column(ROW_KIND_COLUMN).cast(pa.int8())
            rows = batch.rows.drop_columns([ROW_KIND_COLUMN]).append_column(VALUE_KIND, kinds)
            if writer is None:
                bounded = statistics_columns(rows.schema)
                writer = pq.ParquetWriter(path, rows.schema, compression="zstd", write_statistics=bounded)
            writer.write_table(rows)
    finally:
        if writer is not None:
            writer.close()
    return writer is not None
