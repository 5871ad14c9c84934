"""Is everything in the topics decided? Asked before P is read, for a broker can lose the end of a transaction.

CHANGE     a transaction without an end
Cause      A broker that is killed between deciding a transaction and writing its control records may, started again,
           call the transaction complete without ever writing them. init_transactions() succeeds, the rows stay behind
           the LSO, P reads one too low; and the next commit of the same producer id ends BOTH copies, because a control
           record ends whatever its producer id has open in the partition. (Seen 2 in 30 kills; docs/log-system.md)
Cure       no reader has seen rows behind the LSO, so they may be dropped: a new transaction of the same id touches the
           partitions and is aborted; its control records end the leftovers too, and P says what is to be sent again.
           The marker's own partition may have its end while a data partition has lost it: then P counts rows that
           nobody sees, and they are taken out of the marker before they are aborted. (Seen 80 lost in 50 kills.)
INVARIANT  the committed end is asked first, the log end after it: equal means decided, whatever happened between.
INVARIANT  a transaction is begun only when readers see the one before (transactional_publish): its abort would take
           hidden rows of that one with it, and only the newest marker can be set right.
INVARIANT  nothing is committed while something else is undecided in its partitions: it would come with it.
INVARIANT  nothing is aborted while a partition shows rows that no marker covers: half of that transaction is
           visible, and only a person can say what readers have done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.kafka.bounded_reader import to_message
from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress, encode_marker
from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.partition_ends import Place
from tablestore_engine.log.kafka.settings import LogSettings

_PATIENCE_SECONDS = 1.0
_SLICE = 10_000


def find_undecided(log: KafkaLog, places: Iterable[Place]) -> Mapping[Place, tuple[int, int]]:
    """{place: (LSO, log end)} of those that differ. Raises KafkaException."""
    wanted = tuple(places)
    committed = log.find_ends(wanted)
    ends = log.find_ends(wanted, IsolationLevel.READ_UNCOMMITTED)
    return {place: (committed[place], end) for place, end in ends.items() if committed[place] < end}


def await_decided(log: KafkaLog, places: Iterable[Place]) -> None:
    """Wait for other transactions to end, ClientConfig.delivery_s at most. Raises RetryError TS1730, KafkaException."""
    undecided = _wait(log, places, seconds=log.settings.client.delivery_s)
    if undecided:
        text = ", ".join(
            f"{topic}[{partition}] from {lso} to {end}"
            for (topic, partition), (lso, end) in undecided.items()
        )
        raise RetryError(
            "TS1730",
            f"how far {log.settings.table} is published is unknown: records of its topics are undecided",
            why=f"a transaction has neither ended nor been aborted: {text}; the broker may have lost its end",
            fix="publish again in a moment; if it stays so, let an administrator end it "
            "(kafka-transactions.sh find-hanging, then abort); nothing is guessed and nothing was sent",
        )


def settle_topics(
    log: KafkaLog, producer: LogProducer, read_newest: Callable[[], CommitMarker | None]
) -> None:
    """Behind the producer's init: every record of both topics is decided. Raises TS1730, TS1731, KafkaException.

    `read_newest`: the marker that is visible now, after check_covered. What it counts and what no reader sees is
    taken out of it before it is aborted: a publisher that dies in between leaves a marker that says what is missing.
    """
    topic, places = log.settings.topic, [log.marker_place, *log.data_places]
    undecided = _wait(log, places, seconds=_PATIENCE_SECONDS)
    if not undecided:
        return
    newest = read_newest()
    hidden = {} if newest is None else _find_hidden(log, newest, undecided)
    rest = sorted(place for place in undecided if place[1] not in hidden or place[0] != topic)
    if newest is not None and hidden:
        if rest:
            producer.abort_leftovers(rest)
        producer.begin()
        producer.send_marker(*encode_marker(take_out(newest, hidden)))
        producer.commit()
        await_visible(log, {log.marker_place: producer.marker_end})
        rest = sorted((topic, partition) for partition in hidden)
    producer.abort_leftovers(rest)
    await_decided(log, places)


def drop_hidden(log: KafkaLog, producer: LogProducer) -> int:
    """Behind the producer's init, when the user says where the log goes on: how many rows of ours were dropped that no
    reader has seen. Raises RetryError TS1730, KafkaException.
    """
    places = [log.marker_place, *log.data_places]
    undecided = _wait(log, places, seconds=_PATIENCE_SECONDS)
    rows = sum(
        _count_ours(log, TopicPartition(*place), span)
        for place, span in undecided.items()
        if place != log.marker_place
    )
    if undecided:
        producer.abort_leftovers(sorted(undecided))
        await_decided(log, places)
    return rows


def take_out(newest: CommitMarker, hidden: Mapping[int, tuple[int, int]]) -> CommitMarker:
    """The marker without the messages of its snapshot from number `first` on that lie from `offset` on.

    `hidden`: {partition: (first, offset)}. Its snapshot is visible in part then, as after a chunk. Of a marker with
    repairs P is again what it was before, with nothing of the next snapshot, and rows are looked for from there on.
    """
    if newest.before is not None:
        ends = {
            **newest.offsets,
            **{partition: (offset, offset) for partition, (_, offset) in hidden.items()},
        }
        return replace(
            newest,
            snapshot_id=newest.before + 1,
            commit="",
            last=False,
            counts={},
            chunk=0,
            offsets={partition: (end, end) for partition, (_, end) in ends.items()},
            unchecked={one: at for one, at in newest.since.items() if at < ends.get(one, (0, 0))[1]},
            before=None,
            since={},
        )
    counts = {partition: first for partition, (first, _) in hidden.items()}
    offsets = {partition: (offset, offset) for partition, (_, offset) in hidden.items()}
    return replace(
        newest, last=False, counts={**newest.counts, **counts}, offsets={**newest.offsets, **offsets}
    )


def _find_hidden(
    log: KafkaLog, newest: CommitMarker, undecided: Mapping[Place, tuple[int, int]]
) -> Mapping[int, tuple[int, int]]:
    """{partition: (number of the first hidden message, its offset)} where the marker counts what is undecided.

    The publisher goes on only when readers see a transaction, so what is hidden is of the newest marker's snapshot.
    """
    hidden: dict[int, tuple[int, int]] = {}
    for (topic, partition), (lso, _) in undecided.items():
        if topic != log.settings.topic:
            continue
        place = TopicPartition(topic, partition)
        with closing(make_consumer(log.settings.client, isolation="read_uncommitted")) as consumer:
            first = log.read_range(consumer, place, (lso, lso + 1))
        message = to_message(first[0]) if first else None
        if message is None or message.snapshot_id is None or message.sequence is None:
            continue
        if message.snapshot_id == newest.snapshot_id and message.sequence < newest.counts.get(partition, 0):
            hidden[partition] = (message.sequence, lso)
        elif message.snapshot_id < newest.snapshot_id:
            raise _contradiction(
                log.settings,
                f"{topic}[{partition}] hides rows of snapshot {message.snapshot_id}, the newest marker says that the "
                f"log ends at {newest.snapshot_id}",
                f"`tablestore publish --reset {message.snapshot_id - 1}` sends the snapshots from "
                f"{message.snapshot_id} on once more",
            )
    return hidden


def check_alone(log: KafkaLog, spans: Mapping[int, tuple[int, int]], arrived: Mapping[int, int]) -> None:
    """Before a commit: no other rows of ours are undecided in its partitions. Raises RetryError TS1730, KafkaException.

    `spans`: {partition: (first, next)} of the rows that were acknowledged, `arrived` their number. The commit's control
    records would show readers whatever else of this producer id is undecided there: a request of a producer that was
    given up, which the broker took late, or rows whose end it lost.
    """
    places = {(log.settings.topic, partition): span for partition, span in spans.items()}
    undecided = find_undecided(log, places)
    for (topic, partition), (first, following) in places.items():
        span = undecided.get((topic, partition), (first, following))
        if span == (first, following) and following - first == arrived[partition]:
            continue
        found = _count_ours(log, TopicPartition(topic, partition), span)
        if found != arrived[partition]:
            raise RetryError(
                "TS1730",
                f"how far {log.settings.table} is published is unknown: records of its topics are undecided",
                why=f"{topic}[{partition}] has {found} undecided rows from {span[0]} to {span[1]}, this transaction "
                f"has written {arrived[partition]}: a request of an earlier one came late",
                fix="publish again: the transaction is aborted with the messages around it, and sent once more",
            )


def _count_ours(log: KafkaLog, place: TopicPartition, span: tuple[int, int]) -> int:
    """Messages with our headers, whether they are decided or not."""
    ids = _snapshot_ids(log, place, span, isolation="read_uncommitted")
    return sum(one is not None for one in ids)


def await_visible(log: KafkaLog, following: Mapping[Place, int]) -> None:
    """Wait until read_committed readers see each place up to its `following` offset. Raises KafkaException.

    A commit is answered when it is decided; its control records reach the partitions a moment later. A broker that
    is killed in this moment may lose them: running into the time-out is an error.
    """
    deadline = log.deadline_ms()
    waiting = {place: end for place, end in following.items() if end > 0}
    while waiting:
        seen = log.find_ends(waiting)
        waiting = {place: end for place, end in waiting.items() if seen[place] < end}
        if waiting and log.runtime.now_ms() > deadline:
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, "a committed transaction stays invisible to readers")
            )
        if waiting:
            log.runtime.sleep(0.005)


def check_covered(log: KafkaLog, progress: Progress, has_moved: Callable[[], bool]) -> None:
    """Raises FixRequest TS1731 for a visible row of a snapshot behind P. Reads only what lies behind the marker.

    `has_moved`: whether there are newer markers than those that P was read from. Then the rows are those of another
    publisher, which has fenced this one meanwhile: KafkaException with a code of FENCED.
    """
    found = _find_uncovered(log, progress)
    if found is None:
        return
    (topic, partition), snapshot_id = found
    if _is_covered_later(log, has_moved):
        raise KafkaException(KafkaError(KafkaError._FENCED, "another publisher wrote meanwhile"))
    raise _contradiction(
        log.settings,
        f"{topic}[{partition}] shows rows of snapshot {snapshot_id}, the newest marker says that the log ends at "
        f"{progress.published}",
        f"look at the rows of snapshot {snapshot_id} in the topic; if they are complete go on with "
        f"`tablestore publish --reset {snapshot_id}`, else with `--reset {progress.published}`, which sends them again",
    )


def _contradiction(settings: LogSettings, why: str, fix: str) -> FixRequest:
    return FixRequest(
        "TS1731",
        f"rows and markers of {settings.table} contradict each other",
        why=f"{why}: the broker lost the end of a transaction in part",
        fix=fix,
    )


def _find_uncovered(log: KafkaLog, progress: Progress) -> tuple[Place, int] | None:
    """A place with visible rows of a snapshot behind P, and that snapshot."""
    ends = log.find_ends(log.data_places)
    for place, end in ends.items():
        following = progress.next_offsets.get(place[1])
        if (
            following is None or end <= following + 1
        ):  # at most the control record of the marker's transaction
            continue
        found = _newest_snapshot(log, TopicPartition(*place), (following, end))
        if found > progress.published:
            return place, found
    return None


def _is_covered_later(log: KafkaLog, has_moved: Callable[[], bool]) -> bool:
    """Whether the marker of those rows comes: partitions show the end of one transaction one after the other.

    The end of the marker partition is asked first, its markers after it: what is decided then was read.
    """
    deadline = log.deadline_ms()
    while True:
        undecided = find_undecided(log, [log.marker_place])
        if has_moved():
            return True
        if not undecided or log.runtime.now_ms() > deadline:
            return False
        log.runtime.sleep(0.02)


def _newest_snapshot(log: KafkaLog, place: TopicPartition, span: tuple[int, int]) -> int:
    """The newest snapshot id among the visible messages of ours; 0 without one."""
    ids = _snapshot_ids(log, place, span, isolation="read_committed")
    return max((one or 0 for one in ids), default=0)


def _snapshot_ids(
    log: KafkaLog, place: TopicPartition, span: tuple[int, int], *, isolation: str
) -> Iterator[int | None]:
    """Of each message in a span of offsets, None for those of foreign producers; a slice in memory at a time."""
    first, end = span
    with closing(make_consumer(log.settings.client, isolation=isolation)) as consumer:
        for at in range(first, end, _SLICE):
            records = log.read_range(consumer, place, (at, min(at + _SLICE, end)))
            yield from (to_message(record).snapshot_id for record in records)


def _wait(log: KafkaLog, places: Iterable[Place], *, seconds: float) -> Mapping[Place, tuple[int, int]]:
    """What is still undecided after at most so many seconds."""
    wanted = tuple(places)
    deadline = log.runtime.now_ms() + int(seconds * 1000)
    undecided = find_undecided(log, wanted)
    while undecided and log.runtime.now_ms() < deadline:
        log.runtime.sleep(0.02)
        undecided = find_undecided(log, wanted)
    return undecided
