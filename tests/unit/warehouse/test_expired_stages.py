"""Dropping what is past its retention on a real warehouse: races with publications and writes, and kills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import RetryError
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.spi import (
    GateBook,
    Outcome,
    Publication,
    Staged,
    TableRead,
    Verdict,
    drop_expired,
    order_group,
    stage_properties,
)
from tablestore_engine.store.stage.stage_drop import StageDrop
from tablestore_engine.warehouse.gate.expired_stages import find_expired
from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper
from tests.doubles.faults import SimulatedCrash, crashing

HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_700_000_000_000
BOTH = ("d.child", "d.parent")


def at(later_ms: int, **more: object) -> Runtime:
    """The clock stands so long after the staging."""
    return replace(SYSTEM, now_ms=lambda: START + later_ms, on_crash_point=lambda _: None, **more)


def opened(folder: Path, later_ms: int) -> Engine:
    """The warehouse at that time."""
    return Engine(str(folder), runtime=at(later_ms))


def stage(
    engine: Engine,
    table: str,
    *parents: TableRead,
    options: dict[str, str] | None = None,
    builds_on_stage: bool = False,
    number: int = 1,
    policy: str = "auto",
) -> Staged:
    """Row 2 of a table whose readers see row 1."""
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options or {}))
    if engine.find_table(table) is None:
        engine.write(table, pa.table({"id": [1]}), spec)
    planned = Staged(table, "run", "", gates=("test.p.t.1",), owner=table, policy=policy, parents=parents)
    staged = replace(
        spec,
        stage="run",
        commit_user="run",
        commit_identifier=number,
        properties=stage_properties(planned),
        builds_on_stage=builds_on_stage,
    )
    engine.write(table, pa.table({"id": [1 + number]}), staged)
    return engine.gate.read_book(table).staged[0]


def family(folder: Path) -> tuple[Staged, ...]:
    """A staged parent, and a child that was built from it; children first."""
    engine = opened(folder, 0)
    parent = stage(engine, "d.parent")
    return stage(engine, "d.child", parent.as_read), parent


def drop(engine: Engine) -> list[str]:
    """As a run does that looks at the database."""
    return [one.item.table for one in drop_expired(engine.gate, engine.gate.read_book("d"))]


def left(engine: Engine) -> list[str]:
    """Tables with staged rows."""
    return [one.table for one in engine.gate.read_book("d").staged]


def ids(engine: Engine) -> list[int | None]:
    """What readers see of both."""
    return [engine.table(table).latest_snapshot_id() for table in BOTH]


def publish(engine: Engine, *items: Staged) -> tuple[Publication, ...]:
    """As `staged publish --force`, of all of them."""
    return engine.gate.publish(order_group(items))


def test_a_family_is_dropped_after_its_retention_and_leaves_no_file(tmp_path: Path) -> None:
    """Readers see what they saw; orphan cleaning finds its data files; a look deletes nothing."""
    family(tmp_path)
    assert drop(opened(tmp_path, 7 * DAY - 1)) == []
    engine = opened(tmp_path, 7 * DAY)
    assert [one.item.table for one in find_expired(engine.gate, engine.gate.read_book("d"))] == [*BOTH]
    assert left(engine) == [*BOTH]
    assert drop(engine) == [*BOTH]
    assert left(engine) == []
    assert ids(engine) == [1, 1]
    assert not list(tmp_path.rglob("branch-*"))


def test_children_in_other_databases_are_dropped_as_well(tmp_path: Path) -> None:
    """The run has only read the database of the parent."""
    engine = opened(tmp_path, 0)
    parent = stage(engine, "d.parent")
    stage(engine, "other.child", parent.as_read)
    assert drop(opened(tmp_path, 7 * DAY)) == ["other.child", "d.parent"]


def test_the_option_of_the_table_counts_and_of_its_staged_schema_the_longer_one(tmp_path: Path) -> None:
    """A build that sets a longer retention has it before it is published; never keeps everything."""
    stage(opened(tmp_path, 0), "d.parent", options={"tablestore.staged-retention": "2 h"})
    assert drop(opened(tmp_path, 2 * HOUR - 1)) == []
    assert drop(opened(tmp_path, 2 * HOUR)) == ["d.parent"]
    engine = opened(tmp_path, 3 * HOUR)
    item = stage(engine, "d.parent", options={"tablestore.staged-retention": "never"})
    assert item.kept_ms is None
    assert drop(opened(tmp_path, 900 * DAY)) == []


def test_a_test_of_the_last_hour_keeps_it(tmp_path: Path) -> None:
    """A process is at work with these rows: it may publish them next."""
    _, parent = family(tmp_path)
    engine = opened(tmp_path, 7 * DAY)
    engine.gate.record(parent, Outcome("test.p.t.1", Verdict.RED, (parent.as_read,)))
    assert drop(engine) == ["d.child"]
    assert drop(opened(tmp_path, 7 * DAY + HOUR)) == ["d.parent"]


def test_a_table_that_was_never_published_is_dropped_with_its_staged_rows(tmp_path: Path) -> None:
    """As `staged drop` does."""
    engine = opened(tmp_path, 0)
    planned = Staged("d.new", "run", "", gates=("test.p.t.1",), owner="model.p.new")
    engine.write("d.new", pa.table({"id": [1]}), WriteSpec(stage="run", properties=stage_properties(planned)))
    assert drop(opened(tmp_path, 7 * DAY)) == ["d.new"]
    assert opened(tmp_path, 7 * DAY).find_table("d.new") is None


def test_a_table_that_waits_to_replace_another_one_is_dropped(tmp_path: Path) -> None:
    """A staged snapshot beside the table: the old table stays."""
    engine = opened(tmp_path, 0)
    engine.write("d.t", pa.table({"id": [1], "k": [1]}), WriteSpec(table=TableSpec(primary_key=("id",))))
    spec = WriteSpec(table=TableSpec(primary_key=("k",)), stage="run", beside=True)
    engine.write("d.t", pa.table({"id": [1], "k": [1]}), spec)
    assert left(engine) == ["d.t"]
    engine = opened(tmp_path, 7 * DAY)
    assert drop(engine) == ["d.t"]
    assert engine.replacements("d") == ()
    assert engine.table("d.t").facts().primary_key == ("id",)


@pytest.mark.parametrize(
    ("point", "nth"), [("stage.dropping", 1), ("stage.dropping", 2), ("stage.dropped", 1)]
)
def test_a_killed_drop_is_finished_and_nothing_of_it_is_published(
    tmp_path: Path, point: str, nth: int
) -> None:
    """Until then every member is complete or gone, and a decided drop refuses a publication."""
    child, parent = family(tmp_path)
    with pytest.raises(SimulatedCrash):
        drop(Engine(str(tmp_path), runtime=crashing(at(7 * DAY), point, nth)))
    engine = opened(tmp_path, 7 * DAY)
    assert left(engine) == ([*BOTH] if point == "stage.dropping" else ["d.parent"])
    (done,) = publish(engine, child if (point, nth) == ("stage.dropping", 1) else parent)
    assert (done.state, done.error and done.error.code) == ("refused", "TS1548")
    assert ids(engine) == [1, 1]
    waiting = left(engine)
    later = opened(tmp_path, 7 * DAY + HOUR)  # the publication that was refused counts as begun for an hour
    assert drop(later) == waiting
    assert left(later) == []


class Meanwhile(Gatekeeper):
    """Of a process that drops; another one does `work` after the look and before the drop of this number."""

    def __init__(self, engine: Engine, work: Callable[[], object], number: int) -> None:
        super().__init__(engine._warehouse)
        self.calls = [*[lambda: None] * (number - 1), work]

    def begin_drop(self, item: Staged) -> StageDrop | None:
        """After the other one's work."""
        if self.calls:
            self.calls.pop(0)()
        return super().begin_drop(item)


def drop_while(engine: Engine, work: Callable[[], object], number: int = 1) -> list[str]:
    """As drop, while another process works."""
    gate = Meanwhile(engine, work, number)
    return [one.item.table for one in drop_expired(gate, gate.read_book("d"))]


def find_drop(engine: Engine, *group: Staged) -> object:
    """The first step of a publication of the group: the error, when a drop has begun."""
    gate = engine.gate
    return gate._find_drop([gate._look(one) for one in group])


@pytest.mark.parametrize("number", [1, 2])
def test_a_publication_at_the_same_moment_keeps_the_family(tmp_path: Path, number: int) -> None:
    """The drop withdraws, of every member. A publication that found one refuses the group, and works when repeated."""
    child, parent = family(tmp_path)
    other = opened(tmp_path, 7 * DAY)
    begun: list[bool] = []
    engine = opened(tmp_path, 7 * DAY)
    assert drop_while(engine, lambda: begun.append(not find_drop(other, parent, child)), number) == []
    assert begun == [number == 1]
    assert left(engine) == [*BOTH]
    assert [one.state for one in publish(other, child, parent)] == ["published", "published"]
    assert ids(engine) == [2, 2]
    assert left(engine) == []


def test_a_publication_that_died_is_over_after_an_hour(tmp_path: Path) -> None:
    """Its mark keeps nothing for ever."""
    child, parent = family(tmp_path)
    find_drop(opened(tmp_path, 7 * DAY), parent, child)
    assert drop(opened(tmp_path, 7 * DAY + HOUR - 1)) == []
    assert drop(opened(tmp_path, 7 * DAY + HOUR)) == [*BOTH]


def test_a_single_table_is_refused_while_it_is_dropped(tmp_path: Path) -> None:
    """Table.publish_staged looks as well."""
    family(tmp_path)
    with pytest.raises(SimulatedCrash):
        drop(Engine(str(tmp_path), runtime=crashing(at(7 * DAY), "stage.dropping", 2)))
    with pytest.raises(RetryError, match="TS1548"):
        opened(tmp_path, 7 * DAY).table("d.parent").publish_staged("run")


def test_a_write_into_the_stage_at_the_same_moment_keeps_it(tmp_path: Path) -> None:
    """A microbatch has joined it since the look: its rows are new."""
    stage(opened(tmp_path, 0), "d.parent", builds_on_stage=True)
    other = opened(tmp_path, 7 * DAY)
    engine = opened(tmp_path, 7 * DAY)
    assert drop_while(engine, lambda: stage(other, "d.parent", builds_on_stage=True, number=2)) == []
    (item,) = engine.gate.read_book("d").staged
    assert item.written_ms == START + 7 * DAY
    assert [one.state for one in publish(engine, item)] == ["published"]


def test_no_write_joins_what_is_being_dropped(tmp_path: Path) -> None:
    """The stage is closed before it is deleted: a batch is refused, and not lost."""
    stage(opened(tmp_path, 0), "d.parent", builds_on_stage=True)
    with pytest.raises(SimulatedCrash):
        drop(Engine(str(tmp_path), runtime=crashing(at(7 * DAY), "stage.dropping")))
    with pytest.raises(RetryError, match="TS1388"):
        stage(opened(tmp_path, 7 * DAY), "d.parent", builds_on_stage=True, number=2)


def test_two_processes_drop_at_once(tmp_path: Path) -> None:
    """Each finds the same; both end well, and nothing is left."""
    family(tmp_path)
    other = opened(tmp_path, 7 * DAY)
    seen: list[str] = []
    engine = opened(tmp_path, 7 * DAY)
    assert drop_while(engine, lambda: seen.extend(drop(other))) == []
    assert seen == [*BOTH]
    assert left(engine) == []


def test_fresh_staged_snapshots_are_published_without_a_mark(tmp_path: Path) -> None:
    """No file more than before for what was built a moment ago."""
    child, parent = family(tmp_path)
    find_drop(opened(tmp_path, HOUR // 2 - 1), parent, child)
    assert not list(tmp_path.rglob("publishing"))
    find_drop(opened(tmp_path, HOUR // 2), parent, child)
    assert len(list(tmp_path.rglob("publishing"))) == 2


def test_other_databases_are_not_read_while_nothing_is_due(tmp_path: Path) -> None:
    """The usual run costs no look at the whole warehouse."""
    family(tmp_path)
    engine = opened(tmp_path, DAY)
    book = engine.gate.read_book("d")

    class Unread(Gatekeeper):
        def read_book(self, *names: str) -> GateBook:
            raise AssertionError(names)

    assert drop_expired(Unread(engine._warehouse), book) == ()
