"""Brokers that go away and answers that are lost: bounded in time, read back, never twice."""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from integration_tests.kafka.source import Source, expected, new_table, published, settings_of, with_timeout
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import (
    EngineBug,
    OutcomeUnknown,
    RetryError,
    TablestoreError,
)
from tablestore_engine.log.changes import SnapshotChanges
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.log_lifecycle import prepare_log
from tablestore_engine.log.kafka.publisher import Publisher
from tests.doses import cases

HANG_SECONDS = 120  # with settings that are not read it takes longer


@pytest.mark.nightly  # by day test_stream_sink.py: without the broker; test_claims.py: a drop
def test_broker_down(tmp_path: Path) -> None:
    """Nobody listens: prepare and publish give TS1702 within seconds and name the address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{taken.getsockname()[1]}"
        source = Source()
        source.grow(1)
        settings = with_timeout(settings_of(source, url), 2.0)
        started = time.monotonic()
        for action in (
            lambda: prepare_log(KafkaLog(settings)),
            lambda: Publisher(KafkaLog(settings)).publish_pending(1, source.read),
        ):
            with pytest.raises(RetryError, match="TS1702") as caught:
                action()
            assert url in str(caught.value)
        assert time.monotonic() - started < HANG_SECONDS


@pytest.mark.nightly
def test_restart_of_the_broker(tmp_path: Path) -> None:
    """A broker killed in the middle and started again: the publisher waits, opens anew, and each row is there once."""
    broker = start_broker(tmp_path)
    try:
        source, settings = new_table(broker, 4)
        settings = with_timeout(settings, 30.0)
        restarter = threading.Thread(target=start_broker, args=(tmp_path,))

        def read(snapshot_id: int) -> SnapshotChanges | None:
            if snapshot_id == 3 and restarter.ident is None:
                os.kill(broker.pid, signal.SIGKILL)
                os.waitpid(broker.pid, 0)
                restarter.start()
            return source.read(snapshot_id)

        with Publisher(KafkaLog(settings)) as publisher:
            assert publisher.publish_pending(4, read).published == 4
        restarter.join()
        assert published(source, settings) == expected(source)
    finally:
        stop_broker(tmp_path)


@pytest.mark.nightly  # by day test_unknown_outcome_is_said
def test_broker_stays_away_in_the_middle(tmp_path: Path) -> None:
    """A broker that dies for good in the middle gives one error in bounded time; when it is back, all is published."""
    broker = start_broker(tmp_path)
    try:
        source, settings = new_table(broker, 4)
        settings = with_timeout(settings, 3.0)

        def read(snapshot_id: int) -> SnapshotChanges | None:
            if snapshot_id == 3:
                stop_broker(tmp_path)
            return source.read(snapshot_id)

        started = time.monotonic()
        with (
            Publisher(KafkaLog(settings)) as publisher,
            pytest.raises(TablestoreError, match=r"TS1702|TS1712"),
        ):
            publisher.publish_pending(4, read)
        assert time.monotonic() - started < HANG_SECONDS
        again = start_broker(tmp_path)
        assert again.url == broker.url
        with Publisher(KafkaLog(settings)) as publisher:
            publisher.publish_pending(4, source.read)
        assert published(source, settings) == expected(source)
    finally:
        stop_broker(tmp_path)


@pytest.mark.nightly
def test_a_broker_without_room(tmp_path: Path) -> None:
    """Its files may grow no more in the middle of a publication: an error in bounded time, nothing is seen of what it
    cut off; with room again everything is published, once.
    """
    broker = start_broker(tmp_path)
    try:
        source, settings = new_table(broker, 3)
        settings = with_timeout(settings, 3.0)
        source.pad = 2_000

        def read(snapshot_id: int) -> SnapshotChanges | None:
            if snapshot_id == 2:
                resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
            return source.read(snapshot_id)

        with Publisher(KafkaLog(settings)) as publisher, pytest.raises(TablestoreError, match=r"TS17\d\d"):
            publisher.publish_pending(3, read)
        stop_broker(tmp_path)
        start_broker(tmp_path)
        seen = published(source, settings)
        whole = expected(source)
        for partition, rows in seen.items():
            assert rows == [one for one in whole[partition] if one[0] == 1][: len(rows)]
        with Publisher(KafkaLog(settings)) as publisher:
            assert publisher.publish_pending(3, source.read).published == 3
        assert published(source, settings) == whole
    finally:
        stop_broker(tmp_path)


@pytest.mark.parametrize("is_committed", cases([True, False], 1))
def test_lost_answer_of_a_commit(
    broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """A commit whose answer is lost is read back: counted when it happened, repeated when not, never twice."""
    source, settings = new_table(broker, 3)
    commit, lost = LogProducer.commit, []

    def lose_second_answer(self: LogProducer) -> None:
        lost.append(1)
        if len(lost) != 2:
            commit(self)
            return
        if is_committed:
            commit(self)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the answer was lost"))

    monkeypatch.setattr(LogProducer, "commit", lose_second_answer)
    with Publisher(KafkaLog(settings)) as publisher:
        report = publisher.publish_pending(3, source.read)
    assert (report.snapshots, report.rows, report.published) == ((1, 2, 3), 24, 3)
    assert published(source, settings) == expected(source)


def test_unknown_outcome_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker dies while a commit is under way and stays away: TS1712, and the next run finds out."""
    broker = start_broker(tmp_path)
    try:
        source, settings = new_table(broker, 2)
        settings = with_timeout(settings, 2.0)
        commit = LogProducer.commit

        def stop_first(self: LogProducer) -> None:
            stop_broker(tmp_path)
            commit(self)

        with monkeypatch.context() as patched, Publisher(KafkaLog(settings)) as publisher:
            patched.setattr(LogProducer, "commit", stop_first)
            with pytest.raises(OutcomeUnknown, match="TS1712"):
                publisher.publish_pending(2, source.read)
        start_broker(tmp_path)
        with Publisher(KafkaLog(settings)) as publisher:
            assert publisher.publish_pending(2, source.read).published == 2
        assert published(source, settings) == expected(source)
    finally:
        stop_broker(tmp_path)


def test_a_missing_delivery_report_stops_the_commit(
    broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are counted against rows: one too few is TS1714 before the commit, and nothing is visible."""
    source, settings = new_table(broker, 1)
    on_row, seen = LogProducer._on_row, []

    def forget_third(self: LogProducer, error: KafkaError | None, message: Message) -> None:
        seen.append(1)
        if len(seen) != 3:
            on_row(self, error, message)

    with monkeypatch.context() as patched, Publisher(KafkaLog(settings)) as publisher:
        patched.setattr(LogProducer, "_on_row", forget_third)
        with pytest.raises(EngineBug, match="TS1714"):
            publisher.publish_pending(1, source.read)
    assert published(source, settings) == {0: [], 1: []}
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(1, source.read)
    assert published(source, settings) == expected(source)
