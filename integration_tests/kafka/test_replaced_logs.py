"""A table with a log gets another key, on a real broker: each topic has the rows of one table, whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from integration_tests.kafka.replace_child import NAME, publish, replace
from integration_tests.kafka.topics import topics_left
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.outside_world import CRASH_ENV
from tests.doses import cases

CHILD = [sys.executable, "-m", "integration_tests.kafka.replace_child"]
BEFORE = ("write.data_files", "stage.claimed", "replace.moved")
BEHIND = ("replace.placed", "log.begin", "log.rows", "log.marker", "log.committed", "replace.sent")


def engine_of(folder: Path, broker: BrokerInfo) -> Engine:
    """One that remembers nothing."""
    return Engine(str(folder), log={"kafka.bootstrap.servers": broker.url})


def begin(folder: Path, broker: BrokerInfo, topic: str) -> None:
    """The table with the key id, two commits of it in its topic."""
    table = TableSpec(primary_key=("id",), options={"log.system": "kafka", "kafka.topic": topic})
    with engine_of(folder, broker) as engine:
        for number in (1, 2):
            rows = pa.table({"id": [number], "day": [f"day {number}"]})
            engine.write(NAME, rows, WriteSpec(table=table))


def keys(engine: Engine) -> list[dict[str, object]]:
    """Of the messages of the table's topic, in order."""
    return [json.loads(one.key or b"{}") for one in engine.table(NAME).log_messages()]


def test_same_topic_for_another_key_is_refused_and_stays_as_it_is(tmp_path: Path, broker: BrokerInfo) -> None:
    """TS1081, staged or not: the very topic with its messages is there, and takes the next commit of the old table."""
    topic = f"same_{uuid.uuid4().hex[:8]}"
    begin(tmp_path, broker, topic)
    with engine_of(tmp_path, broker) as engine:
        for is_staged in (True, False):
            with pytest.raises(FixRequest, match="TS1081") as refused:
                replace(engine, topic, is_staged=is_staged)
            assert topic in str(refused.value)
        assert engine.staged("d") == ()
        engine.write(NAME, pa.table({"id": [9], "day": ["day 9"]}), WriteSpec())
        assert keys(engine) == [{"id": 1}, {"id": 2}, {"id": 9}]


@pytest.mark.parametrize("staged", cases(["staged", "at once"], 1))
@pytest.mark.parametrize("point", cases([*BEFORE, *BEHIND], 1))
def test_killed_replacement_gives_each_topic_the_rows_of_one_table(
    tmp_path: Path, broker: BrokerInfo, point: str, staged: str
) -> None:
    """Killed at each step: the name means the old or the new table, whole; a topic never has keys of both; the next
    one who asks finishes it, every row of the new table is in the new topic once, and the old topic is gone.
    """
    name = f"swap_{uuid.uuid4().hex[:8]}"
    first, second = f"{name}_a", f"{name}_b"
    begin(tmp_path, broker, first)
    environment = {**os.environ, CRASH_ENV: point}
    arguments = [str(tmp_path), broker.url, second, staged]
    done = subprocess.run([*CHILD, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with engine_of(tmp_path, broker) as engine:
        key = engine.table(NAME).facts().primary_key
        if point in BEFORE[:2]:
            assert (key, keys(engine)) == (("id",), [{"id": 1}, {"id": 2}])
        elif point in BEHIND:
            assert (key, keys(engine)) == (("day",), engine_keys(point))
        if staged == "staged" and key == ("day",):
            publish(engine)
        elif key == ("day",):
            engine.table(NAME).publish()
        else:
            replace(engine, second, is_staged=staged == "staged")
        assert engine.table(NAME).facts().primary_key == ("day",)
        assert sorted(one["day"] for one in keys(engine)) == ["day 2", "day 3"]
        wanted = {second, f"{second}__snapshots"}
        assert topics_left(AdminClient({"bootstrap.servers": broker.url}), name, wanted) == wanted
        assert engine.staged("d") == ()
        engine.write(NAME, pa.table({"id": [4], "day": ["day 4"]}), WriteSpec())
        assert keys(engine)[-1] == {"day": "day 4"}


def engine_keys(point: str) -> list[dict[str, object]]:
    """What consumers of the new topic see after the kill: its transaction is committed, or nothing."""
    return [{"day": "day 2"}, {"day": "day 3"}] if point in ("log.committed", "replace.sent") else []
