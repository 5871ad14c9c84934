"""How a database is named, what Connect and Debezium are told, and what is made of their answers."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tablestore_engine.api.database_sync import table_name
from tablestore_engine.errors import FixRequest
from tablestore_engine.postgres import replication_progress
from tablestore_engine.postgres.connect_rest import ConnectInfo, ConnectorStatus, connector_status
from tablestore_engine.postgres.database_source import (
    connector_properties,
    parse_source,
    snapshot_prefix,
    snapshot_settings,
    worker_properties,
)
from tablestore_engine.runtime.outside_world import Runtime

URL = "postgresql://app@db.example:5433/shop"


def test_an_address_is_read() -> None:
    """With its port, or PostgreSQL's own; the way back is the same."""
    source = parse_source("shop", URL, ["public.orders", "crm.*", "crm.*"])
    assert (source.host, source.port, source.user, source.database) == ("db.example", 5433, "app", "shop")
    assert source.tables == ("public.orders", "crm.*")
    assert source.url == URL
    assert parse_source("shop", "postgres://a@b/c").port == 5432
    secure = parse_source("shop", "postgresql://a%40b@[::1]/c%2Fd?sslmode=verify-full")
    assert (secure.user, secure.host, secure.database, secure.sslmode) == ("a@b", "::1", "c/d", "verify-full")
    assert parse_source("shop", secure.url) == replace(secure, port=5432)
    assert "database.sslmode=verify-full\n" in connector_properties(secure)


@pytest.mark.parametrize(
    ("name", "url", "tables"),
    [
        ("Shop", URL, []),
        ("a-b", URL, []),
        ("", URL, []),
        ("shop", "postgresql://app:hunter2@db/shop", []),
        ("shop", "mysql://app@db/shop", []),
        ("shop", "postgresql://db/shop", []),
        ("shop", "postgresql://app@db", []),
        ("shop", "postgresql://app@db:port/shop", []),
        ("shop", "postgresql://[hunter2@db/shop", []),
        ("shop", "app:hunter2@db:5432/shop", []),
        ("shop", URL + "?password=hunter2", []),
        ("shop", URL + "?sslmode=hunter2", []),
        ("shop", URL + "#hunter2", []),
        ("shop", "", []),
        ("shop", URL, ["orders"]),
        ("shop", URL, ["a.b,c.d"]),
    ],
)
def test_what_cannot_be_is_refused(name: str, url: str, tables: list[str]) -> None:
    """TS1475, and a password is not said again."""
    with pytest.raises(FixRequest) as error:
        parse_source(name, url, tables)
    assert error.value.code == "TS1475"
    assert "hunter2" not in str(error.value)


def test_a_start_without_an_address_names_the_option() -> None:
    """TS1475 with the option, the source's own name, and where the password comes from."""
    with pytest.raises(
        FixRequest, match="TS1475 source orders_db needs the address of its database: --database"
    ) as caught:
        parse_source("orders_db", "")
    assert "TABLESTORE_DATABASE_PASSWORD" in caught.value.why
    assert "connect start orders_db --database postgresql://" in caught.value.fix


def test_no_file_has_a_password(tmp_path: Path) -> None:
    """Connect is told where the word stands, and may look nowhere else."""
    text = connector_properties(parse_source("shop", URL)) + worker_properties("127.0.0.1:1", 2, tmp_path)
    assert "database.password=${env:TABLESTORE_DATABASE_PASSWORD}" in text
    assert "allowlist.pattern=TABLESTORE_DATABASE_PASSWORD" in text
    assert "listeners=http://127.0.0.1:2\n" in text


def test_a_load_names_its_tables() -> None:
    """Those alone; with none, one that cannot be, since Debezium takes nothing for all."""
    text = connector_properties(parse_source("shop", URL), ("public.orders", "crm.a+b"))
    assert "snapshot.include.collection.list=public\\\\.orders,crm\\\\.a\\\\+b\n" in text
    assert "snapshot.include.collection.list=tablestore_no" in connector_properties(parse_source("shop", URL))


def test_a_snapshot_connector_is_another_one() -> None:
    """It reads once and never retries, has a name that no source can have, and the settings of the source."""
    source = parse_source("shop", URL, ["public.*"])
    name = f"{snapshot_prefix('shop')}77"
    settings = snapshot_settings(source, ("public.a+b",), name)
    assert settings["snapshot.mode"] == "initial_only"
    assert settings["errors.max.retries"] == "0"
    assert settings["table.include.list"] == "public\\.a\\+b"
    assert {settings["name"], settings["topic.prefix"]} == {name}
    with pytest.raises(FixRequest):
        parse_source(name, URL)
    shared = ("database.hostname", "interval.handling.mode", "event.converting.failure.handling.mode")
    text = connector_properties(source)
    assert all(f"{one}={settings[one]}\n" in text for one in shared)
    assert settings["database.password"] == "${env:TABLESTORE_DATABASE_PASSWORD}"


@pytest.mark.parametrize(
    ("given", "meant", "not_meant"),
    [
        ("public.orders", ["public.orders"], ["public.orders2", "publicxorders"]),
        ("crm.*", ["crm.a", "crm.b_c"], ["crm2.a", "x.crm.a"]),
        ("*.orders", ["a.orders"], ["a.orders_old"]),
    ],
)
def test_patterns_mean_whole_names(given: str, meant: list[str], not_meant: list[str]) -> None:
    """As Debezium takes them: a regular expression over the whole name, once Java has read its properties."""
    text = connector_properties(parse_source("shop", URL, [given]))
    line = next(one for one in text.splitlines() if one.startswith("table.include.list="))
    pattern = line.partition("=")[2].replace("\\\\", "\\")
    assert all(re.fullmatch(pattern, one) for one in meant)
    assert not any(re.fullmatch(pattern, one) for one in not_meant)


def test_tables_have_names_of_the_warehouse() -> None:
    """Public tables keep theirs."""
    assert table_name("demo", "crm.People") == "demo.crm__people"
    assert table_name("demo", "public.orders") == "demo.orders"


class _Answer(BaseHTTPRequestHandler):
    said: bytes = b""

    def do_GET(self) -> None:
        """Always the same."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Of a server that says what `_Answer.said` is."""
    server = HTTPServer(("127.0.0.1", 0), _Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


TRACE = "org.apache.kafka.ConnectException: wrapped\n\tat x.Y\nCaused by: org.postgresql.PSQLException: no slot\n\tat z"


@pytest.mark.parametrize(
    ("said", "status", "running", "halted"),
    [
        (
            {"connector": {"state": "RUNNING"}, "tasks": [{"state": "RUNNING"}]},
            ("RUNNING", "RUNNING", ""),
            True,
            False,
        ),
        ({"connector": {"state": "RUNNING"}, "tasks": []}, ("RUNNING", "UNASSIGNED", ""), False, False),
        (
            {"connector": {"state": "RUNNING"}, "tasks": [{"state": "FAILED", "trace": TRACE}]},
            ("RUNNING", "FAILED", "org.postgresql.PSQLException: no slot"),
            False,
            True,
        ),
        (
            {"connector": {"state": "PAUSED"}, "tasks": [{"state": "PAUSED"}]},
            ("PAUSED", "PAUSED", ""),
            False,
            True,
        ),
    ],
)
def test_a_failed_task_is_not_running(
    url: str, said: object, status: tuple[str, str, str], running: bool, halted: bool
) -> None:
    """Whatever its connector says; the error is the cause, not what wraps it."""
    _Answer.said = json.dumps(said).encode()
    found = connector_status(ConnectInfo(parse_source("shop", URL), "127.0.0.1:1", url, 1, "/", "/log"))
    assert found == ConnectorStatus(*status)
    assert (found.is_running, found.is_halted) == (running, halted)


def test_a_silent_connect_has_no_status() -> None:
    """Nobody listens there."""
    info = ConnectInfo(parse_source("shop", URL), "127.0.0.1:1", "http://127.0.0.1:1", 1, "/", "/log")
    assert connector_status(info) is None


def test_the_place_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that Debezium never sees (it lies before its first load) is followed by others; the place waited for
    stays the first one's.
    """
    told: list[str] = []
    asked: list[object] = []

    class Database:
        def execute(self, text: str, given: tuple[object, ...] = ()) -> Database:
            if "emit_message" in text:
                told.append(text)
            else:
                asked.append(given[0])
            return self

        def fetchone(self) -> tuple[object]:
            return ("0/1",) if not asked else (len(told) > 2,)

    now = [0]
    runtime = SimpleNamespace(
        now_ms=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + int(s * 1000))
    )
    monkeypatch.setattr(replication_progress, "open_database", lambda *_: nullcontext(Database()))
    place = replication_progress.wait_sent(
        parse_source("shop", URL), {}, cast(Runtime, runtime), check=lambda: None
    )
    assert (place, set(asked), len(told)) == ("0/1", {"0/1"}, 3)
