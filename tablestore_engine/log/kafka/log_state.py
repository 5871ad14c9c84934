"""Where a table's log stands, for people: looked at from outside, without disturbing who publishes.

Names      read_log_state()   LogState of log/sink.py
           plan_early()       pure: what an eventual log shows that its newest marker does not answer for
Steps      1 both topics and their settings 2 the newest marker 3 ends as readers see them, and as they are
           4 the transaction of the table's publisher
INVARIANT  no producer is made: an init would fence the publisher that runs. Nothing is written or changed.
INVARIANT  metadata and markers alone: no row is read, however much is pending.
INVARIANT  what is wrong with the log is part of the answer; only brokers that do not answer are an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka.admin import AdminClient

from tablestore_engine.errors import TablestoreError
from tablestore_engine.log.kafka.hanging_transactions import (
    data_places,
    find_ends,
    find_undecided,
    marker_place,
)
from tablestore_engine.log.kafka.kafka_client import make_admin, make_consumer, translate
from tablestore_engine.log.kafka.kafka_topic import LogTopics, check_topics, find_topics
from tablestore_engine.log.kafka.log_lifecycle import check_owner
from tablestore_engine.log.kafka.marker import Marker, Progress, plan_progress, read_markers
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.topic_settings import check_fit, read_configs
from tablestore_engine.log.kafka.transaction_state import find_state
from tablestore_engine.log.sink import EarlyState, LogState, LogWriter
from tablestore_engine.runtime.outside_world import Runtime

_SHOWN = (
    "cleanup.policy", "retention.ms", "retention.bytes", "min.insync.replicas", "max.message.bytes",
    "unclean.leader.election.enable",
)  # fmt: skip


def read_log_state(settings: LogSettings, runtime: Runtime) -> LogState:
    """Raises RetryError TS1702, FixRequest TS1713, TS1750-TS1752, and what `translate` gives."""
    admin = make_admin(settings)
    try:
        return _read(admin, settings, runtime)
    except KafkaException as error:
        raise translate(error, settings, doing="looking at it") from error


def _read(admin: AdminClient, settings: LogSettings, runtime: Runtime) -> LogState:
    topics = find_topics(admin, settings)
    newest = None
    if topics.marker is not None:
        with closing(make_consumer(settings)) as consumer:
            markers = read_markers(consumer, settings, runtime)
        newest = markers[-1] if markers else None
    names = tuple(
        name
        for name, facts in ((settings.topic, topics.data), (settings.marker_topic, topics.marker))
        if facts
    )
    configs = read_configs(admin, settings, names) if names else {}
    data, marks = data_places(settings), [marker_place(settings)]
    there = [*(data if _has_all(topics, settings) else ()), *(marks if topics.marker is not None else ())]
    undecided = find_undecided(admin, there, settings, runtime) if there else {}
    ends = (
        find_ends(admin, data, settings, IsolationLevel.READ_COMMITTED, runtime)
        if _has_all(topics, settings)
        else {}
    )
    progress = None if newest is None else plan_progress(newest)
    seen = {partition: end for (_, partition), end in sorted(ends.items())}
    return LogState(
        system="kafka",
        name=settings.topic,
        reached=None if progress is None else progress.published,
        commit=None if progress is None else progress.commit,
        part_of_next=0 if progress is None else sum(progress.partial.values()),
        ends=seen,
        unseen={f"{topic}[{partition}]": span for (topic, partition), span in sorted(undecided.items())},
        writer=_writer(admin, settings, runtime),
        settings={name: _facts(name, topics, settings, configs[name]) for name in names},
        early=plan_early(progress, seen) if settings.is_eventual or (progress and progress.early) else None,
        trouble=_find_trouble(settings, topics, newest, configs),
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


def _has_all(topics: LogTopics, settings: LogSettings) -> bool:
    """Whether every partition that a bucket has is there to be asked."""
    return topics.data is not None and topics.data.partitions >= settings.partitions


def _writer(admin: AdminClient, settings: LogSettings, runtime: Runtime) -> LogWriter:
    state = find_state(admin, settings, runtime)
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
    settings: LogSettings, topics: LogTopics, newest: Marker | None, configs: Mapping[str, Mapping[str, str]]
) -> str | None:
    """The first thing that publishing would meet."""
    try:
        if newest is not None:
            check_owner(settings, newest)
            check_topics(settings, topics, newest.topic_id)
        else:
            check_topics(settings, topics, "" if topics.data is None else topics.data.topic_id)
        for name, facts in ((settings.topic, topics.data), (settings.marker_topic, topics.marker)):
            if facts is not None:
                check_fit(settings, name, configs[name], facts.replicas)
    except TablestoreError as error:
        return str(error)
    return None
