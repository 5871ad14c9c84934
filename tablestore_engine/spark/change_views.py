"""The SQL of a view over changes: changelog files, read natively, each with its snapshot as a column.

Steps      files of one schema → links in `<folder>/_snapshot_id=<n>/` → one hidden table, in which Spark takes the
           number from the folder's name → kinds as texts · rows that only a comparison gives → a file of ours there
INVARIANT  a folder never changes once a table reads it: its name carries the state and the range.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.format.data_file import VALUE_KIND
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.linked_files import link_file
from tablestore_engine.spark.spark_types import columns_ddl
from tablestore_engine.spark.view_sql import ROWS, readable_fields, select_columns
from tablestore_engine.store.files.parquet_output import statistics_columns
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID
from tablestore_engine.stream.changes_plan import ChangesOfOne, ChangesPlan

CreateTable = Callable[[str, str, Path], str]  # name, columns, folder → the hidden table's name
ScanQuery = Callable[[ScanPlan, str], str]  # plan, digest → the SELECT of its rows
_KIND_TEXTS = ", ".join(f"'{kind.short_string}'" for kind in sorted(RowKind))


class ChangeViews:
    """Of one session; `folder` is its own."""

    def __init__(self, folder: Path, create: CreateTable, scan_query: ScanQuery) -> None:
        self._folder, self._create, self._scan_query = folder, create, scan_query

    def query(self, plan: ChangesPlan, digest: str) -> list[str]:
        """SELECTs of the rows of the state they begin with, and of the changes, all with the columns of changes."""
        selects = []
        if plan.base is not None:
            rows = self._scan_query(plan.base, digest)
            selects.append(f"select *, '+I' as {ROW_KIND}, {plan.base_id}L as {SNAPSHOT_ID} from ({rows})")
        groups: dict[int, TableSchema] = {}
        for step in plan.steps:
            if step.files is None:
                selects += self._compared(step, plan.schema, digest)
                continue
            for file in step.files:
                groups[file.schema.id] = file.schema
                inside = self._place(digest, str(file.schema.id), step.snapshot_id)
                link_file(file.path, inside / file.meta.file_name)
        for number, schema in sorted(groups.items()):
            selects.append(self._select(digest, str(number), schema, plan.schema, has_kinds=schema.is_keyed))
        return selects

    def _place(self, digest: str, group: str, snapshot_id: int) -> Path:
        inside = self._folder / f"{digest}_{group}" / f"{SNAPSHOT_ID}={snapshot_id}"
        inside.parent.mkdir(exist_ok=True)
        inside.mkdir(exist_ok=True)
        return inside

    def _compared(self, step: ChangesOfOne, target: TableSchema, digest: str) -> list[str]:
        """A snapshot whose changes lie in no file: they are written into one."""
        group = f"d{step.snapshot_id}"
        if not _write_rows(step, self._place(digest, group, step.snapshot_id) / "rows.parquet"):
            return []
        return [self._select(digest, group, step.schema, target, has_kinds=True)]

    def _select(
        self, digest: str, group: str, schema: TableSchema, target: TableSchema, *, has_kinds: bool
    ) -> str:
        name = f"{digest}_{group}"
        columns = columns_ddl(readable_fields(schema)) + (f", {VALUE_KIND} tinyint" if has_kinds else "")
        hidden = self._create(f"c_{name}", f"{columns}, {SNAPSHOT_ID} bigint", self._folder / name)
        kind = f"elt({ROWS}.{VALUE_KIND} + 1, {_KIND_TEXTS})" if has_kinds else "'+I'"
        items = f"{select_columns(schema, target)}, {kind} as {ROW_KIND}, {ROWS}.{SNAPSHOT_ID}"
        return f"select {items} from {hidden} as {ROWS}"


def _write_rows(step: ChangesOfOne, path: Path) -> bool:
    """Whether there were any."""
    writer: pq.ParquetWriter | None = None
    try:
        for batch in step.read():
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
