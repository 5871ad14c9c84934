"""All rows of some tables, read once by a second Debezium connector into topics of its own.

take_snapshot returns the topics when they are complete; drop_snapshots removes connectors and topics, of killed calls
too.

WHY        the rows come through Debezium, so each value has the form that it has in the source's own topics.
INVARIANT  a topic is complete when it has as many messages as Debezium says that it read rows: Connect answers for each
           message, but its notification may be in Kafka before the last row.
INVARIANT  the connector never retries: a second read would mix rows of two moments in one topic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from tablestore_engine.errors import RetryError
from tablestore_engine.log.kafka.cluster_topics import count_messages, delete_topics, find_cluster
from tablestore_engine.log.kafka.topic_source import TopicSource
from tablestore_engine.postgres.connect_rest import ConnectInfo, ask_connect, connector_status
from tablestore_engine.postgres.connector_state import topic_of
from tablestore_engine.postgres.database_source import notification_topic, snapshot_prefix, snapshot_settings
from tablestore_engine.runtime.outside_world import Runtime

_START_SECONDS, _POLL_SECONDS, _LAST_SECONDS = 60.0, 0.3, 60.0
_MESSAGES, _BYTES = 1_000, 1 << 20


@dataclass(frozen=True)
class SnapshotTopic:
    """`topic` '' for a table without a row."""

    topic: str
    rows: int


def take_snapshot(
    running: ConnectInfo,
    tables: Sequence[str],
    snapshot: str,
    clients: Mapping[str, str],
    *,
    check: Callable[[], None],
    runtime: Runtime,
) -> Mapping[str, SnapshotTopic]:
    """By table (`schema.table`). `snapshot`: an id that no other one has. `check` raises where waiting has no sense.

    Raises RetryError TS1592 (Connect or Debezium failed), TS1464.
    """
    name = f"{snapshot_prefix(running.source.name)}{snapshot}"
    body = {"name": name, "config": dict(snapshot_settings(running.source, tables, name))}
    try:
        ask_connect(running, "connectors", "POST", body, seconds=_START_SECONDS)
    except (OSError, ValueError) as error:
        raise _failed(running, f"Connect did not take the connector: {error}") from error
    counts = _wait_read(running, name, clients, check, runtime)
    if missing := set(tables) - counts.keys():
        raise _failed(running, f"Debezium did not read {', '.join(sorted(missing))}")
    found = {one: SnapshotTopic(topic_of(name, one) if counts[one] else "", counts[one]) for one in tables}
    _wait_complete(running, found, clients, check, runtime)
    return found


def drop_snapshots(running: ConnectInfo, clients: Mapping[str, str], runtime: Runtime) -> None:
    """Those of this source. Raises RetryError TS1464, TS1592."""
    prefix = snapshot_prefix(running.source.name)
    try:
        for name in ask_connect(running, "connectors"):
            if name.startswith(prefix):
                ask_connect(running, f"connectors/{quote(name)}", "DELETE", seconds=_START_SECONDS)
    except (OSError, ValueError) as error:
        raise _failed(running, f"Connect does not answer: {error}") from error
    _, topics = find_cluster(clients)
    delete_topics(clients, [one for one in topics if one.startswith(prefix)], runtime)


def _wait_read(
    running: ConnectInfo, name: str, clients: Mapping[str, str], check: Callable[[], None], runtime: Runtime
) -> dict[str, int]:
    """Rows by table, once Debezium says that it has read all."""
    counts: dict[str, int] = {}
    source: TopicSource | None = None
    position = ""
    try:
        while True:
            check()
            status = connector_status(running, name)
            if status is not None and status.is_halted:
                raise _failed(running, status.error or "its task was stopped")
            if source is None and notification_topic(name) in find_cluster(clients)[1]:
                source = TopicSource(notification_topic(name), clients, runtime)
                position = source.begin()
            if source is None:
                runtime.sleep(_POLL_SECONDS)
                continue
            raw = source.read(position, _MESSAGES, _BYTES, _POLL_SECONDS)
            position = raw.reached
            for value in raw.values:
                if _note(running, json.loads(value or b"{}").get("payload") or {}, counts):
                    return counts
    finally:
        if source is not None:
            source.close()


def _note(running: ConnectInfo, said: Mapping[str, object], counts: dict[str, int]) -> bool:
    """Whether all is read. Raises RetryError TS1592."""
    data = said.get("additional_data")
    details = data if isinstance(data, dict) else {}
    match said.get("type"):
        case "TABLE_SCAN_COMPLETED":
            if details.get("status") not in ("SUCCEEDED", "EMPTY"):
                raise _failed(running, f"{details.get('scanned_collection')}: {details.get('status')}")
            counts[str(details["scanned_collection"])] = int(details["total_rows_scanned"])
        case "ABORTED" | "SKIPPED":
            raise _failed(running, f"Debezium says {said['type']}")
        case "COMPLETED":
            return True
    return False


def _wait_complete(
    running: ConnectInfo,
    found: Mapping[str, SnapshotTopic],
    clients: Mapping[str, str],
    check: Callable[[], None],
    runtime: Runtime,
) -> None:
    wanted = {one.topic: one.rows for one in found.values() if one.topic}
    deadline = runtime.now_ms() + int(_LAST_SECONDS * 1000)
    while True:
        check()
        there = find_cluster(clients)[1]
        have = count_messages(clients, [one for one in wanted if one in there], runtime)
        if have == wanted:
            return
        if runtime.now_ms() > deadline or any(have.get(one, 0) > rows for one, rows in wanted.items()):
            raise _failed(running, f"Debezium read {wanted} rows, and the topics have {have}")
        runtime.sleep(_POLL_SECONDS)


def _failed(running: ConnectInfo, why: str) -> RetryError:
    return RetryError(
        "TS1592",
        f"a snapshot of tables of {running.source.url} failed",
        why=f"{why[:400]}; the tables are as they were",
        fix=f"read {running.log}, and repeat",
    )


def quietly_drop(running: ConnectInfo, clients: Mapping[str, str], runtime: Runtime) -> None:
    """Behind an error: what stays is removed by the next call."""
    with suppress(RetryError):
        drop_snapshots(running, clients, runtime)
