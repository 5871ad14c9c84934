"""Publishing groups on a real warehouse: crashes between claims, tables that move or are folded, what queries tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.catalog.resolved_names import Overrides, ResolvedTable, SnapshotRef
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.spi import (
    Outcome,
    Publication,
    Staged,
    TableRead,
    Verdict,
    explain,
    pick_group,
    stage_properties,
)
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.metadata.commit_history import rows_version
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime

SPEC = TableSpec(primary_key=("id",))
BOTH = ("d.child", "d.parent")


def rows(*ids: int) -> pa.Table:
    """Rows with these ids."""
    return pa.table({"id": list(ids)})


def open_engine(folder: Path, runtime: Runtime = SYSTEM) -> Engine:
    """The warehouse of this test."""
    return Engine(str(folder), runtime=runtime)


def stage_both(engine: Engine, table_spec: TableSpec = SPEC) -> tuple[Staged, ...]:
    """Both tables have snapshot 1 and something staged; one test has read both staged ones and is green."""
    for table in BOTH:
        engine.write(table, rows(1), WriteSpec(table=table_spec))
        planned = Staged(table, "run", "", gates=("t",), owner=table)
        spec = WriteSpec(
            stage="run", commit_user="run", commit_identifier=1, properties=stage_properties(planned)
        )
        engine.write(table, rows(2), spec)
    items = engine.gate.read_book("d").staged
    outcome = Outcome("t", Verdict.GREEN, tuple(item.as_read for item in items))
    for item in items:
        engine.gate.record(item, outcome)
    return items


def publish_all(engine: Engine) -> tuple[Publication, ...]:
    """As dbt and the command line do it."""
    book, done = engine.gate.read_book("d"), []
    while group := pick_group(
        book, engine.gate.see(book), refused=frozenset(one.staged.table for one in done)
    ):
        done += engine.gate.publish(group)
    return tuple(done)


def latest(engine: Engine) -> list[int | None]:
    """What readers see of both."""
    return [engine.table(table).latest_snapshot_id() for table in BOTH]


def test_what_is_due_expires_behind_a_group(tmp_path: Path) -> None:
    """Publishing by the gate is a commit like any other: the report counts what went, and the rows are there."""
    engine = open_engine(tmp_path)
    small = {"num-retained.min": "1", "num-retained.max": "1"}
    options = {f"snapshot.{key}": value for key, value in small.items()} | {"tablestore.expire-grace": "0 ms"}
    stage_both(engine, TableSpec(primary_key=("id",), options=options))
    done = publish_all(engine)
    assert [one.report and one.report.expired for one in done] == [1, 1]
    assert [engine.table(name).snapshot_ids() for name in BOTH] == [(2,), (2,)]
    assert engine.table("d.child").scan().to_arrow().num_rows == 2


def test_a_group_killed_between_its_claims_is_finished(tmp_path: Path) -> None:
    """One is out, one is not; whoever comes next lets the other out, and nothing stays staged."""
    stage_both(open_engine(tmp_path))
    with pytest.raises(SimulatedCrash):
        publish_all(open_engine(tmp_path, crashing(seeded_runtime(1), "stage.published", 1)))
    after = open_engine(tmp_path)
    assert latest(after) == [2, 1]
    assert [one.state for one in publish_all(after)] == ["published", "published"]
    assert latest(after) == [2, 2]
    assert after.staged("d") == ()


def test_a_group_killed_between_its_claims_is_refused_when_readers_see_other_rows(tmp_path: Path) -> None:
    """The first one moved on after the kill: the test has never read what a reader would see now."""
    stage_both(open_engine(tmp_path))
    with pytest.raises(SimulatedCrash):
        publish_all(open_engine(tmp_path, crashing(seeded_runtime(1), "stage.published", 1)))
    after = open_engine(tmp_path)
    after.write("d.child", rows(9), WriteSpec())
    assert [one.staged.table for one in publish_all(after)] == ["d.child"]
    assert latest(after) == [3, 1]
    book = after.gate.read_book("d")
    assert "t read other rows of d.child" in explain(book.staged[0], book, after.gate.see(book))


def test_a_group_with_a_table_that_moved_stays_whole(tmp_path: Path) -> None:
    """Nothing of it is claimed, although the first claim would succeed."""
    engine = open_engine(tmp_path)
    stage_both(engine)
    engine.write("d.parent", rows(9), WriteSpec())
    assert [(one.state, one.error and one.error.code) for one in publish_all(engine)] == [
        ("refused", "TS1075")
    ] * 2
    assert latest(engine) == [1, 2]
    assert len(engine.staged("d")) == 2


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    """Logs and terminals show a line break in it as two characters."""
    engine = open_engine(tmp_path)
    stage_both(engine)
    engine.write("d.parent", rows(9), WriteSpec())
    for done in publish_all(engine):
        assert f"{done.staged.table} NOT published: TS1075 " in done.line()
        assert "; why: " in done.line()
        assert "\n" not in done.line()


def _stage_again(other: Engine) -> None:
    planned = Staged("d.child", "run", "", gates=("t",), owner="d.child")
    spec = WriteSpec(
        stage="run", commit_user="run", commit_identifier=2, properties=stage_properties(planned)
    )
    other.write("d.child", rows(3), spec)


@pytest.mark.parametrize("is_staged_seen", [False, True])
@pytest.mark.parametrize(
    ("work", "state", "ids"),
    [
        (lambda other: None, "published", [1, 2]),
        (lambda other: other.write("d.child", rows(9), WriteSpec()), "refused TS1308", [1, 9]),
        (lambda other: other.table("d.child").compact(full=True), "published", [1, 2]),
        (publish_all, "published", [1, 2]),
        (lambda other: other.gate.drop(other.gate.read_book("d").staged[0]), "refused TS1316", [1]),
        (_stage_again, "refused TS1085", [1]),
    ],
    ids=["nothing", "rows", "compaction", "publication", "drop", "stage"],
)
def test_what_another_process_did_behind_the_look_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    work: Callable[[Engine], object],
    state: str,
    ids: list[int],
    is_staged_seen: bool,
) -> None:
    """A publication goes by the look before it, and claims on what is there: once, on the rows that were tested."""
    engine, other = open_engine(tmp_path), open_engine(tmp_path)
    item = stage_both(engine)[0]
    gate = engine.gate.looking_once()
    gate.see(engine.gate.read_book("d"))
    if is_staged_seen:
        monkeypatch.setattr(gate, "_find_unready_log", lambda _: work(other) and None)
    else:
        work(other)
    (done,) = gate.publish((item,))
    assert " ".join(filter(None, (done.state, done.error and done.error.code))) == state
    table = engine.table("d.child")
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == ids
    names = [(one.properties or {}).get("tablestore.stage.name") for one in table.snapshots()]
    assert names.count("run") == (2 in ids)


def test_folding_keeps_the_version_of_rows(tmp_path: Path) -> None:
    """A compacted table has another snapshot with the same rows: no verdict ages."""
    engine = open_engine(tmp_path)
    for number in range(4):
        engine.write("d.t", rows(7, number), WriteSpec(table=SPEC))
    store = engine.gate._warehouse.stores.get(Identifier("d", "t"))
    before = rows_version(store.snapshots, store.latest())
    count = engine.table("d.t").latest_snapshot_id()
    engine.table("d.t").compact(full=True)
    assert engine.table("d.t").latest_snapshot_id() != count
    assert rows_version(store.snapshots, store.latest()) == before


def test_reads_by_a_versioned_name_are_constants() -> None:
    """`demo`.t counts with its commit and stage, `demo__at_snapshot_5`.t does not, and overrides are told as read."""
    log = ReadLog()
    overrides = Overrides({("demo", "t"): TableVersion(snapshot=5)}, log)
    state = ResolvedTable("v", "x", None, lambda: None, SnapshotRef(5, "uuid"), "run", "me:1")  # type: ignore[arg-type, return-value]
    overrides.note("demo__at_snapshot_5", "t", state)
    overrides.note("demo", "u", state, is_constant=True)
    assert log.reads() == ()
    assert [one.table for one in log.constants()] == ["demo.t", "demo.u"]
    overrides.note("demo", "t", state)
    assert log.reads() == (TableRead("demo.t", "me:1", 5, "run"),)


def test_what_a_test_read_is_kept_beside_the_staged_rows(tmp_path: Path) -> None:
    """Another process knows which tests abstained; what an earlier version of this engine kept is understood."""
    engine = open_engine(tmp_path)
    first, _ = stage_both(engine)
    at = Outcome("at", Verdict.RED, (), (TableRead(first.table, "x:1", 1),))
    engine.gate.record(first, at)
    details = json.dumps([asdict(first.as_read)])
    engine.gate._warehouse.stores.get(Identifier.parse(first.table)).staging.record_outcome(
        first.name, "old", "green", details
    )
    (found,) = open_engine(tmp_path).gate.read_book(first.table).staged
    assert found.abstained == {"at"}
    assert {one.test: one.reads for one in found.outcomes}["old"] == (first.as_read,)
    assert (found.red_gates, sorted(found.counted)) == ((), ["old", "t"])
