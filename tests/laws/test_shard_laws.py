"""Where a log is that several publishers share: any interleaving, any chunks, stopped anywhere."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.commit_marker import (
    CommitMarker,
    Progress,
    decode_marker,
    encode_marker,
    plan_progress,
)
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.shard_boundaries import merge_shards
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.log.sink import LogPosition, SentChanges, merge_sent

ROWS = st.dictionaries(st.integers(0, 5), st.integers(1, 3))  # {partition: rows} of one snapshot
HISTORIES = st.lists(ROWS, min_size=1, max_size=6)


def settings_of(partitions: int, shards: int) -> LogSettings:
    """Of a log that nobody is asked for."""
    return LogSettings("t", "u", "t", partitions, ChangelogMode.UPSERT, ClientConfig({}), shards=shards)


@dataclass
class Topics:
    """Snapshot of every message by partition, and every marker, in the order in which they were written."""

    rows: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    markers: list[CommitMarker] = field(default_factory=list)

    def progress(self, shard: int) -> Progress:
        """As a publisher reads it."""
        newest = [one for one in self.markers if one.shard == shard]
        return plan_progress(newest[-1]) if newest else Progress(0, None, "id")

    def send(self, settings: LogSettings, history: list[dict[int, int]], at_most: int) -> None:
        """One transaction of a shard: rows of its next snapshot that it has not sent, and the marker."""
        progress = self.progress(settings.shard)
        if progress.published == len(history):
            return
        changed = history[progress.published]
        counts, left, whole = dict(progress.partial), at_most, True
        for partition in settings.own_partitions:
            missing = changed.get(partition, 0) - counts.get(partition, 0)
            now = min(missing, left)
            self.rows[partition] += [progress.published + 1] * now
            counts[partition] = counts.get(partition, 0) + now
            left, whole = left - now, whole and now == missing
        ends = {one: (0, len(self.rows[one])) for one in settings.own_partitions}
        marker = CommitMarker(
            "u",
            progress.published + 1,
            "me:1",
            "id",
            chunk=progress.chunks,
            last=whole,
            counts=counts,
            offsets=ends,
            shard=settings.shard,
            shards=settings.shards,
        )
        self.markers.append(decode_marker(encode_marker(marker)[1]))


def check_boundaries(topics: Topics, shards: int, position: int) -> None:
    """At a boundary each row up to its snapshot lies before, each later one behind; they go up, to the position."""
    by_shard = [[one for one in topics.markers if one.shard == number] for number in range(shards)]
    boundaries = merge_shards(by_shard, "id")
    assert [one.snapshot_id for one in boundaries] == sorted({one.snapshot_id for one in boundaries})
    assert [one.begins for one in boundaries] == [True, *[False] * (len(boundaries) - 1)]
    assert boundaries[-1].snapshot_id == position
    for boundary in boundaries:
        for partition, rows in topics.rows.items():
            end = boundary.place.get(partition, 0)
            assert all(number <= boundary.snapshot_id for number in rows[:end])
            assert all(number > boundary.snapshot_id for number in rows[end:])


@given(st.integers(1, 40), st.integers(0, 20), st.data())
def test_every_partition_has_one_publisher_for_ever(partitions: int, more: int, data: st.DataObject) -> None:
    """Each is one shard's own, also when the topic has got more; identities are all different."""
    shards = data.draw(st.integers(1, partitions))
    owners = {
        partition: one.shard
        for one in settings_of(partitions, shards).all_shards()
        for partition in one.own_partitions
    }
    assert sorted(owners) == list(range(partitions))
    for one in settings_of(partitions + more, shards).all_shards():
        assert {owners.get(partition, one.shard) for partition in one.own_partitions} == {one.shard}
        assert all(one.has_partition(partition) for partition in one.own_partitions)
    ids = {one.transactional_id for one in settings_of(partitions, shards).all_shards()}
    assert len(ids) == shards


@given(HISTORIES, st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=40))
def test_the_position_of_a_log(
    history: list[dict[int, int]], shards: int, turns: list[tuple[int, int]]
) -> None:
    """The smallest of all shards: every row up to it is there, of the snapshot behind it some shard has not all;
    a reader that begins behind any snapshot finds every later row.
    """
    settings, topics = settings_of(6, shards).all_shards(), Topics()
    topics.markers += [
        CommitMarker(
            "u",
            0,
            "",
            "id",
            offsets=dict.fromkeys(one.own_partitions, (0, 0)),
            shard=one.shard,
            shards=shards,
        )
        for one in settings
    ]
    for turn, at_most in turns:
        topics.send(settings[turn % shards], history, at_most)
        parts = [topics.progress(one.shard) for one in settings]
        sent = [SentChanges(one.published, LogPosition("kafka", "t")) for one in parts]
        position = merge_sent(sent).reached
        for number, changed in enumerate(history[:position], start=1):
            assert {p: rows.count(number) for p, rows in topics.rows.items() if number in rows} == changed
        if position < len(history):
            assert any(one.published == position for one in parts)
        check_boundaries(topics, shards, position)
    while any(topics.progress(one.shard).published < len(history) for one in settings):
        for one in settings:
            topics.send(one, history, 2)
    for partition, rows in topics.rows.items():
        wanted = [n for n, changed in enumerate(history, start=1) for _ in range(changed.get(partition, 0))]
        assert rows == wanted, "once and in order"


@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.data())
def test_a_new_beginning_in_part(bases: list[int], data: st.DataObject) -> None:
    """A reset that died between shards: nothing before the latest beginning is a boundary, and none that a shard has
    not reached; once all have begun, that is where readers begin.
    """
    of = len(bases)
    shards = []
    for number, base in enumerate(bases):
        old = [CommitMarker("u", one, "me:1", "id", offsets={number: (0, one)}) for one in range(1, 5)]
        new = CommitMarker("u", base, "", "id", offsets={number: (4, 4)}, shard=number, shards=of)
        since = data.draw(st.integers(0, 3))
        later = [
            CommitMarker("u", base + n, "me:1", "id", offsets={number: (4, 4 + n)})
            for n in range(1, since + 1)
        ]
        shards.append([*old, new, *later])
    boundaries = merge_shards(shards, "id")
    reached = min(markers[-1].snapshot_id for markers in shards)
    assert all(max(bases) <= one.snapshot_id <= reached for one in boundaries)
    assert bool(boundaries) == (max(bases) <= reached)
    if boundaries:
        assert boundaries[0].begins
        assert {part for one in boundaries for part in one.place} == set(range(of))
