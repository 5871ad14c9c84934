"""A store that names files alone: no folder can be renamed, so a table goes schema by schema."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import RetryError, Unsupported
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.commit.commit import Committer
from tablestore_engine.store.metadata.identity import find_identity
from tablestore_engine.testing.faults import DyingFileIO, SimulatedCrash
from tests.unit.store.table_world import put, row

NAME = Identifier("demo", "t")
OPTIONS = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "num-levels": "9",
}


class FlatFileIO(LocalFileIO):
    """The local disk without what only folders can do."""

    @property
    def folders(self) -> None:  # type: ignore[override]  # a disk has them, this one hides them
        """None."""


def catalog(root: Path) -> FilesystemCatalog:
    """With the database."""
    made = FilesystemCatalog(FlatFileIO(str(root)), str(root), SYSTEM)
    made.create_database("demo")
    return made


def make(names: FilesystemCatalog) -> TableSchema:
    """A table with a snapshot and two schemas."""
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    schema = names.create_table(NAME, new_schema(arrow, primary_keys=["id"], options=OPTIONS))
    put(names.store(NAME), row(1))
    names.alter_table(NAME, lambda old: set_options(old, {"num-levels": "6"}))
    return schema


def test_drop_moves_nothing(tmp_path: Path) -> None:
    """The table and its folder are gone, the next one of the name begins from nothing."""
    names = catalog(tmp_path)
    make(names)
    assert names.drop_table(NAME) is not None
    assert not (tmp_path / "demo.db/t").exists()
    assert not names.has_table(NAME)
    make(names)
    assert names.store(NAME).snapshots.list_ids() == (1, 2)
    names.drop_database("demo", cascade=True)
    assert not (tmp_path / "demo.db").exists()


@pytest.mark.parametrize("changes", range(6))
def test_a_drop_that_dies_leaves_the_table_or_none(tmp_path: Path, changes: int) -> None:
    """Before the first delete all is there; behind it no old writer has its table any more; DROP again ends it."""
    names = catalog(tmp_path)
    make(names)
    old = find_identity(names.fileio, names.location(NAME))
    dying = DyingFileIO(FlatFileIO(str(tmp_path)), seed=1, changes_left=changes)
    with pytest.raises(SimulatedCrash):
        FilesystemCatalog(dying, str(tmp_path), SYSTEM).drop_table(NAME)
    assert (find_identity(names.fileio, names.location(NAME)) == old) == (changes == 0)
    if names.has_table(NAME):
        names.drop_table(NAME)
    assert not names.has_table(NAME)


def test_a_writer_of_a_dropped_table_claims_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table goes, and another takes its place, between a writer's plan and its claim: TS1365."""
    names = catalog(tmp_path)
    make(names)
    real = Committer.claim

    def claim(self: Committer, *args: object) -> bool:
        monkeypatch.undo()
        names.drop_table(NAME)
        make(names)
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Committer, "claim", claim)
    with pytest.raises(RetryError, match="TS1365"):
        put(names.store(NAME), row(2))
    assert names.store(NAME).snapshots.list_ids() == (1, 2)


def test_an_unused_table_stays_where_nothing_can_be_moved_away(tmp_path: Path) -> None:
    """Nobody could look at it where no claim reaches it; another engine's rows must not go."""
    names = catalog(tmp_path)
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    names.create_table(NAME, new_schema(arrow, primary_keys=["id"], options=OPTIONS))
    assert names.drop_unused(NAME, str(find_identity(names.fileio, names.location(NAME)))) is None
    assert names.has_table(NAME)


def test_what_needs_a_move_is_refused_before_anything_changes(tmp_path: Path) -> None:
    """RENAME, and a table that takes the place of another one, name the way out: TS1204."""
    names = catalog(tmp_path)
    make(names)
    with pytest.raises(Unsupported, match="TS1204"):
        names.rename_table(NAME, Identifier("demo", "u"))
    assert names.list_tables("demo") == ("t",)
