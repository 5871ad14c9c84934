"""Tables for the tests of names and views: Parquet files written here, plans made by hand."""

from __future__ import annotations

import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from tablestore_engine.catalog.resolved_names import ResolvedTable, ResolvedView, SnapshotRef
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.read_way import ChosenReads
from tablestore_engine.spark.spark_settings import ReadWay
from tablestore_engine.sql.table_version import TableVersion

LOCAL_READS = ChosenReads(ReadWay.LINKS, LocalFileIO("/"), "these tests write into folders")


def parquet_file(
    folder: Path, name: str, rows: pa.Table, schema: TableSchema, deleted: list[int] | None = None
) -> Any:
    """One data file of a plan."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    pq.write_table(rows, path, row_group_size=max(1, rows.num_rows // 3))
    meta = SimpleNamespace(file_name=name, row_count=rows.num_rows, extra_files=(), embedded_file_index=None)
    return SimpleNamespace(
        is_external=False,
        path=str(path),
        meta=meta,
        schema=schema,
        deleted=BitMap(deleted) if deleted else None,
        visible_rows=rows.num_rows - len(deleted or ()),
        bucket=0,
        total_buckets=1,
        fileio=None,
    )


def scan(schema: TableSchema, *files: Any) -> Any:
    """A plan."""
    return SimpleNamespace(schema=schema, files=files)


class StubTables:
    """`states[db, table]` maps a version (None: now) to a (label, plan); `views[db, name]` is SQL text."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, str], dict[TableVersion | None, tuple[str, Any]]] = {}
        self.views: dict[tuple[str, str], str] = {}
        self.lookups: list[tuple[str, str, TableVersion | None]] = []
        self.loaded: list[str] = []
        self.place = uuid.uuid4().hex

    def put(
        self, database: str, name: str, label: str, plan: Any, version: TableVersion | None = None
    ) -> None:
        """Set what a name means."""
        self.states.setdefault((database, name), {})[version] = (label, plan)

    def knows(self, database: str) -> bool:
        """As NameLookup."""
        return database in self.list_databases()

    def list_databases(self) -> frozenset[str]:
        """As NameLookup."""
        return frozenset(database for database, _ in (*self.states, *self.views))

    def near_hint(self, database: str, name: str) -> str:
        """As NameLookup; no other name is near."""
        return ""

    def lookup(
        self, database: str, name: str, version: TableVersion | None, seen: SeenStates | None = None
    ) -> ResolvedTable | ResolvedView | None:
        """As NameLookup does it."""
        self.lookups.append((database, name, version))
        if (database, name) in self.views:
            return ResolvedView(self.views[database, name])
        state = self.states.get((database, name), {}).get(version)
        if state is None:
            return None
        label, plan = state
        unique = f"{self.place}/{database}.{name}/{label}"

        def load(**_: object) -> Any:
            self.loaded.append(unique)
            return plan

        return ResolvedTable(unique, label, plan.schema, load, SnapshotRef(1, unique))
