"""What of a failed iteration is quarantined: built from published rows, with all that its failed tests gate."""

from __future__ import annotations

import pytest

from dbt.adapters.tablestore.continuous.quarantine_table import (
    QuarantineRange,
    list_going,
    pick_answered,
    pick_quarantined,
    read_range,
)
from tablestore_engine.spi import GateBook, Outcome, PositionStep, Staged, TableRead, Verdict, World

A, B = "table:a", "table:b"


def staged(
    table: str, gates: str = "", red: str = "", broken: str = "", parents: str = "", batches: str = ""
) -> Staged:
    """One of a round: tests that gate it, said no to it or could not run; letters of its parents."""
    said = [Outcome(test, Verdict.RED) for test in red] + [Outcome(test, Verdict.ERROR) for test in broken]
    above = tuple(TableRead(one, f"{one}:1", 2, "dbt_1") for one in parents)
    gating = tuple(dict.fromkeys(gates + red + broken))
    outcomes = tuple(said)
    return Staged(
        table,
        "dbt_1",
        f"{table}:1",
        2,
        table,
        gates=gating,
        parents=above,
        outcomes=outcomes,
        batches=tuple(batches),
    )


def picked(*items: Staged, streaming: str = "mnc", out: str = "") -> tuple[str, str, str]:
    """Tables that are quarantined, that go with them, and answered tests; those of `out` were published."""
    book = GateBook(items)
    world = World({}, frozenset((one, f"{one}:1") for one in out))
    found = pick_quarantined(book, world, [one for one in items if one.table in streaming])
    going = {one.table for one in list_going(book, found)} - {one.table for one in found}
    tests = "".join(sorted(pick_answered(book, found)))
    return "".join(one.table for one in found), "".join(sorted(going)), tests


def test_only_what_a_test_said_no_to_goes() -> None:
    """A test that could not run says nothing; beside a red one it is not answered."""
    assert picked(staged("m", broken="t"), staged("n", red="u")) == ("n", "", "u")
    assert picked(staged("m", broken="t", red="u")) == ("m", "", "u")
    assert picked(staged("m", gates="t")) == ("", "", "")


def test_nothing_moves_onto_a_parent_that_waits() -> None:
    """The parent is out, or the child stays; it goes with a parent that is quarantined, and reads that range never."""
    child = staged("c", red="t", parents="p")
    assert picked(staged("p", red="t"), child) == ("", "", "")
    assert picked(staged("p"), child) == ("", "", "")
    assert picked(child) == ("", "", "")
    assert picked(child, out="p") == ("c", "", "t")
    assert picked(staged("p", red="t"), child, streaming="pc") == ("p", "c", "t")
    assert picked(staged("p", red="t"), staged("c", red="u", parents="p"), streaming="pc") == ("p", "c", "tu")


def test_a_test_that_gates_anything_else_ends_it() -> None:
    """Also what only waits for it, and what is tied to that by another test."""
    assert picked(staged("m", red="t"), staged("x", gates="t")) == ("", "", "")
    assert picked(staged("m", red="t"), staged("n", red="t")) == ("mn", "", "t")
    assert picked(staged("m", red="tu"), staged("n", red="t"), staged("x", red="u")) == ("", "", "")
    assert picked(staged("p", red="t"), staged("c", gates="u", parents="p"), staged("x", red="u"), streaming="p") == (
        "p", "c", "t",
    )  # fmt: skip


def test_batches_that_nobody_builds_again_stay() -> None:
    """A microbatch that was built from it keeps it from being quarantined."""
    assert picked(staged("p", red="t"), staged("c", parents="p", batches="1"), streaming="p") == ("", "", "")


@pytest.mark.parametrize(
    ("known", "steps"),
    [
        ({}, {A: PositionStep(None, "1"), "query": PositionStep(None, "q")}),
        ({A: "1"}, {A: PositionStep("1", "2"), "state": PositionStep(None, "s")}),
        ({A: "1"}, {A: PositionStep("1", "2"), "query": PositionStep(None, "q")}),
        ({A: "1", "query": "q"}, {A: PositionStep(None, "2", is_reset=True)}),
        ({A: "3", "query": "q"}, {A: PositionStep("1", "2")}),
    ],
)
def test_a_first_build_has_no_range(known: dict[str, str], steps: dict[str, PositionStep]) -> None:
    """Nor has a model that remembers nothing yet, that begins anew, or that somebody has moved on meanwhile."""
    assert read_range(4, known, steps) is None


def test_a_range_says_where_everything_stood() -> None:
    """So the next round knows it again when more inputs have moved; and not when the model is elsewhere."""
    known = {A: "1", B: "1", "query": "q", "state": "s"}
    first = read_range(4, known, {A: PositionStep("1", "2"), "state": PositionStep("s", "t")})
    more = {A: PositionStep("1", "3"), B: PositionStep("1", "2"), "state": PositionStep("s", "u")}
    later = read_range(4, {**known, "state": "other"}, {**more, "state": PositionStep("other", "u")})
    assert first is not None
    assert later is not None
    assert read_range(None, known, {A: PositionStep("1", "2")}) is None
    assert set(first.steps) == set(known)
    assert first.moves == {A: PositionStep("1", "2")}
    assert later.begins_with(first.steps)
    assert later.begins_with({A: PositionStep("1", "2")})  # as an earlier quarantine said it
    assert not later.begins_with({})
    moved = QuarantineRange(5, {**later.steps, A: PositionStep("2", "3")})
    assert not moved.begins_with(first.steps)
    new = read_range(4, {A: "1", "query": "q"}, {B: PositionStep(None, "9")})
    assert new is not None  # an input that it reads for the first time
