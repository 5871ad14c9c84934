"""`tablestore log show` on a real broker: what it says, and that it disturbs nobody."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from integration_tests.kafka.secure import LoggedTable, Realm
from integration_tests.kafka.source import expected, new_table, published
from tablestore_engine.api import Engine, LogStatus
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.sink import EarlyState
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tests.doses import case_rows, cases


def log_of(broker: BrokerInfo) -> dict[str, str]:
    """Client settings."""
    return {"kafka.bootstrap.servers": broker.url}


def look(table: LoggedTable, log: dict[str, str]) -> LogStatus:
    """From another engine, as another process would."""
    with Engine(str(table.folder), log=log, environ={}) as engine:
        status = engine.table("d.t").log_status()
        assert status is not None
        return status


def show(table: LoggedTable, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line."""
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "log", "show", *words]
    place = ["--warehouse", str(table.folder)]
    return subprocess.run([*command, *place], capture_output=True, text=True, check=False)


@dataclass
class SlowRows:
    """A clock that goes on by three seconds whenever rows are sent; `runtime` has it."""

    behind_ms: int = 0

    @property
    def runtime(self) -> Runtime:
        """See above."""
        return Runtime(now_ms=lambda: SYSTEM.now_ms() + self.behind_ms, on_crash_point=self._at)

    def _at(self, name: str) -> None:
        self.behind_ms += 3000 if name == "log.rows" else 0


@pytest.fixture
def table(tmp_path: Path) -> LoggedTable:
    """A table to be."""
    return LoggedTable(tmp_path / "w", f"shown-{uuid.uuid4().hex}")


def test_a_log_that_is_behind(broker: BrokerInfo, table: LoggedTable) -> None:
    """Position, lag, publisher, settings, in one document; published, the lag is gone and the epoch has grown."""
    table.write(log_of(broker), **{"log.retention": "2 d"})
    table.write(log_of(broker), publish=False)
    table.write(log_of(broker), publish=False)
    done = show(table, "d.t", "--bootstrap", broker.url, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["published"], told["newest"], told["trouble"]) == (1, 3, None)
    assert (told["lag"]["snapshots"], told["lag"]["rows"]) == (2, 2)
    assert told["lag"]["seconds"] > 0
    assert told["writer"]["id"].startswith("ts-")
    assert told["writer"]["open"] is False
    settings = told["settings"][table.topic]
    assert (settings["partitions"], settings["retention.ms"]) == ("1", "172800000")
    assert told["settings"][f"{table.topic}__snapshots"]["cleanup.policy"] == "compact"
    table.publish(log_of(broker))
    after = look(table, log_of(broker))
    assert (after.state.reached, after.pending and after.pending.snapshots, after.trouble) == (3, 0, None)
    assert (after.state.writer.epoch or 0) > told["writer"]["epoch"]
    text = show(table, "d.t", "--bootstrap", broker.url).stdout
    assert "lag              none" in text


@pytest.mark.parametrize("point", cases(["log.rows", "log.marker", "log.committed"], 1))
def test_a_publisher_that_is_looked_at_goes_on(broker: BrokerInfo, table: LoggedTable, point: str) -> None:
    """In the middle of a transaction it is shown as open with what nobody sees yet; the publisher is not fenced."""
    seen: list[LogStatus] = []
    elsewhere = ThreadPoolExecutor(1)  # locks of this thread are held at such a point

    def at(name: str) -> None:
        if name == point:
            seen.append(elsewhere.submit(look, table, log_of(broker)).result())

    table.write(log_of(broker))
    table.write(log_of(broker), Runtime(on_crash_point=at))
    assert table.published(log_of(broker)) == [1, 2]
    if point == "log.committed":
        assert seen[-1].state.reached in (1, 2)
        return
    assert seen[-1].state.reached == 1
    assert seen[-1].pending is not None
    assert (seen[-1].pending.snapshots, seen[-1].pending.rows) == (1, 1)
    if point == "log.marker":  # rows and marker have arrived
        assert (seen[-1].state.writer.state, seen[-1].state.writer.is_open) == ("ongoing", True)
        assert set(seen[-1].state.unseen) == {f"{table.topic}[0]", f"{table.topic}__snapshots[0]"}
    after = look(table, log_of(broker))
    assert (after.state.reached, after.state.unseen) == (2, {})


def test_an_eventual_log_shows_what_is_ahead(broker: BrokerInfo, tmp_path: Path) -> None:
    """In front of the claim its rows are ahead of the marker; published, nothing is; and nobody is disturbed."""
    table = LoggedTable(tmp_path / "w", f"shown-{uuid.uuid4().hex}")
    seen: list[LogStatus] = []
    elsewhere = ThreadPoolExecutor(1)

    def at(name: str) -> None:
        if name == "commit.manifests" and not seen:
            seen.append(elsewhere.submit(look, table, log_of(broker)).result())

    table.write(log_of(broker), **{"log.consistency": "eventual"})
    table.write(log_of(broker), Runtime(on_crash_point=at))
    early = seen[0].state.early
    assert early is not None
    ((first, end),) = early.ahead.values()
    assert (seen[0].state.reached, end - first) == (1, 1)
    after = look(table, log_of(broker))
    assert (after.state.reached, after.state.early) == (2, EarlyState())
    text = show(table, "d.t", "--bootstrap", broker.url).stdout
    assert "consistency" in text
    assert "nothing" in text


def _delete(topic: str) -> Callable[[AdminClient], object]:
    return lambda admin: admin.delete_topics([topic])[topic].result()


@pytest.mark.parametrize(("suffix", "code"), case_rows([("", "TS1705"), ("__snapshots", "no marker")], 1))
def test_trouble_is_part_of_the_answer(
    broker: BrokerInfo, table: LoggedTable, suffix: str, code: str
) -> None:
    """A topic that is gone: what is left is shown, what publishing would meet is named, and the exit status is 1."""
    table.write(log_of(broker))
    admin = AdminClient({"bootstrap.servers": broker.url})
    _delete(table.topic + suffix)(admin)
    while table.topic + suffix in admin.list_topics(timeout=10).topics:
        pass
    done = show(table, "d.t", "--bootstrap", broker.url)
    assert done.returncode == 1
    assert code in done.stdout
    assert "newest snapshot  1" in done.stdout


@pytest.mark.nightly  # by day tests/unit/cli/test_log_show.py
def test_brokers_that_are_away(broker: BrokerInfo, table: LoggedTable, tmp_path: Path) -> None:
    """One table: the error that publishing meets. For Prometheus: the file says that it is down, and nothing else."""
    table.write(log_of(broker))
    file = tmp_path / "logs.prom"
    assert show(table, "--bootstrap", broker.url, "--prometheus", str(file)).returncode == 0
    assert f'tablestore_log_lag_snapshots{{table="d.t",log="{table.topic}"}} 0\n' in file.read_text()
    away = tmp_path / "away.properties"
    away.write_text("bootstrap.servers=127.0.0.1:1\ndefault.api.timeout.ms=1000\n")
    done = show(table, "d.t", "--kafka-config", str(away))
    assert (done.returncode, "TS1702" in done.stderr) == (1, True)
    done = show(table, "--kafka-config", str(away), "--prometheus", str(file))
    assert (done.returncode, "TS1702" in done.stderr) == (1, True)
    assert [line for line in file.read_text().splitlines() if line[0] != "#"] == [
        f'tablestore_log_up{{table="d.t",log="{table.topic}"}} 0'
    ]


def test_the_least_rights_are_enough(secure_broker: BrokerInfo, tmp_path: Path) -> None:
    """With the rights of a publisher all is shown but the epoch, which stands in a topic of Kafka's own."""
    realm = Realm(secure_broker)
    user = realm.new_user()
    table = LoggedTable(tmp_path / "w", user.topic)
    table.write(user.settings)
    seen = look(table, user.settings)
    assert (seen.state.reached, seen.state.writer.epoch, seen.trouble) == (1, None, None)
    assert look(table, realm.superuser).state.writer.epoch is not None


def test_publishing_that_takes_long_says_so(broker: BrokerInfo) -> None:
    """Rows a second, done of all; nothing of it where it is quick."""
    source, settings = new_table(broker, 4)
    said: list[str] = []
    with Publisher(KafkaLog(settings), say=said.append) as publisher:
        publisher.publish_pending(1, source.read)
    assert said == []
    with Publisher(KafkaLog(settings, SlowRows().runtime), say=said.append) as publisher:
        publisher.publish_pending(4, source.read)
    assert said[0].startswith("demo.t: publishing snapshot 2 of 4: ")
    assert "rows/s" in said[0]
    assert published(source, settings) == expected(source)


def test_a_line_of_a_command_says_how_many_there_are(broker: BrokerInfo, table: LoggedTable) -> None:
    """Through the engine the total comes from the snapshot's metadata."""
    said: list[str] = []
    table.write(log_of(broker))
    table.write(log_of(broker), publish=False)
    slow = SlowRows().runtime
    with Engine(str(table.folder), log=log_of(broker), runtime=slow, environ={}, say=said.append) as engine:
        engine.table("d.t").publish()
    (line,) = said
    assert "d.t: publishing snapshot 2: 1 of 1 rows" in line
