"""What one call of the publisher counts, also where the broker lost a part behind it."""

from __future__ import annotations

from tablestore_engine.log.kafka.commit_marker import CommitMarker, plan_progress
from tablestore_engine.log.kafka.hanging_transactions import take_out
from tablestore_engine.log.kafka.transactional_publish import Tally

SENT = CommitMarker("u", 7, "me:7", "t", counts={0: 30, 1: 50}, offsets={0: (100, 130), 1: (200, 250)})


def test_what_was_taken_out_of_a_marker_is_still_to_be_sent() -> None:
    """Snapshot 7 is visible in part: all of bucket 0, the first 20 messages of bucket 1."""
    progress = plan_progress(take_out(SENT, {1: (20, 220)}))
    assert (progress.published, progress.partial) == (6, {0: 30, 1: 20})
    assert progress.next_offsets == {0: 130, 1: 220}


def test_a_snapshot_that_is_sent_in_part_again_counts_once() -> None:
    """80 rows and one snapshot are reported, whatever had to be sent twice because nobody saw it."""
    tally = Tally()
    tally.add(SENT, 80)
    short = take_out(SENT, {1: (20, 220)})
    tally.settle(short)
    assert (tally.rows, tally.snapshots) == (50, ())
    tally.add(CommitMarker("u", 7, "me:7", "t", chunk=1, counts={0: 30, 1: 50}, offsets={1: (260, 290)}), 30)
    assert (tally.rows, tally.snapshots) == (80, (7,))
    assert tally.offsets[1] == (260, 290)
