"""Broker kills: SIGKILL the broker again and again while tables are written and published; then count.

Usage      python -m integration_tests.soak.broker_kills --kills 40 --seed 7        (or `make soak-broker`)
Steps      1 a broker in a folder of its own, tables with two buckets each, one writing thread per table
           2 each kill comes at a random moment, or aimed: at a crash point of one publisher plus up to 20 ms,
             so that every window around a commit is hit  3 the broker is started again on the same data
           4 what is pending is published, then a plain read_committed consumer (none of our reading code) is
             compared with the changelog files: per table and partition the same messages in the same order
Figures    kills, commits, messages, doubled, lost, out of order; the seed; publishers' errors by code, and how often
           leftovers of a transaction whose end the broker had lost were aborted
INVARIANT  exit 0 only when nothing is doubled, lost or out of order, and every writer came to its end.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import OutcomeUnknown, PublishPending, RetryError
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.changelog import ChangelogReader

Message = tuple[int, str, int]  # snapshot, row kind, key
_POINTS = ("log.begin", "log.rows", "log.marker", "log.committed")
_BUCKETS = 2


@dataclass
class Attack:
    """One run: who is aimed at, and what happened so far."""

    random: random.Random
    broker: BrokerInfo
    folder: Path
    errors: Counter[str] = field(default_factory=collections.Counter)
    kills: int = 0
    is_over: bool = False
    aim: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    hit: threading.Event = field(default_factory=threading.Event)

    def at_point(self, name: str) -> None:
        """A publisher passes a crash point: when it is the one aimed at, the broker dies now or in a moment."""
        with self.lock:
            if self.aim != name:
                return
            self.aim = None
        if self.random.random() < 0.5:
            time.sleep(self.random.random() * 0.02)
        self.kill()
        self.hit.set()

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        with self.lock:
            os.kill(self.broker.pid, signal.SIGKILL)
            os.waitpid(self.broker.pid, 0)
            self.kills += 1

    def kill_once(self) -> None:
        """One kill, random or aimed, and the broker's next life."""
        time.sleep(self.random.random())
        if self.random.random() < 0.3:
            self.kill()
        else:
            self.hit.clear()
            with self.lock:
                self.aim = self.random.choice(_POINTS)
            if not self.hit.wait(20):
                with self.lock:
                    missed, self.aim = self.aim is not None, None
                self.kill() if missed else self.hit.wait()
        self.broker = start_broker(self.folder / "broker")


def count_healed(attack: Attack) -> None:
    """From here on count the publishers' aborts of leftovers."""
    abort = LogProducer.abort_leftovers

    def counted(self: LogProducer, places: Iterable[tuple[str, int]]) -> None:
        attack.errors["leftovers aborted"] += 1
        abort(self, places)

    LogProducer.abort_leftovers = counted  # type: ignore[method-assign]  # this process only attacks


def rows_of(number: int, chance: random.Random) -> pa.Table:
    """A batch of 20 to 200 upserts over a small key space, so that most commits update."""
    keys = chance.sample(range(400), chance.randint(20, 200))
    return pa.table({"id": pa.array(keys, pa.int64()), "v": [f"{number}-{key}" for key in keys]})


def write_all(attack: Attack, engine: Engine, name: str, seed: int) -> None:
    """Commit until the attack is over; a log in trouble is no reason to stop, only the next try."""
    chance, number = random.Random(seed), 0
    options = {"bucket": str(_BUCKETS), "log.system": "kafka", "kafka.topic": name.replace(".", "-")}
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options))
    while not attack.is_over:
        number += 1
        try:
            engine.write(name, rows_of(number, chance), spec)
        except (RetryError, OutcomeUnknown, PublishPending) as error:
            attack.errors[error.code] += 1


def publish_rest(engine: Engine, name: str) -> None:
    """What is pending, with patience: the broker is alive now."""
    for attempt in range(20):
        try:
            engine.table(name).publish()
        except (RetryError, OutcomeUnknown):
            if attempt == 19:
                raise
            time.sleep(1)
        else:
            return


def wanted_messages(engine: Engine, name: str) -> dict[int, list[Message]]:
    """Per bucket what the changelog files say, without -U, in snapshot order."""
    store = engine.table(name).store
    wanted: dict[int, list[Message]] = {bucket: [] for bucket in range(_BUCKETS)}
    for snapshot in store.snapshots.list_all():
        if not ChangelogReader(store.context).has_changes(snapshot):
            continue
        for batch in ChangelogReader(store.context).read(snapshot):
            keys = batch.rows.column("id").to_pylist()
            kinds = batch.rows.column("_ROW_KIND").to_pylist()
            wanted[batch.bucket] += [
                (snapshot.id, RowKind(kind).short_string, key)
                for kind, key in zip(kinds, keys, strict=True)
                if kind != RowKind.UPDATE_BEFORE
            ]
    return wanted


def seen_messages(url: str, topic: str) -> dict[int, list[Message]]:
    """Per partition what any read_committed consumer sees, to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": url,
            "group.id": f"soak-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    seen: dict[int, list[Message]] = {bucket: [] for bucket in range(_BUCKETS)}
    consumer.assign([TopicPartition(topic, bucket, 0) for bucket in seen])
    ended: set[int] = set()
    while len(ended) < _BUCKETS:
        message = consumer.poll(30)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{topic} gives no answer"))
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            ended.add(message.partition())
            continue
        headers = dict(message.headers())
        key = json.loads(message.key())["id"]
        seen[message.partition()].append((int(headers["s"]), headers["k"].decode(), key))
    consumer.close()
    return seen


@dataclass(frozen=True)
class Count:
    """Of one table: commits, messages, and what is wrong."""

    commits: int
    messages: int
    doubled: int
    lost: int
    disordered: int


def compare(wanted: dict[int, list[Message]], seen: dict[int, list[Message]], commits: int) -> Count:
    """Multisets first, then order."""
    doubled = lost = disordered = 0
    for bucket, rows in wanted.items():
        have, want = Counter(seen[bucket]), Counter(rows)
        doubled += (have - want).total()
        lost += (want - have).total()
        disordered += have == want and seen[bucket] != rows
    return Count(commits, sum(map(len, seen.values())), doubled, lost, disordered)


def run(kills: int, seed: int, tables: int, folder: Path, say: Callable[[str], None]) -> bool:
    """The attack; True when nothing is wrong."""
    started = time.monotonic()
    broker = start_broker(folder / "broker", say=say)
    attack = Attack(random.Random(seed), broker, folder)
    count_healed(attack)
    runtime = Runtime(on_crash_point=attack.at_point)
    log = {"kafka.bootstrap.servers": broker.url}
    names = [f"soak.t{number}" for number in range(tables)]
    with Engine(str(folder / "warehouse"), log=log, runtime=runtime) as engine:
        failures: list[Exception] = []

        def write(name: str, chance: int) -> None:
            try:
                write_all(attack, engine, name, chance)
            except Exception as error:  # noqa: BLE001 - whatever ends a writer is a finding, told below
                failures.append(error)

        engine.create_database("soak")
        threads = [
            threading.Thread(target=write, args=(name, seed * 1000 + number))
            for number, name in enumerate(names)
        ]
        for thread in threads:
            thread.start()
        try:
            for number in range(kills):
                attack.kill_once()
                if (number + 1) % 10 == 0:
                    say(f"{number + 1} kills, {time.monotonic() - started:.0f} s, {dict(attack.errors)}")
                if failures:
                    break
        finally:
            attack.is_over = True
            for thread in threads:
                thread.join()
        for error in failures:
            say(f"A WRITER ENDED: {type(error).__name__} {error}")
        for name in names if not failures else []:
            publish_rest(engine, name)
        counts = [_count(engine, attack.broker.url, name) for name in names] if not failures else []
    stop_broker(folder / "broker")
    for name, count in zip(names, counts, strict=False):
        say(f"{name}: {count}")
    total = Count(*(sum(getattr(c, key) for c in counts) for key in Count.__dataclass_fields__))
    say(
        f"seed {seed}: {attack.kills} kills in {time.monotonic() - started:.0f} s, {total.commits} commits, "
        f"{total.messages} messages, {total.doubled} doubled, {total.lost} lost, {total.disordered} out of order; "
        f"errors {dict(attack.errors)}"
    )
    return not failures and total.messages > 0 and not total.doubled + total.lost + total.disordered


def _count(engine: Engine, url: str, name: str) -> Count:
    wanted = wanted_messages(engine, name)
    seen = seen_messages(url, name.replace(".", "-"))
    return compare(wanted, seen, len(engine.table(name).snapshot_ids()))


def main(arguments: list[str]) -> int:
    """Parse, run in a temporary folder unless one is named; it stays when something is wrong."""
    parser = argparse.ArgumentParser(prog="broker_kills")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}", flush=True)

    def say(text: str) -> None:
        print(text, flush=True)

    if chosen.folder is not None:
        chosen.folder.mkdir(parents=True, exist_ok=True)
        return 0 if run(chosen.kills, chosen.seed, chosen.tables, chosen.folder, say) else 1
    folder = Path(tempfile.mkdtemp(prefix="broker-kills-"))
    if not run(chosen.kills, chosen.seed, chosen.tables, folder, say):
        say(f"warehouse and broker data stay in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
