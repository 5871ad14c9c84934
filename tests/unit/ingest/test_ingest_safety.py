"""Ingesting: what would be a wrong row, or a row that is missing, in silence: it is told instead."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api import Engine
from tests.unit.ingest.histories import MemorySource, engine_at, ingest, run_of, spec_of, table_of

Message = tuple[bytes | None, bytes | None]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """On a warehouse of its own."""
    return engine_at(tmp_path / "w")


def change(
    op: str, before: Any, after: Any, key: tuple[str, ...] | None = ("id",), table: str = "orders"
) -> Message:
    """Of Debezium, without its schema."""
    value = {"before": before, "after": after, "source": {"schema": "s", "table": table}, "op": op}
    row = after or before
    told = None if key is None or row is None else json.dumps({name: row[name] for name in key}).encode()
    return told, json.dumps(value).encode()


def put(key: tuple[str, ...] | None = ("id",), table: str = "orders", **row: Any) -> Message:
    """An insert."""
    return change("c", None, row, key, table)


def filled(*messages: Message) -> MemorySource:
    """A source with these."""
    source = MemorySource()
    source.put(messages)
    return source


INFER: dict[str, Any] = {"infer": True, "key": ()}

# stopped -------------------------------------------------------------------------------------------------------------


def test_a_run_that_was_stopped_says_so(engine: Engine) -> None:
    """What is committed stays; the report is not complete, in words and as a record. The next one is."""
    stop = threading.Event()

    class Stopped(MemorySource):
        def read(self, position: str, *words: Any) -> Any:
            stop.set()
            return super().read(position, *words)

    source = Stopped([(0, put(id=key, v=1)) for key in range(3)])
    spec = spec_of("debezium-json", rows_max=1, **INFER)
    report = run_of(engine, source, spec).run(stop)
    assert (report.is_complete, report.record()["complete"], len(table_of(engine))) == (False, False, 1)
    assert "stopped before the end" in report.summary()
    report = ingest(engine, source, spec)
    assert (report.is_complete, report.record()["complete"], len(table_of(engine))) == (True, True, 3)
    assert "stopped" not in report.summary()
    at_the_end = run_of(engine, source, spec).run(stop)
    assert at_the_end.is_complete, "nothing was left"


def test_a_follower_that_was_stopped_is_complete(engine: Engine) -> None:
    """That is how it ends."""
    stop = threading.Event()
    stop.set()
    assert run_of(engine, filled(put(id=1, v=1)), spec_of("debezium-json", **INFER)).follow(stop).is_complete
