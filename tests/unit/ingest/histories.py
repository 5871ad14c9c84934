"""Histories of a source's table, and a source in memory that tells them."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tablestore_engine.api import Engine, IngestReport, IngestSpec
from tablestore_engine.ingest.ingest_run import IngestRun
from tablestore_engine.ingest.open_ingest import make_reader
from tablestore_engine.ingest.table_sink import TableSink
from tablestore_engine.log.message_source import RawMessages
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.spark.spark_settings import SparkSettings
from tests.unit.ingest.encoders import COLUMNS, Event, Message

KEYS = st.integers(0, 6)
TEXTS = st.text(st.characters(codec="latin-1", exclude_categories=("Cc",)), max_size=4)
VALUES = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "text": TEXTS,
    "decimal": st.decimals(-99999999, 99999999, places=2).map(lambda one: one.quantize(Decimal("0.01"))),
    "timestamp": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),  # noqa: DTZ001 - a wall clock
    "date": st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=3),
    "double": st.floats(allow_nan=False, allow_infinity=False, width=32),
}


class Killed(BaseException):
    """The process died here."""


@st.composite
def rows(draw: st.DrawFn, key: int) -> dict[str, Any]:
    """One row; all but its key may be NULL."""
    found: dict[str, Any] = {"id": key}
    for name, kind in COLUMNS.items():
        if name != "id":
            found[name] = draw(st.none() | VALUES[kind])
    return found


@st.composite
def histories(draw: st.DrawFn, most: int = 25) -> list[Event]:
    """Events that a database could have had: inserts of keys that are not there, changes of those that are."""
    table: dict[int, dict[str, Any]] = {}
    events: list[Event] = []
    for _ in range(draw(st.integers(0, most))):
        key = draw(KEYS)
        if key not in table:
            after = draw(rows(key))
            events.append(Event(draw(st.sampled_from("cr")), None, after))
            table[key] = after
            continue
        what = draw(st.sampled_from(["u", "u", "d", "move"]))
        if what == "d":
            events.append(Event("d", table.pop(key), None))
            continue
        new = (
            key
            if what == "u"
            else draw(st.sampled_from([one for one in range(7) if one == key or one not in table]))
        )
        before, after = table.pop(key), draw(rows(new))
        events.append(Event("u", before, after))
        table[new] = after
    return events


def fold(events: Sequence[Event]) -> dict[int, Mapping[str, Any]]:
    """By key."""
    table: dict[int, Mapping[str, Any]] = {}
    for event in events:
        if event.before is not None:
            table.pop(event.before["id"], None)
        if event.after is not None:
            table[event.after["id"]] = event.after
    return table


@dataclass
class MemorySource:
    """One partition unless messages say where they lie."""

    messages: list[tuple[int, Message]] = field(default_factory=list)
    source_id: str = "memory"
    title: str = "memory"
    incarnation: str = "1"
    partitions: int = 1

    def put(self, messages: Sequence[Message], partition: int = 0) -> None:
        """Behind all others."""
        self.messages += [(partition, one) for one in messages]

    def begin(self) -> str:
        """As MessageSource."""
        return json.dumps(0)

    def ends(self) -> str:
        """As MessageSource."""
        return json.dumps(len(self.messages))

    def check(self, position: str) -> None:
        """As MessageSource."""
        assert int(json.loads(position)) <= len(self.messages)

    def is_at(self, position: str, end: str) -> bool:
        """As MessageSource."""
        return int(json.loads(position)) >= int(json.loads(end))

    def is_one_line(self) -> bool:
        """As MessageSource."""
        return self.partitions == 1

    def read(
        self, position: str, rows_max: int, bytes_max: int, wait_s: float, most_s: float | None = None
    ) -> RawMessages:
        """As MessageSource."""
        begin = json.loads(position)
        found = self.messages[begin : begin + rows_max]
        return RawMessages(
            np.array([partition for partition, _ in found], dtype=np.int64),
            np.arange(begin, begin + len(found)),
            [key for _, (key, _) in found],
            [value for _, (_, value) in found],
            json.dumps(begin + len(found)),
        )

    def close(self) -> None:
        """As MessageSource."""


def engine_at(folder: object, runtime: Runtime = SYSTEM) -> Engine:
    """Without brokers."""
    return Engine(str(folder), spark=SparkSettings("local[1]"), environ={}, runtime=runtime)


def ingest(
    engine: Engine,
    source: MemorySource,
    spec: IngestSpec,
    find_schema: Callable[[int], str] = lambda number: "",
    said: list[str] | None = None,
) -> IngestReport:
    """Up to the end of the source."""
    run = run_of(engine, source, spec, find_schema, said)
    return run.run(threading.Event())


def run_of(
    engine: Engine,
    source: MemorySource,
    spec: IngestSpec,
    find_schema: Callable[[int], str] = lambda number: "",
    said: list[str] | None = None,
) -> IngestRun:
    """One that is not begun."""
    target = TableSink(engine._warehouse, spec)
    lines = said if said is not None else []
    return IngestRun(
        spec, target, lambda: (source, make_reader(spec.format, find_schema)), engine._runtime, lines.append
    )  # fmt: skip


def spec_of(change_format: str, **more: Any) -> IngestSpec:
    """Into d.t by id."""
    made = IngestSpec(format=change_format, into="d.t", topic="x", key=("id",))
    return replace(made, **more)


def table_of(engine: Engine, name: str = "d.t") -> dict[int, dict[str, Any]]:
    """By key; nothing where there is no table."""
    found = engine.find_table(name)
    return {} if found is None else {row["id"]: row for row in found.scan().to_arrow().to_pylist()}
