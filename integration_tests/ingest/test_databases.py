"""A whole PostgreSQL through the real Debezium: each table is what the database's is, whatever dies on the way.

Size       TABLESTORE_HISTORIES=N random histories; `make test` takes 1
"""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from integration_tests.ingest.databases import KNOWN, PASSWORD, Connected, fresh, opened, rows_of, sync, until
from tablestore_demo.demo_postgres import USER, Postgres
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.postgres.connect_rest import ask_connect
from tablestore_engine.postgres.database_source import PASSWORD_ENV
from tablestore_engine.runtime.outside_world import CRASH_ENV
from tablestore_engine.spi import connector_status, find_connect, stop_connect

HISTORIES = int(os.environ.get("TABLESTORE_HISTORIES", "1"))
SEED = int(os.environ.get("TABLESTORE_SEED", "20261123"))


def test_rows_and_changes_of_all_tables(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """First all rows, then each change: updates, deletes, keys that move, TRUNCATE, columns and tables that come later;
    a second sync without news commits nothing. A table without a key fails by its name and holds no other back.
    """
    name = fresh()
    postgres.run(
        f"create schema {name}",
        f"create table {name}.a (id int primary key, v text)",
        f"create table {name}.b (x int, y text, n int, primary key (x, y))",
        f"insert into {name}.a select n, 'v' || n from generate_series(1, 100) n",
        f"insert into {name}.b values (1, 'a', 1), (1, 'b', 2)",
    )
    running = connected(name, f"{name}.*")
    with opened(tmp_path, broker) as engine:
        report = sync(engine, running)
        assert (set(report.tables), report.errors) == ({f"demo.{name}__a", f"demo.{name}__b"}, {})
        postgres.run(
            f"update {name}.a set v = 'new' where id <= 3",
            f"update {name}.a set id = 1000 where id = 4",
            f"delete from {name}.a where id = 5",
            f"truncate {name}.b",
            f"insert into {name}.b values (2, 'c', 3)",
            f"alter table {name}.a add column w int",
            f"insert into {name}.a values (2000, 'later', 8)",
        )
        report = sync(engine, running)
        assert report.errors == {}
        rows = engine.table(f"demo.{name}__a").scan().to_arrow().to_pylist()
        found = sorted((row["id"], row["v"], row["w"]) for row in rows)
        assert found == sorted(postgres.rows(f"select id, v, w from {name}.a"))
        assert engine.table(f"demo.{name}__b").scan().to_arrow().to_pylist() == [{"x": 2, "y": "c", "n": 3}]
        before = engine.table(f"demo.{name}__a").latest_snapshot_id()
        report = sync(engine, running)
        assert engine.table(f"demo.{name}__a").latest_snapshot_id() == before
        assert report.is_success
        stop = threading.Event()
        stop.set()
        report = sync(engine, running, stop)
        assert (report.is_success, report.errors) == (False, {})
        assert find_connect(name, tmp_path / name) == running


@pytest.mark.nightly  # by day tests/unit/cli/test_connect_start.py
def test_a_stopped_source_starts_again_by_its_name(
    postgres: Postgres,
    connected: Connected,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`connect start NAME` knows database, tables and brokers; no file of the folder has the password."""
    name = fresh()
    postgres.run(f"create schema {name}", f"create table {name}.a (id int primary key)")
    running = connected(name, f"{name}.*")
    assert stop_connect(name, tmp_path / name)
    monkeypatch.delenv("TABLESTORE_KAFKA", raising=False)
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    assert main(["connect", "start", name, "--data-dir", str(tmp_path / name)]) == 0
    assert f"{name}: running" in capsys.readouterr().out
    again = find_connect(name, tmp_path / name)
    assert again is not None
    assert (again.source, again.brokers) == (running.source, running.brokers)
    for path in (tmp_path / name).rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


@pytest.mark.nightly
def test_a_table_without_a_key_fails_alone(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """By its name, and its users may change it; a table that was made later comes, and the command's status says that
    one has failed; so does that of one that follows, through a restart of Connect.
    """
    name = fresh()
    postgres.run(f"create schema {name}", f"create table {name}.a (id int primary key)")
    running = connected(name)
    postgres.run(
        f"create table {name}.nobody (v int)",
        f"insert into {name}.nobody values (1)",
        f"create table {name}.late (id int primary key)",
    )
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "sync", name, "--into", "demo"]
    (tmp_path / "warehouse").mkdir()
    environ = {**os.environ, **KNOWN, "TABLESTORE_KAFKA": broker.url}
    done = subprocess.run(
        [*command, "--warehouse", str(tmp_path / "warehouse"), "--data-dir", str(tmp_path / name)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"1 failed: demo.{name}__nobody" in done.stdout
    assert "TS1491" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    postgres.run(f"insert into {name}.late values (1)", f"update {name}.nobody set v = 2")
    with opened(tmp_path, broker) as engine:
        assert set(sync(engine, running).errors) == {f"demo.{name}__nobody"}
        assert engine.table(f"demo.{name}__late").scan().to_arrow().to_pylist() == [{"id": 1}]
    follow = [
        *command,
        "--warehouse",
        str(tmp_path / "warehouse"),
        "--data-dir",
        str(tmp_path / name),
        "--follow",
    ]
    with (
        opened(tmp_path, broker) as engine,
        subprocess.Popen(
            follow, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as following,
    ):
        stop_connect(name, tmp_path / name)
        running = connected(name)
        postgres.run(f"insert into {name}.late values (2)")
        until(lambda: rows_of(engine, f"{name}__late") == [(1,), (2,)])
        following.terminate()
    assert following.returncode == 1
    status = connector_status(running)
    assert status is not None
    assert status.is_running


TYPES = {
    "c_bool": ("boolean", "true", True),
    "c_small": ("smallint", "-3", -3),
    "c_int": ("int", "2147483647", 2147483647),
    "c_big": ("bigint", "9223372036854775807", 9223372036854775807),
    "c_real": ("real", "1.5", 1.5),
    "c_double": ("double precision", "0.1", 0.1),
    "c_numeric": ("numeric(12,3)", "-1234567.891", Decimal("-1234567.891")),
    "c_text": ("text", "'Zoë ☃'", "Zoë ☃"),
    "c_varchar": ("varchar(10)", "'abc'", "abc"),
    "c_char": ("char(4)", "'ab'", "ab  "),
    "c_date": ("date", "'2026-02-28'", dt.date(2026, 2, 28)),
    "c_ts": ("timestamp", "'2026-02-28 12:34:56.789012'", dt.datetime(2026, 2, 28, 12, 34, 56, 789012)),  # noqa: DTZ001
    "c_tstz": ("timestamptz", "'2026-02-28 12:00:00+02'", dt.datetime(2026, 2, 28, 10, tzinfo=dt.UTC)),
    "c_uuid": ("uuid", "'11111111-2222-3333-4444-555555555555'", "11111111-2222-3333-4444-555555555555"),
    "c_json": ("json", "'{\"a\": 1}'", '{"a": 1}'),
    "c_jsonb": ("jsonb", "'{\"a\":1}'", '{"a": 1}'),
    "c_bytes": ("bytea", "'\\x00ff'", b"\x00\xff"),
    "c_array": ("int[]", "'{1,2,NULL}'", [1, 2, None]),
    "c_enum": ("mood", "'sad'", "sad"),
    "c_inet": ("inet", "'10.0.0.1'", "10.0.0.1"),
}


@pytest.mark.nightly  # by day the rows above; tests/laws/test_ingest_value_laws.py
def test_values_of_every_common_type(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """As PostgreSQL has them, and NULL of each; first rows and later ones alike."""
    name = fresh()
    columns = ", ".join(f"{column} {kind}" for column, (kind, _, _) in TYPES.items())
    values = ", ".join(text for _, text, _ in TYPES.values())
    postgres.run(
        f"create schema {name}",
        f"create type {name}.mood as enum ('sad', 'glad')",
        f"create table {name}.t (id int primary key, {columns.replace('mood', f'{name}.mood')})",
        f"insert into {name}.t values (1, {values})",
    )
    running = connected(name, f"{name}.t")
    postgres.run(f"insert into {name}.t (id) values (2)", f"insert into {name}.t values (3, {values})")
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        rows = engine.table(f"demo.{name}__t").scan().to_arrow().to_pylist()
    found = {row.pop("id"): row for row in rows}
    expected = {column: value for column, (_, _, value) in TYPES.items()}
    assert found[1] == expected
    assert found[3] == expected
    assert found[2] == dict.fromkeys(TYPES)


@pytest.mark.nightly
def test_a_wrong_password_is_told(connected: Connected, postgres: Postgres, tmp_path: Path) -> None:
    """TS1486 with PostgreSQL's own sentence, no word of the password, no process left; the right one starts then."""
    name = fresh()
    with pytest.raises(RetryError, match="TS1486") as error:
        connected(name, password="wrong-word")
    assert "password authentication failed" in str(error.value)
    assert "wrong-word" not in str(error.value)
    assert find_connect(name, tmp_path / name) is None
    postgres.run(f"create schema {name}", f"create table {name}.a (id int primary key)")
    running = connected(name, f"{name}.*")
    for path in (tmp_path / name).rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()
    with pytest.raises(FixRequest, match="TS1462"):
        connected(name, "other.*")
    assert find_connect(name, tmp_path / name) == running


@pytest.mark.nightly
def test_a_connector_that_halts_is_not_running(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path
) -> None:
    """Its process lives and it sends nothing: the status says so, and a sync is refused (TS1467)."""
    name = fresh()
    postgres.run(f"create schema {name}", f"create table {name}.a (id int primary key)")
    running = connected(name, f"{name}.*")
    ask_connect(running, f"connectors/{name}/pause", "PUT")
    postgres.run(f"insert into {name}.a values (1)")
    with opened(tmp_path, broker) as engine, pytest.raises(FixRequest, match="TS1467"):
        sync(engine, running)
    status = connector_status(running)
    assert status is not None
    assert not status.is_running


def _change(postgres: Postgres, name: str, rng: random.Random) -> None:
    """A few random transactions."""
    with postgres.connect() as connection:
        for _ in range(rng.randint(1, 12)):
            with connection.transaction():
                for _ in range(rng.randint(1, 6)):
                    table, key = rng.choice("ab"), rng.randrange(40)
                    roll = rng.random()
                    if roll < 0.5:
                        text = (
                            "insert into {}.{} values ({}, {}) on conflict (id) do update set v = excluded.v"
                        )
                        connection.execute(text.format(name, table, key, rng.randrange(1000)))
                    elif roll < 0.7:
                        connection.execute(f"delete from {name}.{table} where id = {key}")
                    elif roll < 0.85:
                        free = f"not exists (select 1 from {name}.{table} where id = {key + 100})"
                        connection.execute(
                            f"update {name}.{table} set id = {key + 100} where id = {key} and {free}"
                        )
                    elif roll < 0.87:
                        connection.execute(f"truncate {name}.{table}")
                    else:
                        connection.execute(f"update {name}.{table} set v = v + 1")
                if rng.random() < 0.15:
                    raise psycopg.Rollback


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(HISTORIES))
def test_killed_anywhere_tables_are_the_databases(
    postgres: Postgres, connected: Connected, broker: BrokerInfo, tmp_path: Path, number: int
) -> None:
    """Connect, the syncing process and the database are killed while random transactions go on: at the end each table
    has the database's rows.
    """
    rng, name = random.Random(f"{SEED}/{number}"), fresh()
    postgres.run(
        f"create schema {name}",
        f"create table {name}.a (id int primary key, v int)",
        f"create table {name}.b (id int primary key, v int)",
    )
    running = connected(name, f"{name}.*")
    (tmp_path / "warehouse").mkdir()
    command = [
        sys.executable,
        "-m",
        "tablestore_engine.cli.main",
        "sync",
        name,
        "--into",
        "demo",
        "--data-dir",
    ]
    command += [str(tmp_path / name), "--warehouse", str(tmp_path / "warehouse")]
    for _ in range(5):
        _change(postgres, name, rng)
        victim = rng.choice(("connect", "sync", "sync", "database"))
        if victim == "connect":
            os.kill(running.pid, signal.SIGKILL)
            _change(postgres, name, rng)
        elif victim == "database":
            postgres.stop("immediate")
            postgres.start()
            _change(postgres, name, rng)
            stop_connect(name, tmp_path / name)
        else:
            point = rng.choice(("write.data_files", "commit.manifests", "commit.claimed", "commit.done"))
            environ = {**os.environ, **KNOWN, "TABLESTORE_KAFKA": broker.url}
            environ[CRASH_ENV] = f"{point}:{rng.randint(1, 2)}"
            status = subprocess.run(command, env=environ, capture_output=True, check=False).returncode
            assert status in (0, -signal.SIGKILL)
        running = connected(name, f"{name}.*")
    with opened(tmp_path, broker) as engine:
        assert sync(engine, running).errors == {}
        for table in "ab":
            found = engine.find_table(f"demo.{name}__{table}")
            rows = [] if found is None else found.scan().to_arrow().to_pylist()
            expected = sorted(postgres.rows(f"select id, v from {name}.{table}"))
            assert sorted((row["id"], row["v"]) for row in rows) == expected, table


def test_the_user_is_the_servers(postgres: Postgres) -> None:
    """The server is the one that the tests mean: of this run, with its password."""
    assert postgres.rows("select current_user, current_setting('wal_level')") == [(USER, "logical")]
