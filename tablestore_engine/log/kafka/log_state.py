"""Where a table's log stands, for people: looked at from outside, without disturbing who publishes.

CHANGE     `tablestore log show`: the state of a log
Steps      1 both topics and their settings, then for each shard 2 the newest marker 3 ends as readers see them, and as
           they are 4 the transaction of its publisher
INVARIANT  no producer is made: an init would fence the publisher that runs. Nothing is written or changed.
INVARIANT  metadata and markers alone: no row is read, however much is pending.
INVARIANT  what is wrong with the log is part of the answer; only brokers that do not answer are an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException

from tablestore_engine.errors import TablestoreError
from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress, plan_progress
from tablestore_engine.log.kafka.hanging_transactions import find_undecided
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import LogTopics, check_topics, find_topics
from tablestore_engine.log.kafka.log_base import newest_marker
from tablestore_engine.log.kafka.log_errors import translate
from tablestore_engine.log.kafka.log_lifecycle import check_owner
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.topic_settings import check_fit, read_configs
from tablestore_engine.log.kafka.transaction_state import find_state
from tablestore_engine.log.sink import EarlyState, LogState, LogWriter, ShardState

_SHOWN = (
    "cleanup.policy", "retention.ms", "retention.bytes", "min.insync.replicas", "max.message.bytes",
    "unclean.leader.election.enable",
)  # fmt: skip


def read_log_state(log: KafkaLog) -> LogState:
    """Raises RetryError TS1702, FixRequest TS1713, TS1750-TS1752, and what `translate` gives."""
    try:
        return _read(log.connected())
    except KafkaException as error:
        raise translate(error, log.settings, doing="looking at it") from error


def _read(log: KafkaLog) -> LogState:
    settings, topics = log.settings, find_topics(log)
    names = tuple(
        name
        for name, facts in ((settings.topic, topics.data), (settings.marker_topic, topics.marker))
        if facts
    )
    configs = read_configs(log, names) if names else {}
    found = [_read_shard(shard, topics) for shard in log.all_shards()]
    ends = {partition: end for one in found for partition, end in one.ends.items()}
    shards = [one.state() for one in found]
    reached = [one.reached for one in shards if one.reached is not None]
    last = min(found, key=lambda one: -1 if one.progress is None else one.progress.published)
    is_early = settings.is_eventual or (last.progress is not None and last.progress.early)
    return LogState(
        system="kafka",
        name=settings.topic,
        reached=min(reached) if len(reached) == len(shards) else None,
        commit=None if last.progress is None else last.progress.commit,
        part_of_next=sum(one.part_of_next for one in shards),
        ends=dict(sorted(ends.items())),
        unseen={where: span for one in found for where, span in one.unseen.items()},
        writer=next((one.writer for one in shards if one.writer.is_open), shards[0].writer),
        settings={name: _facts(name, topics, settings, configs[name]) for name in names},
        early=plan_early(last.progress, ends) if is_early else None,
        shards=tuple(shards) if settings.shards > 1 else (),
        trouble=_find_trouble(settings, topics, [one.newest for one in found], configs),
    )


@dataclass(frozen=True)
class _Shard:
    """What one publisher's part of the topics looks like."""

    newest: CommitMarker | None
    ends: Mapping[int, int]
    unseen: Mapping[str, tuple[int, int]]
    writer: LogWriter

    @property
    def progress(self) -> Progress | None:
        """None without a marker."""
        return None if self.newest is None else plan_progress(self.newest)

    def state(self) -> ShardState:
        progress = self.progress
        if progress is None:
            return ShardState(None, 0, self.writer)
        return ShardState(progress.published, sum(progress.partial.values()), self.writer)


def _read_shard(log: KafkaLog, topics: LogTopics) -> _Shard:
    settings = log.settings
    has_marks = topics.marker is not None and settings.shard < topics.marker.partitions
    newest = newest_marker(log) if has_marks else None
    data, marks = log.data_places, [log.marker_place]
    has_all = topics.data is not None and topics.data.partitions >= settings.partitions
    there = [*(data if has_all else ()), *(marks if has_marks else ())]
    undecided = find_undecided(log, there) if there else {}
    ends = log.find_ends(data) if has_all else {}
    return _Shard(
        newest,
        {partition: end for (_, partition), end in ends.items()},
        {f"{topic}[{partition}]": span for (topic, partition), span in sorted(undecided.items())},
        _writer(log),
    )


def plan_early(progress: Progress | None, ends: Mapping[int, int]) -> EarlyState:
    """What readers see and the newest marker does not answer for; without a marker everything.

    The one control record that the marker's own transaction left behind its rows is none of it.
    """
    known = progress or Progress(0, None, "")
    ahead, unchecked = {}, {}
    for partition, end in ends.items():
        following = known.next_offsets.get(partition, 0)
        if following + (partition in known.controls) < end:
            ahead[partition] = (following, end)
        if known.checked(partition) < following:
            unchecked[partition] = (known.checked(partition), following)
    return EarlyState(ahead, unchecked)


def _writer(log: KafkaLog) -> LogWriter:
    settings, state = log.settings, find_state(log)
    if state is None:
        return LogWriter(settings.transactional_id)
    return LogWriter(
        settings.transactional_id,
        state.producer_id,
        state.epoch,
        state.state,
        state.is_open,
        state.changed_ms,
    )


def _facts(
    name: str, topics: LogTopics, settings: LogSettings, config: Mapping[str, str]
) -> Mapping[str, str]:
    facts = topics.data if name == settings.topic else topics.marker
    assert facts is not None
    shown = {key: config[key] for key in _SHOWN if key in config}
    return {
        "id": facts.topic_id,
        "partitions": str(facts.partitions),
        "replicas": str(facts.replicas),
        **shown,
    }


def _find_trouble(
    settings: LogSettings,
    topics: LogTopics,
    newest: Sequence[CommitMarker | None],
    configs: Mapping[str, Mapping[str, str]],
) -> str | None:
    """The first thing that publishing would meet."""
    try:
        for one in newest:
            if one is not None:
                check_owner(settings, one)
                check_topics(settings, topics, one.topic_id)
            else:
                check_topics(settings, topics, "" if topics.data is None else topics.data.topic_id)
        for name, facts in ((settings.topic, topics.data), (settings.marker_topic, topics.marker)):
            if facts is not None:
                check_fit(settings, name, configs[name], facts.replicas)
    except TablestoreError as error:
        return str(error)
    return None
