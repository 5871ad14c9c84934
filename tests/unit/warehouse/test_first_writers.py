"""Two processes write to a table that is not there yet: the refused one takes nothing from the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData, RetryError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.commit.commit import Committer

SPEC = WriteSpec(table=TableSpec(primary_key=("id",)))
GOOD = pa.table({"id": [1, 2], "v": ["a", "b"]})
MORE = pa.table({"id": [3], "v": ["c"]})
TWICE = pa.table({"id": [7, 7], "v": ["x", "y"]})
NAME = "demo.orders"


def ids(engine: Engine) -> list[int]:
    """Keys of the table."""
    return sorted(engine.table(NAME).scan().to_arrow().column("id").to_pylist())


def test_a_refused_first_write_leaves_no_table(tmp_path: Path) -> None:
    """Its rows are refused: the table that it made is gone again."""
    engine = Engine(str(tmp_path))
    with pytest.raises(FixData):
        engine.write(NAME, TWICE, SPEC)
    assert engine.find_table(NAME) is None


def test_a_refused_first_write_leaves_the_table_that_another_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process commits to the table before the first one's rows are refused: it stays, with its rows."""
    real = FilesystemCatalog.create_table

    def create(self: FilesystemCatalog, identifier: Identifier, schema: TableSchema) -> TableSchema:
        monkeypatch.undo()
        made = real(self, identifier, schema)
        Engine(str(tmp_path)).write(NAME, GOOD, SPEC)
        return made

    monkeypatch.setattr(FilesystemCatalog, "create_table", create)
    with pytest.raises(FixData):
        Engine(str(tmp_path)).write(NAME, TWICE, SPEC)
    assert ids(Engine(str(tmp_path))) == [1, 2]


def test_a_writer_whose_table_is_removed_by_a_refused_one_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refused first writer removes the empty table while the other is about to claim: that one looks again, and
    its rows are there.
    """
    engine = Engine(str(tmp_path))
    engine.create_database("demo")
    engine.create_table(
        NAME,
        GOOD.schema,
        primary_key=SPEC.table.primary_key,
        partition_by=SPEC.table.partition_by,
        options=SPEC.table.options,
    )
    real = Committer.claim

    def claim(self: Committer, *args: object) -> bool:
        monkeypatch.undo()
        Engine(str(tmp_path)).drop_table(NAME)
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Committer, "claim", claim)
    assert engine.write(NAME, GOOD, SPEC).inserted == 2
    assert ids(engine) == [1, 2]


def test_both_first_writers_have_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process makes and fills the table after we looked and before we make it: we write into theirs."""
    real = FilesystemCatalog.create_table

    def create(self: FilesystemCatalog, identifier: Identifier, schema: TableSchema) -> TableSchema:
        monkeypatch.undo()
        Engine(str(tmp_path)).write(NAME, GOOD, SPEC)
        return real(self, identifier, schema)

    monkeypatch.setattr(FilesystemCatalog, "create_table", create)
    Engine(str(tmp_path)).write(NAME, MORE, SPEC)
    assert ids(Engine(str(tmp_path))) == [1, 2, 3]


def test_rows_for_a_table_that_was_replaced_meanwhile_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table with rows is dropped and made anew under the write: TS1365, for its rows were made for the old one."""
    engine = Engine(str(tmp_path))
    engine.write(NAME, GOOD, SPEC)
    real = Committer.claim

    def claim(self: Committer, *args: object) -> bool:
        monkeypatch.undo()
        other = Engine(str(tmp_path))
        other.drop_table(NAME)
        other.write(NAME, pa.table({"id": [9], "w": [1]}), SPEC)
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Committer, "claim", claim)
    with pytest.raises(RetryError, match="TS1365"):
        engine.write(NAME, MORE, SPEC)
    assert ids(engine) == [9]
    assert engine.write(NAME, pa.table({"id": [10], "w": [1]}), SPEC).inserted == 1


def test_discarding_the_only_stage_removes_only_an_unused_table(tmp_path: Path) -> None:
    """A table that was only staged goes with its stage; one that another process filled meanwhile stays."""
    engine = Engine(str(tmp_path))
    staged = WriteSpec(table=SPEC.table, stage="gate")
    engine.write(NAME, GOOD, staged)
    engine.table(NAME).drop_staged("gate")
    assert engine.find_table(NAME) is None
    engine.write(NAME, GOOD, staged)
    Engine(str(tmp_path)).write(NAME, MORE, SPEC)
    engine.table(NAME).drop_staged("gate")
    assert ids(engine) == [3]
