"""Tables that follow a PostgreSQL through the real Debezium, while all that brings them there is killed, many times.

Steps      1 tables, some with rows; a connector, which may die in its first load too  2 eight rounds:
           all tables change, then somebody dies: the sync at a crash point or at any moment, Connect, the database,
           the broker, the last three with a sync under way or without; tables change while Connect or the broker is
           dead  3 a sync to the end, in this process; each table against the database, its files, and its own
           changelog folded
INVARIANT  what is expected comes from the database, and from the changelog only that it adds up: no row comes that is
           there, none goes that is not.
INVARIANT  a sync that nobody disturbed ends by itself with status 0, or by the kill that was meant for it; one that
           was disturbed says so in our words, without a traceback.
INVARIANT  what is started here is ended here, by its process id.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from integration_tests.ingest.databases import drop_slot
from tablestore_demo.demo_postgres import Postgres, run_postgres
from tablestore_engine.api import Engine, Table
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import FixRequest
from tablestore_engine.postgres.database_source import PASSWORD_ENV, DatabaseSource
from tablestore_engine.runtime.outside_world import CRASH_ENV
from tablestore_engine.spi import (
    ConnectInfo,
    SyncSpec,
    connector_status,
    find_connect,
    parse_source,
    start_connect,
    stop_connect,
    sync_database,
)

TABLES = 20
INTO = "demo"
KEYS = 40
POINTS = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done")
VICTIMS = ("point", "point", "point", "moment", "moment", "connect", "database", "broker")
_PASSWORD = "an-unusual-word-7"
_KNOWN = {PASSWORD_ENV: _PASSWORD}
_SYNC_SECONDS, _REST_SECONDS, _POLL_SECONDS = 300, 4.0, 0.02
_SHAPES = (
    ("id int primary key, v int", ("id",), ("v",)),
    ("a int, b text, v int, w text, primary key (a, b)", ("a", "b"), ("v", "w")),
    ("id bigint primary key, v numeric(10, 2), w text", ("id",), ("v", "w")),
)
Row = tuple[object, ...]


@dataclass
class _History:
    """Of one table: what is asked of it next, by its own chance."""

    number: int
    schema: str
    rng: random.Random
    definition: str
    keys: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def table(self) -> str:
        """For SQL."""
        return f"{self.schema}.t{self.number}"

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them, the key first."""
        return self.keys + self.others

    def made(self) -> list[str]:
        """Every other one has rows from the beginning; every fourth tells whole rows of what it changes."""
        made = [f"create table {self.table} ({self.definition})"]
        if self.number % 4 == 0:
            made.append(f"alter table {self.table} replica identity full")
        if self.number % 2 == 0:
            made += [self._put(key) for key in self.rng.sample(range(KEYS), self.rng.randint(1, 10))]
        return made

    def statement(self) -> str:
        """The next one."""
        roll, key = self.rng.random(), self.rng.randrange(KEYS)
        if roll < 0.5:
            return self._put(key)
        if roll < 0.68:
            return f"delete from {self.table} where {self._is(key)}"
        if roll < 0.84:
            to = self.rng.randrange(KEYS + 10)
            free = f"not exists (select 1 from {self.table} where {self._is(to)})"
            changed = self._is(to).replace(" and ", ", ")
            return f"update {self.table} set {changed} where {self._is(key)} and {free}"
        if roll < 0.87:
            return f"truncate {self.table}"
        if roll < 0.93:
            return f"update {self.table} set v = v + 1"
        return f"delete from {self.table} where v % 3 = {self.rng.randrange(3)}"

    def _put(self, key: int) -> str:
        values = [*self._key(key), *map(self._value, self.others)]
        new = ", ".join(f"{one} = excluded.{one}" for one in self.others)
        text = f"insert into {self.table} values ({', '.join(values)})"
        return f"{text} on conflict ({', '.join(self.keys)}) do update set {new}"

    def _value(self, column: str) -> str:
        if self.rng.random() < 0.1:
            return "null"
        return str(self.rng.randrange(1000)) if column == "v" else f"'Zoë {self.rng.randrange(1000)}'"

    def _key(self, key: int) -> tuple[str, ...]:
        return (str(key),) if len(self.keys) == 1 else (str(key // 8), f"'k{key % 8}'")

    def _is(self, key: int) -> str:
        return " and ".join(f"{one} = {value}" for one, value in zip(self.keys, self._key(key), strict=True))


@dataclass
class _World:
    """`is_doubtful`: the connector was left alone with a database that died, and may have given up."""

    label: str
    rng: random.Random
    histories: Sequence[_History]
    postgres: Postgres
    broker: BrokerInfo
    source: DatabaseSource
    folder: Path
    is_doubtful: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def connect_folder(self) -> Path:
        """Of this connector."""
        return self.folder / "connect"

    @property
    def running(self) -> ConnectInfo:
        """Raises AssertionError where none runs."""
        found = find_connect(self.source.name, self.connect_folder)
        assert found is not None, f"{self.label}: Connect does not run"
        return found

    def start(self) -> None:
        """Connect, unless it runs."""
        environ = {**os.environ, **_KNOWN}
        start_connect(self.source, self.broker.url, environ=environ, data_dir=self.connect_folder, say=print)


@dataclass
class _Sync:
    """In a process of its own."""

    world: _World
    process: subprocess.Popen[bytes]
    log: Path

    def await_lines(self) -> None:
        """Until it has said some, or has ended; and a moment."""
        rng, until = self.world.rng, time.monotonic() + _SYNC_SECONDS
        count, rest = rng.randrange(len(self.world.histories)), rng.random()
        while self.process.poll() is None and self.log.read_bytes().count(b"\n") < count:
            assert time.monotonic() < until, f"{self.world.label}: a sync hangs"
            time.sleep(_POLL_SECONDS)
        time.sleep(rest / 2 if count else rest * _REST_SECONDS)

    def ended(self, *allowed: int) -> int:
        """Its status, which is one of these; or it has found that a connector in doubt has given up."""
        status = self.process.wait(_SYNC_SECONDS)
        said = self.log.read_text(errors="replace")[-6000:]
        is_known = self.world.is_doubtful and status == 1 and "TS1467" in said
        assert status in allowed or is_known, f"{self.world.label}: a sync ended with {status}: {said}"
        assert "Traceback" not in said, f"{self.world.label}: {said}"
        return status


def killed_ingests(seed: int, count: int, folder: Path) -> dict[str, int]:
    """`count` histories. Raises AssertionError with seed, world and table at the first fault."""
    total: Counter[str] = Counter()
    place = folder / "broker"
    try:
        broker = start_broker(place, say=print)
        with run_postgres(_PASSWORD) as postgres:
            for number in range(-(-count // TABLES)):
                numbers = range(number * TABLES, min(count, (number + 1) * TABLES))
                world = _world(seed, number, numbers, postgres, broker, folder)
                started = time.monotonic()
                _play(world)
                broker = world.broker  # another process, where it was killed
                total.update(world.counts)
                told = f"{time.monotonic() - started:.0f} s, {dict(world.counts)}"
                print(f"killed ingests: {numbers.stop} so far, {told}", flush=True)
    finally:
        stop_broker(place)
    return {"histories": count, **total}


def _world(
    seed: int, number: int, numbers: Sequence[int], postgres: Postgres, broker: BrokerInfo, folder: Path
) -> _World:
    name = f"w{number}"
    (folder / name / "warehouse").mkdir(parents=True)
    return _World(
        f"seed {seed}, world {number}",
        random.Random(f"{seed}/world {number}"),
        [
            _History(one, name, random.Random(f"{seed}/{one}"), *_SHAPES[one % len(_SHAPES)])
            for one in numbers
        ],
        postgres,
        broker,
        parse_source(name, postgres.url, (f"{name}.*",)),
        folder / name,
    )


def _play(world: _World) -> None:
    world.postgres.run(f"create schema {world.source.name}")
    world.postgres.run(*(statement for one in world.histories for statement in one.made()))
    try:
        world.start()
        for victim in world.rng.sample(VICTIMS, len(VICTIMS)):
            _change(world)
            _kill(world, victim)
            _revive(world)
        _change(world)
        _check(world)
    finally:
        stop_connect(world.source.name, world.connect_folder)
    _drop(world)


def _change(world: _World) -> None:
    """Transactions of one to three tables each, some of them taken back, in whole or of one table."""
    waiting = [one for one in world.histories for _ in range(one.rng.choice((0, 1, 1, 2, 3)))]
    world.rng.shuffle(waiting)
    with world.postgres.connect() as connection:
        while waiting:
            together = [waiting.pop() for _ in range(min(len(waiting), world.rng.choice((1, 1, 2, 3))))]
            with connection.transaction():
                for one in together:
                    with connection.transaction():
                        for _ in range(one.rng.randint(1, 6)):
                            connection.execute(one.statement().encode())
                        if one.rng.random() < 0.1:
                            raise psycopg.Rollback
                if world.rng.random() < 0.07:
                    raise psycopg.Rollback


def _kill(world: _World, victim: str) -> None:
    if victim in ("point", "moment"):
        point = f"{world.rng.choice(POINTS)}:{world.rng.randint(1, len(world.histories))}"
        with _sync(world, {CRASH_ENV: point} if victim == "point" else {}) as sync:
            if victim == "moment":
                sync.await_lines()
                sync.process.kill()
            world.counts["syncs killed"] += sync.ended(0, -signal.SIGKILL) == -signal.SIGKILL
    elif world.rng.random() < 0.3:
        _SERVERS[victim](world)
    else:
        with _sync(world, {}) as sync:
            sync.await_lines()
            _SERVERS[victim](world)
            sync.ended(0, 1)


@contextmanager
def _sync(world: _World, environ: dict[str, str]) -> Iterator[_Sync]:
    command = [sys.executable, "-u", "-m", "tablestore_engine.cli.main", "sync", world.source.name]
    command += ["--into", INTO, "--data-dir", str(world.connect_folder)]
    command += ["--warehouse", str(world.folder / "warehouse")]
    environ = {**os.environ, **_KNOWN, "TABLESTORE_KAFKA": world.broker.url, **environ}
    log = world.folder / "sync.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield _Sync(world, process, log)
    finally:
        process.kill()  # nothing, where it has ended
        process.wait()


def _kill_connect(world: _World) -> None:
    pid = world.running.pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    world.counts["Connect killed"] += 1
    _change(world)


def _kill_database(world: _World) -> None:
    """Connect sees it through by itself, or dies as well."""
    world.postgres.stop("immediate")
    world.postgres.start()
    world.counts["databases killed"] += 1
    if world.rng.random() < 0.5:
        _kill_connect(world)
    else:
        _change(world)
        world.is_doubtful = True


def _kill_broker(world: _World) -> None:
    os.kill(world.broker.pid, signal.SIGKILL)
    os.waitpid(world.broker.pid, 0)
    world.counts["brokers killed"] += 1
    _change(world)
    time.sleep(world.rng.random() * _REST_SECONDS)
    again = start_broker(Path(world.broker.data_dir), say=print)
    assert again.url == world.broker.url, f"{world.label}: the broker has another port: {again.url}"
    world.broker = again


_SERVERS = {"connect": _kill_connect, "database": _kill_database, "broker": _kill_broker}


def _revive(world: _World) -> None:
    """Connect, where it has died or has given up."""
    found = find_connect(world.source.name, world.connect_folder)
    status = None if found is None else connector_status(found)
    if status is None or status.is_halted:
        stop_connect(world.source.name, world.connect_folder)
        world.start()
        world.is_doubtful = False


def _synced(world: _World, engine: Engine) -> None:
    """To the end, in this process."""
    try:
        report = sync_database(engine, world.running, SyncSpec(INTO), environ=_KNOWN, say=lambda _: None)
    except FixRequest as error:
        if not world.is_doubtful or error.code != "TS1467":
            raise
        _revive(world)
        report = sync_database(engine, world.running, SyncSpec(INTO), environ=_KNOWN, say=lambda _: None)
    assert report.errors == {}, f"{world.label}: {report.errors}"


def _check(world: _World) -> None:
    with Engine(str(world.folder / "warehouse"), log={"kafka.bootstrap.servers": world.broker.url}) as engine:
        _synced(world, engine)
        for one in world.histories:
            where = f"{world.label}, table {one.table}"
            table = engine.find_table(f"{INTO}.{one.schema}__t{one.number}")
            rows = [] if table is None else table.scan().to_arrow().to_pylist()
            found = sorted((tuple(row[name] for name in one.columns) for row in rows), key=repr)
            expected = world.postgres.rows(f"select {', '.join(one.columns)} from {one.table}")
            assert found == sorted(expected, key=repr), f"{where}: {found} and not {expected}"
            if table is not None:
                assert table.verify() == (), f"{where}: {table.verify()}"
                world.counts["changes compared"] += _fold(table, one, found, where)
                world.counts["snapshots"] += len(table.snapshot_ids())


def _fold(table: Table, one: _History, expected: list[Row], where: str) -> int:
    """Its changelog from the first snapshot on must be the table; how many changes it has."""
    there: dict[Row, Row] = {}
    changes = table.changes(0).to_pylist()
    for change in changes:
        row = tuple(change[name] for name in one.columns)
        key, kind = row[: len(one.keys)], change["_row_kind"]
        what = f"{where}: {kind} of {row} in snapshot {change['_snapshot_id']}, there is {there.get(key)}"
        if kind in ("+I", "+U"):
            assert key not in there, what
            there[key] = row
        else:
            assert there.pop(key, None) == row, what
    assert sorted(there.values(), key=repr) == expected, f"{where}: changes make {there} and not {expected}"
    return len(changes)


def _drop(world: _World) -> None:
    """What the connector has left in the database."""
    drop_slot(world.postgres, world.source.slot, _SYNC_SECONDS)
    world.postgres.run(f"drop publication {world.source.slot}", f"drop schema {world.source.name} cascade")
