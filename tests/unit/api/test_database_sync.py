"""One round over the tables of a source, without a database: what one of them does to the others."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.api.database_sync import TableRound
from tablestore_engine.api.table_resnapshot import check_snapshot, columns_of, mark_of
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import BIGINT, INT, STRING, DataField, DataType
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.ingest.ingest_spec import IngestReport, IngestSpec
from tablestore_engine.postgres.connector_state import FollowedTable
from tablestore_engine.postgres.database_source import parse_source
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spi import SyncSpec

SOURCE = parse_source("shop", "postgresql://app@localhost/shop")
TITLES = ("public.a", "public.b", "public.c", "public.C")


def round_of(ingest: Any, stop: threading.Event, positions: Mapping[str, str] | None = None) -> TableRound:
    """Whose tables are all there already."""
    table = SimpleNamespace(positions=lambda: dict(positions or {}))
    engine = SimpleNamespace(clients={}, find_table=lambda _: table, ingest=ingest)
    return TableRound(cast("Engine", engine), SOURCE, SyncSpec("demo"), stop, print, SYSTEM)


def followed(*titles: str, snapshot: str = "") -> dict[str, FollowedTable]:
    """As the record has them."""
    return {one: FollowedTable(1, ("id",), {"id": 1}, snapshot=snapshot) for one in titles}


def ingest_all_but_a(spec: IngestSpec, **_: Any) -> IngestReport:
    """The first table has an error that nobody thought of."""
    if spec.into == "demo.a":
        raise RuntimeError("nobody thought of this")
    return IngestReport(spec.into, "kafka:t")


def test_an_unforeseen_error_is_of_its_table_alone() -> None:
    """TS1498; tables of one name are TS1463, one whose topic is not there is TS1482; the rest goes on."""
    done = round_of(ingest_all_but_a, threading.Event())
    done.ingest_all(followed(*TITLES, "crm.d"), frozenset(f"shop.{one}" for one in TITLES))
    assert {name: error.code for name, error in done.errors.items()} == {
        "demo.a": "TS1498",
        "demo.c": "TS1463",
        "demo.crm__d": "TS1482",
    }
    assert "nobody thought of this" in done.errors["demo.a"].why
    assert list(done.reports) == ["demo.b"]
    assert done.is_complete


def test_a_round_that_is_stopped_is_not_complete() -> None:
    """It leaves the rest of its tables alone."""
    stop = threading.Event()

    def ingest(spec: IngestSpec, **_: Any) -> IngestReport:
        stop.set()
        return IngestReport(spec.into, "kafka:t")

    done = round_of(ingest, stop)
    done.ingest_all(followed(*TITLES[:2]), frozenset(f"shop.{one}" for one in TITLES))
    assert list(done.reports) == ["demo.a"]
    assert not done.is_complete


def test_unchanged_tables_are_named_only_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """`names_unchanged` decides about tables without messages; errors always have a line."""

    def ingest(spec: IngestSpec, **_: Any) -> IngestReport:
        return IngestReport(spec.into, "kafka:t", messages=int(spec.into == "demo.b"))

    for names_unchanged, named in (
        (True, ["demo.crm__d", "demo.a", "demo.b"]),
        (False, ["demo.crm__d", "demo.b"]),
    ):
        done = round_of(ingest, threading.Event())
        done._spec = replace(done._spec, names_unchanged=names_unchanged)
        done.ingest_all(followed("crm.d", *TITLES[:2]), frozenset(f"shop.{one}" for one in TITLES))
        printed = capsys.readouterr().out.splitlines()
        assert [line.split(":")[0] for line in printed if line.startswith("demo.")] == named


def test_a_table_without_its_re_snapshot_is_refused() -> None:
    """TS1593: its topic alone does not have all rows; with it the table goes on, also while the topic is not there."""
    done = round_of(ingest_all_but_a, threading.Event())
    done.ingest_all(followed("public.b", snapshot="77"), frozenset({"shop.public.b"}))
    assert {name: error.code for name, error in done.errors.items()} == {"demo.b": "TS1593"}
    check_snapshot("demo.b", "shop.public.b", "77", {mark_of("shop.public.b"): "77"})
    check_snapshot("demo.b", "shop.public.b", "", {})
    with pytest.raises(FixRequest, match=r"TS1593.*(\n.*)*--resnapshot 'public.b'"):
        check_snapshot("demo.b", "shop.public.b", "77", {mark_of("shop.public.b"): "76"})


def test_a_topic_that_is_lost_after_a_re_snapshot_is_refused() -> None:
    """TS1482 where the table has a position in it; before its first message a re-snapshot has all rows."""
    mark = {mark_of("shop.public.b"): "77"}
    done = round_of(ingest_all_but_a, threading.Event(), mark)
    done.ingest_all(followed("public.b", snapshot="77"), frozenset())
    assert done.errors == {}
    lost = round_of(ingest_all_but_a, threading.Event(), {**mark, "kafka:shop.public.b": "{}"})
    lost.ingest_all(followed("public.b", snapshot="77"), frozenset())
    assert {name: error.code for name, error in lost.errors.items()} == {"demo.b": "TS1482"}


def test_a_wider_type_and_a_new_column_reach_the_table_of_a_re_snapshot() -> None:
    """The table keeps columns and wider types of its own; another type is TS1423."""
    known = _schema(DataField(0, "id", INT), DataField(1, "old", STRING), DataField(2, "n", BIGINT))
    made = _schema(DataField(0, "id", BIGINT), DataField(1, "n", INT), DataField(2, "new", STRING))
    found = columns_of(made, known, "demo.a")
    assert [(one.name, one.type.root) for one in found] == [
        ("id", "BIGINT"),
        ("old", "VARCHAR"),
        ("n", "BIGINT"),
        ("new", "VARCHAR"),
    ]
    assert columns_of(made, None, "demo.a") == tuple(made.fields)
    decimals = (DataType("DECIMAL", precision=6, scale=one) for one in (2, 1))
    before, now = (_schema(DataField(0, "n", one)) for one in decimals)
    assert [type_to_text(one.type) for one in columns_of(now, before, "demo.a")] == ["DECIMAL(7, 2)"]
    with pytest.raises(FixData, match="TS1423"):
        columns_of(_schema(DataField(0, "id", STRING)), known, "demo.a")


def _schema(*fields: DataField) -> Any:
    return SimpleNamespace(fields=fields)
