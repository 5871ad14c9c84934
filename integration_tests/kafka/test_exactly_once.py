"""P2 on a real broker: every snapshot's rows once, in order, whatever dies or fights."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import product

import pytest

from integration_tests.kafka.source import (
    Source,
    await_published,
    expected,
    new_table,
    published,
)
from integration_tests.kafka.topic_reads import read_log_markers
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.log.changes import SnapshotChanges
from tablestore_engine.log.kafka.commit_marker import CommitMarker
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.runtime.outside_world import CRASH_ENV
from tests.doses import case_rows, cases

CHILD = [sys.executable, "-m", "integration_tests.kafka.publish_child"]
POINTS = ("log.begin", "log.rows", "log.marker", "log.committed")


def check_markers(settings: LogSettings, latest: int) -> None:
    """Complete markers rise strictly and end at the newest snapshot."""
    ids = [marker.snapshot_id for marker in read_log_markers(KafkaLog(settings)) if marker.last]
    assert ids == sorted(set(ids))
    assert ids[-1] == latest


def test_publish_in_steps_equals_publish_at_once(broker: BrokerInfo) -> None:
    """One publisher over many calls, a second publisher after it, and a repeated call give each row once, in order."""
    source, settings = new_table(broker, 12)
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(3, source.read).snapshots == (1, 2, 3)
        assert publisher.publish_pending(7, source.read).snapshots == (4, 6, 7)
        assert publisher.publish_pending(7, source.read).snapshots == ()
    with Publisher(KafkaLog(settings)) as publisher:
        report = publisher.publish_pending(12, source.read, find_commit=source.find_commit)
    assert report.published == 12
    assert published(source, settings) == expected(source)
    check_markers(settings, 12)


def test_report_counts_what_the_topic_grew_by(broker: BrokerInfo) -> None:
    """rows = inserted + updated + deleted, offsets are those of the new messages."""
    source, settings = new_table(broker, 4)
    with Publisher(KafkaLog(settings)) as publisher:
        first = publisher.publish_pending(1, source.read)
        second = publisher.publish_pending(4, source.read)
    assert first.rows == 6 + 1 + 1
    assert second.rows == 3 * 8
    assert first.offsets == {0: (0, 4), 1: (0, 4)}
    assert {p: begin for p, (begin, _) in second.offsets.items()} == {
        0: 5,
        1: 5,
    }  # one control record between
    newest = read_log_markers(KafkaLog(settings))[-1]
    assert {p: end for p, (_, end) in newest.offsets.items()} == {
        p: end for p, (_, end) in second.offsets.items()
    }


@pytest.mark.nightly  # by day publications in steps, above
def test_empty_snapshots_move_the_progress(broker: BrokerInfo) -> None:
    """Newest snapshots without changes are covered by one marker alone, and are not looked at again."""
    source, settings = new_table(broker, 4)
    source.snapshots += [None, None]
    asked: list[int] = []

    def read(snapshot_id: int) -> SnapshotChanges | None:
        asked.append(snapshot_id)
        return source.read(snapshot_id)

    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(6, read).published == 6
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(6, read).published == 6
    assert asked == [1, 2, 3, 4, 5, 6]
    assert published(source, settings) == expected(source)


def _run(command: list[str], crash: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, CRASH_ENV: crash}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("point", "hit"), case_rows(list(product(POINTS, [1, 3])), 2))
def test_kill_at_every_point_then_run_again(broker: BrokerInfo, point: str, hit: int) -> None:
    """SIGKILL at a log.* point: whole snapshots only are visible; the same command again gives every row once."""
    source, settings = new_table(broker, 4)
    command = [*CHILD, broker.url, source.uuid, "4", "4", "1000"]
    assert _run(command, f"{point}:{hit}").returncode == -signal.SIGKILL
    # rows: two slices per snapshot, so its third hit lies in snapshot 2
    complete = {"log.committed": hit, "log.rows": (hit - 1) // 2}.get(point, hit - 1)
    await_published(source, settings, expected(source, range(1, complete + 1)))
    again = _run(command)
    assert again.returncode == 0, again.stderr
    assert published(source, settings) == expected(source)
    check_markers(settings, 4)


@pytest.mark.parametrize("hit", cases([2, 1, 5], 1))
def test_kill_between_chunks_of_one_snapshot(broker: BrokerInfo, hit: int) -> None:
    """A snapshot of several transactions, killed between and inside them, is finished by the next run, once."""
    source, settings = new_table(broker, 3)
    command = [*CHILD, broker.url, source.uuid, "3", "3", "2"]
    assert _run(command, f"log.marker:{hit}").returncode == -signal.SIGKILL
    seen = published(source, settings)
    assert all(seen[p] == rows[: len(seen[p])] for p, rows in expected(source).items())
    again = _run(command)
    assert again.returncode == 0, again.stderr
    assert published(source, settings) == expected(source)
    check_markers(settings, 3)


@pytest.mark.nightly  # by day the kills above
def test_a_random_series_of_kills_converges(broker: BrokerInfo) -> None:
    """Forty snapshots in chunks under five kills at ever later points: the topic is exact after the last run."""
    source, settings = new_table(broker, 40)
    command = [*CHILD, broker.url, source.uuid, "40", "40", "5"]
    for round_number in range(5):
        killed = _run(command, f"{POINTS[round_number % 4]}:{round_number + 2}")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = _run(command)
    assert again.returncode == 0, again.stderr
    assert published(source, settings) == expected(source)
    check_markers(settings, 40)


def _interrupting(
    source: Source, at: int, action: Callable[[], object]
) -> Callable[[int], SnapshotChanges | None]:
    """read_changes that does something once, just before it hands out snapshot `at`."""
    todo = [action]

    def read(snapshot_id: int) -> SnapshotChanges | None:
        if snapshot_id == at and todo:
            todo.pop()()
        return source.read(snapshot_id)

    return read


def test_a_fenced_publisher_reads_what_the_other_did(broker: BrokerInfo) -> None:
    """While A is between two snapshots B publishes all: A is fenced, opens again, and sends nothing twice."""
    source, settings = new_table(broker, 8)

    def take_over() -> None:
        with Publisher(KafkaLog(settings)) as other:
            assert other.publish_pending(8, source.read).published == 8

    with Publisher(KafkaLog(settings)) as publisher:
        report = publisher.publish_pending(8, _interrupting(source, 3, take_over))
    assert report.published == 8
    assert report.snapshots == (1, 2)
    assert published(source, settings) == expected(source)
    check_markers(settings, 8)


def test_two_publishers_at_once(broker: BrokerInfo) -> None:
    """Two processes that publish the same table fence each other; one run of each later the topic is exact."""
    source, settings = new_table(broker, 30)
    command = [*CHILD, broker.url, source.uuid, "30", "30", "3"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in both:
        errors = process.communicate(timeout=120)[1]
        assert process.returncode == 0 or "TS1710" in errors
    assert _run(command).returncode == 0
    assert published(source, settings) == expected(source)
    check_markers(settings, 30)


def test_a_publisher_that_looked_before_another_one_was_done(broker: BrokerInfo) -> None:
    """The log may be ahead of the snapshot that this publisher knows: nothing to do, and no rolled back table."""
    source, settings = new_table(broker, 4)
    with Publisher(KafkaLog(settings)) as quick, Publisher(KafkaLog(settings)) as slow:
        quick.publish_pending(4, source.read, find_commit=source.find_commit)
        assert slow.publish_pending(2, source.read, find_commit=source.find_commit).rows == 0
    assert published(source, settings) == expected(source)


def test_an_open_transaction_hides_its_rows(broker: BrokerInfo) -> None:
    """read_committed sees nothing of a snapshot in flight, read_uncommitted does; a crashed one never appears."""
    source, settings = new_table(broker, 2)
    command = [*CHILD, broker.url, source.uuid, "2", "2", "1000"]
    assert _run(command, "log.marker:2").returncode == -signal.SIGKILL
    assert published(source, settings) == expected(source, range(1, 2))
    in_flight = published(source, settings, isolation="read_uncommitted")
    assert in_flight == expected(source), "the rows of snapshot 2 are on the broker, but not committed"


def test_rows_are_read_only_when_their_snapshot_is_asked_for(broker: BrokerInfo) -> None:
    """Nothing beyond latest_id is published: a snapshot that does not exist yet cannot be visible."""
    source, settings = new_table(broker, 6)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(2, source.read)
    assert published(source, settings) == expected(source, range(1, 3))


def test_markers_survive_a_chunked_snapshot(broker: BrokerInfo) -> None:
    """Chunk markers count messages per partition and the last one is complete."""
    source, settings = new_table(broker, 1)
    small = dataclasses.replace(settings, chunk_rows=1)
    with Publisher(KafkaLog(small)) as publisher:
        publisher.publish_pending(1, source.read)
    markers: tuple[CommitMarker, ...] = read_log_markers(KafkaLog(settings))
    assert [(m.chunk, m.last) for m in markers] == [(0, True), (0, False), (1, False), (2, True)]
    assert [dict(m.counts) for m in markers[1:]] == [{0: 4}, {0: 4, 1: 4}, {0: 4, 1: 4}]
    assert published(source, settings) == expected(source)
