"""Eventual logs of real tables, held against the tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from integration_tests.kafka.topic_reads import read_log_markers
from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.kafka.bounded_reader import read_messages
from tablestore_engine.log.kafka.commit_marker import CommitMarker
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.settings import LogSettings, resolve_log
from tablestore_engine.runtime.outside_world import Runtime

Rows = Mapping[int, str]


class Points:
    """What to do at the next crash point of a name: once, then never again."""

    def __init__(self) -> None:
        self.todo: dict[str, Callable[[], None]] = {}

    def __call__(self, name: str) -> None:
        """The engine is there."""
        action = self.todo.pop(name, None)
        if action is not None:
            action()


def options_of(topic: str, **more: str) -> dict[str, str]:
    """`more` with underscores for dots and dashes is not translated: give them by `**{"a.b": "c"}`."""
    return {"log.system": "kafka", "log.consistency": "eventual", "kafka.topic": topic, **more}


def open_engine(
    folder: Path, url: str, at_point: Callable[[str], None] | None = None, master: str = "local[1]"
) -> Engine:
    """With short time-outs."""
    log = {"kafka.bootstrap.servers": url, "kafka.socket.timeout.ms": "3000"}
    runtime = Runtime() if at_point is None else Runtime(on_crash_point=at_point)
    return Engine(str(folder), log=log, spark=SparkSettings(master), runtime=runtime)


def settings_of_table(engine: Engine, name: str, url: str) -> LogSettings:
    """As the engine has them."""
    schema = engine.table(name).schema
    found = resolve_log(
        schema.options, {"kafka.bootstrap.servers": url}, table=name, is_keyed=schema.is_keyed
    )
    assert found is not None
    return found


def stored_rows(engine: Engine, name: str, snapshot: int | None = None) -> Rows:
    """Of columns id and v."""
    table = engine.table(name)
    scan = table.scan() if snapshot is None else table.scan(snapshot=snapshot)
    return {row["id"]: row["v"] for row in scan.to_arrow().to_pylist()}


def fold(messages: Iterable[LogMessage], into: Mapping[int, str] | None = None) -> Rows:
    """Last value per key."""
    found = dict(into or {})
    for message in messages:
        key = json.loads(message.key or b"")["id"]
        found.pop(key, None)
        if message.value is not None:
            row = json.loads(message.value)
            found[key] = row.get("after", row)["v"]  # json is the row alone
    return found


def topic_rows(settings: LogSettings) -> Rows:
    """What a consumer of committed messages has."""
    return fold(read_messages(KafkaLog(settings)))


def rows_at(messages: Iterable[LogMessage], marker: CommitMarker) -> Rows:
    """The promise of a marker."""

    def counts(message: LogMessage) -> bool:
        following = marker.offsets[message.partition][1]
        checked = marker.unchecked.get(message.partition, following)
        return message.offset < (following if message.snapshot_id is not None else checked)

    return fold(message for message in messages if counts(message))


def check_markers(engine: Engine, name: str, settings: LogSettings) -> int:
    """Every complete marker; the number of them that `unchecked` is said of."""
    messages, latest = list(read_messages(KafkaLog(settings))), engine.table(name).latest_snapshot_id()
    markers = [one for one in read_log_markers(KafkaLog(settings)) if one.last and one.snapshot_id > 0]
    assert markers[-1].snapshot_id == latest
    # markers of a topic that is gone promise nothing any more
    markers = [one for one in markers if one.topic_id == markers[-1].topic_id]
    for marker in markers:
        at = stored_rows(engine, name, marker.snapshot_id)
        if marker.commit:  # where a log begins anew nothing is said of what lies before
            assert rows_at(messages, marker) == at, f"before {marker}"
        behind = [one for one in messages if one.offset >= marker.offsets[one.partition][1]]
        assert fold(behind, at) == stored_rows(engine, name), f"behind {marker}"
    return sum(bool(marker.unchecked) for marker in markers)
