"""The state of groups in parts: a run writes the groups that it has changed, and all parts of a state stay with it."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableVersion, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.format.group_state_file import GroupState, UnusableState, group_state_header
from tablestore_engine.spi import PositionStep
from tablestore_engine.warehouse.group_state_files import GroupStateFiles
from tablestore_engine.warehouse.streaming_state_files import KEPT, POSITION, StreamingStateFiles

NAME = Identifier("demo", "totals")
HEADER = group_state_header("columns", "query", {"a": "1"})


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """demo.totals, with a state of 1,000 groups."""
    made = Engine(str(tmp_path / "warehouse"))
    groups = pa.table({"g0": range(1_000), "n": [1] * 1_000, "v1": [7] * 1_000})
    commit(made, GroupState(groups))
    return made


def files(engine: Engine) -> GroupStateFiles:
    """Of demo.totals."""
    return GroupStateFiles(engine._warehouse.catalog, NAME)


def folder(engine: Engine, name: str = "totals") -> Path:
    """Of the states of a table."""
    return Path(engine.warehouse) / f".tablestore/states/demo.{name}"


def commit(engine: Engine, state: GroupState) -> str:
    """A commit with this state: its name."""
    identifier = str(NAME)
    before = engine.table(identifier).positions().get(POSITION) if engine.exists(identifier) else None
    store = engine.table(identifier).store if before else None
    name = files(engine).write(state, HEADER, store)
    spec = WriteSpec(positions={POSITION: PositionStep(before, name)})
    engine.write(identifier, pa.table({"id": [1]}), spec)
    return name


def change(engine: Engine, *keys: int) -> str:
    """A run that changes these groups."""
    state = files(engine).read(engine.table(str(NAME)).positions()[POSITION], HEADER)
    rows = pa.table({"g0": keys, "n": [2] * len(keys), "v1": [8] * len(keys)})
    return commit(engine, state.changed(rows.select(["g0"]), rows))


def test_a_run_writes_the_groups_that_it_changed(engine: Engine) -> None:
    """The file with all groups is not written again; a run with many groups writes all of them."""
    first = engine.table(str(NAME)).positions()[POSITION]
    name = change(engine, 3, 999)
    assert name.startswith(f"{first}+")
    assert len(list(folder(engine).iterdir())) == 2
    state = files(engine).read(name, HEADER)
    assert [rows for _, rows in state.parts] == [1_000, 2]
    whole = {row["g0"]: row["v1"] for row in state.whole().to_pylist()}
    assert whole == {**dict.fromkeys(range(1_000), 7), 3: 8, 999: 8}
    assert "+" not in change(engine, *range(400))


def test_old_parts_stay_as_long_as_a_state_has_them(engine: Engine) -> None:
    """However many runs there are; what only older states have goes."""
    for number in range(3 * KEPT):
        change(engine, *range(number * 60, number * 60 + 1 + number % 3))
        for at, path in enumerate(sorted(folder(engine).iterdir(), key=os.path.getmtime)):
            os.utime(path, (at, at))
    table = engine.table(str(NAME))
    for snapshot in list(table.snapshot_ids())[-KEPT:]:
        state = files(engine).read(table.positions(TableVersion(snapshot=snapshot))[POSITION], HEADER)
        assert state.whole().num_rows == 1_000
    assert len(list(folder(engine).iterdir())) <= 2 * KEPT + 2


def test_a_clone_and_a_new_name_have_all_parts(engine: Engine) -> None:
    """The clone of a table goes on from its state, and so does the table under another name; the size has all parts."""
    name = change(engine, 3)
    engine.clone("demo.totals", "demo.copy")
    sizes = {path.name: path.stat().st_size for path in folder(engine, "copy").iterdir()}
    assert len(sizes) == 2
    assert StreamingStateFiles(engine._warehouse.catalog, NAME).size_of(name) == sum(sizes.values())
    engine.rename("demo.totals", "demo.sums")
    assert sorted(one.name for one in folder(engine, "sums").iterdir()) == sorted(sizes)


@pytest.mark.parametrize("at", [0, 1])
def test_each_part_has_to_be_whole(engine: Engine, at: int) -> None:
    """A damaged part, also the first one, is no state, and verify says so; neither is a state whose part is gone."""
    name = change(engine, 3)
    path = folder(engine) / f"{name.split('+')[at]}.parquet"
    path.write_bytes(path.read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(UnusableState, match="damaged"):
        files(engine).read(name, HEADER)
    assert "damaged" in str(engine.table(str(NAME)).verify())
    path.unlink()
    with pytest.raises(UnusableState, match="not there"):
        files(engine).read(name, HEADER)
    assert engine.table(str(NAME)).verify() == ()


def test_parts_of_another_query_are_no_state(engine: Engine) -> None:
    """The first part is read under the query as well; how far it had read its inputs says nothing."""
    state = files(engine).read(engine.table(str(NAME)).positions()[POSITION], HEADER)
    later = group_state_header("columns", "query", {"a": "2"})
    name = files(engine).write(state, later, None)
    assert files(engine).read(name, later).whole().num_rows == 1_000
    with pytest.raises(UnusableState, match="inputs"):
        files(engine).read(name, HEADER)
    other = group_state_header("columns", "other", {"a": "2"})
    mixed = "+".join([name.split("+")[0], files(engine).write(state, other, None).split("+")[-1]])
    with pytest.raises(UnusableState, match="query"):
        files(engine).read(mixed, other)
