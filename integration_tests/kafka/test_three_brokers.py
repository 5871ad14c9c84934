"""P2 and P3 on three real nodes: leaders and coordinators die, replicas lag, nodes restart and are replaced."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.kafka.nodes import Nodes, committed_messages, committed_rows, wait
from integration_tests.kafka.source import Source, expected, new_table
from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.devservers.kafka_broker import start_broker, stop_broker
from tablestore_engine.errors import FixRequest, OutcomeUnknown, PublishPending, RetryError
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.topic_settings import read_configs
from tablestore_engine.runtime.outside_world import Runtime

VICTIMS: dict[str, Callable[[Nodes, LogSettings], int]] = {
    "leader of rows": lambda nodes, settings: nodes.leader(settings.topic),
    "leader of markers": lambda nodes, settings: nodes.leader(settings.marker_topic),
    "coordinator": lambda nodes, settings: nodes.coordinator(settings.transactional_id),
}
# by day test_broker_away.py, test_pending.py, test_exactly_once.py: one broker that goes, publishers that are killed
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One broker for all tests of this file."""
    folder = tmp_path_factory.mktemp("three-brokers")
    start_broker(folder, brokers=3, say=print)
    yield Nodes(folder)
    stop_broker(folder)


@pytest.fixture
def nodes(three: Nodes) -> Nodes:
    """All of them run, and every replica is in sync, whatever the test before did."""
    three.heal()
    return three


def test_a_dead_node_is_found_and_started_alone(nodes: Nodes) -> None:
    """The others keep their processes, all keep their addresses; a start of one broker is refused with TS1934."""
    before = nodes.info
    assert before.is_whole
    assert start_broker(nodes.folder) == before
    nodes.kill(2)
    assert [node.pid is None for node in nodes.info.nodes] == [False, True, False]
    with pytest.raises(FixRequest, match="TS1934"):
        start_broker(nodes.folder, brokers=1)
    after = start_broker(nodes.folder, brokers=3)
    assert (after.is_whole, after.url) == (True, before.url)
    same = [old.pid == new.pid for old, new in zip(before.nodes, after.nodes, strict=True)]
    assert same == [True, False, True]


def test_topics_of_a_log_have_three_replicas(nodes: Nodes) -> None:
    """Without an option both topics get the brokers' defaults: three replicas, two of which must have a row."""
    _, settings = new_table(nodes.info, 1)
    log = KafkaLog(settings).connected()
    found = read_configs(log, (settings.topic, settings.marker_topic))
    for topic, config in found.items():
        wait(lambda topic=topic: nodes.in_sync(topic) == {1, 2, 3}, topic)  # type: ignore[misc]  # mypy: a default
        assert (config["min.insync.replicas"], config["unclean.leader.election.enable"]) == ("2", "false")


@pytest.mark.parametrize(
    ("point", "victim"),
    [
        ("log.rows", "leader of rows"),
        ("log.begin", "leader of rows"),
        ("log.marker", "leader of rows"),
        ("log.committed", "leader of rows"),
        ("log.marker", "leader of markers"),
        ("log.committed", "leader of markers"),
        ("log.marker", "coordinator"),
        ("log.rows", "coordinator"),
        ("log.committed", "coordinator"),
    ],
)
def test_a_node_killed_in_mid_publication(nodes: Nodes, point: str, victim: str) -> None:
    """The publication goes through without an error on the nodes that are left; each row is there once, in order."""
    source, settings = new_table(nodes.info, 6)
    hits: list[str] = []

    def strike(name: str) -> None:
        hits.append(name)
        if name == point and hits.count(point) == 3:
            nodes.kill(VICTIMS[victim](nodes, settings))

    with Publisher(KafkaLog(settings, Runtime(on_crash_point=strike))) as publisher:
        report = publisher.publish_pending(6, source.read, find_commit=source.find_commit)
    assert (report.published, nodes.info.is_whole) == (6, False)
    assert committed_rows(nodes.url, settings.topic, source.buckets) == expected(source)


@dataclass
class Writer:
    """A table `d.NAME` with short time-outs; `expected` is what its rows must be."""

    engine: Engine
    name: str
    topic: str
    options: dict[str, str]
    expected: dict[int, str] = field(default_factory=dict)
    pending: int = 0

    def write(self, turn: int) -> None:
        """Five keys get a new value; what is pending is counted. What is refused before its commit comes again."""
        rows = {key: f"{turn}.{key}" for key in range(turn % 3, turn % 3 + 5)}
        table = pa.table({"id": list(rows), "v": list(rows.values())})
        spec = WriteSpec(
            table=TableSpec(primary_key=("id",), options=self.options),
            mode=WriteMode.UPSERT,
            commit_user="writer",
            commit_identifier=turn,
        )
        while True:
            try:
                self.engine.write(f"d.{self.name}", table, spec)
            except PublishPending:
                self.pending += 1
            except (RetryError, OutcomeUnknown):
                continue
            self.expected |= rows
            return

    def last_values(self, url: str) -> dict[int, str]:
        """Of each key, by a plain consumer."""
        found: dict[int, str] = {}
        for message in committed_messages(url, self.topic, 0):
            value = message.value()
            assert value is not None
            row = json.loads(value)["after"]
            found[row["id"]] = row["v"]
        return found


def open_writer(folder: Path, url: str, name: str, **options: str) -> Writer:
    """On a new topic."""
    topic = f"{name}-{uuid.uuid4().hex}"
    log = {"kafka.bootstrap.servers": url, "kafka.socket.timeout.ms": "2000"}
    engine = Engine(str(folder / name), log=log)
    engine.create_database("d")
    return Writer(engine, name, topic, {"log.system": "kafka", "kafka.topic": topic, **options})


@pytest.mark.parametrize("consistency", ["transactional", "eventual"])
def test_too_few_replicas_in_sync_leave_the_log_pending(
    nodes: Nodes, tmp_path: Path, consistency: str
) -> None:
    """The commit stands and TS1070 says that its log is pending; nothing is visible, and later it is, once."""
    writer = open_writer(tmp_path, nodes.url, "few", **{"log.consistency": consistency})
    with writer.engine:
        writer.write(0)
        nodes.set_min_in_sync(writer.topic, 3)
        before = writer.last_values(nodes.url)
        victim = next(one for one in (1, 2, 3) if one != nodes.leader(writer.topic))
        nodes.kill(victim)
        wait(lambda: len(nodes.in_sync(writer.topic)) == 2, "the dead replica is in sync")
        spec = WriteSpec(commit_user="writer", commit_identifier=1)
        rows = pa.table({"id": [99], "v": ["late"]})
        with pytest.raises(PublishPending, match="TS1070") as caught:
            writer.engine.write("d.few", rows, spec)
        assert "has 2 replica(s) in sync of 3, min.insync.replicas is 3" in str(caught.value)
        assert writer.last_values(nodes.url) == before == writer.expected
        nodes.heal()
        writer.engine.table("d.few").publish()
        assert writer.last_values(nodes.url) == {**before, 99: "late"}
        late = [
            one for one in committed_messages(nodes.url, writer.topic, 0) if b'"late"' in (one.value() or b"")
        ]
        assert len(late) == 1 or consistency == "eventual"


def test_two_nodes_of_three_are_away(nodes: Nodes) -> None:
    """Nobody decides: an error in bounded time; when one is back everything is published, once and in order."""
    source, settings = new_table(nodes.info, 4)
    leader = nodes.leader(settings.topic)
    others = [one for one in (1, 2, 3) if one != leader]
    hits: list[str] = []

    def strike(name: str) -> None:
        hits.append(name)
        if name == "log.rows" and hits.count(name) == 3:
            for one in others:
                nodes.kill(one)

    with (
        Publisher(KafkaLog(settings, Runtime(on_crash_point=strike))) as publisher,
        pytest.raises((RetryError, OutcomeUnknown), match=r"TS1702|TS1711|TS1712"),
    ):
        publisher.publish_pending(4, source.read, find_commit=source.find_commit)
    nodes.repair()
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(4, source.read, find_commit=source.find_commit).published == 4
    assert committed_rows(nodes.url, settings.topic, source.buckets) == expected(source)


def test_a_node_is_replaced_and_then_needed(nodes: Nodes) -> None:
    """A node whose disk is lost comes back empty, copies rows, joins the controllers, and carries the log alone with
    one other.
    """
    source, settings = new_table(nodes.info, 6)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(2, source.read, find_commit=source.find_commit)
        victim = nodes.leader(settings.topic)
        nodes.lose(victim)
        publisher.publish_pending(4, source.read, find_commit=source.find_commit)
        nodes.heal()
        nodes.kill(next(one for one in (1, 2, 3) if one != victim))
        assert _publish_at_last(publisher, 6, source) == 6
    assert committed_rows(nodes.url, settings.topic, source.buckets) == expected(source)


def test_a_replaced_node_is_a_controller_once_it_is_started(nodes: Nodes) -> None:
    """Another node may die at once: with its own voice in the quorum a majority is left, and leaders are elected."""
    source, settings = new_table(nodes.info, 1)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(1, source.read, find_commit=source.find_commit)
    nodes.lose(2)
    nodes.heal()
    victim = nodes.leader(settings.topic)
    nodes.kill(victim)
    wait(lambda: nodes.find_leader(settings.topic) not in {None, victim}, "no new leader")


def _publish_at_last(publisher: Publisher, snapshot: int, source: Source) -> int | None:
    """After such changes one publication's time may be too short; the same command again is what a user does."""
    for _ in range(8):
        with suppress(RetryError, OutcomeUnknown):
            return publisher.publish_pending(snapshot, source.read, find_commit=source.find_commit).published
    return publisher.publish_pending(snapshot, source.read, find_commit=source.find_commit).published


def test_a_rolling_restart_under_writers(nodes: Nodes, tmp_path: Path) -> None:
    """Each node stops and starts in turn while two tables are written: the logs end as the tables, none is refused for
    good.
    """
    made = [
        open_writer(tmp_path, nodes.url, consistency, **{"log.consistency": consistency})
        for consistency in ("transactional", "eventual")
    ]
    is_over, failures = threading.Event(), []

    def run(writer: Writer) -> None:
        turn = 0
        try:
            while not is_over.is_set():
                writer.write(turn)
                turn += 1
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run, args=(writer,)) for writer in made]
    for thread in threads:
        thread.start()
    for number in (1, 2, 3):
        nodes.stop(number)
        nodes.heal()
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failures
    for writer in made:
        table = writer.engine.table(f"d.{writer.name}")
        table.publish()
        rows = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
        assert writer.last_values(nodes.url) == rows == writer.expected
        assert table.latest_snapshot_id() or 0 > 3
        writer.engine.close()


def test_three_secure_nodes(tmp_path: Path) -> None:
    """Log-in, TLS and rights hold on each of them: a table is written while one node is away, without them nothing."""
    info = start_broker(tmp_path / "broker", brokers=3, secure=True)
    try:
        pairs = [line.split("=", 1) for line in Path(info.client_config or "").read_text().splitlines()[1:]]
        log = {f"kafka.{key}": value for key, value in pairs}
        assert log["kafka.bootstrap.servers"] == info.url
        stop_broker(tmp_path / "broker", node=1)
        options = {"log.system": "kafka", "kafka.topic": "ts.orders", "log.system.replication": "2"}
        spec = WriteSpec(table=TableSpec(options=options), mode=WriteMode.APPEND)
        with Engine(str(tmp_path / "wh"), log=log) as engine:
            engine.write("d.t", pa.table({"id": [1]}), spec)
            assert [one.snapshot_id for one in engine.table("d.t").log_messages()] == [1]
        plain = {"kafka.bootstrap.servers": info.url, "kafka.socket.timeout.ms": "2000"}
        with Engine(str(tmp_path / "other"), log=plain) as engine, pytest.raises(FixRequest, match="TS1752"):
            engine.write("d.t", pa.table({"id": [1]}), spec)
    finally:
        stop_broker(tmp_path / "broker")
