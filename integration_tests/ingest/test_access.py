"""Rights on a topic of others, and positions that somebody else has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.ingest.topics import make_topic, send
from integration_tests.kafka.acl_lines import READER_RIGHTS
from integration_tests.kafka.secure import Realm
from tablestore_engine.api import Engine, IngestSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import PositionStep
from tests.unit.ingest.encoders import COLUMNS, Event, debezium_json

ROW = {**dict.fromkeys(COLUMNS), "id": 1}


@pytest.mark.nightly  # by day kafka/test_followed_trouble.py: who only reads
def test_reading_is_the_only_right_that_is_needed(secure_broker: BrokerInfo, tmp_path: Path) -> None:
    """Without it TS1434 says what to give, a wrong password is TS1713; with it no other right is asked for."""
    realm = Realm(secure_broker)
    user = realm.new_user(())
    (tmp_path / "w").mkdir()
    from confluent_kafka.cimpl import NewTopic

    realm.admin.create_topics([NewTopic(user.topic, 1, 1)])[user.topic].result(30)
    spec = IngestSpec(format="debezium-json", into="d.t", topic=user.topic, key=("id",), infer=True)
    with Engine(str(tmp_path / "w"), log=user.settings, environ={}) as engine:
        with pytest.raises(FixRequest, match="TS1434") as caught:
            engine.ingest(spec)
        assert f"READ on topic {user.topic}" in str(caught.value)
        realm.give(user, READER_RIGHTS[:1])
        assert engine.ingest(spec).messages == 0
    wrong = {**user.settings, "kafka.sasl.password": "secret-of-nobody"}
    with Engine(str(tmp_path / "w"), log=wrong, environ={}) as engine:
        with pytest.raises(FixRequest, match="TS1713") as caught:
            engine.ingest(spec)
        assert "secret-of-nobody" not in str(caught.value)
        assert f"source topic {user.topic} failed while asking the brokers" in str(caught.value)


def test_a_position_of_another_program(broker: BrokerInfo, tmp_path: Path) -> None:
    """TS1426: it is not guessed what it means."""
    topic = make_topic(broker.url)
    send(broker.url, topic, debezium_json(Event("c", None, ROW), COLUMNS, schemas=True))
    spec = IngestSpec(format="debezium-json", into="d.t", topic=topic)
    with Engine(str(tmp_path / "w"), log={"kafka.bootstrap.servers": broker.url}) as engine:
        engine.ingest(spec)
        table = engine.table("d.t")
        (name,) = table.positions()
        step = PositionStep(table.positions()[name], "somewhere")
        engine.write("d.t", table.scan().to_arrow(), WriteSpec(positions={name: step}))
        with pytest.raises(FixRequest, match="TS1426"):
            engine.ingest(spec)
