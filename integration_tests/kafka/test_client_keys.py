"""Client settings on the real library and a real broker: every known name is one, and a Java client's file works."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from integration_tests.kafka.secure import LoggedTable, Realm
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_keys import KNOWN, SAME_AS, is_client_key
from tablestore_engine.spi import client_settings

_SILENT = logging.getLogger("silent")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def _is_known_to_the_library(key: str) -> bool:
    try:
        Consumer({"group.id": "x", "logger": _SILENT, key: "1"}).close()
    except KafkaException as error:
        return "No such configuration property" not in str(error)
    return True


@pytest.mark.parametrize("key", sorted(KNOWN))
def test_what_we_hand_on_is_known_to_the_library(key: str) -> None:
    """The list is librdkafka's own."""
    assert _is_known_to_the_library(key)


def test_what_we_rename_becomes_something_known() -> None:
    """No name leads to another second name."""
    assert {name for name in SAME_AS.values() if name not in KNOWN} == set()
    assert not is_client_key("error_cb")


def test_the_file_of_a_java_client(secure_broker: BrokerInfo, tmp_path: Path) -> None:
    """JAAS, a trust store in PEM, sizes in Java's names: a table is written and published with nothing else."""
    realm = Realm(secure_broker)
    user = realm.new_user()
    file = tmp_path / "client.properties"
    name, password = (user.settings[f"kafka.sasl.{what}"] for what in ("username", "password"))
    file.write_text(
        f"""bootstrap.servers={secure_broker.url}
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="{name}" \
password="{password}";
ssl.truststore.type=PEM
ssl.truststore.location={user.settings["kafka.ssl.ca.location"]}
ssl.endpoint.identification.algorithm=https
max.request.size=1000000
receive.buffer.bytes=-1
"""
    )
    log = client_settings({"TABLESTORE_KAFKA_CONFIG": str(file)})
    table = LoggedTable(tmp_path / "w", user.topic)
    table.write(log)
    assert table.published(log) == [1]
    file.write_text(file.read_text().replace("max.request.size", "max.request.sice"))
    with pytest.raises(FixRequest, match="TS1754") as refused:
        client_settings({"TABLESTORE_KAFKA_CONFIG": str(file)})
    assert "kafka.max.request.size" in refused.value.fix
    assert password not in str(refused.value)


def test_a_key_store_of_a_java_client(secure_broker: BrokerInfo) -> None:
    """A client certificate in PKCS#12, in Java's spelling, logs in where brokers ask for one."""
    folder = Path(secure_broker.data_dir)
    listeners = (folder / "server.properties").read_text()
    internal = listeners.partition("INTERNAL://")[2].partition(",")[0]
    settings = {
        "kafka.bootstrap.servers": internal,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(folder / "certificates" / "ca.pem"),
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": str(folder / "certificates" / "broker.p12"),
        "kafka.ssl.keystore.password": (folder / "certificates" / "password").read_text(),
    }
    found = client_settings({}, said=settings)
    admin = AdminClient({key.removeprefix("kafka."): value for key, value in found.items()})
    assert admin.list_topics(timeout=20).brokers
