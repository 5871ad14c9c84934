"""One round over the tables of a source, without a database: what one of them does to the others."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

from tablestore_engine.api import Engine, SyncSpec
from tablestore_engine.api.database_sync import TableRound
from tablestore_engine.ingest.ingest_spec import IngestReport, IngestSpec
from tablestore_engine.log.database_source import parse_source
from tablestore_engine.runtime.outside_world import SYSTEM

SOURCE = parse_source("shop", "postgresql://app@localhost/shop")
TITLES = ("public.a", "public.b", "public.c", "public.C")


def round_of(ingest: Any, stop: threading.Event) -> TableRound:
    """Whose tables are all there already."""
    engine = SimpleNamespace(clients={}, find_table=lambda _: object(), ingest=ingest)
    return TableRound(cast("Engine", engine), SOURCE, SyncSpec("demo"), stop, print, SYSTEM)


def ingest_all_but_a(spec: IngestSpec, **_: Any) -> IngestReport:
    """The first table has an error that nobody thought of."""
    if spec.into == "demo.a":
        raise RuntimeError("nobody thought of this")
    return IngestReport(spec.into, "kafka:t")


def test_an_unforeseen_error_is_of_its_table_alone() -> None:
    """TS1498; tables of one name are TS1463, one whose topic is not there is TS1482; the rest goes on."""
    done = round_of(ingest_all_but_a, threading.Event())
    done.ingest_all((*TITLES, "crm.d"), frozenset(f"shop.{one}" for one in TITLES))
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
    done.ingest_all(TITLES[:2], frozenset(f"shop.{one}" for one in TITLES))
    assert list(done.reports) == ["demo.a"]
    assert not done.is_complete
