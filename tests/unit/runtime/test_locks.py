"""The lock order of the engine: ranks rise, and a thread that breaks the order is told at once."""

from __future__ import annotations

import threading

import pytest

from tablestore_engine.errors import EngineBug
from tablestore_engine.runtime.locks import OrderedCondition, OrderedLock, Rank


def test_ranks_must_rise() -> None:
    """A lower or equal rank under a held lock is refused before it waits; what was held can be taken again."""
    names = OrderedLock("names", Rank.SESSION_NAMES)
    tables, other = OrderedLock("tables", Rank.WAREHOUSE), OrderedLock("other", Rank.WAREHOUSE)
    with names, tables, names:
        pass
    with tables:
        with pytest.raises(EngineBug, match=r"TS1990.*'names' is taken while 'tables' is held"), names:
            pass
        with pytest.raises(EngineBug, match="TS1990"), other:
            pass
    with names, tables:  # a refused one is not counted as held
        pass


def test_a_condition_is_let_go_by_who_waits() -> None:
    """The other thread takes it, changes what it guards, and the first one goes on; the order of ranks holds."""
    changed, seen = OrderedCondition("changes", Rank.PUBLISH_COORDINATOR), []

    def change() -> None:
        with changed:
            seen.append(1)
            changed.notify_all()

    with changed:
        thread = threading.Thread(target=change)
        thread.start()
        changed.wait_for(lambda: bool(seen))
    thread.join()
    with OrderedLock("names", Rank.SESSION_NAMES), pytest.raises(EngineBug, match="TS1990"), changed:
        pass
