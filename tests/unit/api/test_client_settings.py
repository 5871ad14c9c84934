"""Kafka settings of the environment and of files: what wins, and that no secret is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import client_settings, read_settings


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Brokers by a variable, the rest by a file."""
    file = tmp_path / "client.properties"
    file.write_text(
        "# ours\n\n! and Java's comment\nsasl.username = env\nkafka.sasl.password=a=b#c\nbootstrap.servers=file:1\n"
    )
    return {"TABLESTORE_KAFKA": "env:2", "TABLESTORE_KAFKA_CONFIG": str(file)}


def test_an_engine_takes_what_its_caller_does_not_say(tmp_path: Path, environ: dict[str, str]) -> None:
    """Engine(log=…) wins over the environment, key by key; without either there is nothing."""
    said = Engine(str(tmp_path), log={"kafka.bootstrap.servers": "said:3"}, environ=environ)
    assert said._warehouse.logs.system.client == {
        "kafka.bootstrap.servers": "said:3",
        "kafka.sasl.username": "env",
        "kafka.sasl.password": "a=b#c",
    }
    assert (
        Engine(str(tmp_path), environ=environ)._warehouse.logs.system.client["kafka.bootstrap.servers"]
        == "env:2"
    )
    assert Engine(str(tmp_path), environ={})._warehouse.logs.system.client == {}


def test_the_order(environ: dict[str, str]) -> None:
    """Profile < file < variable < said."""
    key = "kafka.bootstrap.servers"
    profile = {key: "profile:0", "kafka.linger.ms": "7", "kafka.sasl.username": "profile"}
    made = client_settings(environ, profile=profile)
    assert (made[key], made["kafka.linger.ms"], made["kafka.sasl.username"]) == ("env:2", "7", "env")
    assert client_settings(environ, profile=profile, said={key: "flag:4"})[key] == "flag:4"
    del environ["TABLESTORE_KAFKA"]
    assert client_settings(environ, profile=profile)[key] == "file:1"


@pytest.mark.parametrize("text", [b"sasl.password hunter2\n", b"=hunter2\n", b"sasl.password: hunter2 = x"])
def test_a_line_that_is_no_setting_is_refused_without_its_text(tmp_path: Path, text: bytes) -> None:
    """It may be the password."""
    (tmp_path / "f").write_bytes(b"a=b\n" + text)
    with pytest.raises(FixRequest, match=r"TS1098 line 2") as refused:
        read_settings(str(tmp_path / "f"), by="--kafka-config")
    assert "hunter2" not in str(refused.value)


def test_what_is_no_text_file_is_refused(tmp_path: Path) -> None:
    """A folder, a missing file, a key store: with who named it."""
    (tmp_path / "jks").write_bytes(b"\xfe\xed\xfe\xed")
    for name in (tmp_path, tmp_path / "none", tmp_path / "jks"):
        with pytest.raises(FixRequest, match="TS1097") as refused:
            read_settings(str(name), by="TABLESTORE_KAFKA_CONFIG")
        assert "TABLESTORE_KAFKA_CONFIG" in str(refused.value)
