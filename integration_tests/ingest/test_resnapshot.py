"""Single tables of a source read again, through the real Debezium: each is the database's, whatever dies or writes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from integration_tests.ingest.databases import KNOWN, Connected, fresh, opened, rows_of, sync, until
from tablestore_demo.demo_postgres import Postgres
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.log.kafka.client_settings import BROKERS
from tablestore_engine.log.kafka.cluster_topics import count_messages
from tablestore_engine.runtime.outside_world import CRASH_ENV, SYSTEM
from tablestore_engine.spi import SyncReport, SyncSpec, find_connect, stop_connect, sync_database

SEED = int(os.environ.get("TABLESTORE_SEED", "20261125"))
ROUNDS = int(os.environ.get("TABLESTORE_HISTORIES", "1"))


def codes(report: SyncReport, name: str) -> dict[str, str]:
    """Table of the schema → code of its error."""
    return {table.removeprefix(f"demo.{name}__"): one.code for table, one in report.errors.items()}


def read_again(engine: object, running: object, *tables: str, into: str = "demo") -> SyncReport:
    """A sync that reads these tables again first."""
    spec = SyncSpec(into, resnapshot=tables)
    return sync_database(engine, running, spec, environ=KNOWN, say=print)  # type: ignore[arg-type]


def check_clean(postgres: Postgres, broker: BrokerInfo, name: str) -> None:
    """A re-snapshot leaves no topic and no slot."""
    topics = AdminClient({"bootstrap.servers": broker.url}).list_topics(timeout=10).topics
    assert [one for one in topics if one.startswith(f"{name}-snapshot-")] == []
    assert postgres.rows(f"select slot_name from pg_replication_slots where slot_name ~ '{name}'") == [
        (f"tablestore_{name}",)
    ]


TABLES = """
create table {s}.renamed (id int primary key, v text, i int);
insert into {s}.renamed select g, 'v' || g, g from generate_series(1, 300) g;
create table {s}.narrowed (id int primary key, n numeric(6,2), z timestamptz, c varchar(10));
insert into {s}.narrowed values (1, 1.25, '2026-01-01 12:00:00.6+00', 'abcdef'), (2, null, null, null);
create table {s}.part (id int primary key) partition by range (id);
create table {s}.part_1 partition of {s}.part for values from (0) to (100);
create table {s}.part_2 partition of {s}.part for values from (100) to (200);
insert into {s}.part values (1), (101);
create table {s}.again (id int primary key, v int);
insert into {s}.again values (1, 1), (2, 2);
create table {s}.plain (id int primary key);
insert into {s}.plain values (1)"""
CHANGES = """
alter table {s}.renamed rename v to w;
alter table {s}.renamed alter i type bigint;
alter table {s}.narrowed alter n type numeric(6,1), alter z type timestamptz(0), alter c type varchar(3)
  using left(c, 3);
alter table {s}.part detach partition {s}.part_2;
drop table {s}.again;
create table {s}.again (id int primary key, v int);
insert into {s}.again values (3, 3);
create table {s}.late (id int primary key, v text);
insert into {s}.late values (1, 'a'), (2, 'b');
insert into {s}.plain values (2)"""
TORN = ("renamed", "narrowed", "part", "again", "late")


@pytest.mark.nightly
def test_tables_that_replication_tore_are_read_again_by_name(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """A rename with a rewrite, narrower types, a detached partition, a table made again, a later table with rows: each
    is TS1495 or TS1496 until it is read again; then it is the database's and follows, without another source.
    """
    name = fresh()
    postgres.run(f"create schema {name}", *TABLES.format(s=name).split(";"))
    running = connected(name, f"{name}.{'*'}")
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        before = engine.table(f"demo.{name}__narrowed").schema.fields
        postgres.run(*CHANGES.format(s=name).split(";"))
        torn = {**dict.fromkeys(TORN, "TS1495"), "late": "TS1496", "part_2": "TS1496"}
        assert codes(sync(engine, running), name) == torn
        postgres.run(f"drop table {name}.part_2")
        with pytest.raises(NotFound, match="TS1594"):
            read_again(engine, running, f"{name}.nothing")
        report = read_again(engine, running, *(f"{name}.{one}" for one in TORN))
        assert codes(report, name) == {}
        now = engine.table(f"demo.{name}__narrowed").schema.fields
        assert [one for one in now if one.name != "n"] == [one for one in before if one.name != "n"]
        assert [type_to_text(one.type) for one in now if one.name == "n"] == ["DECIMAL(7, 2)"]
        check_clean(postgres, broker, name)
        _check_rows(engine, postgres, name)
        postgres.run(
            f"update {name}.renamed set w = 'later' where id = 1",
            f"delete from {name}.renamed where id = 2",
            f"insert into {name}.late values (3, 'c')",
            f"delete from {name}.late where id = 1",
            f"update {name}.again set v = 30",
            f"insert into {name}.part values (5)",
            f"update {name}.narrowed set n = 2.5 where id = 2",
        )
        assert codes(sync(engine, running), name) == {}
        _check_rows(engine, postgres, name)
        assert engine.find_table(f"demo.{name}__renamed__resnapshot") is None
        other = sync_database(engine, running, SyncSpec("other"), environ=KNOWN, say=print)
        assert {one.code for one in other.errors.values()} == {"TS1593"}
        assert len(other.errors) == len(TORN)


@pytest.mark.nightly
def test_a_table_whose_name_another_one_has_is_not_read_again(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """TS1599 for names that differ in case alone: its rows would replace those of the other table."""
    name = fresh()
    postgres.run(
        f"create schema {name}",
        f"create table {name}.twin (id int primary key)",
        f'create table {name}."Twin" (id int primary key)',
        f"insert into {name}.twin values (1)",
    )
    running = connected(name, f"{name}.*")
    with opened(tmp_path, broker) as engine:
        with pytest.raises(FixRequest, match="TS1599"):
            read_again(engine, running, f"{name}.twin")
        assert engine.find_table(f"demo.{name}__twin") is None


def _check_rows(engine: object, postgres: Postgres, name: str) -> None:
    columns = {
        "renamed": "id, w, i",
        "narrowed": "id, n, z, c",
        "part": "id",
        "again": "id, v",
        "late": "id, v",
    }
    for table, wanted in columns.items():
        stored = engine.table(f"demo.{name}__{table}")  # type: ignore[attr-defined]
        found = stored.scan(columns=wanted.split(", ")).to_arrow()
        rows = sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)
        assert rows == sorted(postgres.rows(f"select {wanted} from {name}.{table}"), key=repr), table


@pytest.mark.nightly
def test_a_table_without_a_row_is_read_again(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """Its rows went without a message: the warehouse's table is emptied; a later one without a row begins with its
    topic. A table that was restored to before its re-snapshot is refused (TS1593).
    """
    name = fresh()
    postgres.run(
        f"create schema {name}",
        f"create table {name}.a (id int primary key) partition by range (id)",
        f"create table {name}.a_1 partition of {name}.a for values from (0) to (100)",
        f"create table {name}.b (id int primary key)",
        f"insert into {name}.a values (1)",
    )
    running = connected(name, f"{name}.a", f"{name}.b")
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        postgres.run(f"truncate {name}.a_1")
        assert codes(sync(engine, running), name) == {"a": "TS1495"}
        assert codes(read_again(engine, running, f"{name}.a", f"{name}.b"), name) == {}
        assert (rows_of(engine, f"{name}__a"), rows_of(engine, f"{name}__b")) == ([], None)
        postgres.run(f"insert into {name}.a values (2)", f"insert into {name}.b values (3)")
        assert codes(sync(engine, running), name) == {}
        assert (rows_of(engine, f"{name}__a"), rows_of(engine, f"{name}__b")) == ([(2,)], [(3,)])
        engine.table(f"demo.{name}__a").restore(snapshot=1)
        assert codes(sync(engine, running), name) == {"a": "TS1593"}
        assert codes(read_again(engine, running, f"{name}.a"), name) == {}
        assert rows_of(engine, f"{name}__a") == [(2,)]


_PAUSE = (
    0.02  # seconds between transactions; without it a sync on a busy machine waits for minutes of changes
)


class Writers:
    """Random transactions on tables a and late until the end of the block, through deaths of the database."""

    def __init__(self, postgres: Postgres, name: str, seed: str) -> None:
        self._postgres, self._name, self._rng = postgres, name, random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._postgres.connect() as connection:
                    while not self._stop.is_set():
                        self._change(connection)
                        self._stop.wait(_PAUSE)
            except psycopg.Error:
                time.sleep(0.05)

    def _change(self, connection: psycopg.Connection[object]) -> None:
        rng = self._rng
        with connection.transaction():
            for _ in range(rng.randint(1, 5)):
                table, key, value = rng.choice(("a", "late")), rng.randrange(60), rng.randrange(1000)
                roll = rng.random()
                if roll < 0.5:
                    connection.execute(
                        f"insert into {self._name}.{table} values ({key}, {value}) "
                        "on conflict (id) do update set w = excluded.w"
                    )
                elif roll < 0.7:
                    connection.execute(f"delete from {self._name}.{table} where id = {key}")
                elif roll < 0.8:
                    free = f"not exists (select 1 from {self._name}.{table} where id = {key + 100})"
                    connection.execute(
                        f"update {self._name}.{table} set id = id + 100 where id = {key} and {free}"
                    )
                else:
                    connection.execute(f"update {self._name}.{table} set w = w + 1 where id < {key}")
            if rng.random() < 0.1:
                raise psycopg.Rollback


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_while_a_table_is_read_again_it_is_the_databases(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path, number: int
) -> None:
    """A renamed and rewritten table and a later one are read again while transactions go on, and the sync, Connect or
    the database is killed in it: a table is refused until it is whole, and at the end each is the database's.
    """
    name, rng = fresh(), random.Random(f"{SEED}/{number}")
    postgres.run(
        f"create schema {name}",
        f"create table {name}.a (id int primary key, v int)",
        f"insert into {name}.a select g, g from generate_series(1, 50) g",
    )
    running = connected(name, f"{name}.*")
    (tmp_path / "warehouse").mkdir()
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
    postgres.run(
        f"alter table {name}.a rename v to w",
        f"alter table {name}.a alter w type bigint",
        f"create table {name}.late (id int primary key, w int)",
        f"insert into {name}.late select g, g from generate_series(1, 50) g",
    )
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "sync", name, "--into", "demo"]
    command += ["--data-dir", str(tmp_path / name), "--warehouse", str(tmp_path / "warehouse")]
    again = [*command, "--resnapshot", f"{name}.a", "--resnapshot", f"{name}.late"]
    environ = {**os.environ, **KNOWN, "TABLESTORE_KAFKA": broker.url}
    with Writers(postgres, name, f"{SEED}/{number}/writers"):
        assert subprocess.run(command, env=environ, capture_output=True, check=False).returncode == 1
        for victim in rng.sample(("sync", "connect", "database"), 3):
            crash = {CRASH_ENV: f"{rng.choice(('commit.claimed', 'commit.done'))}:{rng.randint(1, 4)}"}
            process = subprocess.Popen(
                again,
                env={**environ, **(crash if victim == "sync" else {})},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if victim != "sync":
                time.sleep(rng.uniform(2, 9))
            if victim == "connect":
                os.kill(running.pid, signal.SIGKILL)
                until(lambda: find_connect(name, tmp_path / name) is None)
            elif victim == "database":
                postgres.stop("immediate")
                postgres.start()
            assert process.wait(300) in (0, 1, -signal.SIGKILL)
            if victim == "database":
                stop_connect(name, tmp_path / name)  # it may halt later
            running = connected(name, f"{name}.*")
            with opened(tmp_path, broker) as engine:
                until(lambda: _is_synced(engine, running), 120)  # noqa: B023 - asked at once
        done = subprocess.run(again, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        for table in ("a", "late"):
            rows = engine.table(f"demo.{name}__{table}").scan(columns=["id", "w"]).to_arrow().to_pylist()
            expected = sorted(postgres.rows(f"select id, w from {name}.{table}"))
            assert sorted((row["id"], row["w"]) for row in rows) == expected, table
    check_clean(postgres, broker, name)


def _is_synced(engine: object, running: object) -> bool:
    """A sync that ends; tables may be refused in it."""
    report = sync_database(engine, running, SyncSpec("demo"), environ=KNOWN, say=print)  # type: ignore[arg-type]
    assert {one.code for one in report.errors.values()} <= {"TS1495", "TS1496", "TS1593", "TS1482"}
    return True


@pytest.mark.nightly
def test_a_change_that_is_sent_before_others_see_it_is_not_lost(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """A commit that waits for a standby is in the topic, and in no snapshot yet: the table is read after it ended."""
    name = fresh()
    postgres.run(
        f"create schema {name}",
        f"create table {name}.a (id int primary key, v int)",
        f"insert into {name}.a values (1, 1), (2, 2)",
    )
    running = connected(name, f"{name}.*")
    done = threading.Event()

    def read() -> None:
        with opened(tmp_path, broker) as engine:
            read_again(engine, running, f"{name}.a")
        done.set()

    def write() -> None:
        with postgres.connect() as connection:
            connection.execute("set synchronous_commit = on")
            connection.execute(f"update {name}.a set v = 99 where id = 1")

    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
    writer, reader = threading.Thread(target=write), threading.Thread(target=read)
    postgres.run(
        "alter system set synchronous_commit = local", "alter system set synchronous_standby_names = 'nobody'"
    )
    postgres.run("select pg_reload_conf()")
    try:
        until(lambda: postgres.rows("show synchronous_standby_names") == [("nobody",)])
        writer.start()
        until(lambda: _count(broker, f"{name}.{name}.a") == 3)
        assert postgres.rows(f"select v from {name}.a where id = 1") == [(1,)]
        reader.start()
        assert not done.wait(15)
    finally:
        postgres.run("alter system reset synchronous_standby_names", "alter system reset synchronous_commit")
        postgres.run("select pg_reload_conf()")
        writer.join()
        reader.join()
    assert done.is_set()
    with opened(tmp_path, broker) as engine:
        assert rows_of(engine, f"{name}__a") == [(1, 99), (2, 2)]


def _count(broker: BrokerInfo, topic: str) -> int:
    return count_messages({BROKERS: broker.url}, [topic], SYSTEM)[topic]
