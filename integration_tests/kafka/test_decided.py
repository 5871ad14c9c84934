"""Transactions whose end the broker lost: P is never read past them, and no row comes twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from integration_tests.kafka.source import Source, expected, new_table, published, with_timeout
from integration_tests.kafka.topic_reads import read_log_markers
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.kafka.commit_marker import CommitMarker, encode_marker
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.log_lifecycle import prepare_log, reset_log
from tablestore_engine.log.kafka.message_headers import RowHeaders
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import encode_rows, plan_envelope
from tablestore_engine.runtime.outside_world import Runtime
from tests.doses import cases


def open_transaction(
    source: Source, settings: LogSettings, name: str, *, marker: bool = True, buckets: Sequence[int] = (0, 1)
) -> LogProducer:
    """Rows (and marker) of snapshot 1, sent but not ended; of another id, so that no init ends them."""
    producer = LogProducer(settings, name)
    producer.init()
    producer.begin()
    changes = source.read(1)
    assert changes is not None
    envelope = plan_envelope(changes.schema, settings.mode)
    for batch in changes.batches:
        if batch.bucket not in buckets:
            continue
        rows = encode_rows(batch.rows, envelope)
        headers = RowHeaders(1, changes.commit)
        producer.send(rows, batch.bucket, headers, span=range(len(rows)), first=0)
    offsets = dict(producer.settle())
    if marker:
        topic_id = read_log_markers(KafkaLog(settings))[-1].topic_id
        record = CommitMarker(settings.table_uuid, 1, changes.commit, topic_id, offsets=offsets)
        producer.send_marker(*encode_marker(record))
    return producer


def on_first_sleep(action: Callable[[], object]) -> Runtime:
    """A runtime whose first sleep does something: the publisher is waiting now."""
    todo, real = [action], Runtime().sleep

    def sleep(seconds: float) -> None:
        if todo:
            todo.pop()()
        real(seconds)

    return Runtime(sleep=sleep)


def test_an_end_that_comes_late_is_waited_for(broker: BrokerInfo) -> None:
    """Snapshot 1 is decided only while the publisher starts: it reads P behind that, and sends snapshot 2 alone."""
    source, settings = new_table(broker, 2)
    late = open_transaction(source, settings, f"late-{source.uuid}")
    with Publisher(KafkaLog(settings, on_first_sleep(late.commit))) as publisher:
        assert publisher.publish_pending(2, source.read).snapshots == (2,)
    assert published(source, settings) == expected(source)


def test_an_end_that_never_comes_is_an_error(broker: BrokerInfo) -> None:
    """A foreign transaction stays open: TS1730 names the partitions, nothing is sent; once it ends, all is well."""
    source, settings = new_table(broker, 2)
    foreign = open_transaction(source, settings, f"foreign-{source.uuid}")
    quick = with_timeout(settings, 1.0)
    with Publisher(KafkaLog(quick)) as publisher, pytest.raises(RetryError, match="TS1730") as caught:
        publisher.publish_pending(2, source.read)
    assert f"{settings.marker_topic}[0]" in str(caught.value)
    foreign.commit()
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(2, source.read)
    assert published(source, settings) == expected(source)


def test_a_claim_waits_for_a_marker_that_is_not_decided(broker: BrokerInfo) -> None:
    """A second first writer must not write a base marker behind one that is only hidden: P would go back to 0."""
    source, settings = new_table(broker, 1)
    late = open_transaction(source, settings, f"late-{source.uuid}")
    prepare_log(KafkaLog(settings, on_first_sleep(late.commit)))
    assert [marker.snapshot_id for marker in read_log_markers(KafkaLog(settings))] == [0, 1]


def test_visible_rows_without_a_marker_are_not_sent_again(broker: BrokerInfo) -> None:
    """The end of the marker partition alone was lost: rows of snapshot 1 are visible, P says 0. TS1731, no guess."""
    source, settings = new_table(broker, 2)
    open_transaction(source, settings, f"half-{source.uuid}", marker=False).commit()
    with Publisher(KafkaLog(settings)) as publisher, pytest.raises(FixRequest, match="TS1731") as caught:
        publisher.publish_pending(2, source.read)
    assert "--reset 1" in str(caught.value)
    assert published(source, settings) == expected(source, range(1, 2))


def test_rows_of_another_publisher_are_no_contradiction(broker: BrokerInfo) -> None:
    """Partitions show the end of one transaction one after the other: rows of snapshot 1 first, their marker later."""
    source, settings = new_table(broker, 2)
    rows = open_transaction(source, settings, f"rows-{source.uuid}", marker=False)
    offsets, topic_id = dict(rows.settle()), read_log_markers(KafkaLog(settings))[-1].topic_id
    rows.commit()
    late = LogProducer(settings, f"marker-{source.uuid}")
    late.init()
    late.begin()
    commit = source.read(1)
    assert commit is not None
    late.send_marker(
        *encode_marker(CommitMarker(settings.table_uuid, 1, commit.commit, topic_id, offsets=offsets))
    )
    with Publisher(KafkaLog(settings, on_first_sleep(late.commit))) as publisher:
        assert publisher.publish_pending(2, source.read).snapshots == (2,)
    assert published(source, settings) == expected(source)


def test_what_the_broker_left_open_is_aborted_and_sent_again(
    broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leftovers of our own id that no init ends: they are aborted together, and their snapshot is sent once more.

    Only a killed broker makes them (soak/broker_kills.py). Here a foreign transaction stands for them; the step that
    would abort ours ends it, and must have been given every partition that is undecided.
    """
    source, settings = new_table(broker, 2)
    left = open_transaction(source, settings, f"left-{source.uuid}")
    abort, asked = LogProducer.abort_leftovers, []

    def abort_both(self: LogProducer, places: list[tuple[str, int]]) -> None:
        asked.extend(places)
        left.abandon(abort=True)
        abort(self, places)

    monkeypatch.setattr(LogProducer, "abort_leftovers", abort_both)
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(2, source.read).snapshots == (1, 2)
    assert asked == [(settings.topic, 0), (settings.topic, 1), (settings.marker_topic, 0)]
    assert published(source, settings) == expected(source)


@pytest.mark.parametrize("dies", cases([False, True], 1), ids=["goes on", "dies before the abort"])
def test_rows_that_a_marker_counts_and_nobody_sees_are_not_dropped(
    dies: bool, broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of one data partition alone was lost: its rows come once, whenever the one who drops them dies.

    Only a killed broker makes such leftovers of our own id; a foreign transaction stands for them, as above.
    """
    source, settings = new_table(broker, 2)
    left = open_transaction(source, settings, f"left-{source.uuid}", marker=False, buckets=(1,))
    seen = open_transaction(source, settings, f"seen-{source.uuid}", marker=False, buckets=(0,))
    changes = source.read(1)
    assert changes is not None
    offsets = {**left.settle(), **seen.settle()}
    counts = {partition: following - first for partition, (first, following) in offsets.items()}
    topic_id = read_log_markers(KafkaLog(settings))[-1].topic_id
    marker = CommitMarker(settings.table_uuid, 1, changes.commit, topic_id, counts=counts, offsets=offsets)
    seen.send_marker(*encode_marker(marker))
    seen.commit()
    abort, asked, lives = LogProducer.abort_leftovers, [], [not dies]

    def abort_both(self: LogProducer, places: list[tuple[str, int]]) -> None:
        asked.append(places)
        if not lives[0]:
            lives[0] = True
            raise KeyboardInterrupt
        left.abandon(abort=True)
        abort(self, places)

    monkeypatch.setattr(LogProducer, "abort_leftovers", abort_both)
    if dies:
        with Publisher(KafkaLog(settings)) as publisher, pytest.raises(KeyboardInterrupt):
            publisher.publish_pending(2, source.read)
    with Publisher(KafkaLog(settings)) as publisher:
        report = publisher.publish_pending(2, source.read)
    assert asked == [[(settings.topic, 1)]] * (1 + dies)
    assert report.snapshots == (1, 2)
    assert published(source, settings) == expected(source)


def test_nothing_is_committed_while_a_late_request_lies_beside_it(
    broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of snapshot 1 arrive once more in the middle of their transaction: it is aborted, and sent again.

    Of our own id the commit would show both copies; a foreign transaction stands for the late request, as above.
    """
    source, settings = new_table(broker, 2)
    abort, late, healed = LogProducer.abort_leftovers, [], []

    def arrive_late(point: str) -> None:
        if point == "log.rows" and not late:
            late.append(open_transaction(source, settings, f"late-{source.uuid}", marker=False))

    def abort_both(self: LogProducer, places: list[tuple[str, int]]) -> None:
        healed.extend(places)
        late[0].abandon(abort=True)
        abort(self, places)

    monkeypatch.setattr(LogProducer, "abort_leftovers", abort_both)
    with Publisher(KafkaLog(settings, Runtime(on_crash_point=arrive_late))) as publisher:
        assert publisher.publish_pending(2, source.read).snapshots == (1, 2)
    assert healed == [(settings.topic, 0), (settings.topic, 1)]
    assert published(source, settings) == expected(source)


def test_a_new_beginning_says_how_much_it_drops(broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that no reader has seen are counted, the marker beside them is not; without any it drops none.

    Only a killed broker makes them of our own id; a foreign transaction stands for them, as above.
    """
    source, settings = new_table(broker, 2)
    left = open_transaction(source, settings, f"left-{source.uuid}")
    abort = LogProducer.abort_leftovers

    def abort_both(self: LogProducer, places: list[tuple[str, int]]) -> None:
        left.abandon(abort=True)
        abort(self, places)

    monkeypatch.setattr(LogProducer, "abort_leftovers", abort_both)
    hidden = sum(len(rows) for rows in expected(source, range(1, 2)).values())
    assert reset_log(KafkaLog(settings), after_snapshot=0).dropped == hidden > 0
    assert reset_log(KafkaLog(settings), after_snapshot=0).dropped == 0
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(2, source.read)
    assert published(source, settings) == expected(source)
