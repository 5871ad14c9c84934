"""What happens to a source between two syncs: each table is the database's, or named; none is green and wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]  # not in its __all__

from integration_tests.ingest.databases import KNOWN, Connected, fresh, opened, rows_of, sync, until
from tablestore_demo.demo_postgres import Postgres
from tablestore_engine.devservers.connector_check import ConnectorCheck
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.postgres.connector_state import read_record, write_record
from tablestore_engine.spi import connector_status, find_connect, stop_connect


@pytest.mark.nightly  # by day a start that is killed, below
@pytest.mark.parametrize("victim", ["Connect", "the database"])
def test_a_first_load_that_was_cut_short_begins_anew(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path, victim: str
) -> None:
    """Connect is killed in its first load, or the database, where it halts: rows are deleted, it starts again, and they
    are nowhere. The database is quiet behind that.
    """
    name = fresh()
    postgres.run(
        f"create schema {name}",
        f"create table {name}.a (id int primary key, v text)",
        f"insert into {name}.a select g, repeat('x', 300) from generate_series(1, 60000) g",
    )
    running = connected(name, f"{name}.*")
    consumer = Consumer({"bootstrap.servers": broker.url, "group.id": name})

    def count() -> int:
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(f"{name}.{name}.a", 0), timeout=2)[1])
        except KafkaException:
            return 0

    until(count)
    if victim == "Connect":
        os.kill(running.pid, signal.SIGKILL)
        until(lambda: find_connect(name, tmp_path / name) is None)
    else:
        postgres.stop("immediate")
        postgres.start()
        until(lambda: (status := connector_status(running)) is not None and status.is_halted)
        stop_connect(name, tmp_path / name)
    assert count() < 60000
    postgres.run(f"delete from {name}.a where id <= 59990")
    running = connected(name, f"{name}.*")
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        assert rows_of(engine, f"{name}__a") == sorted(postgres.rows(f"select * from {name}.a"))
    consumer.close()


@pytest.mark.nightly
def test_a_source_whose_folder_was_lost_begins_anew_when_asked(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """TS1493 while its slot is there; anew, the table of before is refused (TS1424), even if its table has no row any
    more (TS1482); dropped, it is the database's. Another pattern, and a place behind the log's end, are TS1492.
    """
    name, folder = fresh(), "dead"
    postgres.run(
        f"create schema {name}",
        f"create table {name}.a (id int primary key)",
        f"create table {name}.b (id int primary key)",
        f"insert into {name}.a values (1), (2), (3)",
        f"insert into {name}.b values (1)",
    )
    running = connected(name, f"{name}.*")
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        stop_connect(name, tmp_path / name)
        with pytest.raises(FixRequest, match="TS1492"):
            connected(name, f"{name}.a")
        record = read_record(tmp_path / name)
        assert record is not None
        write_record(tmp_path / name, record.with_place("FF/0"))
        with pytest.raises(FixRequest, match="TS1492"):
            connected(name, f"{name}.*")
        (tmp_path / name).rename(tmp_path / folder)
        postgres.run(f"delete from {name}.a where id = 1", f"delete from {name}.b")
        with pytest.raises(FixRequest, match="TS1493") as error:
            connected(name, f"{name}.*")
        assert f"tablestore connect start {name} --database {postgres.url} --table '{name}.*' --anew" in str(
            error.value
        )
        running = connected(name, f"{name}.*", anew=True)
        errors = sync(engine, running).errors
        assert {table: one.code for table, one in errors.items()} == {
            f"demo.{name}__a": "TS1424",
            f"demo.{name}__b": "TS1482",
        }
        for table in "ab":
            shutil.rmtree(tmp_path / "warehouse" / "demo.db" / f"{name}__{table}")
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        assert rows_of(engine, f"{name}__a") == [(2,), (3,)]


TABLES = """
create type {s}.comp as (a int, b text);
create table {s}.part (id int primary key, v int) partition by range (id);
create table {s}.part_1 partition of {s}.part for values from (0) to (100);
create table {s}.part_2 partition of {s}.part for values from (100) to (200);
insert into {s}.part values (1, 1), (2, 2), (101, 101);
create table {s}.emptied (id int primary key) partition by range (id);
create table {s}.emptied_1 partition of {s}.emptied for values from (0) to (100);
create table {s}.emptied_2 partition of {s}.emptied for values from (100) to (200);
insert into {s}.emptied values (1), (101);
create table {s}.attached (id int primary key) partition by range (id);
create table {s}.attached_1 partition of {s}.attached for values from (0) to (100);
create table {s}.gen (id int primary key, a int, twice int generated always as (a * 2) stored);
insert into {s}.gen (id, a) values (1, 5);
create table {s}.unk (id int primary key, c {s}.comp, i interval);
insert into {s}.unk values (1, row(1, 'x'), '1 month 2 days');
create table {s}.uq (email text not null, active bool, v int);
create unique index on {s}.uq (email) where active;
alter table {s}.uq replica identity full;
create unlogged table {s}.unl (id int primary key);
create table {s}.virt (id int primary key, a int, twice int generated always as (a * 2) virtual);
create table {s}.parent (id int primary key);
create table {s}.child (primary key (id)) inherits ({s}.parent);
create table {s}.again (id int primary key, v int);
insert into {s}.again values (1, 1), (2, 2);
create table {s}.moved (id int primary key);
insert into {s}.moved values (1);
create table {s}.gone (id int primary key);
insert into {s}.gone values (1);
create table {s}.rekeyed (id int primary key, r int not null);
insert into {s}.rekeyed values (1, 1);
create table {s}.added (id int primary key, v int);
insert into {s}.added values (1, 1);
create table {s}.retyped (id int primary key, v text, w int);
insert into {s}.retyped values (1, 'abcd', 1);
create table {s}.twin (id int primary key);
create table {s}."Twin" (id int primary key);
insert into {s}.twin values (1);
insert into {s}."Twin" values (2);
create table {s}.trimmed (id int primary key);
insert into {s}.trimmed values (1), (2);
create table {s}.num (id int primary key, n numeric(12,3));
insert into {s}.num values (1, 1.5)"""
CHANGES = """
update {s}.part set v = 10 where id = 1;
insert into {s}.part values (3, 3);
drop table {s}.part_2;
truncate {s}.emptied_1;
create table {s}.attached_2 (id int primary key);
insert into {s}.attached_2 values (101);
alter table {s}.attached attach partition {s}.attached_2 for values from (100) to (200);
create table {s}.attached_3 partition of {s}.attached for values from (200) to (300);
update {s}.gen set a = 6;
update {s}.unk set i = '1 day';
drop table {s}.again;
create table {s}.again (id int primary key, v int);
insert into {s}.again values (100, 1);
alter table {s}.moved rename to elsewhere;
drop table {s}.gone;
alter table {s}.rekeyed drop constraint rekeyed_pkey, add primary key (id, r);
insert into {s}.rekeyed values (1, 2);
alter table {s}.added add column w int default 7;
insert into {s}.added values (2, 2, 2);
alter table {s}.retyped alter v type varchar(3) using left(v, 3), alter w type bigint;
create table {s}.late (id int primary key);
create table {s}.late_full (id int primary key);
insert into {s}.late_full values (1)"""


GONE = ("moved", "elsewhere", "gone")


@pytest.mark.nightly
def test_what_the_log_does_not_tell_is_named(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """Tables that cannot be followed, that were made again, renamed, dropped, given other keys, columns with values or
    fewer partitions: each by its name, the others are the database's. A value that cannot be converted ends the
    connector, and is no NULL.
    """
    name = fresh()
    postgres.run(f"create schema {name}", *TABLES.format(s=name).split(";"))
    running = connected(name, f"{name}.*")

    def codes(errors: object) -> dict[str, str]:
        assert isinstance(errors, dict)
        return {table.removeprefix(f"demo.{name}__"): one.code for table, one in errors.items()}

    unfit = {"uq": "TS1491", "unl": "TS1491", "virt": "TS1491", "parent": "TS1491"}
    unfit |= {"twin": "TS1463", "trimmed": "TS1483"}
    _trim(broker, f"{name}.{name}.trimmed")
    with opened(tmp_path, broker) as engine:
        assert codes(sync(engine, running).errors) == unfit
        for table, columns in (("part", "*"), ("gen", "*"), ("again", "*"), ("added", "*")):
            expected = sorted(postgres.rows(f"select {columns} from {name}.{table}"))
            assert rows_of(engine, f"{name}__{table}") == expected, table
        assert rows_of(engine, f"{name}__part_1") is None
        assert rows_of(engine, f"{name}__unk") == [(1, b"(1,x)", "P0Y1M2DT0H0M0S")]
        postgres.run(*CHANGES.format(s=name).split(";"))
        found = codes(sync(engine, running).errors)
        torn = dict.fromkeys(
            (*GONE, "part", "emptied", "attached", "again", "rekeyed", "added", "retyped"), "TS1495"
        )
        assert found == {**unfit, **torn, "late_full": "TS1496"}
        assert rows_of(engine, f"{name}__again") == [(1, 1), (2, 2)]
        assert rows_of(engine, f"{name}__gen") == [(1, 6, 12)]
        assert rows_of(engine, f"{name}__unk") == [(1, b"(1,x)", "P0Y0M1DT0H0M0S")]
        postgres.run(
            f"update {name}.added set w = w",
            f"update {name}.attached_2 set id = id",
            f"update {name}.retyped set v = v",
            f"insert into {name}.attached values (201)",
            f"insert into {name}.late values (1)",
            f"drop table {name}.late_full",
        )
        found = codes(sync(engine, running).errors)
        assert {"added", "attached", "retyped", "late", "late_full"}.isdisjoint(found)
        assert rows_of(engine, f"{name}__retyped") == [(1, "abc", 1)]
        assert rows_of(engine, f"{name}__attached") == [(101,), (201,)]
        assert rows_of(engine, f"{name}__added") == [(1, 1, 7), (2, 2, 2)]
        assert rows_of(engine, f"{name}__late") == [(1,)]
        _check_topic(broker, f"{name}.{name}.late")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{running.url}/connectors")
        postgres.run(f"update {name}.num set n = 'NaN'")
        with pytest.raises(FixRequest, match="TS1467") as error:
            sync(engine, running)
        assert f"{name}.num.n" in str(error.value)
        assert rows_of(engine, f"{name}__num") == [(1, 1.5)]


def _trim(broker: BrokerInfo, topic: str) -> None:
    """Its first message is gone."""
    consumer, place = (
        Consumer({"bootstrap.servers": broker.url, "group.id": topic}),
        TopicPartition(topic, 0, 1),
    )

    def count() -> int:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=2)[1])
        except KafkaException:
            return 0

    until(lambda: count() == 2)
    consumer.close()
    admin = AdminClient({"bootstrap.servers": broker.url})
    admin.delete_records([place])[place].result()


def _check_topic(broker: BrokerInfo, topic: str) -> None:
    """It keeps everything."""
    admin = AdminClient({"bootstrap.servers": broker.url})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result()
    assert found["retention.ms"].value == "-1"


@pytest.mark.parametrize("sign", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGKILL])
def test_a_start_that_is_interrupted_leaves_nothing_unknown(
    postgres: Postgres,
    connected: Connected,
    broker: BrokerInfo,
    tmp_path: Path,
    sign: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C ends Connect too; where the command itself was killed, `stop` finds it. One that is silent, and one
    that is no more, end the wait of a sync, each by its name.
    """
    monkeypatch.setattr(ConnectorCheck.__init__, "__defaults__", (8.0,))
    name = fresh()
    postgres.run(f"create schema {name}", f"create table {name}.a (id int primary key)")
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "connect", "start", name]
    command += ["--database", postgres.url, "--table", f"{name}.*", "--data-dir", str(tmp_path / name)]
    environ = {**os.environ, **KNOWN, "TABLESTORE_KAFKA": broker.url}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until((tmp_path / name / "connect.json").exists)
    pid = json.loads((tmp_path / name / "connect.json").read_text("utf-8"))["pid"]
    process.send_signal(sign)
    assert process.wait(60) != 0
    if sign is signal.SIGKILL:
        assert stop_connect(name, tmp_path / name)
    assert find_connect(name, tmp_path / name) is None
    until(lambda: not Path(f"/proc/{pid}").exists())
    if sign is signal.SIGINT:
        running = connected(name, f"{name}.*")
        status = connector_status(running)
        assert status is not None
        assert status.is_running
        with opened(tmp_path, broker) as engine:
            os.kill(running.pid, signal.SIGSTOP)  # it neither ends nor answers
            try:
                with pytest.raises(RetryError, match=r"TS1467[^\n]*\n.*not answered for 8 s"):
                    sync(engine, running)
            finally:
                os.kill(running.pid, signal.SIGCONT)
            assert sync(engine, running).errors == {}
        os.kill(running.pid, signal.SIGKILL)
        until(lambda: find_connect(name, tmp_path / name) is None)
        with (
            opened(tmp_path, broker) as engine,
            pytest.raises(RetryError, match=r"TS1467[^\n]*\n.*has ended"),
        ):
            sync(engine, running)
