"""Which snapshots go: the rules alone."""

from __future__ import annotations

import pytest

from tablestore_engine.store.expiry.expiry_rules import Choice, Hold, pick_expired
from tablestore_engine.store.retention import Retention

RULES = Retention(keep_min=1, keep_max=None, retained_ms=100, grace_ms=0, limit=None)


def pick(
    *times: int,
    now: int,
    first: int = 1,
    holds: tuple[Hold, ...] = (),
    keep_min: int = 1,
    keep_max: int | None = None,
    grace_ms: int = 0,
    limit: int | None = None,
) -> Choice:
    """Snapshots first, first + 1 … committed at these times."""
    rules = Retention(keep_min, keep_max, 100, grace_ms, limit)
    known = dict(enumerate(times, start=first))
    return pick_expired(first, max(known), known.get, rules, holds, now_ms=now)


@pytest.mark.parametrize(("now", "end"), [(109, 1), (110, 2), (119, 2), (120, 3), (10_000, 4)])
def test_the_age_of_the_successor_counts(now: int, end: int) -> None:
    """A snapshot goes when it has not been the table for that long; the newest one never does."""
    assert pick(0, 10, 20, 30, now=now).end == end


def test_so_many_stay_however_old() -> None:
    """keep_min counts the newest."""
    assert pick(0, 1, 2, 3, 4, now=9_999, keep_min=3).end == 3
    assert pick(0, 1, 2, 3, 4, now=9_999, keep_min=9).is_nothing


def test_more_than_the_most_go_at_once() -> None:
    """keep_max goes before the retained time, and not before the grace period."""
    assert pick(0, 1, 2, 3, 4, now=5, keep_max=2).end == 4
    assert pick(0, 1, 2, 3, 4, now=5, keep_max=2, grace_ms=3).end == 3
    assert pick(0, 1, 2, 3, 4, now=105, keep_max=4).end == 5


def test_a_hold_keeps_its_snapshot_and_all_after_it() -> None:
    """The smallest one counts and is named; one behind the rest changes nothing."""
    holds = (Hold(4, "late"), Hold(2, "early"))
    assert pick(0, 1, 2, 3, 4, now=9_999, holds=holds) == Choice(1, 2, "early")
    assert pick(0, 1, 2, 3, 4, now=9_999, holds=(Hold(9, "late"),)).reason == "the newest 1 stay"
    assert pick(0, 1, 2, now=9_999, first=5, holds=(Hold(3, "of a snapshot that is gone"),)).is_nothing


def test_so_many_go_at_once() -> None:
    """The limit counts from the earliest one."""
    assert pick(0, 1, 2, 3, 4, now=9_999, first=7, limit=2) == Choice(7, 9, "2 go at once")


def test_a_clock_that_went_back_and_a_gap_keep() -> None:
    """A snapshot from the future has no age; one that is not there says nothing of the one before it."""
    assert pick(0, 500, 600, now=200).is_nothing
    assert pick_expired(1, 3, {1: 0, 3: 5}.get, RULES, now_ms=999).is_nothing


def test_the_reason_says_what_would_have_to_change() -> None:
    """Grace, retained time and least number are told apart."""
    assert "grace" in pick(0, 10, 20, now=30, grace_ms=50).reason
    assert "retained" in pick(0, 10, 20, now=30).reason
    assert pick(0, 10, 20, now=9_999, keep_min=2).reason == "the newest 2 stay"
