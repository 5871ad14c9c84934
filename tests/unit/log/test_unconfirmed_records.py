"""Which rows of an eventual log stay where they are, what is read, from where a marker does not answer: pure rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress, plan_progress
from tablestore_engine.log.kafka.hanging_transactions import take_out
from tablestore_engine.log.kafka.prepublish_producer import PrepublishedSpan
from tablestore_engine.log.kafka.unconfirmed_records import (
    OwnOffsets,
    PrepublishedMessage,
    find_trusted,
    gather,
    plan_reads,
    plan_unchecked,
)
from tablestore_engine.log.sink import PrepublishedCommit

P10 = Progress(5, "me:5", "t", {0: 10, 1: 20}, early=True)
SPAN = PrepublishedSpan("a", 0, 10, 13, 3)
KNOWN = {
    6: PrepublishedCommit("me:6", (SPAN,)),
    7: PrepublishedCommit("me:7", (PrepublishedSpan("b", 1, 20, 21, 1),)),
}
ENDS = {0: 13, 1: 21}


def test_rows_of_this_process_are_trusted() -> None:
    """Both snapshots lie behind the marker, wholly."""
    spans = find_trusted(P10, ENDS, [(6, "me:6"), (7, "me:7")], KNOWN)
    assert spans is not None
    assert [one.token for one in spans] == ["a", "b"]
    assert plan_reads(P10, ENDS, spans) == {}


@pytest.mark.parametrize(
    ("progress", "ends", "pending"),
    [
        (P10, ENDS, [(6, "me:6"), (8, "me:8")]),  # another process' snapshot
        (P10, ENDS, [(6, "me:66")]),  # another commit under that number
        (P10, {0: 12, 1: 21}, [(6, "me:6")]),  # not all of it is decided
        (
            Progress(5, "me:5", "t", {0: 11, 1: 20}),
            ENDS,
            [(6, "me:6")],
        ),  # something was sent behind its first row
        (Progress(5, None, "t", {0: 10, 1: 20}, {0: 1}, 1), ENDS, [(6, "me:6")]),  # half of it was sent again
    ],
    ids=["foreign", "other commit", "undecided", "overtaken", "in part"],
)
def test_one_that_is_not_makes_none_of_them_trusted(
    progress: Progress, ends: dict[int, int], pending: list[tuple[int, str]]
) -> None:
    """Sent again, each snapshot lies behind the ones before it."""
    assert find_trusted(progress, ends, pending, KNOWN) is None


@pytest.mark.parametrize(
    ("spans", "reads"),
    [
        ([SPAN], {}),
        ([PrepublishedSpan("a", 0, 11, 13, 2)], {0: [(10, 11)]}),
        ([PrepublishedSpan("a", 0, 10, 12, 2)], {0: [(12, 13)]}),
        ([PrepublishedSpan("a", 0, 10, 13, 2)], {0: [(10, 13)]}),  # somebody's row lies among them
        (
            [PrepublishedSpan("a", 0, 10, 13, 2), PrepublishedSpan("b", 0, 11, 12, 1)],
            {},
        ),  # two tasks share the partition
        ([PrepublishedSpan("a", 0, 10, 10, 0)], {0: [(10, 13)]}),
        ([], {0: [(10, 13)]}),
    ],
)
def test_what_is_not_filled_exactly_is_read(
    spans: list[PrepublishedSpan], reads: dict[int, list[tuple[int, int]]]
) -> None:
    """As many acknowledged rows as offsets leave no place for others."""
    assert plan_reads(P10, {0: 13, 1: 20}, spans) == reads


@pytest.mark.parametrize(
    ("controls", "unchecked", "end", "reads"),
    [
        ({0}, {}, 11, {}),
        ({0}, {}, 12, {0: [(10, 12)]}),
        (set(), {}, 11, {0: [(10, 11)]}),
        ({0}, {0: 9}, 10, {0: [(9, 10)]}),  # what is unchecked is no control record
    ],
)
def test_a_control_record_needs_no_look(
    controls: set[int], unchecked: dict[int, int], end: int, reads: dict[int, list[tuple[int, int]]]
) -> None:
    """The one offset behind rows of the newest transaction is the end of that transaction."""
    progress = Progress(5, "", "t", {0: 10}, unchecked=unchecked, controls=frozenset(controls))
    assert plan_reads(progress, {0: end}, ()) == reads


@given(st.data())
def test_what_is_read_and_what_is_known_is_everything(data: st.DataObject) -> None:
    """Whoever the offsets belong to: a foreign row is always read, and acknowledged rows are never all that is read."""
    owners = data.draw(st.lists(st.sampled_from("abx"), max_size=12))
    first = data.draw(st.integers(0, 5))
    spans = []
    for token in "ab":
        places = [first + at for at, owner in enumerate(owners) if owner == token]
        if places:
            spans.append(PrepublishedSpan(token, 0, places[0], places[-1] + 1, len(places)))
    progress = Progress(1, "", "t", {0: first})
    reads = plan_reads(progress, {0: first + len(owners)}, spans).get(0, ())
    read = {at for begin, end in reads for at in range(begin, end)}
    assert {first + at for at, owner in enumerate(owners) if owner == "x"} <= read
    if "x" not in owners:
        assert not read


@pytest.mark.parametrize(
    ("checked", "transactions", "unchecked"),
    [
        (10, [(10, 12)], {}),  # nobody between
        (10, [(11, 13)], {0: 10}),  # somebody's row lies before them
        (10, [(10, 12), (13, 14)], {}),  # the end of the first lies between
        (10, [(10, 12), (14, 15)], {0: 10}),
        (8, [(10, 12)], {0: 8}),  # what lies before is not looked through yet
    ],
)
def test_a_marker_answers_for_what_its_publisher_knows(
    checked: int, transactions: list[tuple[int, int]], unchecked: dict[int, int]
) -> None:
    """Own rows and the ends of own transactions, one after the other, leave no place for early rows."""
    own = OwnOffsets({0: 10})
    for first, following in transactions:
        own.add({0: following - first})
    progress = Progress(5, "", "t", {0: 10}, unchecked={0: checked} if checked < 10 else {})
    assert plan_unchecked(progress, {0: transactions[-1][1]}, own) == unchecked


class _Topic:
    """Partition 0 has a row of `a` and `b` in turns, partition 1 has none."""

    def read_early(self, partition: int, span: tuple[int, int]) -> Iterator[PrepublishedMessage]:
        """As PrepublishedTopic."""
        for at in range(*span) if partition == 0 else ():
            yield PrepublishedMessage(at, b"k%d" % at, "ab"[at % 2])

    def find_ends(self) -> dict[int, int]:
        """Not asked."""
        raise NotImplementedError


def test_a_phantom_is_a_row_that_no_trusted_call_has_there() -> None:
    """The same call's token outside of its acknowledged offsets is one too: a request that was taken twice."""
    reads = {0: [(0, 8)], 1: [(0, 3)]}
    found = gather(_Topic(), reads, [PrepublishedSpan("a", 0, 2, 7, 3)], keys_max=99)
    assert list(found.keys[0]) == [b"k0", b"k1", b"k3", b"k5", b"k7"]
    assert (found.is_all, found.until) == (True, {0: 8, 1: 3})


def test_many_phantoms_come_in_portions() -> None:
    """A portion ends behind its last key, and partitions behind it are not looked through."""
    found = gather(_Topic(), {0: [(0, 8)], 1: [(0, 3)]}, (), keys_max=3)
    assert list(found.keys[0]) == [b"k0", b"k1", b"k2"]
    assert (found.is_all, found.until) == (False, {0: 3})
    found.forget(0, [b"k1", b"other"])
    assert list(found.keys[0]) == [b"k0", b"k2"]


def test_repairs_that_a_broker_lost_are_made_again() -> None:
    """P is what it was before them, nothing of the next snapshot counts as sent, rows are looked for from there on."""
    marker = CommitMarker(
        "u", 9, "me:9", "t", chunk=1, counts={0: 4, 1: 2}, offsets={0: (30, 34), 1: (50, 52), 2: (7, 7)},
        early=True, before=7, since={0: 25, 1: 50, 2: 7},
    )  # fmt: skip
    progress = plan_progress(take_out(marker, {0: (1, 31)}))
    assert (progress.published, progress.partial, progress.early) == (7, {}, True)
    assert progress.next_offsets == {0: 31, 1: 52, 2: 7}
    assert [progress.checked(one) for one in range(3)] == [25, 50, 7]
