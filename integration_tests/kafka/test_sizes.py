"""Rows that are too large for a log: refused before the commit where our limit knows it, told in full where only the
brokers know.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixData, PublishPending
from tests.doses import case_rows

LIMIT = "20000"
SMALL = pa.table({"id": ["a"], "v": ["x"]})
# noise, so that compression does not make a large row small
NOISE = random.Random(1).randbytes(30_000).hex()


@pytest.fixture
def engine(broker: BrokerInfo, tmp_path: Path) -> Iterator[Engine]:
    """An empty warehouse."""
    with Engine(str(tmp_path), log={"kafka.bootstrap.servers": broker.url}) as engine:
        yield engine


def _spec(**options: str) -> WriteSpec:
    logged = {"log.system": "kafka", "kafka.topic": f"sizes-{uuid.uuid4().hex}", **options}
    return WriteSpec(table=TableSpec(primary_key=("id",), options=logged))


@pytest.mark.parametrize(
    ("row", "said"),
    case_rows(
        [
            ({"id": ["b"], "v": [NOISE]}, 'key {"id":"b"}: its message has 600'),
            ({"id": [NOISE], "v": ["x"]}, NOISE[:50]),
        ],
        1,
    ),
    ids=["value", "key"],
)
def test_a_row_too_large_for_the_log_is_refused_before_its_commit(
    engine: Engine, row: dict[str, list[str]], said: str
) -> None:
    """TS1739 for a first write, which leaves no table, and for a later one, which leaves no snapshot and no message."""
    spec = _spec(**{"kafka.message.max.bytes": LIMIT})
    with pytest.raises(FixData, match="TS1739"):
        engine.write("d.t", pa.table(row), spec)
    assert engine.find_table("d.t") is None
    engine.write("d.t", SMALL, spec)
    with pytest.raises(FixData, match="TS1739") as caught:
        engine.write("d.t", pa.table(row), spec)
    assert "nothing is written" in str(caught.value)
    assert said in str(caught.value)
    assert f"'kafka.message.max.bytes' is {LIMIT}" in str(caught.value)
    assert engine.table("d.t").latest_snapshot_id() == 1
    assert engine.table("d.t").scan().to_arrow().num_rows == 1
    assert engine.count_log_messages("d.t") == 1


def test_a_row_too_large_for_its_topic_says_what_is_committed_and_what_to_raise(
    engine: Engine, broker: BrokerInfo
) -> None:
    """The topic's own limit is met behind the commit: TS1070 around TS1709; with the limit raised, publishing sends it.

    Of the rows that were refused together the largest is named, by key and value: the deletion of a heavy key.
    """
    spec = _spec()
    heavy = pa.table({"id": [NOISE], "v": ["x"]})
    engine.write("d.t", heavy, spec)
    _limit(broker, spec.table.options["kafka.topic"], LIMIT)
    changes = pa.table({"id": ["a", NOISE], "v": ["small", ""], "_ROW_KIND": pa.array([0, 3], pa.int8())})
    with pytest.raises(PublishPending, match="TS1070") as caught:
        engine.write("d.t", changes, spec)
    said = str(caught.value)
    assert "snapshot 2 of d.t is committed, its log is pending" in said
    assert "do not write these rows again" in said
    assert f'key {{"id":"{NOISE[:50]}' in said
    assert f"key and value have {len(NOISE) + 9} bytes" in said
    assert "raise max.message.bytes of the topic and 'kafka.message.max.bytes'" in said
    assert engine.table("d.t").latest_snapshot_id() == 2
    assert engine.count_log_messages("d.t") == 1
    _limit(broker, spec.table.options["kafka.topic"], "1000000")
    engine.table("d.t").publish()
    assert engine.count_log_messages("d.t") == 3


def _limit(broker: BrokerInfo, topic: str, size: str) -> None:
    """max.message.bytes of a topic."""
    admin = AdminClient({"bootstrap.servers": broker.url})
    change = ConfigEntry("max.message.bytes", size, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
