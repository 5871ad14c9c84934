"""Ingesting: what would be a wrong row, or a row that is missing, in silence: it is told instead."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.errors import FixRequest
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


# keys ----------------------------------------------------------------------------------------------------------------


def with_schema(message: Message) -> Message:
    """The same, key and value with their schemas."""
    key, value = (json.loads(one) for one in message if one is not None)

    def struct(row: Any) -> dict[str, Any]:
        return {"type": "struct", "fields": [{"type": "int32", "field": name} for name in row]}

    sides = [{**struct(value["after"]), "field": one} for one in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"type": "string", "field": "op"}]}
    told = ({"schema": struct(key), "payload": key}, {"schema": schema, "payload": value})
    return tuple(json.dumps(one, separators=(",", ":")).encode() for one in told)  # type: ignore[return-value]


@pytest.mark.parametrize("count", [2, 600])
@pytest.mark.parametrize("schemas", [True, False])
def test_messages_with_another_key(engine: Engine, schemas: bool, count: int) -> None:
    """A primary key that changed: its rows would fall together. TS1420 names both, and nothing is written."""
    told = with_schema if schemas else lambda one: one
    key = ("id", "region")
    for name, old in (("d.t", 1), ("d.u", 0)):  # in the next run, and in the first one
        source = MemorySource()
        source.put([told(put(id=1, region=1, v=0))] * old)
        spec = spec_of("debezium-json", into=name, **INFER)
        ingest(engine, source, spec)
        source.put([told(put(id=at, region=1, v=1)) for at in range(count)])
        source.put([told(put(key, id=1, region=at, v=at)) for at in range(count)])
        with pytest.raises(FixRequest, match=r"TS1420[\s\S]*id, region") as caught:
            ingest(engine, source, spec)
        assert f"offset {count + old}" in str(caught.value)
        assert (engine.find_table(name) is None) == (not old)
        spec = spec_of("debezium-json", into=name, infer=True, key=("id",))
        ingest(engine, source, spec)
        assert len(table_of(engine, name)) == count, "whoever names the key gets it"


def test_keys_of_what_is_not_meant(engine: Engine) -> None:
    """Of other tables, of heartbeats, of converters of texts, in another order or case: none of them counts."""
    source = filled(put(("id", "region"), id=1, region=1, v=0))
    source.put([put(("v",), "others", id=1, region=1, v=at) for at in range(400)])
    source.put([(b'{"serverName":"x"}', b'{"ts_ms":1}'), (b'{"id":"7"}', b'{"status":"END","id":"7"}')])
    source.put([(b"text", put(id=2, region=1, v=0)[1]), (None, put(id=3, region=1, v=0)[1])])
    source.put([put(("region", "id"), id=4, region=1, v=0)])
    source.put([(b'{"ID": 5, "Region": 1}', put(id=5, region=1, v=0)[1])])
    ingest(engine, source, spec_of("debezium-json", source_table="s.orders", **INFER))
    assert sorted(table_of(engine)) == [1, 2, 3, 4, 5]


def test_keys_of_canal(engine: Engine) -> None:
    """Other formats say their key in the message."""
    message = {"data": [{"id": "1", "v": "1"}], "table": "t", "database": "d", "type": "INSERT", "pkNames": ["id"],
               "mysqlType": {"id": "int", "v": "int"}}  # fmt: skip
    source = filled((None, json.dumps(message).encode()))
    ingest(engine, source, spec_of("canal-json", key=()))
    source.put([(None, json.dumps({**message, "pkNames": ["id", "v"]}).encode())])
    with pytest.raises(FixRequest, match=r"TS1420[\s\S]*id, v"):
        ingest(engine, source, spec_of("canal-json", key=()))
