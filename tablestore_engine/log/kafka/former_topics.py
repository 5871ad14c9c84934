"""Topics of a table that is gone: which of them are still its own, and deleting these.

CHANGE     `tablestore log drop`: whose topics they are
Rule       the newest marker names the table by its uuid, and the data topic by its id. The marker topic of such a
           marker is the table's; the data topic is if it has that id. Everything else stays.
INVARIANT  unlike DROP, no claim of another table goes, not even one at the same place: its table may be on its way.
INVARIANT  REQUIRES of delete_remains that the table is gone: the caller has looked for its uuid.
"""

from __future__ import annotations

from confluent_kafka import KafkaException

from tablestore_engine.log.kafka.commit_marker import CommitMarker
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import LogTopics, delete_topics, find_settled_topics
from tablestore_engine.log.kafka.log_base import newest_marker
from tablestore_engine.log.kafka.log_errors import translate
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.sink import LogRemains


def find_remains(log: KafkaLog) -> LogRemains:
    """Changes nothing. Raises what publishing would."""
    return _look(log.connected())[0]


def delete_remains(log: KafkaLog) -> LogRemains:
    """Looks again, and deletes what it has found. Raises what publishing would."""
    log = log.connected()
    remains, topics = _look(log)
    delete_topics(log, remains.names, topics)
    return remains


def _look(log: KafkaLog) -> tuple[LogRemains, LogTopics]:
    topics = find_settled_topics(log)
    try:
        newest = newest_marker(log) if topics.marker is not None else None
    except KafkaException as error:
        raise translate(error, log.settings, doing="looking whose topics they are") from error
    return plan_remains(log.settings, topics, newest), topics


def plan_remains(settings: LogSettings, topics: LogTopics, newest: CommitMarker | None) -> LogRemains:
    """The rule above; pure."""
    data, marker = settings.topic, settings.marker_topic
    there = [name for name, found in ((data, topics.data), (marker, topics.marker)) if found is not None]
    if not there:
        return LogRemains(())
    if newest is None:
        return LogRemains((), f"no marker says whose {' and '.join(there)} is")
    if newest.table_uuid != settings.table_uuid:
        return LogRemains((), f"{data} belongs to the table with uuid {newest.table_uuid}")
    if topics.data is None:
        return LogRemains((marker,))
    if topics.data.topic_id != newest.topic_id:
        return LogRemains((marker,), f"{data} was deleted and created again by another program")
    return LogRemains((data, marker))
