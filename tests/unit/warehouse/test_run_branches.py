"""A run on a branch: main keeps its bytes and its log, stages are the branch's own, and a fast-forward sends once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, SparkSettings, Table, TableSpec, WriteSpec
from tablestore_engine.errors import FixData, FixRequest, TablestoreError, Unsupported
from tablestore_engine.spi import PositionStep
from tablestore_engine.warehouse.streaming_state_files import StreamingStateFiles
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tests.doubles.faults import crashing, seeded_runtime
from tests.unit.store.expiry_world import newest
from tests.unit.store.orphan_world import clean
from tests.unit.warehouse.memory_log import MemorySystem
from tests.unit.warehouse.test_logs import BARE, LOGGED, NAME, open_both, table, write


def on_dev(warehouse: Warehouse) -> Warehouse:
    """As a dbt run with tablestore_branch: dev has it."""
    return warehouse.on_branch("dev", makes_branches=True)


def files(warehouse: Warehouse, *, but: str = "/branch/") -> dict[str, bytes]:
    """All files of the warehouse but those of branches, and but new ones that a branch shares with main."""
    found = {str(one): one.read_bytes() for one in sorted(Path(warehouse.path).rglob("*")) if one.is_file()}
    return {name: data for name, data in found.items() if but not in name}


def kept(warehouse: Warehouse, before: dict[str, bytes]) -> bool:
    """Whether every file of before is there as it was, and no new one is main's metadata."""
    now = files(warehouse)
    own = ("/schema/", "/snapshot/", "/tag/", "/consumer/", "/expire/", "/views/")
    news = [name for name in now if name not in before and any(part in name for part in own)]
    return before == {name: now[name] for name in before if name in now} and not news


def test_the_log_gets_the_rows_of_a_branch_once_they_are_mains(tmp_path: Path) -> None:
    """Nothing while the branch is written, each change exactly once after the fast-forward, in order."""
    warehouse, system = open_both(tmp_path)
    write(warehouse, (1, "a"), (2, "b"))
    log, before = system.logs["orders"], files(warehouse)
    sent = list(log.messages)
    dev = on_dev(warehouse)
    write(dev, (3, "c"))
    write(dev, (1, "z"), (4, "d"), stage="s")
    assert dev.publish_staged(NAME, "s").log is None
    assert log.messages == sent
    assert kept(warehouse, before)
    assert table(warehouse).fast_forward("dev").added == (2, 3)
    told = log.messages[len(sent) :]
    assert [(one.snapshot_id, one.kind.short_string) for one in told] == [
        (2, "+I"),
        (3, "-U"),
        (3, "+U"),
        (3, "+I"),
    ]
    table(warehouse).publish()
    assert len(log.messages) == len(sent) + 4


def test_what_a_log_could_not_carry_is_refused_on_the_branch_already(tmp_path: Path) -> None:
    """A row that is too large, and another log option: main could never send these."""
    warehouse, system = open_both(tmp_path)
    write(warehouse, (1, "a"))
    dev = on_dev(warehouse)
    with pytest.raises(FixData, match="TS1739"):
        write(dev, (2, "x" * 10_000))
    bare, _ = open_both(tmp_path / "other")
    write(bare, (1, "a"), table=BARE)
    with pytest.raises(Unsupported, match="TS1222"):
        write(on_dev(bare), (2, "b"), table=LOGGED)
    assert len(system.logs["orders"].messages) == 1


def test_a_new_table_on_a_branch_is_empty_on_main_with_an_empty_log(tmp_path: Path) -> None:
    """Its log is made and claimed with it; rows come with the fast-forward. Refused rows leave nothing."""
    warehouse, system = open_both(tmp_path)
    dev = on_dev(warehouse)
    with pytest.raises(FixData):
        write(dev, (1, "x" * 10_000))
    assert warehouse.stores.find(NAME) is None
    write(dev, (1, "a"))
    assert len(dev.stores.get(NAME).read()) == 1
    assert (len(warehouse.stores.get(NAME).read()), system.logs["orders"].messages) == (0, [])
    table(warehouse).fast_forward("dev")
    assert len(system.logs["orders"].messages) == len(table(warehouse)) == 1


def test_stages_of_main_and_of_branches_are_apart(tmp_path: Path) -> None:
    """One name for three stages: each is listed, published and dropped by its own line; none takes another's."""
    warehouse, _ = open_both(tmp_path)
    write(warehouse, (1, "a"), table=BARE)
    dev, other = on_dev(warehouse), warehouse.on_branch("other", makes_branches=True)
    lines = {"main": warehouse, "dev": dev, "other": other}
    for number, line in enumerate(lines.values(), start=10):
        write(line, (number, "staged"), table=BARE, stage="s")
    for line in lines.values():
        assert [one.name for one in line.stores.get(NAME).staging.list_all()] == ["s"]
    third = warehouse.on_branch("third", makes_branches=True).stores.get(NAME)
    assert (third.staging.list_all(), third.staging.find("s")) == ((), None)
    dev.publish_staged(NAME, "s")
    other.drop_staged(NAME, "s")
    assert warehouse.stores.get(NAME).staging.find("s") is not None
    ids = {name: sorted(line.stores.get(NAME).read()["id"].to_pylist()) for name, line in lines.items()}
    assert ids == {"main": [1], "dev": [1, 11], "other": [1]}
    with pytest.raises(FixRequest, match="TS1107"):
        write(warehouse, (1, "b"), table=BARE, stage="s@dev")


def test_expiry_and_orphan_cleaning_keep_what_is_staged_on_a_branch(tmp_path: Path) -> None:
    """Main moves on and expires, files that nobody names go: the stage is published as it was tested."""
    warehouse, _ = open_both(tmp_path)
    write(warehouse, (1, "a"), table=BARE)
    dev = on_dev(warehouse)
    write(dev, (2, "b"), table=BARE)
    write(dev, (3, "c"), table=BARE, stage="s")
    for number in range(4):
        write(warehouse, (1, f"v{number}"), table=BARE)
    store = warehouse.stores.get(NAME)
    store.compact(full=True)
    assert store.expire(newest(1)).snapshots
    clean(store)
    dev.stores.get(NAME).expire(newest(1))
    clean(store)
    dev.publish_staged(NAME, "s")
    assert sorted(dev.stores.get(NAME).read()["id"].to_pylist()) == [1, 2, 3]
    assert dev.stores.get(NAME).read().num_rows == 3
    assert store.verify() == ()


def test_commits_on_a_branch_expire_nothing_that_a_fast_forward_needs(tmp_path: Path) -> None:
    """A table that keeps one snapshot: after many commits on the branch, and by its options, main still gets them."""
    warehouse, _ = open_both(tmp_path)
    options = {
        "snapshot.num-retained.min": "1",
        "snapshot.num-retained.max": "1",
        "tablestore.expire-grace": "0 s",
    }
    write(warehouse, (1, "a"), table=TableSpec(primary_key=("id",), options=options))
    dev = on_dev(warehouse)
    for number in range(2, 7):
        write(dev, (number, "b"), table=BARE)
    assert table(warehouse).fast_forward("dev").added == (2, 3, 4, 5, 6)


def test_main_is_read_and_never_written_where_a_table_lacks_the_branch(tmp_path: Path) -> None:
    """All that changes something without a commit of rows is refused; reads are main's, its stages are not seen."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        rows = pa.table({"id": [1], "v": ["a"]})
        main = engine.create_table("d.t", rows.schema, primary_key="id")
        main.upsert(rows)
        main.write(pa.table({"id": [2], "v": ["b"]}), WriteSpec(stage="s"))
        engine.create_view("d.v", "select 1 as one")
        dev = engine.on_branch("dev")
        before = files(engine._warehouse, but="no such")
        seen: Table = dev.table("d.t")
        assert (len(seen), seen.staged(), dev.gate.read_book("d").staged) == (1, (), ())
        calls = {
            "TS1221": (
                lambda: seen.expire(keep=1),
                lambda: seen.rollback(1),
                lambda: seen.create_tag("x"),
                lambda: seen.delete_consumer("x"),
                lambda: seen.create_branch("x"),
                lambda: dev.set_comments("d.t", "x", {}),
            ),
            "TS1222": (
                lambda: dev.drop_table("d.t"),
                lambda: dev.rename("d.t", "d.u"),
                lambda: dev.clone("d.t", "d.u"),
                lambda: dev.drop_view("d.v"),
                lambda: dev.create_view("d.v", "select 2 as one"),
                lambda: dev.create_view("d.w", "select 2 as one"),
                lambda: dev.drop_database("d", cascade=True),
            ),
        }
        for code, each in calls.items():
            for call in each:
                with pytest.raises(TablestoreError, match=code):
                    call()
        dev.create_view("d.v", "select 1 as one")  # as it is
        assert files(engine._warehouse, but="no such") == before
        assert main.tags() == {}


def test_a_killed_write_on_a_branch_leaves_main_and_the_next_one_succeeds(tmp_path: Path) -> None:
    """At each point between making the branch and its commit, of a table that is there and of a new one."""
    for point in ("branch.copied", "branch.schema", "branch.created", "commit.claimed", "commit.done"):
        warehouse, _ = open_both(tmp_path / point)
        write(warehouse, (1, "a"), table=BARE)
        before = files(warehouse)
        killed = Warehouse(
            warehouse.path, SparkSettings(), MemorySystem(), crashing(seeded_runtime(7), point)
        )
        with pytest.raises(BaseException, match=point):
            write(on_dev(killed), (2, "b"), table=BARE)
        assert kept(warehouse, before), point
        write(on_dev(warehouse), (2, "b"), table=BARE)
        assert on_dev(warehouse).stores.get(NAME).read().num_rows == 2
        assert warehouse.stores.get(NAME).verify() == ()


def test_state_of_a_query_is_the_branchs_own_and_comes_to_main_with_its_snapshot(tmp_path: Path) -> None:
    """The branch begins with main's state, keeps its own beside it, and main continues from it after a fast-forward."""
    warehouse, _ = open_both(tmp_path)
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "n").write_text("main")
    states = StreamingStateFiles(warehouse.catalog, NAME)
    first = states.pack(folder)
    spec = WriteSpec(table=BARE, positions={"state": PositionStep(None, first)})
    rows = pa.table({"id": [1], "v": ["a"]})
    warehouse.write_incoming(NAME, from_arrow(rows), spec)
    dev = on_dev(warehouse)
    mine = StreamingStateFiles(dev.catalog, NAME)
    mine.unpack(first, tmp_path / "begun")
    assert (tmp_path / "begun/n").read_text() == "main"
    (folder / "n").write_text("dev")
    second = mine.pack(folder)
    step = WriteSpec(table=BARE, positions={"state": PositionStep(first, second)})
    dev.write_incoming(NAME, from_arrow(pa.table({"id": [2], "v": ["b"]})), step)
    mine.clean(mine.named_by(dev.stores.get(NAME)))
    with pytest.raises(FixRequest, match="TS1455"):
        states.unpack(second, tmp_path / "no")
    table(warehouse).fast_forward("dev")
    states.unpack(second, tmp_path / "after")
    assert (tmp_path / "after/n").read_text() == "dev"
