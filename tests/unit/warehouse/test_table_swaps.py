"""A gated table in the place of a view or of a table laid out otherwise: complete beside it, then two renames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import ResolvedTable, ResolvedView
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.spi import Outcome, Publication, Staged, Verdict, pick_group, stage_properties
from tablestore_engine.sql.table_version import TableVersion
from tests.doubles.faults import SimulatedCrash
from tests.unit.warehouse.table_swap_world import (
    NAME,
    NEW,
    OLD,
    deaths,
    keyed,
    leftovers,
    meaning,
    put_table,
    put_view,
    rows,
)


def stage(engine: Engine, table: pa.Table | None = None, name: str = "run") -> Staged:
    """A table with the key day waits beside, green."""
    properties = stage_properties(Staged(NAME, name, "", gates=("t",), owner="model.shop.orders"))
    write = keyed(
        "day", stage=name, beside=True, commit_user=name, commit_identifier=1, properties=properties
    )
    engine.write(NAME, rows(2, 3) if table is None else table, write)
    (item,) = (one for one in engine.gate.read_book("d").staged if one.key == (NAME, name))
    engine.gate.record(item, Outcome("t", Verdict.GREEN, (item.as_read,)))
    return item


def publish(engine: Engine) -> list[Publication]:
    """As dbt and the command line do it."""
    done: list[Publication] = []
    book = engine.gate.read_book("d")
    while group := pick_group(
        book, engine.gate.see(book), refused=frozenset(one.staged.table for one in done)
    ):
        done += engine.gate.publish(group)
    return done


@pytest.mark.parametrize("old", OLD)
def test_green_takes_the_place(tmp_path: Path, old: str) -> None:
    """Readers have the old relation until it is published and the new one from then on; nothing is left over."""
    engine = Engine(str(tmp_path))
    OLD[old](engine)
    before = meaning(engine)
    assert stage(engine).is_beside
    assert [(one.name, one.outcomes) for one in engine.staged("d")] == [("run", {"t": "green"})]
    assert meaning(engine) == before
    assert [str(one.identifier) for one in engine.relations("d", with_unpublished=True)] == [NAME]
    assert [one.state for one in publish(engine)] == ["published"]
    assert meaning(engine) == NEW
    assert [(str(one.identifier), one.kind) for one in engine.relations("d")] == [(NAME, "table")]
    assert leftovers(tmp_path) == []
    engine.write(NAME, rows(4), WriteSpec())
    assert engine.table(NAME).scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("old", OLD)
def test_red_leaves_the_old_one(tmp_path: Path, old: str) -> None:
    """A dropped one leaves nothing; a later build replaces the one that waits, and only one waits."""
    engine = Engine(str(tmp_path))
    OLD[old](engine)
    before = meaning(engine)
    first = stage(engine, name="first")
    engine.gate.record(first, Outcome("t", Verdict.RED, (first.as_read,)))
    assert publish(engine) == []
    second = stage(engine, name="second")
    engine.gate.drop(first)  # its name, not the one that waits now
    assert engine.gate.read_book("d").staged[0].key == second.key
    engine.gate.drop(second)
    assert (meaning(engine), engine.gate.read_book("d").staged, leftovers(tmp_path)) == (
        before, (), [] if old == "table" else ["d.db/.tablestore/views/orders.json"],
    )  # fmt: skip


def test_its_tests_read_it_by_the_name_and_its_stage(tmp_path: Path) -> None:
    """The pin of a staged snapshot leads to the table beside; without it the name is the view still."""
    engine = Engine(str(tmp_path))
    put_view(engine)
    item = stage(engine)
    warehouse = engine.gate._warehouse
    source = NameLookup(warehouse.catalog, warehouse.stores)
    assert isinstance(source.lookup("d", "orders", None), ResolvedView)
    pinned = source.lookup("d", "orders", TableVersion(branch="run"))
    assert isinstance(pinned, ResolvedTable)
    assert pinned.commit == item.version
    assert isinstance(source.lookup("d__at_branch_run", "orders", None), ResolvedTable)


def test_a_table_without_rows_takes_the_place_too(tmp_path: Path) -> None:
    """No row is a result like any other: the view goes, the table is empty."""
    engine = Engine(str(tmp_path))
    put_view(engine)
    stage(engine, rows(1).slice(0, 0))
    assert [one.state for one in publish(engine)] == ["published"]
    assert meaning(engine) == ("table", (("day",), []))


def change_rows(engine: Engine) -> None:
    """Somebody writes the table."""
    engine.write(NAME, rows(7), WriteSpec())


def change_view(engine: Engine) -> None:
    """Somebody replaces the view."""
    engine.create_view(NAME, "select 2 as id")


@pytest.mark.parametrize(("old", "change"), [("table", change_rows), ("view", change_view)])
def test_what_changed_meanwhile_stays(tmp_path: Path, old: str, change: Callable[[Engine], None]) -> None:
    """It was made for what was there when it was staged: another state is refused, and stays what readers have."""
    engine = Engine(str(tmp_path))
    OLD[old](engine)
    stage(engine)
    change(engine)
    after = meaning(engine)
    (done,) = publish(engine)
    assert (done.state, done.error and done.error.code) == ("refused", "TS1480")
    assert meaning(engine) == after


def test_a_group_with_one_whose_place_changed_stays_whole(tmp_path: Path) -> None:
    """Bound by one test to a table that could go out: nothing of the group is claimed."""
    engine = Engine(str(tmp_path))
    put_view(engine)
    properties = stage_properties(Staged("d.child", "with", "", gates=("t",)))
    engine.write("d.child", rows(1), keyed("id", stage="with", properties=properties))
    stage(engine)
    items = engine.gate.read_book("d").staged
    for item in items:
        engine.gate.record(item, Outcome("t", Verdict.GREEN, tuple(one.as_read for one in items)))
    change_view(engine)
    assert {one.error and one.error.code for one in publish(engine)} == {"TS1075"}
    assert engine.table("d.child").latest_snapshot_id() is None


def test_folding_the_old_one_changes_nothing(tmp_path: Path) -> None:
    """A compaction of the old table is no other state."""
    engine = Engine(str(tmp_path))
    put_table(engine)
    engine.write(NAME, rows(5), WriteSpec())
    stage(engine)
    engine.table(NAME).compact(full=True)
    assert [one.state for one in publish(engine)] == ["published"]
    assert meaning(engine) == NEW


def test_a_commit_in_the_last_moment_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the old table and the move somebody commits: it moves back, with that commit."""
    engine = Engine(str(tmp_path))
    put_table(engine)
    stage(engine)
    move, seen = LocalFileIO.rename, []

    def rename(self: LocalFileIO, source: str, target: str) -> bool:
        if target.endswith(".tablestore-replaced") and not seen:
            seen.append(source)
            Engine(str(tmp_path)).write(NAME, rows(7), WriteSpec())
        return move(self, source, target)

    monkeypatch.setattr(LocalFileIO, "rename", rename)
    (done,) = publish(engine)
    assert (seen != [], done.error and done.error.code) == (True, "TS1480")
    assert sorted(engine.table(NAME).scan().to_arrow().column("id").to_pylist()) == [1, 7]


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("old", OLD)
def test_killed_anywhere_the_name_means_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, is_after: bool
) -> None:
    """A kill before or after each change that publishing makes: readers have one of both, whole, and the next one
    who publishes finishes it.
    """

    def prepare(engine: Engine) -> None:
        OLD[old](engine)
        stage(engine)

    for folder, calls in deaths(tmp_path, monkeypatch, prepare=prepare, act=publish, is_after=is_after):
        assert len(Engine(str(folder)).relations("d")) == 1
        publish(Engine(str(folder)))
        assert meaning(Engine(str(folder))) == NEW, calls
        assert (leftovers(folder), Engine(str(folder)).gate.read_book("d").staged) == ([], ()), calls


def test_a_kill_between_the_moves_is_finished_by_a_listing_or_a_drop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks the name up first finishes it; a DROP drops the new one then and brings nothing back."""
    Engine(str(tmp_path)).create_database("d")
    put_table(Engine(str(tmp_path)))
    stage(Engine(str(tmp_path)))
    with monkeypatch.context() as patch:
        move = LocalFileIO.rename

        def rename(self: LocalFileIO, source: str, target: str) -> bool:
            if source.endswith("/next/orders"):
                raise SimulatedCrash
            return move(self, source, target)

        patch.setattr(LocalFileIO, "rename", rename)
        with pytest.raises(SimulatedCrash):
            publish(Engine(str(tmp_path)))
    assert not (tmp_path / "d.db" / "orders").exists()
    assert [str(one.identifier) for one in Engine(str(tmp_path)).relations("d")] == [NAME]
    Engine(str(tmp_path)).drop_table(NAME)
    assert Engine(str(tmp_path)).find_relation(NAME) is None
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("old", OLD)
def test_dropping_the_old_one_drops_who_waits_for_its_place(tmp_path: Path, old: str) -> None:
    """What nobody can publish any more does not stay."""
    engine = Engine(str(tmp_path))
    OLD[old](engine)
    stage(engine)
    if old == "view":
        engine.drop_view(NAME)
    else:
        engine.drop_table(NAME)
    assert engine.gate.read_book("d").staged == ()
    assert leftovers(tmp_path) == []


def test_a_free_name_needs_nothing_beside(tmp_path: Path) -> None:
    """Nothing has the name: it is a staged first snapshot like any other."""
    engine = Engine(str(tmp_path))
    assert not stage(engine).is_beside
    assert [one.state for one in publish(engine)] == ["published"]
    assert meaning(engine) == NEW
