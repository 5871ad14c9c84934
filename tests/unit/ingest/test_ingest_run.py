"""Ingesting: what is refused, what is ignored, schemas that change, messages that cannot be read, two at once."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, IngestSpec, TableSpec, WriteSpec
from tablestore_engine.errors import FixData, FixRequest, OutcomeUnknown, PublishPending, RetryError
from tablestore_engine.ingest.ingest_run import IngestRun, TombstoneCount
from tablestore_engine.log.message_source import RawMessages
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tests.unit.ingest.histories import MemorySource, engine_at, ingest, run_of, spec_of, table_of

INFER: dict[str, Any] = {"infer": True}


def change(op: str, before: Any, after: Any, table: str = "orders") -> tuple[bytes | None, bytes]:
    """Of Debezium, without its schema."""
    value = {"before": before, "after": after, "source": {"schema": "s", "table": table}, "op": op}
    row = after or before
    return (None if row is None else json.dumps({"id": row["id"]}).encode()), json.dumps(value).encode()


def put(**row: Any) -> tuple[bytes | None, bytes]:
    """An insert."""
    return change("c", None, row)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """On a warehouse of its own."""
    return engine_at(tmp_path / "w")


def filled(*messages: tuple[bytes | None, bytes | None]) -> MemorySource:
    """A source with these."""
    source = MemorySource()
    source.put(messages)
    return source


def rows_of(engine: Engine) -> dict[int, tuple[Any, ...]]:
    """Key → the other columns."""
    return {key: tuple(row.values())[1:] for key, row in table_of(engine).items()}


# words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "xml"}, {"on_error": "skip"}, {"on_truncate": "maybe"}, {"on_schema_change": "sync_all_columns"},
        {"on_schema_change": "x"}, {"decimals": "hex"}, {"rows_max": 0}, {"bytes_max": 0}, {"interval_s": -1.0},
        {"interval_s": float("nan")},
    ],
)  # fmt: skip
def test_words_that_nobody_knows(wrong: dict[str, Any]) -> None:
    """Refused before anything is opened, with the words that there are."""
    with pytest.raises(FixRequest, match="TS1418"):
        IngestSpec(**{"format": "debezium-json", "into": "d.t", "topic": "x", **wrong})


@pytest.mark.parametrize(
    "where",
    [{}, {"topic": "x", "path": "y"}, {"path": "y", "format": "debezium-avro"}],
)
def test_where_changes_come_from(where: dict[str, str]) -> None:
    """A topic or a path, one of them; Avro from a topic alone."""
    with pytest.raises(FixRequest, match="TS1419"):
        IngestSpec(**{"format": "debezium-json", "into": "d.t", **where})  # type: ignore[arg-type]


def test_a_type_that_is_none(engine: Engine) -> None:
    """Refused with the spec."""
    with pytest.raises(FixRequest, match="TS1101"):
        spec_of("debezium-json", columns={"v": "NUMBER"})


# the table -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "options", "asked"),
    [((), {}, ("id",)), (("id",), {"sequence.field": "v"}, ("id",)), (("id",), {}, ("v",))],
)
def test_tables_that_take_no_changes(
    engine: Engine, key: tuple[str, ...], options: dict[str, str], asked: tuple[str, ...]
) -> None:
    """No key, another order than the source's, another key: TS1420, and nothing is written."""
    table = TableSpec(primary_key=key, options=options)
    engine.write("d.t", pa.table({"id": [1], "v": [1]}), WriteSpec(table=table))
    with pytest.raises(FixRequest, match="TS1420"):
        ingest(engine, filled(put(id=2, v=2)), spec_of("debezium-json", key=asked))
    assert engine.table("d.t").latest_snapshot_id() == 1


def test_the_key_comes_from_the_messages(engine: Engine) -> None:
    """Where nobody names it: of Debezium its message key; without one TS1420."""
    with pytest.raises(FixRequest, match="TS1420"):
        ingest(engine, filled((None, put(id=1, v=1)[1])), spec_of("debezium-json", key=(), **INFER))
    ingest(engine, filled(put(id=1, v=1), put(id=1, v=2)), spec_of("debezium-json", key=(), **INFER))
    assert engine.table("d.t").schema.primary_keys == ("id",)
    assert rows_of(engine) == {1: (2,)}


def test_options_and_partitions_of_a_new_table(engine: Engine) -> None:
    """They are those of the call, once; a table that is there keeps its own."""
    spec = spec_of("debezium-json", key=("id", "p"), partition_by=("p",), options={"bucket": "3"}, **INFER)
    ingest(engine, filled(put(id=1, p="a")), spec)
    schema = engine.table("d.t").schema
    assert (schema.partition_keys, schema.options["bucket"]) == (("p",), "3")


def test_names_in_another_case(engine: Engine) -> None:
    """A table's columns are found whatever their case, its key too."""
    table = TableSpec(primary_key=("id",))
    engine.write("d.t", pa.table({"id": [1], "v": ["a"]}), WriteSpec(table=table))
    source = filled(change("u", {"ID": 1, "V": "a", "id": 1}, {"ID": 2, "V": "b", "id": 2}))
    values = [json.loads(one[1] or b"{}") for _, one in source.messages]
    for one in values:
        for side in ("before", "after"):
            one[side].pop("id")
    source = filled(*[(None, json.dumps(one).encode()) for one in values])
    ingest(engine, source, spec_of("debezium-json", key=()))
    assert rows_of(engine) == {2: ("b",)}


# columns -------------------------------------------------------------------------------------------------------------


def test_columns_that_nobody_has_described(engine: Engine) -> None:
    """TS1422 names column and message; columns, or infer, say what they are."""
    with pytest.raises(FixRequest, match="TS1422") as caught:
        ingest(engine, filled(put(id=1, v=1)), spec_of("debezium-json"))
    assert "partition 0, offset 0" in str(caught.value)
    assert engine.find_table("d.t") is None
    ingest(engine, filled(put(id=1, v=1)), spec_of("debezium-json", columns={"id": "INT", "v": "SMALLINT"}))
    assert str(engine.table("d.t").schema.arrow_schema().field("v").type) == "int16"


def test_a_new_column(engine: Engine) -> None:
    """Added, left out, or refused with the message that has it, as on_schema_change says."""
    source = filled(put(id=1, v="a"))
    ingest(engine, source, spec_of("debezium-json", **INFER))
    source.put([put(id=2, v="b", n=5)])
    for rule in ("fail", "append_new_columns"):
        with pytest.raises((FixData, FixRequest), match="TS1423" if rule == "fail" else "TS1422") as caught:
            ingest(engine, source, spec_of("debezium-json", on_schema_change=rule))
        assert "offset 1" in str(caught.value)
        assert "'n'" in str(caught.value)
    ingest(engine, source, spec_of("debezium-json", on_schema_change="ignore"))
    assert rows_of(engine) == {1: ("a",), 2: ("b",)}
    source.put([put(id=3, v="c", n=5)])
    ingest(engine, source, spec_of("debezium-json", **INFER))
    assert rows_of(engine) == {1: ("a", None), 2: ("b", None), 3: ("c", 5)}
    source.put([put(id=4, v="d")])
    ingest(engine, source, spec_of("debezium-json"))
    assert rows_of(engine)[4] == ("d", None), "a column that messages lack is NULL"


def typed(kind: str, value: Any, key: int = 1) -> tuple[None, bytes]:
    """One row with a schema block."""
    row = {"type": "struct", "fields": [
        {"field": "id", "type": "int32"}, {"field": "v", "type": kind},
    ]}  # fmt: skip
    fields = [{**row, "field": "before"}, {**row, "field": "after"}, {"field": "op", "type": "string"}]
    payload = {"before": None, "after": {"id": key, "v": value}, "op": "c"}
    return None, json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


def test_a_wider_type(engine: Engine) -> None:
    """Taken within a batch and behind it; any other type is TS1423 and names column and message."""
    source = filled(typed("int16", 1), typed("int32", 70_000, 2))
    ingest(engine, source, spec_of("debezium-json"))
    source.put([typed("int64", 1 << 40, 3), typed("int16", 3, 4)])
    ingest(engine, source, spec_of("debezium-json"))
    assert rows_of(engine) == {1: (1,), 2: (70_000,), 3: (1 << 40,), 4: (3,)}
    source.put([typed("string", "x", 5)])
    with pytest.raises(FixData, match="TS1423") as caught:
        ingest(engine, source, spec_of("debezium-json"))
    assert "column 'v' is BIGINT, the messages have STRING" in str(caught.value)
    assert "offset 4" in str(caught.value)
    assert engine.table("d.t").latest_snapshot_id() == 2


def test_a_type_that_the_caller_has_said(engine: Engine) -> None:
    """Values are converted exactly, or their message cannot be read."""
    spec = spec_of("debezium-json", columns={"v": "STRING"})
    source = filled(typed("int32", 5))
    ingest(engine, source, spec)
    assert rows_of(engine) == {1: ("5",)}
    source.put([typed("string", "300", 2)])
    with pytest.raises(FixData, match="TS1421"):
        ingest(engine, filled(*[one for _, one in source.messages]),
               spec_of("debezium-json", into="d.u", columns={"v": "TINYINT"}))  # fmt: skip
    assert engine.find_table("d.u") is None


def test_values_that_do_not_fit(engine: Engine) -> None:
    """A null in the key, in a column that has none, a text too long: each names its column."""
    spec = spec_of("debezium-json", columns={"id": "INT", "v": "VARCHAR(2)"}, on_error="dead_letter")
    source = filled(
        put(id=1, v="ab"), put(id=2, v="abc"), (None, put(id=None, v="a")[1]), put(id=1 << 40, v="a")
    )
    report = ingest(engine, source, spec)
    assert rows_of(engine) == {1: ("ab",)}
    reasons = {one["place"]: one["reason"] for one in letters(engine)}
    assert report.dead == len(reasons) == 3
    assert "longer than 2" in reasons[1]
    assert "column id" in reasons[2]
    assert "column id" in reasons[3]


def letters(engine: Engine) -> list[dict[str, Any]]:
    """The dead ones."""
    return engine.table("d.t__dead_letters").scan().to_arrow().to_pylist()


# messages ------------------------------------------------------------------------------------------------------------


def test_a_message_that_cannot_be_read(engine: Engine) -> None:
    """TS1421 names place and reason, and nothing of its batch is written; or it is kept, with its bytes."""
    source = filled(put(id=1, v=1), (b"k", b"<xml>"), put(id=2, v=2))
    with pytest.raises(FixData, match="TS1421") as caught:
        ingest(engine, source, spec_of("debezium-json", **INFER))
    assert "partition 0, offset 1" in str(caught.value)
    assert engine.find_table("d.t") is None
    ingest(engine, source, spec_of("debezium-json", on_error="dead_letter", **INFER))
    assert rows_of(engine) == {1: (1,), 2: (2,)}
    (letter,) = letters(engine)
    assert (letter["source"], letter["part"], letter["place"]) == ("memory@1", "0", 1)
    assert (letter["key"], letter["value"]) == (b"k", b"<xml>")


def test_letters_of_a_batch_whose_rows_are_refused_come_once(engine: Engine) -> None:
    """They are committed first; the next run writes the same ones, which changes nothing."""
    source = filled(put(id=1, v=1), (b"k", b"<xml>"))
    died: list[str] = []

    def die(point: str) -> None:
        if point == "commit.done" and not died:
            died.append(point)
            raise KeyboardInterrupt

    spec = spec_of("debezium-json", on_error="dead_letter", **INFER)
    with pytest.raises(KeyboardInterrupt):
        ingest(engine_at(engine.warehouse, Runtime(on_crash_point=die)), source, spec)
    assert engine.find_table("d.t") is None
    assert len(letters(engine)) == 1
    ingest(engine, source, spec)
    assert len(engine.table("d.t__dead_letters").changes(0)) == 1
    assert rows_of(engine) == {1: (1,)}


def test_a_value_that_the_database_did_not_log(engine: Engine) -> None:
    """A placeholder is taken from the row before; where that has none the message cannot be read."""
    hidden = "__debezium_unavailable_value"
    source = filled(
        put(id=1, v="long"),
        change("u", {"id": 1, "v": "long"}, {"id": 1, "v": hidden}),
    )
    ingest(engine, source, spec_of("debezium-json", **INFER))
    assert rows_of(engine) == {1: ("long",)}
    source.put([change("u", None, {"id": 1, "v": hidden})])
    with pytest.raises(FixData, match="REPLICA IDENTITY FULL"):
        ingest(engine, source, spec_of("debezium-json"))


def test_texts_of_decimals_are_not_guessed_at(engine: Engine) -> None:
    """`1234` is base64 and a number: without a word on it the message cannot be read."""
    for decimals, wanted in ((None, None), ("text", "1234.00"), ("base64", "140769.48")):
        spec = spec_of("debezium-json", columns={"id": "INT", "v": "DECIMAL(12,2)"}, decimals=decimals,
                       into=f"d.{decimals}")  # fmt: skip
        source = filled(put(id=1, v="1234"))
        if wanted is None:
            with pytest.raises(FixData, match="decimals='base64'"):
                ingest(engine, source, spec)
            continue
        ingest(engine, source, spec)
        found = engine.table(spec.into).scan().to_arrow().to_pylist()
        assert [str(row["v"]) for row in found] in ([wanted], [_base64_of_1234()])


def _base64_of_1234() -> str:
    number = int.from_bytes(bytes([0xD7, 0x6D, 0xF8]), "big", signed=True)
    return f"{number / 100:.2f}"


def test_an_update_that_says_too_little(engine: Engine) -> None:
    """GoldenGate may leave out what did not change: with neither side the row is not known."""
    spec = spec_of("ogg-json", columns={"id": "INT", "v": "STRING"})
    row = {"table": "S.T", "op_type": "I", "after": {"id": 1, "v": "a"}}
    less = {"table": "S.T", "op_type": "U", "before": {"id": 1}, "after": {"id": 1}}
    source = filled((None, json.dumps(row).encode()), (None, json.dumps(less).encode()))
    with pytest.raises(FixData, match="column v is neither in before nor in after"):
        ingest(engine, source, spec)


def test_what_is_ignored_is_counted(engine: Engine) -> None:
    """Heartbeats, markers, other tables: no row, but the position moves behind them."""
    source = filled(
        (None, b'{"ts_ms":1}'), put(id=1, v=1), (None, b'{"status":"END","id":"1"}'), (None, None),
        (None, b'{"databaseName":"d","ddl":"ALTER"}'), change("c", None, {"id": 9, "v": 9}, table="others"),
    )  # fmt: skip
    report = ingest(engine, source, spec_of("debezium-json", source_table="s.orders", **INFER))
    assert rows_of(engine) == {1: (1,)}
    once = ("heartbeats", "transaction markers", "schema changes", "other tables", "tombstones without a key")
    assert {name: report.ignored[name] for name in once} == dict.fromkeys(once, 1)
    assert report.messages == 6
    assert engine.table("d.t").positions() == {"memory": "6"}
    assert report.record()["ignored"]["heartbeats"] == 1
    assert "1 heartbeats" in report.summary()


@pytest.mark.parametrize("rows_max", [1, 2, 100])
def test_a_tombstone_after_its_delete_is_no_second_delete(engine: Engine, rows_max: int) -> None:
    """Debezium sends one after each delete: one row is one delete, also where a batch ends between the two."""
    key, row = b'{"id": 1}', {"id": 1, "v": 1}
    delete = change("d", row, None)
    source = filled(put(**row), delete, (key, None), put(**row), (key, None), put(id=2, v=2))
    report = ingest(engine, source, spec_of("debezium-json", rows_max=rows_max, **INFER))
    assert rows_of(engine) == {2: (2,)}
    assert (report.messages, report.upserts, report.deletes) == (6, 3, 2)
    assert report.ignored["tombstones after their delete"] == 1
    assert report.summary().startswith("6 messages: 3 upserts, 2 deletes, 1 tombstones after their delete · ")


def test_a_tombstone_after_a_delete_in_another_partition_deletes() -> None:
    """The message before it in its own partition counts; what is between them of other partitions does not."""
    keys = [b"a", b"b", b"a", b"b"]
    values = [b"delete", b"put", None, None]

    def count(partitions: list[int], deletes: list[int]) -> int:
        raw = RawMessages(np.array(partitions), np.arange(4), keys, values, "")
        return TombstoneCount().take(raw, np.array(deletes))

    assert count([0, 1, 0, 1], [0, 2, 3]) == 1
    assert count([0, 1, 1, 1], [0, 2, 3]) == 0


def test_a_tombstone_alone_takes_its_key(engine: Engine) -> None:
    """Compaction leaves it and takes the delete before it."""
    source = filled(put(id=1, v=1), (b'{"id":1}', None))
    ingest(engine, source, spec_of("debezium-json", **INFER))
    assert rows_of(engine) == {}


def test_several_tables_in_one_topic(engine: Engine) -> None:
    """TS1427 names both, within a batch and across batches; a pattern says which are meant."""
    source = filled(put(id=1, v=1), change("c", None, {"id": 2, "v": 2}, table="others"))
    for rows_max in (1, 10):
        with pytest.raises(FixData, match="TS1427") as caught:
            ingest(
                engine, source, spec_of("debezium-json", rows_max=rows_max, into=f"d.t{rows_max}", **INFER)
            )
        assert "s.others at partition 0, offset 1" in str(caught.value)
    ingest(engine, source, spec_of("debezium-json", source_table="s.*", **INFER))
    assert rows_of(engine) == {1: (1,), 2: (2,)}


@pytest.mark.parametrize("rule", ["fail", "ignore", "apply"])
def test_a_source_that_is_emptied(engine: Engine, rule: str) -> None:
    """An error that names the place; or nothing; or the table is emptied too, and what comes behind it is there."""
    source = filled(put(id=1, v=1))
    ingest(engine, source, spec_of("debezium-json", **INFER))
    source.put(
        [put(id=2, v=2), change("t", None, None), put(id=3, v=3), change("d", {"id": 4, "v": 4}, None)]
    )
    spec = spec_of("debezium-json", on_truncate=rule, **INFER)
    if rule == "fail":
        with pytest.raises(FixData, match="TS1429") as caught:
            ingest(engine, source, spec)
        assert "offset 2" in str(caught.value)
        assert rows_of(engine) == {1: (1,)}
        return
    report = ingest(engine, source, spec)
    assert sorted(rows_of(engine)) == ([1, 2, 3] if rule == "ignore" else [3])
    assert report.truncates == (0 if rule == "ignore" else 1)


def test_partitions_have_no_order(engine: Engine) -> None:
    """A truncate of one is none of all; a key in two of them is TS1428 with both places."""
    source = MemorySource(partitions=2)
    source.put([put(id=1, v=1)], 0)
    source.put([put(id=2, v=1)], 1)
    spec = spec_of("debezium-json", on_truncate="apply", **INFER)
    ingest(engine, source, spec)
    source.put([put(id=3, v=1)], 0)
    source.put([put(id=3, v=2), put(id=4, v=1)], 1)
    with pytest.raises(FixData, match="TS1428") as caught:
        ingest(engine, source, spec)
    assert "partition 0, offset 2 and at partition 1, offset 3" in str(caught.value)
    truncated = MemorySource(partitions=2)
    truncated.put([change("t", None, None)], 1)
    with pytest.raises(FixData, match="several partitions"):
        ingest(engine, truncated, spec_of("debezium-json", into="d.u", on_truncate="apply", **INFER))


# runs ----------------------------------------------------------------------------------------------------------------


def test_another_run_is_noticed_before_a_batch(engine: Engine) -> None:
    """TS1437: this run's position is not the table's any more; nothing comes twice."""
    source = filled(*[put(id=key, v=key) for key in range(4)])
    spec = spec_of("debezium-json", rows_max=1, **INFER)

    class Meddled(MemorySource):
        def read(self, position: str, *words: Any) -> Any:
            if not meddled:
                meddled.append(1)
                ingest(engine, source, spec)
            return super().read(position, *words)

    meddled: list[int] = []
    with pytest.raises(RetryError, match="TS1437"):
        ingest(engine, Meddled(list(source.messages)), spec)
    assert len(engine.table("d.t").changes(0)) == 4


@pytest.mark.nightly  # by day a follower goes on behind a commit without an answer
def test_a_follower_tries_again_and_stops(engine: Engine) -> None:
    """What passes by itself is said; it goes on at the table's position, until it is told to stop."""
    source, stop, said, opened = filled(put(id=1, v=1)), threading.Event(), [], []  # type: ignore[var-annotated]

    class Shaky(MemorySource):
        def read(self, position: str, *words: Any) -> Any:
            if len(opened) == 2:
                raise RetryError("TS1433", "gone", why="away", fix="wait")
            if position == "1":
                stop.set()
            return super().read(position, *words)

    run: IngestRun = run_of(
        engine, Shaky(list(source.messages)), spec_of("debezium-json", **INFER), said=said
    )
    first = run.open_source

    def open_source() -> Any:
        opened.append(1)
        if len(opened) == 1:
            raise RetryError("TS1433", "not there", why="away", fix="wait")
        return first()

    run.open_source = open_source
    report = run.follow(stop)
    assert report.restarts == 2
    assert "not there" in said[0]
    assert "gone" in said[1]
    assert rows_of(engine) == {1: (1,)}


def test_a_follower_commits_once_in_an_interval(engine: Engine) -> None:
    """Few messages at a time make few snapshots; a full batch is not waited with."""
    stop, pauses = threading.Event(), []  # type: ignore[var-annotated]

    class Patient(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return super().wait(0)

    stop = Patient()

    class Trickle(MemorySource):
        def read(self, position: str, rows_max: int, *words: Any) -> Any:
            if position == "3":
                stop.set()
            return super().read(position, min(rows_max, 2 if position == "0" else 1), *words)

    source = Trickle([(0, put(id=key, v=key)) for key in range(3)])
    spec = spec_of("debezium-json", rows_max=2, interval_s=30.0, **INFER)
    report = run_of(engine, source, spec).follow(stop)
    assert (report.commits, len(rows_of(engine))) == (2, 3)
    assert len(pauses) == 2, "behind the batch that was not full, and behind the last look"
    assert all(20 < pause <= 30 for pause in pauses)


def test_what_needs_a_person_ends_a_follower(engine: Engine) -> None:
    """A message that cannot be read is not tried again."""
    with pytest.raises(FixData, match="TS1421"):
        run_of(engine, filled((None, b"x")), spec_of("debezium-json")).follow(threading.Event())


def test_a_log_that_is_behind_does_not_ingest_twice(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are committed and counted; a follower goes on behind them."""
    source, stop = filled(put(id=1, v=1), put(id=2, v=2)), threading.Event()
    run = run_of(engine, source, spec_of("debezium-json", rows_max=1, **INFER))
    commit = type(run.target).commit

    def pending(self: Any, source_id: str, state: Any, batch: Any) -> Any:
        done = commit(self, source_id, state, batch)
        if batch.step.after == "2":
            stop.set()
            return done
        raise PublishPending(
            "TS1070", "behind", why="away", fix="publish", snapshot=done.snapshot_id, report=done
        )

    monkeypatch.setattr(type(run.target), "commit", pending)
    report = run.follow(stop)
    assert (report.commits, report.upserts, report.restarts) == (2, 2, 1)
    assert len(engine.table("d.t").changes(0)) == 2


def test_idle_positions_are_committed_once_a_minute(engine: Engine) -> None:
    """Messages from which nothing follows make no snapshot each; retention must not overtake the position though."""
    now = [0]
    slow = engine_at(engine.warehouse, Runtime(now_ms=lambda: now[0]))
    source = filled(put(id=1, v=1))
    ingest(engine, source, spec_of("debezium-json", **INFER))

    class Ticking(MemorySource):
        def read(self, position: str, *words: Any) -> Any:
            now[0] += 25_000
            return super().read(position, *words)

    beats = Ticking([*source.messages, *[(0, (None, b'{"ts_ms":1}'))] * 6])
    report = ingest(slow, beats, spec_of("debezium-json", rows_max=1))
    assert 1 < report.commits < 6
    assert engine.table("d.t").positions() == {"memory": "7"}


def test_nothing_to_do_makes_nothing(engine: Engine) -> None:
    """An empty source, and one with heartbeats alone: no table."""
    for source in (MemorySource(), filled((None, b'{"ts_ms":1}'))):
        assert ingest(engine, source, spec_of("debezium-json")).commits == 0
        assert engine.find_table("d.t") is None
    assert SYSTEM is not None


def test_a_follower_goes_on_behind_a_commit_without_an_answer(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit was made; the follower finds its position in the table, and ingests nothing twice."""
    source, stop = filled(put(id=1, v=1), put(id=2, v=2)), threading.Event()
    run = run_of(engine, source, spec_of("debezium-json", rows_max=1, **INFER))
    commit = type(run.target).commit

    def unanswered(self: Any, source_id: str, state: Any, batch: Any) -> Any:
        done = commit(self, source_id, state, batch)
        if batch.step.after == "2":
            stop.set()
            return done
        raise OutcomeUnknown("TS1306", "is unknown", why="lost", fix="again")

    monkeypatch.setattr(type(run.target), "commit", unanswered)
    assert run.follow(stop).restarts == 1
    assert len(engine.table("d.t").changes(0)) == 2
