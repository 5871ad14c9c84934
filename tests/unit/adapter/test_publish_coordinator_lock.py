"""The publish coordinator's lock is the outermost one: it is held over writes and queries of a re-plan."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.errors import EngineBug
from tablestore_engine.spi import OrderedLock, Rank

from .staging_run import Run, latest


@pytest.mark.parametrize("rank", [rank for rank in Rank if rank is not Rank.PUBLISH_COORDINATOR])
def test_no_lock_is_held_when_the_desk_is_asked(engine: Engine, rank: Rank) -> None:
    """A call of the engine that came back here could wait for a thread that waits for the engine: refused at once."""
    run = Run(engine, "a")
    with OrderedLock("some lock of the engine", rank):
        with pytest.raises(EngineBug, match="'publish coordinator' is taken while"):
            run.coordinator.is_staged("demo.orders")
        with pytest.raises(EngineBug, match="'publish coordinator' is taken while"):
            run.coordinator.branches_for("test.p.unique", ["demo"])


def test_other_threads_read_and_build_while_one_plans_again(engine: Engine) -> None:
    """The re-plan holds the coordinator and writes; a thread that stages another model waits, then continues."""
    Run(engine, "z").build("orders", policy="always")
    run = Run(engine, "a", limit=100)
    run.build("orders", 2)
    engine.write("demo.orders", pa.table({"id": [77]}), WriteSpec())
    begun, ended = threading.Event(), []

    def other() -> None:
        begun.wait()
        ended.append(run.build("other", 1, "always", ()))
        ended.append(run.coordinator.branches_for("model.p.daily", ["demo"]))

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    run.after_check = begun.set  # the other one asks while this one holds the coordinator
    run.test("unique")
    thread.join()
    assert ended == [False, {}]
    assert (latest(engine, "orders"), latest(engine, "other")) == (3, 1)
