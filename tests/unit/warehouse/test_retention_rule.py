"""Which staged snapshots are past their retention: the pure rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablestore_engine.catalog.read_log import TableRead
from tablestore_engine.warehouse.gate.gate_rule import GateBook, Outcome, Staged, Verdict
from tablestore_engine.warehouse.gate.retention_rule import kept_text, kept_until_ms, pick_expired

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 100 * DAY
RED, GREEN = (Outcome("test.p.t.1", verdict) for verdict in (Verdict.RED, Verdict.GREEN))


def staged(name: str, age_ms: int, *parents: Staged, **more: object) -> Staged:
    """Of a table with this name, written so long ago, with the default retention and one gate without a result."""
    made = Staged(
        f"d.{name}",
        "run",
        f"{name}:1",
        2,
        gates=("test.p.t.1",),
        parents=tuple(one.as_read for one in parents),
        written_ms=NOW - age_ms,
        used_ms=NOW - age_ms,
        kept_ms=7 * DAY,
    )
    return replace(made, **more)


def dropped(*items: Staged, now: int = NOW, spared: tuple[str, ...] = ()) -> list[str]:
    """Tables of what is past its retention, in the order of the deletions."""
    return [one.item.table for one in pick_expired(GateBook(items), now, spared=spared)]


def test_a_staged_snapshot_is_dropped_at_the_end_of_its_retention() -> None:
    """Not a millisecond before; without a retention never."""
    item = staged("a", 7 * DAY)
    assert dropped(item) == ["d.a"]
    assert dropped(item, now=NOW - 1) == []
    assert dropped(replace(item, kept_ms=None)) == []
    assert kept_until_ms(item, GateBook((item,))) == NOW


@pytest.mark.parametrize("outcomes", [(), (RED,), (GREEN,)])
def test_verdicts_do_not_matter_unless_a_person_is_asked(outcomes: tuple[Outcome, ...]) -> None:
    """Failed, never tested, and passed but refused since the table moved: all are dropped."""
    assert dropped(staged("a", 8 * DAY, outcomes=outcomes)) == ["d.a"]


def test_manual_ones_with_passed_tests_wait_for_a_person() -> None:
    """With a failed or missing test they cannot be published by anybody, so the retention holds."""
    item = staged("a", 8 * DAY, policy="manual")
    assert dropped(item) == ["d.a"]
    assert dropped(replace(item, outcomes=(RED,))) == ["d.a"]
    assert dropped(replace(item, outcomes=(GREEN,))) == []
    assert dropped(replace(item, gates=())) == []


def test_what_was_built_from_rows_that_wait_for_a_person_waits_as_well() -> None:
    """A child whose own tests have passed waits for nothing else; with a failed test it is dropped alone."""
    parent = staged("a", 8 * DAY, policy="manual", outcomes=(GREEN,))
    child = staged("b", 8 * DAY, parent, outcomes=(GREEN,))
    assert dropped(parent, child) == []
    assert dropped(parent, replace(child, outcomes=(RED,))) == ["d.b"]


def test_children_are_dropped_before_their_parent() -> None:
    """Also those that are younger than the retention, at any depth; others stay."""
    parent = staged("a", 8 * DAY)
    child = staged("b", 2 * DAY, parent)
    grandchild = staged("c", 2 * HOUR, child)
    other = staged("d", 2 * DAY)
    found = pick_expired(GateBook((other, grandchild, child, parent)), NOW)
    assert [one.item.table for one in found] == ["d.c", "d.b", "d.a"]
    assert {one.root.table for one in found} == {"d.a"}
    assert kept_until_ms(grandchild, GateBook((parent, child, grandchild))) == parent.written_ms + 7 * DAY


@pytest.mark.parametrize("which", [0, 1])
def test_a_family_that_a_run_uses_stays_as_a_whole(which: int) -> None:
    """A member that was written, built or tested within the hour; or that a run continues."""
    parent = staged("a", 8 * DAY)
    family = [parent, staged("b", 8 * DAY, parent)]
    assert dropped(*family) == ["d.b", "d.a"]
    family[which] = replace(family[which], used_ms=NOW - HOUR + 1, name="mine")
    assert dropped(*family) == ([] if which else ["d.b"])
    family[which] = replace(family[which], used_ms=NOW - HOUR)
    assert dropped(*family) == ["d.b", "d.a"]
    assert dropped(*family, spared=("mine",)) == ([] if which else ["d.b"])


def test_a_published_one_whose_log_is_pending_stays() -> None:
    """Its branch says what the log lacks; nothing that it was built from is dropped either."""
    parent = staged("a", 8 * DAY)
    assert dropped(replace(parent, is_out=True)) == []
    assert dropped(parent, staged("b", 8 * DAY, parent, is_out=True)) == []


def test_the_notice_names_table_age_and_tests() -> None:
    """Which tests failed or are missing, and what a child was built from."""
    parent = staged("a", 8 * DAY, gates=("test.p.t.1", "test.p.u.2"), outcomes=(RED,))
    child = staged("b", 8 * DAY, parent)
    lines = [one.line() for one in pick_expired(GateBook((parent, child)), NOW)]
    assert lines == [
        "d.b: staged snapshot run (snapshot 2) is dropped with run of d.a: it was built from its rows",
        (
            "d.a: staged snapshot run (snapshot 2) is dropped: it was written 8 d ago, tablestore.staged-retention is "
            "7 d; failed tests: t; tests without a result: u"
        ),
    ]
    (dry,) = pick_expired(GateBook((staged("a", 31 * HOUR, kept_ms=30 * HOUR, gates=()),)), NOW)
    assert dry.line(is_dry=True).endswith(
        "written 31 h ago, tablestore.staged-retention is 30 h; it has no tests"
    )
    assert "would be dropped" in dry.line(is_dry=True)


def test_the_end_is_a_time_in_utc() -> None:
    """Or says that there is none."""
    assert kept_text(1_700_000_000_000) == "2023-11-14T22:13:20.000Z"
    assert kept_text(None) == "published or dropped"


def test_parents_that_are_published_or_dropped_do_not_matter() -> None:
    """A child of rows that are not staged any more has its own retention."""
    child = replace(staged("b", DAY), parents=(TableRead("d.a", "a:1", 2, "run"),))
    assert dropped(child) == []
    assert kept_until_ms(child, GateBook((child,))) == NOW + 6 * DAY
