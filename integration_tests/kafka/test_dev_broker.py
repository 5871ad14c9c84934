"""The development broker as a process: start, find, stop, kill, two starts at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tablestore_engine.devservers.java_bundles import KAFKA, ensure_bundle
from tablestore_engine.devservers.kafka_broker import find_broker, start_broker, stop_broker
from tablestore_engine.errors import RetryError
from tablestore_engine.runtime.java import find_java

_START = (
    "import sys; from pathlib import Path; from tablestore_engine.devservers.kafka_broker import start_broker; "
    "print(start_broker(Path(sys.argv[1])).pid)"
)


@pytest.mark.nightly  # by day the broker of each suite
def test_life_of_a_broker(tmp_path: Path) -> None:
    """start is idempotent, stop ends exactly that process, a second stop finds nothing."""
    assert find_broker(tmp_path) is None
    first = start_broker(tmp_path)
    try:
        assert first.url.startswith("127.0.0.1:")
        assert start_broker(tmp_path) == first
        assert find_broker(tmp_path) == first
    finally:
        assert stop_broker(tmp_path)
    assert find_broker(tmp_path) is None
    assert not stop_broker(tmp_path)


@pytest.mark.nightly  # by day test_broker_away.py: a broker that is started again
def test_kill_and_start_again_keeps_port(tmp_path: Path) -> None:
    """After SIGKILL a start gives a new process at the same address with a metadata answer."""
    first = start_broker(tmp_path)
    try:
        os.kill(first.pid, signal.SIGKILL)
        os.waitpid(first.pid, 0)
        assert find_broker(tmp_path) is None
        again = start_broker(tmp_path)
        assert again.url == first.url
        assert again.pid != first.pid
        admin = AdminClient({"bootstrap.servers": again.url, "log_level": 0})
        assert len(admin.list_topics(timeout=10).brokers) == 1
    finally:
        stop_broker(tmp_path)


@pytest.mark.nightly  # by day s3/test_s3_server.py: the same lock
def test_two_starts_at_once_give_one_broker(tmp_path: Path) -> None:
    """Two processes that start the same folder end with the same process id."""
    both = [
        subprocess.Popen([sys.executable, "-c", _START, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        answers = {process.communicate(timeout=120)[0].strip() for process in both}
        info = find_broker(tmp_path)
        assert info is not None
        assert answers == {str(info.pid)}
    finally:
        assert stop_broker(tmp_path)


def test_state_of_another_process_is_not_trusted(tmp_path: Path) -> None:
    """A state file whose pid now belongs to someone else is no broker, and stop signals nobody."""
    (tmp_path / "broker.json").write_text(f'{{"pid": {os.getpid()}, "started": "1", "url": "127.0.0.1:1"}}')
    assert find_broker(tmp_path) is None
    assert not stop_broker(tmp_path)


def test_a_failed_download_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a mirror that has no Kafka the fetch says so (TS1911), uses the named Ivy settings, and leaves no folder."""
    mirror = tmp_path / "ivysettings.xml"
    mirror.write_text(
        '<ivysettings><settings defaultResolver="empty"/><resolvers><filesystem name="empty" m2compatible="true">'
        f'<artifact pattern="{tmp_path}/none/[organisation]/[module]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TABLESTORE_IVY_SETTINGS", str(mirror))
    said: list[str] = []
    with pytest.raises(RetryError, match="TS1911"):
        ensure_bundle(KAFKA, find_java().home, say=said.append)
    assert str(tmp_path / "cache") in said[0]
    assert "44 MiB" in said[0]
    left = [
        entry.name for entry in (tmp_path / "cache").iterdir() if entry.name != "jre"
    ]  # a machine without Java
    assert left == []


def test_a_warm_cache_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complete folder is used as it is, without a word and without Ivy."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path))
    KAFKA.folder.mkdir()
    said: list[str] = []
    assert ensure_bundle(KAFKA, "no java is started", say=said.append) == KAFKA.folder
    assert said == []
