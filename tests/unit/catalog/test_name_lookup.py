"""What a name means: a pinned state says which snapshot and stage it is, in values that nobody has to parse."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.name_lookup import NameLookup, resolve_table
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.resolved_names import NO_SNAPSHOT, ResolvedTable, ResolvedView, SnapshotRef
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import new_schema
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.write.write_request import WriteRequest

ROWS = pa.table({"id": [1]})
KEYED = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "write-only": "true",
}
NAME = Identifier("d", "t")


def open_names(folder: Path) -> tuple[FilesystemCatalog, OpenTables, NameLookup]:
    """A warehouse with the keyed table d.t, empty."""
    catalog = FilesystemCatalog(LocalFileIO(str(folder)), str(folder), SYSTEM)
    catalog.create_database("d")
    catalog.create_table(NAME, new_schema(ROWS.schema, primary_keys=["id"], options=KEYED))
    tables = OpenTables(catalog)
    return catalog, tables, NameLookup(catalog, tables)


def test_a_pinned_state_carries_its_snapshot_and_its_stage(tmp_path: Path) -> None:
    """Of an empty table, of a committed one, of a staged snapshot by its versioned name."""
    _, tables, names = open_names(tmp_path)
    store = tables.get(NAME)
    assert resolve_table(store, None).snapshot == NO_SNAPSHOT
    store.write(WriteRequest(rows=ROWS))
    store.write(WriteRequest(rows=pa.table({"id": [2]}), stage="run"))
    now, staged = names.lookup("d", "t", None), names.lookup("d__at_branch_run", "t", None)
    assert isinstance(now, ResolvedTable)
    assert isinstance(staged, ResolvedTable)
    latest = store.latest()
    assert latest is not None
    assert (now.snapshot, now.stage) == (SnapshotRef(1, latest.unique), None)
    assert (staged.snapshot.id, staged.stage) == (2, "run")
    assert staged.commit != now.commit
    assert names.lookup("d", "t", TableVersion(branch="run")) == staged
    assert names.lookup("d", "t", TableVersion(snapshot=1)) == now


def test_a_view_of_this_process_is_known_as_its_own(tmp_path: Path) -> None:
    """The text counts, not the name: the same name with another text is a stranger's."""
    catalog, _, names = open_names(tmp_path)
    catalog.put_view(Identifier("d", "v"), ViewDefinition("select 1 as x"))
    names.note_own_text("select 1 as x")
    mine = names.lookup("d", "v", None)
    assert isinstance(mine, ResolvedView)
    assert mine.is_own
    catalog.put_view(Identifier("d", "v"), ViewDefinition("select 2 as x"))
    theirs = names.lookup("d", "v", None)
    assert isinstance(theirs, ResolvedView)
    assert not theirs.is_own


def test_one_store_for_a_name_until_it_is_forgotten(tmp_path: Path) -> None:
    """Its caches are shared; a table that is gone takes its store with it."""
    catalog, tables, names = open_names(tmp_path)
    store = tables.get(NAME)
    assert tables.find(NAME) is store
    catalog.drop_table(NAME)
    assert tables.find(NAME) is None
    assert names.lookup("d", "t", None) is None
    assert tables.open(NAME) is not store


def test_a_handle_of_a_state_stays_with_it(tmp_path: Path) -> None:
    """Behind later commits, and when another table or a view has taken its name, which a new look finds."""
    catalog, tables, names = open_names(tmp_path)
    tables.get(NAME).write(WriteRequest(rows=ROWS))
    seen = tables.find_as_seen(NAME)
    assert seen is not None
    tables.get(NAME).write(WriteRequest(rows=pa.table({"id": [2]})))
    latest = seen.latest()
    assert latest is not None
    assert (latest.id, seen.plan_scan().visible_rows) == (1, 1)
    catalog.drop_table(NAME)
    assert tables.find_as_seen(NAME) is None
    catalog.create_table(NAME, new_schema(ROWS.schema, options={"bucket": "-1"}))
    assert seen.schema.primary_keys == ("id",)
    now = tables.find_as_seen(NAME)
    assert now is not None
    assert (now.schema.primary_keys, now.latest(), now.identity == seen.identity) == ((), None, False)
    catalog.drop_table(NAME)
    catalog.views.put(NAME, ViewDefinition("select 1 as a"))
    assert isinstance(names.lookup("d", "t", None), ResolvedView)
