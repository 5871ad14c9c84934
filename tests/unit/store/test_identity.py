"""A name that is dropped and made anew is another table: no claim, cache or clean-up goes from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.fileio.base import FolderStore, NewFile
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.schema_change import add_column
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.identity import find_identity, identity_of
from tablestore_engine.store.rollback import roll_back
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteRequest
from tests.doubles.faults import seeded_runtime
from tests.unit.store.table_world import KEYED, acting, as_table, open_table, put, row, rows_of

NAME = Identifier("demo", "t")
LATE = ("write.data_files", "commit.manifests")


def schema_of(columns: dict[str, str], *keys: str, **options: str) -> TableSchema:
    """A first schema."""
    fields = [DataField(0, name, parse_type(text)) for name, text in columns.items()]
    return new_schema(fields, primary_keys=keys, options={**KEYED, **options})


PLAIN = schema_of({"id": "BIGINT", "name": "STRING", "n": "INT"}, "id")


def catalog_of(root: Path, runtime: Runtime | None = None) -> FilesystemCatalog:
    """The warehouse, as any process opens it."""
    return FilesystemCatalog(LocalFileIO(str(root)), str(root), runtime or seeded_runtime(7))


def make(root: Path, schema: TableSchema = PLAIN, seed: int = 7) -> TableStore:
    """The table by its name."""
    catalog = catalog_of(root, seeded_runtime(seed))
    catalog.create_database("demo")
    catalog.create_table(NAME, schema)
    return open_table(root)


def made_anew(root: Path, commits: int = 0) -> Callable[[], None]:
    """Another process drops the table, makes it again, and commits that many times."""

    def act() -> None:
        catalog_of(root).drop_table(NAME)
        again = make(root, seed=8)
        for number in range(commits):
            put(again, row(100 + number))

    return act


@pytest.mark.parametrize("commits", [0, 1, 3, 5])
@pytest.mark.parametrize("point", LATE)
def test_a_claim_never_lands_in_the_table_that_took_the_name(
    tmp_path: Path, point: str, commits: int
) -> None:
    """DROP and CREATE under a running writer: it is refused, and the new table has its own snapshots only, as many as
    it made: none beside them, and the next writer goes on.
    """
    make(tmp_path)
    for number in range(3):
        put(open_table(tmp_path), row(number))
    writer = open_table(tmp_path, runtime=acting(point, made_anew(tmp_path, commits)))
    with pytest.raises(RetryError, match="TS1365"):
        put(writer, row(9))
    fresh = open_table(tmp_path)
    assert fresh.snapshots.list_ids() == tuple(range(1, commits + 1))
    assert rows_of(fresh) == [row(100 + number) for number in range(commits)]
    assert put(fresh, row(50)).snapshot_id == commits + 1
    assert fresh.verify() == ()


@pytest.mark.folders
@pytest.mark.parametrize("point", LATE)
def test_a_dropped_table_does_not_come_back(tmp_path: Path, point: str) -> None:
    """DROP under a running writer: it is refused; the name is free, for CREATE and for RENAME."""
    make(tmp_path)
    put(open_table(tmp_path), row(1))
    writer = open_table(tmp_path, runtime=acting(point, lambda: catalog_of(tmp_path).drop_table(NAME)))
    with pytest.raises(TablestoreError):
        put(writer, row(9))
    catalog = catalog_of(tmp_path)
    assert catalog.list_tables("demo") == ()
    assert not (tmp_path / "demo.db/t/snapshot/snapshot-2").exists()
    catalog.create_table(Identifier("demo", "other"), PLAIN)
    catalog.rename_table(Identifier("demo", "other"), NAME)
    assert put(open_table(tmp_path), row(1)).snapshot_id == 1


@pytest.mark.parametrize("point", LATE)
def test_a_schema_change_does_not_land_in_the_new_table(tmp_path: Path, point: str) -> None:
    """Neither schema nor snapshot of the old writer is in the table that took the name."""
    make(tmp_path)
    put(open_table(tmp_path), row(1))
    writer = open_table(tmp_path, runtime=acting(point, made_anew(tmp_path)))
    wider = replace(add_column(writer.schema, "extra", parse_type("INT")), id=1)
    with pytest.raises(RetryError, match="TS1365"):
        writer.write(WriteRequest(as_table([{**row(2), "extra": 1}], wider), new_schema=wider))
    fresh = open_table(tmp_path)
    assert (fresh.context.schemas.list_ids(), fresh.snapshots.list_ids()) == ((0,), ())


@pytest.mark.parametrize("point", LATE)
def test_a_stage_does_not_land_in_the_new_table(tmp_path: Path, point: str) -> None:
    """A staged write whose table is replaced is refused, and nothing waits in the new table."""
    make(tmp_path)
    put(open_table(tmp_path), row(1))
    writer = open_table(tmp_path, runtime=acting(point, made_anew(tmp_path, 1)))
    with pytest.raises(RetryError, match="TS1365"):
        put(writer, row(2), stage="gate")
    assert open_table(tmp_path).staging.list_all() == ()


def test_a_handle_follows_the_name_to_the_new_table(tmp_path: Path) -> None:
    """Open before, used after another process made the table anew with another key and sequence rule: the rows are
    written by the new rules, not by remembered ones (the schemas have the same number).
    """
    columns = {"id": "BIGINT", "name": "STRING", "n": "INT"}
    make(tmp_path, schema_of(columns, "id", **{"sequence.field": "n"}))
    store = open_table(tmp_path)
    put(store, row(1, "a", 5))
    put(store, row(1, "late", 1))
    assert rows_of(store) == [row(1, "a", 5)]
    catalog_of(tmp_path).drop_table(NAME)
    make(tmp_path, schema_of(columns, "id", "name"), seed=8)
    put(store, row(1, "a", 5))
    put(store, row(1, "b", 1))
    put(store, row(1, "a", 1))
    assert store.schema.primary_keys == ("id", "name")
    assert rows_of(store) == rows_of(open_table(tmp_path)) == [row(1, "a", 1), row(1, "b", 1)]
    assert store.verify() == ()


def test_rows_made_for_one_table_are_not_written_into_another(tmp_path: Path) -> None:
    """A request that names the table it was made for is refused on another one: TS1365."""
    store = make(tmp_path)
    identity = store.identity
    assert put(store, row(1), identity=identity).snapshot_id == 1
    made_anew(tmp_path)()
    with pytest.raises(RetryError, match="TS1365"):
        put(store, row(1), identity=identity)
    assert store.latest() is None


@pytest.mark.folders
def test_each_creation_is_another_identity(tmp_path: Path) -> None:
    """The same columns and options, made twice: two tables. The identity is that of the returned schema, and stays
    through changes and a rename; tables of other engines have one too.
    """
    catalog = catalog_of(tmp_path)
    catalog.create_database("demo")
    first = catalog.create_table(NAME, PLAIN)
    store = open_table(tmp_path)
    assert store.identity == identity_of(first)
    store.alter(lambda schema: add_column(schema, "extra", parse_type("INT")))
    put(store, {**row(1), "extra": 1})
    catalog.rename_table(NAME, Identifier("demo", "moved"))
    moved = catalog.store(Identifier("demo", "moved"))
    assert (moved.identity, store.identity) == (identity_of(first), None)
    assert catalog.create_table(NAME, PLAIN) != first
    assert store.identity not in (None, moved.identity)
    (tmp_path / "demo.db/moved/schema/schema-0").unlink()
    assert find_identity(LocalFileIO(str(tmp_path)), moved.location) not in (None, store.identity)


def test_a_rollback_does_not_touch_the_new_table(tmp_path: Path) -> None:
    """A rollback of a handle that saw the old table deletes nothing of the one that took the name."""
    make(tmp_path)
    store = open_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    held = store.context
    made_anew(tmp_path, 3)()
    with pytest.raises(RetryError, match="TS1365"):
        roll_back(held, 1)
    assert open_table(tmp_path).snapshots.list_ids() == (1, 2, 3)


# ---- removal of what nobody uses ---------------------------------------------------------------------------


@pytest.mark.folders
def test_only_the_very_table_that_nobody_used_is_removed(tmp_path: Path) -> None:
    """Unused: removed. Of another identity, with a snapshot, with a stage, with a claim on the way: it stays."""
    catalog = catalog_of(tmp_path)
    identity = make(tmp_path).identity
    assert identity is not None
    assert catalog.drop_unused(NAME, "another") is None
    assert catalog.drop_unused(NAME, identity) is not None
    assert catalog.list_tables("demo") == ()
    assert catalog.drop_unused(NAME, identity) is None

    for use in (
        lambda store: put(store, row(1)),
        lambda store: put(store, row(1), stage="gate"),
        lambda store: (tmp_path / "demo.db/t/snapshot/.snapshot-1.abc.tmp").write_bytes(b"{"),
    ):
        store = make(tmp_path, seed=11)
        use(store)
        before = store.identity
        assert before is not None
        assert catalog.drop_unused(NAME, before) is None
        assert open_table(tmp_path).identity == before
        catalog.drop_table(NAME)


@pytest.mark.parametrize("point", [*LATE, "commit.claimed"])
def test_the_refused_first_writer_leaves_the_other_its_table(tmp_path: Path, point: str) -> None:
    """Wherever the second first writer is when the first one gives up: it has committed to a table that stays, or is
    told to look again; its rows are never lost after it was told that they are there.
    """
    identity = make(tmp_path).identity
    assert identity is not None
    catalog = catalog_of(tmp_path)
    other = open_table(tmp_path, runtime=acting(point, lambda: catalog.drop_unused(NAME, identity)))
    if point == "commit.claimed":
        put(other, row(1))
        assert rows_of(open_table(tmp_path)) == [row(1)]
    else:
        with pytest.raises(RetryError, match="TS1365"):
            put(other, row(1))
        assert catalog.list_tables("demo") == ()


@pytest.mark.folders
def test_a_claim_between_look_and_removal_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer commits in the instant between: the table is put back with its rows."""
    identity = make(tmp_path).identity
    assert identity is not None
    real = FilesystemCatalog._move_aside

    def late(self: FilesystemCatalog, folders: FolderStore, path: str, parent: str) -> str:
        put(open_table(tmp_path), row(1))
        return real(self, folders, path, parent)

    monkeypatch.setattr(FilesystemCatalog, "_move_aside", late)
    assert catalog_of(tmp_path).drop_unused(NAME, identity) is None
    assert rows_of(open_table(tmp_path)) == [row(1)]


@pytest.mark.folders
def test_a_folder_with_snapshots_but_no_schema_is_no_place_for_a_table(tmp_path: Path) -> None:
    """What a writer of an earlier version left behind is refused by name, not taken for rows of the new table."""
    make(tmp_path)
    put(open_table(tmp_path), row(1))
    (tmp_path / "demo.db/t/schema/schema-0").unlink()
    with pytest.raises(FixRequest, match="TS1465"):
        make(tmp_path)


class DroppingFileIO(LocalFileIO):
    """Somebody drops the table while a file of it is written."""

    def write_many(self, files: Sequence[NewFile]) -> None:
        """As LocalFileIO, but the folder of data files is gone at the end."""
        super().write_many(files)
        if "/bucket-" in files[0].path:
            catalog_of(Path(self.root)).drop_table(NAME)


@pytest.mark.folders
def test_a_folder_that_goes_away_under_a_write_is_a_dropped_table(tmp_path: Path) -> None:
    """The file system's raw error is told as what happened: TS1365, nothing committed."""
    make(tmp_path)
    with pytest.raises(RetryError, match="TS1365"):
        put(open_table(tmp_path, fileio=DroppingFileIO(str(tmp_path))), row(1))
    assert find_identity(LocalFileIO(str(tmp_path)), f"{tmp_path}/demo.db/t") is None


def test_a_first_schema_that_another_engine_removed_hides_no_rows(tmp_path: Path) -> None:
    """The identity is another one then; on a disk no snapshot can be another table's."""
    store = make(tmp_path)
    catalog_of(tmp_path).alter_table(NAME, lambda old: add_column(old, "more", parse_type("INT")))
    put(open_table(tmp_path), row(1), row(2))
    Path(store.context.layout.schema_path(0)).unlink()
    assert [one["id"] for one in rows_of(open_table(tmp_path))] == [1, 2]
