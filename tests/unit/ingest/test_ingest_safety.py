"""Ingesting: what would be a wrong row, or a row that is missing, in silence: it is told instead."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api import ChangeFormat, Engine, IngestSpec, WriteSpec
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.spi import PositionStep
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


# tables of the source ------------------------------------------------------------------------------------------------


def lines(path: Path, *messages: Message) -> None:
    """Behind what the file has."""
    with path.open("ab") as file:
        file.writelines((value or b"") + b"\n" for _, value in messages)


def file_spec(path: Path, **more: Any) -> IngestSpec:
    """Into d.t by id."""
    words: dict[str, Any] = {"key": ("id",), "infer": True, **more}
    return IngestSpec(format=ChangeFormat.DEBEZIUM_JSON, into="d.t", path=str(path), **words)


def test_another_table_in_a_later_run(engine: Engine, tmp_path: Path) -> None:
    """Names that are the same as a topic's: TS1427, also in later runs, until a pattern says which are meant."""
    path = tmp_path / "in.jsonl"
    lines(path, put(table="a_b", id=1, v=1))
    engine.ingest(file_spec(path))
    lines(path, put(table="a_b", id=2, v=2), (None, b'{"ts_ms":1}'))
    assert engine.ingest(file_spec(path)).upserts == 1
    lines(path, put(table="a b", id=1, v=77))
    with pytest.raises(FixData, match=r"TS1427[\s\S]*of s\.a_b, and of s\.a b at in\.jsonl"):
        engine.ingest(file_spec(path))
    assert table_of(engine)[1]["v"] == 1
    engine.ingest(file_spec(path, source_table="s.a b"))
    lines(path, put(table="a b", id=1, v=78))
    assert engine.ingest(file_spec(path)).upserts == 1, "a table that got another name is meant from then on"
    lines(path, put(table="a_b", id=1, v=79))
    with pytest.raises(FixData, match="TS1427"):
        engine.ingest(file_spec(path))
    lines(path, put(table="a b", id=1, v=80))
    engine.ingest(file_spec(path, source_table="s.*"))
    lines(path, put(table="c", id=1, v=81))
    assert engine.ingest(file_spec(path)).upserts == 1, "of several tables none is the one"


def test_a_position_without_a_table(engine: Engine, tmp_path: Path) -> None:
    """As it was written before tables were noted: it is read, and nothing is committed while nothing comes."""
    path = tmp_path / "in.jsonl"
    lines(path, put(id=1, v=1))
    engine.ingest(file_spec(path))
    name, new = next(iter(engine.table("d.t").positions().items()))
    assert json.loads(new)["table"] == "s.orders"
    old = json.dumps(
        {key: one for key, one in json.loads(new).items() if key != "table"}, separators=(",", ":")
    )
    engine.write(
        "d.t", engine.table("d.t").scan().to_arrow(), WriteSpec(positions={name: PositionStep(new, old)})
    )
    assert engine.ingest(file_spec(path)).commits == 0
    lines(path, put(id=2, v=1))
    assert engine.ingest(file_spec(path)).upserts == 1
    assert json.loads(engine.table("d.t").positions()[name])["table"] == "s.orders"
    assert engine.ingest(file_spec(path)).commits == 0


# what comes before the table -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["apply", "fail", "ignore"])
def test_a_truncate_before_the_first_row(engine: Engine, rule: str) -> None:
    """It makes no table; the batch with rows does, with the position behind both."""
    spec = spec_of("debezium-json", on_truncate=rule, rows_max=1, **INFER)
    source = filled(change("t", None, None))
    assert ingest(engine, source, spec).commits == 0
    assert engine.find_table("d.t") is None
    source.put([put(id=1, v=1)])
    ingest(engine, source, spec)
    assert (table_of(engine)[1]["v"], engine.table("d.t").schema.primary_keys) == (1, ("id",))
    assert engine.table("d.t").positions() == {"memory": "2"}


def test_a_truncate_in_the_first_batch(engine: Engine) -> None:
    """What lies before it is gone; a topic of several partitions has no before."""
    both = filled(put(id=1, v=1), change("t", None, None), put(id=2, v=2))
    with pytest.raises(FixData, match="TS1429"):
        ingest(engine, both, spec_of("debezium-json", into="d.u", **INFER))
    parts = MemorySource([(0, change("t", None, None)), (1, put(id=1, v=1))], partitions=2)
    with pytest.raises(FixData, match="TS1429"):
        ingest(engine, parts, spec_of("debezium-json", into="d.u", on_truncate="apply", **INFER))
    ingest(engine, both, spec_of("debezium-json", into="d.u", on_truncate="apply", **INFER))
    assert list(table_of(engine, "d.u")) == [2]
    gone = filled(put(id=1, v=1), change("t", None, None))
    ingest(engine, gone, spec_of("debezium-json", into="d.v", on_truncate="apply", **INFER))
    assert table_of(engine, "d.v") == {}


# names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_row_kind", "_ROW_KIND", "_TS_VIOLATED", "_KEY_id", "V"])
def test_names_that_no_column_may_have(engine: Engine, name: str) -> None:
    """Those that rows carry beside their columns, those of the format, one that differs in case alone."""
    source = filled(put(**{"id": 1, "v": "a", name: "UP"}))
    with pytest.raises(FixRequest, match="TS1112" if name == "_KEY_id" else "TS1435") as caught:
        ingest(engine, source, spec_of("debezium-json", **INFER))
    assert repr(name) in str(caught.value)
    assert engine.find_table("d.t") is None
    source = filled(put(id=1, v="a"))
    ingest(engine, source, spec_of("debezium-json", **INFER))
    source.put([put(**{"id": 1, "v": "a", name: "UP"})])
    with pytest.raises(FixRequest, match="TS1112" if name == "_KEY_id" else "TS1435"):
        ingest(engine, source, spec_of("debezium-json", **INFER))
    if name != "V":
        ingest(engine, source, spec_of("debezium-json", on_schema_change="ignore", **INFER))
    assert table_of(engine) == {1: {"id": 1, "v": "a"}}


def test_keys_with_names_of_our_own(engine: Engine) -> None:
    """What is noted beside rows takes no column's place."""
    source = MemorySource(partitions=2)
    for partition in (0, 1):
        source.put([put(("__at", "__part"), __at=5, __part=partition, v=1)], partition)
    ingest(engine, source, spec_of("debezium-json", **INFER))
    assert engine.table("d.t").scan().to_arrow().num_rows == 2
    source.put([put(("__at", "__part"), __at=5, __part=0, v=2)], 0)
    source.put([put(("__at", "__part"), __at=5, __part=0, v=3)], 1)
    with pytest.raises(FixData, match=r"TS1428[\s\S]*__at=5, __part=0"):
        ingest(engine, source, spec_of("debezium-json", **INFER))


# times ---------------------------------------------------------------------------------------------------------------

INFINITE_DATE, INFINITE_MICROS = -2146767227, 9223372036825200000
MICROS_BC = -63_517_824_000_000_000


def timed(kind: str, name: str, value: Any, key: int = 1) -> Message:
    """One row with a schema."""
    time = {"type": kind, "name": name, "optional": True, "field": "v"}
    row = {"type": "struct", "fields": [{"type": "int32", "field": "id"}, time]}
    sides = [{**row, "field": "before"}, {**row, "field": "after"}, {"type": "string", "field": "op"}]
    payload = {"before": None, "after": {"id": key, "v": value}, "op": "c"}
    told = {"schema": {"type": "struct", "fields": sides}, "payload": payload}
    return None, json.dumps(told, separators=(",", ":")).encode()


@pytest.mark.parametrize("count", [1, 600])
@pytest.mark.parametrize(
    ("kind", "name", "value", "good"),
    [
        ("int32", "io.debezium.time.Date", INFINITE_DATE, -719_162),
        ("int32", "io.debezium.time.Date", 2_932_897, 2_932_896),
        ("int32", "io.debezium.time.Date", -735_000, 0),
        ("int64", "io.debezium.time.MicroTimestamp", INFINITE_MICROS, 253_402_300_799_999_999),
        ("int64", "io.debezium.time.MicroTimestamp", MICROS_BC, -62_135_596_800_000_000),
        ("int64", "io.debezium.time.Timestamp", INFINITE_MICROS // 1000, 1),
        ("string", "io.debezium.time.ZonedTimestamp", "infinity", "2020-01-01T00:00:00Z"),
        ("string", "io.debezium.time.ZonedTimestamp", "-0044-03-15T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_times_that_nobody_can_read_back(
    engine: Engine, kind: str, name: str, value: Any, good: Any, count: int
) -> None:
    """Infinity, years BC, years of five digits: TS1421 names column and value, or it is a dead letter."""
    source = MemorySource()
    source.put([timed(kind, name, good, key) for key in range(count)])
    source.put([timed(kind, name, value, count)])
    with pytest.raises(FixData, match=r"TS1421[\s\S]*column v: ") as caught:
        ingest(engine, source, spec_of("debezium-json"))
    assert str(value) in str(caught.value)
    assert engine.find_table("d.t") is None
    report = ingest(engine, source, spec_of("debezium-json", on_error="dead_letter"))
    assert (report.dead, len(table_of(engine))) == (1, count)


@pytest.mark.parametrize("count", [1, 600])
def test_times_without_a_schema(engine: Engine, count: int) -> None:
    """The same."""
    columns = {"id": "INT", "d": "DATE", "t": "TIMESTAMP(6)"}
    for name, row in (("d", {"d": INFINITE_DATE, "t": 1}), ("t", {"d": 1, "t": INFINITE_MICROS})):
        source = filled(*(put(id=key, d=1, t=1) for key in range(count)), put(id=count, **row))
        with pytest.raises(FixData, match=rf"TS1421[\s\S]*column {name}: '{row[name]}' is no"):
            ingest(engine, source, spec_of("debezium-json", columns=columns))
