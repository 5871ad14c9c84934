"""The walks of ARCHITECTURE.md are where the code goes, and work goes down the floors: seen by tracing it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from tablestore_engine.api import SparkSettings, Table, TableSpec, WriteSpec
from tablestore_engine.api import engine as door
from tests.house.call_trace import FLOORS, Call, climbs, traced
from tests.house.test_architecture import ENGINE, _walk
from tests.unit.warehouse.memory_log import MemorySystem

SPEC = TableSpec(primary_key=("id",), options={"log.system": "kafka", "kafka.topic": "t"})
ELSEWHERE = (
    "spark.",
    "log.",
)  # rows that Spark has, and the brokers: the walk through the imports sees these
VALUES = {"catalog.resolved_names"}  # carried along; nothing of it is called
# what was handed down and is called back: the caller knows a port or a parameter, nothing of who is behind it
HANDED_DOWN = {
    ("store.table_context", "spark.executors", "Executors.__call__"),
}
PORT = "fileio.local"  # imports nothing from above: it calls the check of a claim, and what runs together


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Call]]:
    """What a write to a table with rows and a log, a read of it, and a publication of what is pending call."""

    def rows(first: int, behind: int) -> pa.Table:
        return pa.table({"id": list(range(first, behind)), "v": ["x"] * (behind - first)})

    found: dict[str, list[Call]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "KafkaSystem", lambda *_: MemorySystem())
        engine = door.Engine(str(tmp_path_factory.mktemp("wh")), spark=SparkSettings("local[1]"), environ={})
    engine.write("d.t", rows(0, 10), WriteSpec(table=SPEC))
    with traced() as found["Write"]:
        engine.write("d.t", rows(5, 15), WriteSpec(table=SPEC))
    with traced() as found["Read"]:
        assert _table(engine).scan().to_arrow().num_rows == 15
        assert _table(engine).scan(filter="id = 7").to_arrow().num_rows == 1
    engine.write("d.t", rows(5, 20), WriteSpec(table=SPEC, publish=False))
    with traced() as found["Publish"]:
        assert _table(engine).publish().log is not None
    assert len(_table(engine).log_messages()) == 10 + 15 + 25  # an update is two rows
    return found


def _table(engine: door.Engine) -> Table:
    return engine.table("d.t")


def _entered(calls: Sequence[Call]) -> list[str]:
    """Modules in the order in which work came to them; making an object is no work, nor is a default in a lambda."""
    return list(dict.fromkeys(call.callee for call in calls if not _is_making(call.function)))


def _is_making(function: str) -> bool:
    name = function.rpartition(".")[2]
    return name == "<lambda>" or (name.startswith("__") and name != "__call__")


@pytest.mark.parametrize("walk", ["Write", "Read"])
def test_the_walk_is_where_the_code_goes(walk: str, work: dict[str, list[Call]]) -> None:
    """Each file that the page names is entered, and in that order."""
    named = [module.removeprefix(f"{ENGINE}.") for module in _walk(walk)]
    named = [one for one in named if not one.startswith(ELSEWHERE) and one not in VALUES]
    assert len(named) > 3
    entered = _entered(work[walk])
    assert [one for one in named if one not in entered] == []
    assert sorted(named, key=entered.index) == named


@pytest.mark.parametrize("name", ["Write", "Read", "Publish"])
def test_work_goes_down_the_floors(name: str, work: dict[str, list[Call]]) -> None:
    """No call goes up, but through what was handed down."""
    up = {(call.caller, call.callee, call.function) for call in climbs(work[name]) if call.caller != PORT}
    assert up <= HANDED_DOWN
    assert len(work[name]) > 100


def test_a_climb_is_seen() -> None:
    """The measure itself: a call into a higher room is one, down and beside are none; a thread's first call is none."""
    assert FLOORS["errors"] < FLOORS["store"] == FLOORS["log"] < FLOORS["warehouse"] < FLOORS["api"]
    up = Call("store.commit.commit", "warehouse.logs", "Logs.check")
    rest = [
        Call("warehouse.logs", "store.commit.commit", "f"),
        Call("store.a", "log.b", "f"),
        Call("", "api.engine", "f"),
    ]
    assert climbs([*rest, up, up]) == [up]
