"""Our engine behind the same face as the other peers: catalog and TableStore, without Spark.

WHY        tables are made from schema JSON as Java makes them, so that types without an Arrow form (CHAR, TIMESTAMP(0))
           take part; the options are those that the engine itself gives to new tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from integration_tests.interop.oracle import DYNAMIC
from integration_tests.interop.rows import Change, Row, plain_changes, plain_rows
from integration_tests.interop.schemas import Schema
from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format import schema_change
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema, decode_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tablestore_engine.stream.open_stream import NOW, StreamRequest, open_stream
from tablestore_engine.stream.startup_mode import parse_request
from tablestore_engine.warehouse.write.target_schema import APPEND_DEFAULTS, KEYED_DEFAULTS

KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}


class Ours:
    """Stateless; `location` is <warehouse>/<database>.db/<table>."""

    name = "ours"

    def create(self, location: Path, schema: Schema) -> None:
        """A new table with the options of the engine's new tables, those of `schema` on top."""
        catalog, identifier = _catalog(location)
        if not catalog.has_database(identifier.database):
            catalog.create_database(identifier.database)
        defaults = KEYED_DEFAULTS if schema.keys else APPEND_DEFAULTS
        full = replace(schema, options={**defaults, **schema.options})
        catalog.create_table(identifier, decode_schema(full.json().encode()))

    def alter(self, location: Path, *changes: tuple[Any, ...]) -> None:
        """One new schema version per change; the forms of JavaPaimon.alter."""
        catalog, identifier = _catalog(location)
        for what, *words in changes:
            catalog.alter_table(identifier, _alteration(what, words))

    def write(
        self,
        location: Path,
        rows: pa.Table,
        kinds: Sequence[str] | None = None,
        *,
        overwrite: Mapping[str, Any] | str | None = None,
        **request: Any,
    ) -> Any:
        """One commit; `overwrite` {} is the whole table, values name a partition, DYNAMIC those of the rows."""
        mode = WriteMode.UPSERT
        if overwrite is not None:
            whole = WriteMode.OVERWRITE_STATIC if overwrite else WriteMode.OVERWRITE_TABLE
            mode = WriteMode.OVERWRITE_PARTITIONS if overwrite == DYNAMIC else whole
        partition = overwrite if isinstance(overwrite, Mapping) else {}
        listed = None if kinds is None else pa.array([int(KINDS[kind]) for kind in kinds], pa.int8())
        wanted = WriteRequest(rows=rows, kinds=listed, mode=mode, partition=partition, **request)
        return self.store(location).write(wanted)

    def compact(self, location: Path) -> None:
        """Full compaction."""
        self.store(location).compact(full=True)

    def read(self, location: Path, snapshot: int | None = None) -> list[Row]:
        """Rows at a snapshot, with the schema of that snapshot; the newest when none is given."""
        return plain_rows(self.read_arrow(location, snapshot))

    def read_arrow(self, location: Path, snapshot: int | None = None) -> pa.Table:
        """The same as Arrow."""
        store = self.store(location)
        return store.read(store.plan_scan(None if snapshot is None else store.snapshots.get(snapshot)))

    def read_in_newest_columns(self, location: Path, snapshot: int) -> list[Row]:
        """Rows at a snapshot with the schema of today."""
        store = self.store(location)
        context = store.context
        plan = context.scanner.plan_scan(store.snapshots.get(snapshot), schema=store.schema)
        return plain_rows(store.read(plan))

    def changelog(self, location: Path, since: int, until: int) -> list[Change]:
        """Changes of the snapshots (since, until], as publishing reads them."""
        found: list[Change] = []
        store = self.store(location)
        reader, snapshots = ChangelogReader(store.context), store.snapshots
        schema = store.context.schemas.get(snapshots.get(until).schema_id)
        numbers = range(since + 1, until + 1)
        for batch in (one for number in numbers for one in reader.read(snapshots.get(number), schema)):
            kinds = [RowKind(kind).short_string for kind in batch.rows.column("_ROW_KIND").to_pylist()]
            found += zip(kinds, plain_rows(batch.rows.drop_columns(["_ROW_KIND"])), strict=True)
        return found

    def follow(self, location: Path, mode: str | None = None, **words: Any) -> list[tuple[int, list[Change]]]:
        """(snapshot, changes) of a reader that ends at the newest snapshot; rows it begins with are '+I'."""
        start = {key: words.pop(key) for key in ("snapshot_id", "timestamp_ms") if key in words}
        request = StreamRequest(
            start=parse_request(mode, **start) if mode or start else None, until=NOW, **words
        )
        found: list[tuple[int, list[Change]]] = []
        for batch in open_stream(self.store(location).context, request):
            rows = pa.Table.from_batches([batch])
            [snapshot] = set(rows.column("_snapshot_id").to_pylist())
            if not found or found[-1][0] != snapshot:
                found.append((snapshot, []))
            found[-1][1].extend(plain_changes(rows.drop_columns(["_snapshot_id"]), "_row_kind"))
        return found

    def snapshots(self, location: Path) -> list[tuple[int, str]]:
        """Id and commit kind of every snapshot."""
        return [(one.id, str(one.commit_kind)) for one in self.store(location).snapshots.list_all()]

    def store(self, location: Path) -> TableStore:
        """The table as it is now."""
        return TableStore(LocalFileIO(str(location.parent.parent)), str(location), SYSTEM)


def _catalog(location: Path) -> tuple[FilesystemCatalog, Identifier]:
    warehouse = str(location.parent.parent)
    catalog = FilesystemCatalog(LocalFileIO(warehouse), warehouse, SYSTEM)
    return catalog, Identifier(location.parent.name.removesuffix(".db"), location.name)


def _alteration(what: str, words: Sequence[Any]) -> Callable[[TableSchema], TableSchema]:
    if what == "add":
        return lambda schema: schema_change.add_column(schema, words[0], parse_type(words[1]))
    if what == "rename":
        return lambda schema: schema_change.rename_column(schema, words[0], words[1])
    if what == "drop":
        return lambda schema: schema_change.drop_column(schema, words[0])
    if what == "type":
        return lambda schema: schema_change.retype_column(schema, words[0], parse_type(words[1]))
    return lambda schema: schema_change.set_options(schema, {words[0]: words[1]})
