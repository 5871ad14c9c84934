"""A table in the place of a view or a table laid out otherwise, with no test to wait for: at once, by two renames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData, RetryError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spi import Staged, stage_properties
from tablestore_engine.warehouse.gate.staged_table_swap import StagedTableSwaps
from tests.doses import pairs
from tests.unit.warehouse.table_swap_world import (
    NAME,
    NEW,
    OLD,
    deaths,
    keyed,
    leftovers,
    meaning,
    put_table,
    rows,
)


def replace_at_once(engine: Engine) -> None:
    """With another key, and no test to wait for."""
    report = engine.write(NAME, rows(2, 3), keyed("day", beside=True))
    assert (str(report.table), report.inserted, report.staged) == (NAME, 2, None)


@pytest.mark.parametrize("old", OLD)
def test_without_a_stage_it_takes_the_place_at_once(tmp_path: Path, old: str) -> None:
    """One that waited for its tests is dropped. Rows that are refused leave the old one as it is."""
    engine = Engine(str(tmp_path))
    OLD[old](engine)
    before = meaning(engine)
    waits = stage_properties(Staged(NAME, "run", "", gates=("t",), owner="model.shop.orders"))
    engine.write(NAME, rows(9), keyed("day", stage="run", beside=True, properties=waits))
    with pytest.raises(FixData, match="TS1601"):
        engine.write(NAME, rows(2, 2), keyed("day", beside=True, duplicates="refuse"))
    assert (meaning(engine), engine.staged("d")) == (before, ())
    assert not any("/next/" in path for path in leftovers(tmp_path))
    replace_at_once(engine)
    assert (meaning(engine), leftovers(tmp_path), engine.staged("d")) == (NEW, [], ())
    engine.write(NAME, rows(4), WriteSpec())
    assert engine.table(NAME).scan().to_arrow().num_rows == 3


def test_a_commit_while_it_is_written_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1480: the old table stays, with that commit, and nothing waits."""
    engine = Engine(str(tmp_path))
    put_table(engine)
    publish_it = StagedTableSwaps.publish

    def late(self: StagedTableSwaps, *arguments: Any) -> Any:
        Engine(str(tmp_path)).write(NAME, rows(7), WriteSpec())
        return publish_it(self, *arguments)

    monkeypatch.setattr(StagedTableSwaps, "publish", late)
    with pytest.raises(RetryError, match="TS1480"):
        engine.write(NAME, rows(2, 3), keyed("day", beside=True))
    assert sorted(engine.table(NAME).scan().to_arrow().column("id").to_pylist()) == [1, 7]
    assert leftovers(tmp_path) == []


class Between:
    """Something happens between the two moves of a change of places, once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
        self.is_done, move = False, LocalFileIO.rename

        def rename(fileio: LocalFileIO, source: str, target: str) -> bool:
            if source.endswith("/next/orders") and target.endswith("/orders") and not self.is_done:
                self.is_done = True
                happens()
            return move(fileio, source, target)

        monkeypatch.setattr(LocalFileIO, "rename", rename)


@pytest.mark.parametrize("old", OLD)
def test_a_failure_between_the_moves_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    """The disk says no: whoever looks the name up next finishes it."""
    engine = Engine(str(tmp_path))
    OLD[old](engine)

    def fail() -> None:
        raise OSError(5, "disk")

    between = Between(monkeypatch, fail)
    with pytest.raises(Exception, match="disk"):
        replace_at_once(engine)
    assert between.is_done
    assert meaning(Engine(str(tmp_path))) == NEW


@pytest.mark.parametrize("old", OLD)
def test_two_replace_it_at_the_same_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str) -> None:
    """The second begins between the moves of the first: both are done, the second's rows are there."""
    engine = Engine(str(tmp_path))
    OLD[old](engine)

    def other() -> None:
        Engine(str(tmp_path)).write(NAME, rows(5), keyed("day", beside=True))

    between = Between(monkeypatch, other)
    replace_at_once(engine)
    assert between.is_done
    assert meaning(Engine(str(tmp_path))) == ("table", (("day",), rows(5).to_pylist()))
    assert leftovers(tmp_path) == []


def test_dropping_one_that_is_about_to_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the old table, and goes on instead."""
    engine = Engine(str(tmp_path))
    put_table(engine)
    waiting, catalog = (
        Identifier.parse(NAME).replacement,
        FilesystemCatalog(LocalFileIO(str(tmp_path)), str(tmp_path), SYSTEM),
    )
    between = Between(monkeypatch, lambda: catalog.drop_table(waiting))
    replace_at_once(engine)
    assert between.is_done
    assert meaning(Engine(str(tmp_path))) == NEW


@pytest.mark.parametrize(("is_after", "old"), pairs([False, True], OLD))
def test_killed_anywhere_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, is_after: bool
) -> None:
    """A kill before or after each change that such a write makes: readers have one of both, whole; repeated, it is
    done and leaves nothing.
    """
    told = deaths(tmp_path, monkeypatch, prepare=OLD[old], act=replace_at_once, is_after=is_after)
    for folder, calls in told:
        replace_at_once(Engine(str(folder)))
        assert (meaning(Engine(str(folder))), leftovers(folder)) == (NEW, []), calls
