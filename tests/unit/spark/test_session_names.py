"""When states that a session has registered may go: a law over random work, and the cases that matter."""

from __future__ import annotations

import random
from pathlib import Path

from tablestore_engine.spark.session_names import MOST_FIXED, MadeState, SessionNames

NAME = ("demo", "orders")


def made(names: SessionNames, key: str) -> None:
    """A state that is registered under the plain name."""
    names.made[key] = MadeState(frozenset([f"hidden.{key}"]), frozenset([Path(key)]))
    names.put(NAME, key)


def gone(names: SessionNames) -> set[str]:
    """Keys of what is taken away now."""
    return {str(folder) for state in names.take_idle().states for folder in state.folders}


def test_old_states_go_and_the_newest_stays() -> None:
    """Once that is worth it."""
    names = SessionNames()
    for number in range(40):
        made(names, f"s{number}")
    assert gone(names) == {f"s{number}" for number in range(39)}
    assert list(names.made) == ["s39"]
    assert gone(names) == set()


def test_work_keeps_what_it_may_read() -> None:
    """What was there when it began stays until it has ended, however many states come meanwhile; what came and went
    before it began does not.
    """
    names = SessionNames()
    for number in range(20):
        made(names, f"early{number}")
    with names.in_use():
        for number in range(20):
            made(names, f"late{number}")
        assert gone(names) == {f"early{number}" for number in range(19)}
        assert "early19" in names.made
    assert gone(names) == {"early19", *(f"late{number}" for number in range(19))}


def test_what_was_handed_out_stays_for_ever() -> None:
    """Nobody can tell when somebody's frame is used."""
    names = SessionNames()
    for number in range(40):
        made(names, f"s{number}")
        if number == 7:
            names.hand_out(["s7"])
    assert "s7" not in gone(names)
    assert "s7" in names.made


def test_of_versioned_names_those_used_last_stay() -> None:
    """A plain name stays whatever its age."""
    names = SessionNames()
    made(names, "plain")
    for number in range(MOST_FIXED + 30):
        names.made[f"v{number}"] = MadeState(frozenset(), frozenset([Path(f"v{number}")]))
        names.put((f"demo__at_snapshot_{number}", "orders"), f"v{number}", is_fixed=True)
        names.put(("demo__at_snapshot_0", "orders"), "v0", is_fixed=True)
    found = names.take_idle()
    assert len(found.views) == 30
    assert ("demo__at_snapshot_0", "orders") not in found.views
    assert {str(one) for state in found.states for one in state.folders} == {f"v{n}" for n in range(1, 31)}
    assert NAME in names.versions


def test_state_retired_twice_under_a_reader_stays_until_the_reader_ends() -> None:
    """A state that is retired, read again and retired again is dropped after its last reader, not by its first mark."""
    names = SessionNames()
    made(names, "past")
    made(names, "now")  # retires "past" for the first time
    with names.in_use():
        made(names, "past")  # the reader's query names the past state again
        for number in range(20):
            made(names, f"s{number}")  # retires "past" for the second time, under the reader
        assert "past" not in gone(names)
        assert "past" in names.made
    assert "past" in gone(names)


def test_random_work_never_loses_what_it_reads() -> None:
    """Whatever begins, ends, changes and is read in whichever order: what work may read is there until its end."""
    chosen = random.Random(5)
    names = SessionNames()
    working: list[tuple[object, set[str]]] = []
    for step in range(4000):
        if chosen.random() < 0.2 and len(working) < 5:
            work = names.in_use()
            work.__enter__()
            working.append((work, set()))
        if chosen.random() < 0.2 and working:
            work, _ = working.pop(chosen.randrange(len(working)))
            work.__exit__(None, None, None)  # type: ignore[attr-defined]
        if chosen.random() < 0.5:
            made(names, f"s{step // chosen.choice((1, 1, 50))}")  # some states are read again and again
        for _, read in working:
            read.update([names.versions[NAME]] if NAME in names.versions else [])
        taken = gone(names)
        assert not any(read & taken for _, read in working)
        assert all(read <= set(names.made) for _, read in working)
    for work, _ in working:
        work.__exit__(None, None, None)  # type: ignore[attr-defined]
    gone(names)
    assert len(names.made) < 20
