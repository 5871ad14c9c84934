"""What an eventual log shows before its markers, as `tablestore log show` tells it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress, plan_progress
from tablestore_engine.log.kafka.log_state import plan_early
from tablestore_engine.log.kafka.unconfirmed_records import plan_reads
from tablestore_engine.log.sink import EarlyState

SPANS = st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)))


def test_without_a_marker_everything_is_ahead() -> None:
    """Nothing answers for anything."""
    assert plan_early(None, {0: 4, 1: 0}) == EarlyState({0: (0, 4)}, {})


@given(SPANS, st.dictionaries(st.integers(0, 3), st.integers(0, 9)))
def test_what_is_shown_is_what_the_next_publication_reads(
    spans: dict[int, tuple[int, int, int]], unchecked: dict[int, int]
) -> None:
    """Partitions with something ahead or unchecked are those that publishing would look through."""
    offsets = {part: (first, first + rows) for part, (first, rows, _) in spans.items()}
    ends = {part: offsets[part][1] + more for part, (_, _, more) in spans.items()}
    known = {part: at for part, at in unchecked.items() if part in offsets and at < offsets[part][1]}
    marker = CommitMarker("u", 3, "me:3", "t", offsets=offsets, early=True, unchecked=known)
    progress = plan_progress(marker)
    shown = plan_early(progress, ends)
    assert set(shown.ahead) | set(shown.unchecked) == set(plan_reads(progress, ends, ()))
    assert all(first < end == ends[part] for part, (first, end) in shown.ahead.items())
    assert shown.unchecked == {part: (at, offsets[part][1]) for part, at in known.items()}


def test_the_record_that_ends_a_transaction_is_no_row() -> None:
    """Right behind the rows of a marker's own transaction lies one control record."""
    progress = Progress(3, None, "t", {0: 5, 1: 5}, early=True, controls=frozenset({0}))
    assert plan_early(progress, {0: 6, 1: 6}).ahead == {1: (5, 6)}
