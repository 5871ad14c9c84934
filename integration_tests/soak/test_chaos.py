"""A minute of chaos with a fixed schedule; `make chaos` gives the whole dose."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from integration_tests.chaos.attacker import ack_file, note
from integration_tests.chaos.brokers import NodeFault, Whom
from integration_tests.chaos.judge import Judge, read_topic
from integration_tests.chaos.run import attack
from integration_tests.chaos.schedule import AIMS, FULL, SMALL, plan_wave
from integration_tests.chaos.tables import KINDS, Kind, command_of
from tablestore_engine.api import Engine
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.runtime.outside_world import CRASH_POINTS

SEED = 21


KEYED, EVENTUAL = (next(kind for kind in KINDS if kind.name == name) for name in ("pair", "early"))


@pytest.mark.nightly
def test_a_minute_of_chaos(tmp_path: Path) -> None:
    """Everything is killed, the network is bad, topics go: nothing is lost, doubled or wrong."""
    run = attack(SEED, kills=1, seconds=0, size=SMALL, folder=tmp_path, say=print)
    report = run.report()
    assert report["kills"] >= 36
    assert report["faults"]["broker killed"] >= 1
    assert report["checked"]["snapshots"] > 5
    assert report["checked"]["messages"] > 20
    assert (report["checked"]["lost"], report["checked"]["doubled"]) == (0, 0)
    assert sum(report["accidents"].values()) >= 1


def test_a_schedule_comes_from_its_seed() -> None:
    """The same seed plans the same waves; every crash point on a log's way and every table is met."""
    waves = [plan_wave(SEED, epoch, wave, FULL) for epoch in range(4) for wave in range(12)]
    assert waves == [plan_wave(SEED, epoch, wave, FULL) for epoch in range(4) for wave in range(12)]
    assert waves[0] != plan_wave(SEED + 1, 0, 0, FULL)
    traps = {life.trap for wave in waves for lives in wave.lives.values() for life in lives if life.trap}
    points = {one for points in AIMS.values() for one in points}
    assert {trap.point for trap in traps} == points <= set(CRASH_POINTS)
    assert points >= {one for one in CRASH_POINTS if one.startswith("log.")}
    assert {trap.action for trap in traps} == {"die", "stop", "broker", "broker-and-die"}
    assert {kind.name for wave in waves for kind in wave.kinds} == {kind.name for kind in KINDS}


def test_a_schedule_for_three_brokers_has_every_fault() -> None:
    """Each fault of a node and each way to choose the node is met; of one broker there is none."""
    size = replace(FULL, brokers=3)
    waves = [plan_wave(SEED, epoch, wave, size) for epoch in range(8) for wave in range(12)]
    strikes = [one for wave in waves for one in wave.strikes]
    assert {one.fault for one in strikes} == set(NodeFault)
    assert {one.whom for one in strikes} == set(Whom)
    assert not any(plan_wave(SEED, epoch, wave, FULL).strikes for epoch in range(8) for wave in range(12))


@pytest.mark.nightly
def test_a_minute_of_chaos_with_three_brokers(tmp_path: Path) -> None:
    """Nodes die, freeze, are cut off and replaced besides: nothing is lost, doubled or wrong."""
    size = replace(SMALL, brokers=3, strikes=1.0)
    report = attack(SEED, kills=1, seconds=0, size=size, folder=tmp_path, say=print).report()
    assert report["brokers"] == 3
    assert sum(report["faults"].get(fault, 0) for fault in NodeFault) >= 1
    assert report["checked"]["snapshots"] > 5
    assert (report["checked"]["lost"], report["checked"]["doubled"]) == (0, 0)


def quiet_table(root: Path, broker: BrokerInfo, kind: Kind, epoch: int) -> tuple[Engine, Judge]:
    """Some turns of one writer, without any fault, and a judge that is content."""
    engine = Engine(str(root / "warehouse"), log={"kafka.bootstrap.servers": broker.url})
    engine.create_database("chaos")
    name = kind.table(epoch)
    for turn in range(6):
        command = command_of(epoch, kind, 0, turn)
        if command.changes:
            spec = command.spec(kind.spec(epoch, epoch), 0, turn)
            done = engine.write(name, command.rows(kind), spec)
            note(root, ack_file(root, name, 0).name, f"{turn} {done.snapshot_id}")
    engine.table(name).publish()
    judge = Judge(kind, epoch, epoch, root)
    judge.check_table(engine)
    judge.check_log(engine, broker.url)
    judge.check_promises(engine, broker.url)
    judge.check_readers(engine, random.Random(epoch))
    return engine, judge


def send(broker: BrokerInfo, topic: str, key: int, value: str, snapshot: int) -> None:
    """A row that nobody wrote."""
    producer = Producer({"bootstrap.servers": broker.url})
    body = json.dumps({"before": None, "after": {"id": key, "v": value}, "op": "u"})
    headers = {"s": str(snapshot), "k": "+U", "q": "0", "c": "nobody:0"}
    producer.produce(topic, body, json.dumps({"id": key}), partition=0, headers=headers)
    assert producer.flush(30) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [KEYED, EVENTUAL], ids=lambda kind: kind.name)
def test_a_wrong_row_would_be_noticed(tmp_path: Path, broker: BrokerInfo, kind: Kind) -> None:
    """A row that was sent once too often, or with another value; and one that is missing."""
    engine, judge = quiet_table(tmp_path, broker, kind, 1)
    topic = kind.topic(1, 1)
    first = next(one for one in read_topic(broker.url, topic) if one.value is not None and one.partition == 0)
    judge.wanted[0].append((99, "+I", -1, "never"))
    with pytest.raises(AssertionError, match=r"lost|never came"):
        judge.check_log(engine, broker.url)
    judge.wanted[0].pop()
    judge.check_log(engine, broker.url)
    send(broker, topic, first.key, "wrong" if kind.is_eventual else str(first.value), first.snapshot or 1)
    with pytest.raises(AssertionError, match=r"too much|differs|last message"):
        judge.check_log(engine, broker.url)
    engine.close()


@pytest.mark.nightly
def test_a_wrong_table_would_be_noticed(tmp_path: Path, broker: BrokerInfo) -> None:
    """An ack without its snapshot, rows that no command has, and a commit that is there twice."""
    engine, judge = quiet_table(tmp_path, broker, KEYED, 2)
    name = KEYED.table(2)
    note(tmp_path, ack_file(tmp_path, name, 0).name, "77 99")
    with pytest.raises(AssertionError, match=r"ack of 0\.77 says 99"):
        judge.check_table(engine)
    spec = command_of(2, KEYED, 1, 0).spec(KEYED.spec(2, 2), 1, 0)
    engine.write(name, command_of(2, KEYED, 1, 1).rows(KEYED), spec)
    with pytest.raises(AssertionError, match="snapshot"):
        judge.check_table(engine)
    engine.close()


@pytest.mark.nightly
def test_a_publication_that_is_missing_would_be_noticed(tmp_path: Path, broker: BrokerInfo) -> None:
    """The newest marker has to be of the newest snapshot, also when nothing else is wrong."""
    engine, judge = quiet_table(tmp_path, broker, KEYED, 3)
    engine.table(KEYED.table(3)).compact(full=True)
    judge.check_table(engine)
    with pytest.raises(AssertionError, match="marker"):
        judge.check_log(engine, broker.url)
    engine.table(KEYED.table(3)).publish()
    judge.check_log(engine, broker.url)
    engine.close()
