"""Markers, progress, hybrid start and fold: the pure half of the log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.commit_marker import (
    CommitMarker,
    decode_marker,
    encode_marker,
    plan_progress,
)
from tablestore_engine.log.kafka.partition_reader import read_span
from tablestore_engine.runtime.outside_world import Runtime

_IDS = st.integers(0, 2**31 - 1)
_MARKERS = st.builds(
    CommitMarker,
    table_uuid=st.text(),
    snapshot_id=st.integers(0, 2**62),
    commit=st.text(),
    topic_id=st.text(),
    schema_id=_IDS,
    chunk=_IDS,
    last=st.booleans(),
    counts=st.dictionaries(_IDS, _IDS),
    offsets=st.dictionaries(_IDS, st.tuples(_IDS, _IDS)),
)
_SHARDED = st.builds(replace, _MARKERS, shard=_IDS, shards=st.integers(2, 2**31))
_EARLY = st.builds(
    CommitMarker,
    table_uuid=st.text(),
    snapshot_id=_IDS,
    commit=st.text(),
    topic_id=st.text(),
    early=st.just(True),
    unchecked=st.dictionaries(_IDS, _IDS),
)
_REPAIRS = st.builds(replace, _EARLY, before=_IDS, since=st.dictionaries(_IDS, _IDS))


@given(marker=st.one_of(_MARKERS, _SHARDED, _EARLY, _REPAIRS))
def test_decode_gives_back_the_marker(marker: CommitMarker) -> None:
    """decode(encode(marker)) = marker, whatever the texts are."""
    key, value = encode_marker(marker)
    assert key == f"s-{marker.snapshot_id}".encode()
    assert decode_marker(value) == marker


@pytest.mark.parametrize("value", [b"", b"[]", b"null", b"{}", b'{"table":1}', b"\xff"])
def test_a_foreign_record_is_refused(value: bytes) -> None:
    """A record that we did not write is TS1719, not a guess."""
    with pytest.raises(FixRequest, match="TS1719"):
        decode_marker(value)


def test_progress_after_a_complete_snapshot() -> None:
    """P is the snapshot itself, and nothing of the next one is visible."""
    progress = plan_progress(
        CommitMarker("u", 7, "me:1", "topic", chunk=2, counts={0: 5}, offsets={0: (10, 15)})
    )
    assert (progress.published, progress.commit, progress.partial, progress.chunks) == (7, "me:1", {}, 0)
    assert progress.next_offsets == {0: 15}


def test_progress_inside_a_snapshot() -> None:
    """After a chunk that is not the last, P is the snapshot before, and the counts say what to leave out."""
    progress = plan_progress(CommitMarker("u", 7, "me:1", "topic", chunk=2, last=False, counts={0: 5, 1: 1}))
    assert (progress.published, progress.partial, progress.chunks) == (6, {0: 5, 1: 1}, 3)


class _NewTopic:
    """A consumer whose topic has no leader for the first `failures` questions."""

    def __init__(self, failures: int, code: int) -> None:
        self.failures, self.code = failures, code

    def get_watermark_offsets(self, _place: object, timeout: float) -> tuple[int, int]:
        self.failures -= 1
        if self.failures >= 0:
            raise KafkaException(KafkaError(self.code))
        return 3, 7


def _span(consumer: _NewTopic) -> tuple[int, int]:
    clock = iter(range(0, 10**6, 500))
    runtime = Runtime(now_ms=lambda: next(clock), sleep=lambda _: None)
    return read_span(consumer, TopicPartition("topic", 0), ClientConfig({}), runtime)


def test_a_new_topic_may_have_no_leader_yet() -> None:
    """Leader changes are waited out for a moment; a lasting one and any other error are raised."""
    assert _span(_NewTopic(3, KafkaError.NOT_LEADER_FOR_PARTITION)) == (3, 7)
    with pytest.raises(KafkaException):
        _span(_NewTopic(100, KafkaError.NOT_LEADER_FOR_PARTITION))
    with pytest.raises(KafkaException):
        _span(_NewTopic(1, KafkaError.TOPIC_AUTHORIZATION_FAILED))
