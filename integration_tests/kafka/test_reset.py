"""`tablestore publish --reset`: topics that were deleted are given a new beginning, where the user says so."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tests.doses import case_rows

Publish = Callable[..., int]


def _delete(broker: BrokerInfo, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.url})
    for future in admin.delete_topics(list(topics)).values():
        future.result()
    while set(topics) & set(admin.list_topics(timeout=10).topics):
        time.sleep(0.02)


def _row(key: int) -> pa.Table:
    return pa.table({"id": [key], "v": [f"row {key}"]})


@pytest.fixture
def publish(broker: BrokerInfo, tmp_path: Path) -> Publish:
    """Runs `tablestore publish demo.t` on a warehouse whose three published snapshots lost both topics."""
    topic = f"reset-{time.monotonic_ns()}"
    log = {"kafka.bootstrap.servers": broker.url}
    options = {"bucket": "1", "log.system": "kafka", "kafka.topic": topic}
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options))
    engine = Engine(str(tmp_path), log=log)
    engine.create_database("demo")
    for key in (1, 2, 3):
        engine.write("demo.t", _row(key), spec)
    names = [
        name
        for name in AdminClient({"bootstrap.servers": broker.url}).list_topics(timeout=10).topics
        if topic in name
    ]
    engine.close()
    _delete(broker, *names)
    return lambda *more: main(
        ["publish", "demo.t", "--warehouse", str(tmp_path), "--bootstrap", broker.url, "--json", *more]
    )


@pytest.mark.parametrize(("behind", "sent"), case_rows([(0, 3), (2, 1), (3, 0)], 2))
def test_a_new_beginning_sends_what_comes_behind_it(
    publish: Publish,
    broker: BrokerInfo,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    behind: int,
    sent: int,
) -> None:
    """Without --reset nothing is guessed (TS1705); with it, exactly the snapshots behind N are sent, once."""
    assert publish() != 0
    assert "TS1705" in capsys.readouterr().err
    assert publish("--reset", str(behind)) == 0
    assert bool(json.loads(capsys.readouterr().out)["offsets"]) == bool(sent)
    assert publish() == 0
    assert json.loads(capsys.readouterr().out)["offsets"] == {}
    with Engine(str(tmp_path), log={"kafka.bootstrap.servers": broker.url}) as engine:
        assert [message.snapshot_id for message in engine.table("demo.t").log_messages()] == [1, 2, 3][
            3 - sent :
        ]


@pytest.mark.parametrize("behind", ["-1", "4"])
def test_a_beginning_outside_of_the_table_is_refused(
    publish: Publish, capsys: pytest.CaptureFixture[str], behind: str
) -> None:
    """TS1031, and no topic appears."""
    assert publish("--reset", behind) != 0
    assert "TS1031" in capsys.readouterr().err
    assert publish() != 0
    assert "TS1705" in capsys.readouterr().err
