"""Where a table's log begins, and where it stands: claiming a topic, reading progress, starting anew.

CHANGE     the owner of a topic; two tables on one topic
Claim      the first marker says whose topic it is; it is written under a transactional id made from the TOPIC,
           so of two tables that claim at once one is fenced, reads again, and finds the other's marker. A publisher has
           another id: a claim that does not lie right behind what it was decided on is aborted, else it could land
           behind the marker of a snapshot that was published meanwhile, and set P back.
Doubt      a claim that was fenced, or whose commit the broker answered with an error that says nothing, is tried again:
           each try begins with an init, which decides the one before, and reads before it writes.
Take-over  a claim whose table was never made (killed, refused, dropped while the brokers were away) or lost the race
           for its name blocks nobody of the same place: as long as nothing is published, the table that lies there
           writes the claim again in its own name.
Order      everything that can be refused is refused before a topic is made: client settings by an init, topic
           settings by a dry run. Topics of a creation that fails half-way are deleted again.
Lost       no marker, but rows: the newest header `s` is the snapshot that was published last, and its `q` say how much
           of it. Publishing goes on inside that snapshot, sends what is missing and writes the marker again.
           No marker and no rows: refused, never guessed (TS1707).
"""

from __future__ import annotations

import contextlib
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import KafkaException

from tablestore_engine.errors import Fenced, FixRequest, KafkaRequestFailed, TablestoreError
from tablestore_engine.log.kafka.bounded_reader import find_tails
from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress, plan_progress
from tablestore_engine.log.kafka.hanging_transactions import (
    await_decided,
    check_covered,
    drop_hidden,
    find_undecided,
    settle_topics,
)
from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.kafka_topic import (
    LogTopics,
    TopicFacts,
    check_shards,
    check_topics,
    check_use,
    create_topics,
    delete_topics,
    find_settled_topics,
    reach_partitions,
)
from tablestore_engine.log.kafka.log_base import Claim, is_left_claim, newest_marker, write_base
from tablestore_engine.log.kafka.log_errors import translate
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.topic_identity import check_topic_id

_CLAIMS = 6


@dataclass(frozen=True)
class LogBeginning:
    """`is_ours`: the engine made the data topic, now or for a claim that was taken over; it may go with the table.

    `dropped`: rows of a transaction that never ended, which no reader has seen (a reset alone).
    """

    topic_id: str
    is_ours: bool
    dropped: int = 0


def prepare_log(log: KafkaLog, *, after_snapshot: int = 0) -> LogBeginning:
    """Make and claim the topics; repeating it changes nothing. Raises TS1702-TS1706, TS1713, TS1717, TS1720, TS1721,
    TS1750-TS1753.

    `after_snapshot`: snapshots up to this one count as published (a table that gets its log later).
    """
    log = log.connected()
    settings = log.settings
    _try_client(settings)
    was_absent = find_settled_topics(log).data is None
    topics, created = create_topics(log)
    try:
        check_use(log, topics)
    except TablestoreError:
        with contextlib.suppress(TablestoreError, KafkaException):  # what this call made, nobody has claimed
            if newest_marker(log) is None:
                delete_topics(log, created, topics)
        raise
    assert topics.data is not None
    attempts = 0
    while True:
        attempts += 1
        try:
            is_new = settings.topic in created
            is_ours = _claim(log, topics.data, after_snapshot, is_new=is_new, is_ours=was_absent)
            return LogBeginning(topics.data.topic_id, is_ours)
        except KafkaException as error:
            final = translate(error, settings, doing="claiming the topic")
            if attempts == _CLAIMS or not isinstance(final, Fenced | KafkaRequestFailed):
                raise final from error
            log.runtime.sleep(0.1 * (1 + log.runtime.random.random()))


def _try_client(settings: LogSettings) -> None:
    """Settings that only an init shows to be wrong. Raises FixRequest TS1721, TS1713; RetryError."""
    producer = LogProducer(settings, settings.transactional_id)
    try:
        producer.init()
    except KafkaException as error:
        raise translate(error, settings, doing="trying the settings", reasons=producer.reasons) from error


def reset_log(log: KafkaLog, *, after_snapshot: int) -> LogBeginning:
    """Whatever is in the topics stays; publishing goes on behind `after_snapshot`. A running publisher is fenced.

    Every shard begins anew in a transaction of its own: one that fails in between is done by asking again.
    """
    log = log.connected()
    settings = log.settings
    topics, created = create_topics(log)
    check_use(log, topics)
    assert topics.data is not None
    dropped = 0
    for shard in log.all_shards():
        producer = LogProducer(shard.settings, shard.settings.transactional_id)
        try:
            dropped += _reset_shard(shard, producer, topics.data, after_snapshot)
        except KafkaException as error:
            doing = "starting the log anew"
            raise translate(error, settings, doing=doing, reasons=producer.reasons) from error
    return LogBeginning(topics.data.topic_id, settings.topic in created, dropped)


def _reset_shard(log: KafkaLog, producer: LogProducer, data: TopicFacts, after_snapshot: int) -> int:
    """How many rows that no reader had seen are dropped."""
    producer.init()
    newest = newest_marker(log)
    if newest is not None:
        check_owner(log.settings, newest)
    dropped = drop_hidden(log, producer)
    claim = Claim(over=newest)
    write_base(log, producer, data, after_snapshot=after_snapshot, claim=claim)
    return dropped


def drop_log(log: KafkaLog) -> None:
    """Delete the topics that are still this table's; missing ones are fine. Raises what publishing would."""
    log = log.connected()
    settings = log.settings
    topics = find_settled_topics(log)
    try:
        newest = newest_marker(log) if topics.marker is not None else None
    except KafkaException as error:
        raise translate(error, settings, doing="looking whose topics they are") from error
    delete_topics(log, plan_drop(settings, topics, newest), topics)


def plan_drop(settings: LogSettings, topics: LogTopics, newest: CommitMarker | None) -> tuple[str, ...]:
    """What goes with the table. A topic of the same name that somebody else made meanwhile, or that no marker calls
    this table's any more, is not ours to delete; what was made for a table stays with it until then.
    """
    if newest is None:
        return () if topics.data is not None or topics.marker is None else (settings.marker_topic,)
    if newest.table_uuid != settings.table_uuid and not is_left_claim(settings, newest):
        return ()
    if topics.data is not None and topics.data.topic_id == newest.topic_id:
        return settings.topic, settings.marker_topic
    return (settings.marker_topic,)


def open_progress(log: KafkaLog, producer: LogProducer) -> tuple[Progress, CommitMarker | None]:
    """Fence older publishers, let the topics be decided, then P and the newest marker (None when it was lost).

    Raises KafkaException, NotFound TS1705, RetryError TS1730, FixRequest TS1703, TS1704, TS1706, TS1707, TS1731.
    """
    producer.init()
    topics, settings = _reached_topics(log), log.settings
    check_shards(settings, topics)
    if (
        topics.data is not None and topics.data.partitions == settings.partitions
    ):  # else read_progress refuses
        markers = [] if topics.marker is None else [log.marker_place]
        places = [*markers, *log.data_places]
        if find_undecided(log, places):
            read_progress(log)
            settle_topics(log, producer, lambda: read_progress(log)[1])
    progress, newest = read_progress(log)
    if newest is not None and topics.data is not None and is_left_claim(settings, newest):
        claim = Claim(is_ours=newest.made, over=newest)
        write_base(log, producer, topics.data, after_snapshot=0, claim=claim)
    return progress, newest


def _reached_topics(log: KafkaLog) -> LogTopics:
    """The topics; the data topic of this very table has a partition for each bucket, also when it has got more."""
    settings = log.settings
    topics = find_settled_topics(log)
    if topics.data is None or topics.marker is None or topics.data.partitions >= settings.partitions:
        return topics
    newest = newest_marker(log)
    if newest is None or newest.table_uuid != settings.table_uuid or newest.topic_id != topics.data.topic_id:
        return topics
    reach_partitions(log)
    return find_settled_topics(log)


def read_progress(log: KafkaLog) -> tuple[Progress, CommitMarker | None]:
    """P and the newest marker (None when it was lost). REQUIRES that the publisher's init is done: only then is the
    last transaction decided. Raises KafkaException, NotFound TS1705, FixRequest TS1703, TS1704, TS1706, TS1707, TS1731.
    """
    settings, topics = log.settings, find_settled_topics(log)
    check_shards(settings, topics)
    newest = newest_marker(log) if topics.marker is not None else None
    if newest is not None:
        check_owner(settings, newest)
        check_topics(settings, topics, newest.topic_id)
        progress = plan_progress(newest)
        check_covered(log, progress, lambda: newest_marker(log) != newest)
        return progress, newest
    check_topics(settings, topics, topics.data.topic_id if topics.data is not None else "")
    assert topics.data is not None
    progress = _progress_from_tails(log, topics.data)
    create_topics(log)
    return progress, None


def check_owner(settings: LogSettings, newest: CommitMarker) -> None:
    """One topic, one table; the claim of a table that never came to this place may be taken over. Raises TS1704."""
    if newest.table_uuid != settings.table_uuid and not is_left_claim(settings, newest):
        raise _taken(settings, f"its markers belong to the table with uuid {newest.table_uuid}")


def _taken(settings: LogSettings, why: str) -> FixRequest:
    return FixRequest(
        "TS1704",
        f"topic {settings.topic} cannot be the log of {settings.table}",
        why=why,
        fix=f"choose another 'kafka.topic'. If the messages are not needed, delete {settings.topic} and "
        f"{settings.marker_topic}: `tablestore log drop` does it for a dropped table, else use the tools of Kafka",
    )


def _claim(log: KafkaLog, data: TopicFacts, after_snapshot: int, *, is_new: bool, is_ours: bool) -> bool:
    """Write the first marker unless there is one; the last markers decide. Whether the engine made the topic.

    Raises KafkaException, TS1704, TS1706, TS1730.
    """
    settings, shards = log.settings, log.all_shards()
    producer = LogProducer(settings, f"ts-claim-{settings.topic}")
    producer.init()
    # a second base marker behind one that is only hidden would set P back
    places = [shard.marker_place for shard in shards]
    await_decided(log, places)
    ends = log.find_ends(places)
    newest = [newest_marker(shard) for shard in shards]
    is_ours = is_ours or any(one is not None and one.made for one in newest)
    owners = [one for one in newest if one is not None and not is_left_claim(settings, one)]
    for owner in owners:
        check_owner(settings, owner)
        check_topic_id(settings, data.topic_id, owner.topic_id)
    if owners:
        return is_ours
    if not is_new and any(_has_rows(shard) for shard in shards):
        raise _taken(settings, "it holds rows, but no marker says that they are this table's")
    behind = {shard.settings.shard: ends[shard.marker_place] for shard in shards}
    claim = Claim(is_ours, behind, over=newest[0])
    write_base(log, producer, data, after_snapshot=after_snapshot, claim=claim)
    for shard, before in zip(shards, newest, strict=True):
        _await_marker(shard, before=before)
    return is_ours


def _await_marker(log: KafkaLog, *, before: CommitMarker | None) -> None:
    """A commit is answered a moment before readers see it, and the publisher has another transactional id: without
    waiting it could find no marker yet. What does not appear in time is found (or missed) by the next command.
    """
    deadline = log.deadline_ms()
    while newest_marker(log) == before and log.runtime.now_ms() < deadline:
        log.runtime.sleep(0.01)


def _has_rows(log: KafkaLog) -> bool:
    with closing(make_consumer(log.settings.client)) as consumer:
        tails = find_tails(log, consumer)
    return any(following > 0 for following, _ in tails.values())


def _progress_from_tails(log: KafkaLog, data: TopicFacts) -> Progress:
    settings = log.settings
    with closing(make_consumer(settings.client)) as consumer:
        tails = find_tails(log, consumer)
    known = [message for _, message in tails.values() if message is not None]
    if (
        not known or settings.is_eventual
    ):  # most rows of an eventual log do not say of which snapshot they are
        raise FixRequest(
            "TS1707",
            f"how far {settings.table} is published is unknown",
            why=f"topic {settings.marker_topic} has no marker and topic {settings.topic} no row that names a snapshot",
            fix="state where to resume with `tablestore publish --reset N`; it never guesses",
        )
    newest = max(message.snapshot_id or 0 for message in known)
    return Progress(
        published=newest - 1,
        commit=None,
        topic_id=data.topic_id,
        next_offsets={partition: following for partition, (following, _) in tails.items()},
        partial={m.partition: (m.sequence or 0) + 1 for m in known if m.snapshot_id == newest},
    )
