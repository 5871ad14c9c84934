"""An engine for one piece of work: it looks each table up once, and its claims look at what is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, RetryError, TableSpec, WriteSpec
from tablestore_engine.fileio.local import LocalFileIO

NAME = "demo.t"
SPEC = WriteSpec(TableSpec(primary_key=("id",)))


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """With a table of one row."""
    with Engine(tmp_path / "warehouse") as made:
        made.write(NAME, _rows(1), SPEC)
        yield made


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that are read."""
    read, inner = list[str](), LocalFileIO.read

    def noted(self: LocalFileIO, path: str) -> bytes:
        read.append(path.rpartition("/")[2])
        return inner(self, path)

    monkeypatch.setattr(LocalFileIO, "read", noted)
    return read


def test_a_second_look_reads_no_file_and_gives_the_first_state(engine: Engine, looks: list[str]) -> None:
    """Whatever others have committed meanwhile; snapshots that were read are not read again either."""
    once = engine.looking_once()
    assert once.seen_table(NAME).latest_snapshot_id() == 1
    engine.write(NAME, _rows(2), SPEC)
    looks.clear()
    assert once.seen_table(NAME).latest_snapshot_id() == 1
    assert once.table(NAME).store.snapshots.get(1).id == 1
    assert not looks
    assert engine.table(NAME).latest_snapshot_id() == 2


def test_a_write_on_a_state_that_has_moved_is_planned_again(engine: Engine) -> None:
    """The claim sees the newer snapshot: no row of it is lost, and the next look sees both."""
    once = engine.looking_once()
    once.seen_table(NAME)
    engine.write(NAME, _rows(2), SPEC)
    assert once.write(NAME, _rows(3), SPEC).snapshot_id == 3
    assert sorted(once.seen_table(NAME).scan().to_arrow().column("id").to_pylist()) == [1, 2, 3]


def test_a_write_to_a_table_that_was_dropped_since_the_look_is_refused(engine: Engine) -> None:
    """Rows that were planned for one table never go into another one of its name."""
    once = engine.looking_once()
    once.seen_table(NAME)
    engine.drop_table(NAME)
    engine.write(NAME, _rows(7), SPEC)
    with pytest.raises(RetryError, match="TS1365"):
        once.write(NAME, _rows(3), SPEC)
    assert engine.table(NAME).scan().to_arrow().column("id").to_pylist() == [7]


def test_a_write_plans_on_the_look_of_its_work(engine: Engine, looks: list[str]) -> None:
    """LATEST is read by the look, and not once more by the write."""
    once = engine.looking_once()
    once.seen_table(NAME)
    looks.clear()
    once.write(NAME, _rows(3), SPEC)
    assert "LATEST" not in looks
