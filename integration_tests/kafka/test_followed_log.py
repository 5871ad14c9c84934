"""Readers that follow a table's log on a real broker: what they are told, from each place, by each kind of log."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from integration_tests.interop.ours import Ours
from integration_tests.kafka.eventual import Points, open_engine, settings_of_table
from integration_tests.kafka.followed import (
    BOTH,
    changes,
    deletes,
    ended,
    folded,
    grow,
    made,
    rows,
    stored,
    told,
)
from tablestore_engine.api import Engine, OnSchemaChange, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import RetryError
from tests.doses import cases

NUMBERED = "from-snapshot", "from-snapshot-full"


@pytest.fixture
def points() -> Points:
    """For an engine."""
    return Points()


@pytest.fixture
def engine(tmp_path: Path, broker: BrokerInfo, points: Points) -> Iterator[Engine]:
    """On the shared broker."""
    with open_engine(tmp_path, broker.url, points) as opened:
        yield opened


def _fail() -> None:
    raise RetryError("TS1305", "overtaken", why="-", fix="-")


@pytest.mark.parametrize(
    ("consistency", "buckets"),
    [
        ("transactional", 3),
        *(
            pytest.param(*one, marks=pytest.mark.nightly)
            for one in (("eventual", 3), ("transactional", 1), ("eventual", 1))
        ),
    ],
)
def test_a_log_tells_what_the_files_tell(engine: Engine, consistency: str, buckets: int) -> None:
    """From every mode and every snapshot: the same changes, in a transactional log of the same snapshots; folded, the
    table.
    """
    table = made(engine, consistency, buckets=buckets)
    grow(table)
    moments = [one.time_millis for one in table.snapshots()]
    starts = [("earliest", {}), ("latest-full", {}), ("compacted-full", {})]
    starts += [(mode, {"snapshot_id": one}) for mode in NUMBERED for one in table.snapshot_ids()]
    starts += [("from-timestamp", {"timestamp_ms": one}) for one in moments]
    for mode, words in starts:
        of_files = told(ended(table, mode, **words, read_mode="file"))
        of_log = told(ended(table, mode, **words))
        if consistency == "transactional":
            assert Counter(of_log) == Counter(of_files), (mode, words)
        else:
            assert Counter(one for _, one in of_log) == Counter(one for _, one in of_files), (mode, words)
        if mode.endswith("full") or mode == "earliest":
            assert folded(change for _, change in of_log) == stored(table)


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_until_and_latest(engine: Engine, consistency: str) -> None:
    """A reader ends behind the snapshot it names, and one of `latest` begins with what comes next."""
    table = made(engine, consistency)
    latest = ended(table, "latest")
    assert changes(latest) == []
    grow(table)
    for until in table.snapshot_ids():
        with ended(table, until=until) as stream:
            assert folded(changes(stream)) == stored(table, until), until
    assert folded(changes(latest), stored(table, 1)) == stored(table)
    latest.close()


def test_rows_come_before_their_snapshot(engine: Engine, points: Points) -> None:
    """A reader of an eventual log has a write's rows while its claim is still to come, and nothing twice behind it."""
    table, seen = made(engine, "eventual"), []
    with ended(table, "latest") as stream:
        assert changes(stream) == []
        points.todo["commit.manifests"] = lambda: seen.append((table.latest_snapshot_id(), told(stream)))
        table.write(rows(_1="b", _20="b"))
        [(newest, early)] = seen
        assert newest == 1
        assert sorted(early) == sorted(
            (None, one) for one in [("-U", 1, "a"), ("+U", 1, "b"), ("+I", 20, "b")]
        )
        assert told(stream) == []
        table.write(deletes(20))
        assert changes(stream) == [("-D", 20, "b")]


def test_rows_that_never_were_are_taken_back(engine: Engine, points: Points) -> None:
    """A write that fails behind its rows: a live reader is told them, and then that it was nothing; who comes later is
    told the same, and one that begins behind them nothing.
    """
    table, seen = made(engine, "eventual"), []
    with ended(table, "latest") as stream:
        assert changes(stream) == []

        def fail() -> None:
            seen.extend(changes(stream))
            _fail()

        points.todo["commit.manifests"] = fail
        with pytest.raises(RetryError, match="TS1305"):
            table.write(rows(_1="never", _100="never"))
        assert sorted(seen) == [("+I", 100, "never"), ("+U", 1, "never"), ("-U", 1, "a")]
        seen += changes(stream)
        assert folded(seen, stored(table)) == stored(table)
        assert ("-D", 100, "never") in seen
    everything = changes(ended(table))
    assert ("-D", 100, "never") in everything
    assert folded(everything) == stored(table)
    table.write(rows(_2="c"))
    assert changes(ended(table, "from-snapshot", snapshot_id=2)) == [("-U", 2, "a"), ("+U", 2, "c")]


def test_transactions_that_are_open_or_given_up(engine: Engine, broker: BrokerInfo) -> None:
    """Somebody's messages that are not decided are told to nobody, and an `until="now"` does not wait for them."""
    table = made(engine, "transactional", buckets=1)
    settings = settings_of_table(engine, "d.t", broker.url)
    table.write(rows(_1="b"))
    names = {"bootstrap.servers": broker.url, "transactional.id": f"foreign-{uuid.uuid4().hex}"}
    producer = Producer(names)
    producer.init_transactions()
    with ended(table, "latest") as live:
        assert changes(live) == []
        producer.begin_transaction()
        producer.produce(
            settings.topic, key=b'{"id":1}', value=b'{"after":{"id":1,"v":"foreign"}}', partition=0
        )
        producer.flush(10)
        assert changes(live) == []
        assert folded(changes(ended(table, until="now"))) == stored(table)
        producer.abort_transaction()
        table.write(rows(_1="c"))
        assert changes(live) == [("-U", 1, "b"), ("+U", 1, "c")]
    assert folded(changes(ended(table))) == stored(table)


_GO_ON = """
import sys
from tablestore_engine.api import Engine
folder, url, position = sys.argv[1:]
with Engine(folder, log={"kafka.bootstrap.servers": url}) as engine:
    for batch in engine.table("d.t").stream(position=position, until="now"):
        for row in batch.to_pylist():
            print(row["_row_kind"], row["id"], row["v"])
"""


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_another_process_goes_on(
    engine: Engine, broker: BrokerInfo, tmp_path: Path, consistency: str
) -> None:
    """At a position in the middle of an update's two rows: each row behind it once."""
    table = made(engine, consistency)
    table.write(rows(_1="b", _2="b"))
    got = []
    with ended(table, batch_rows=1) as stream:
        for batch in stream:
            [row] = batch.to_pylist()
            got.append((row["_row_kind"], row["id"], row["v"]))
            if row["_row_kind"] == "-U":
                break
        command = [sys.executable, "-c", _GO_ON, str(tmp_path), broker.url, stream.position]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    rest = [line.split() for line in done.stdout.splitlines()]
    assert rest[0][0] == "+U"
    assert folded([*got, *((kind, int(key), value) for kind, key, value in rest)]) == stored(table)


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_while_another_process_writes(
    engine: Engine, broker: BrokerInfo, tmp_path: Path, consistency: str
) -> None:
    """A live reader folds to the table whatever comes between two of its looks."""
    table = made(engine, consistency)
    command = [sys.executable, "-m", "integration_tests.kafka.eventual_child"]
    command += [str(tmp_path), broker.url, "w", "5", "0", "12"]
    found: dict[int, str | None] = {}
    with ended(table, batch_rows=3) as stream, subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        while writer.poll() is None:
            found = folded(changes(stream), found)
        assert writer.returncode == 0
        assert folded(changes(stream), found) == stored(table)
    assert table.latest_snapshot_id() == 13


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_a_reader_behind_the_table(engine: Engine, consistency: str) -> None:
    """What is pending is not in the log: `until="now"` ends before it, and once it is published it is told."""
    table = made(engine, consistency)
    table.write(rows(_1="b"), WriteSpec(publish=False))
    with ended(table, until="now") as stream:
        assert folded(changes(stream)) == stored(table, 1)
        position = stream.position
    with ended(table, "latest-full") as stream:
        assert folded(changes(stream)) == stored(table, 1)
        table.publish()
        assert changes(stream) == [("-U", 1, "a"), ("+U", 1, "b")]
    assert changes(ended(table, position=position)) == [("-U", 1, "a"), ("+U", 1, "b")]


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_columns_that_change(engine: Engine, consistency: str) -> None:
    """A column added, renamed, dropped and widened between messages: readers of today have today's columns."""
    table = made(engine, consistency)
    with ended(table) as live:
        found = folded(changes(live))
        wider = pa.table({"id": [1, 30], "v": ["w", "w"], "n": pa.array([1, 2], pa.int32())})
        table.write(wider, WriteSpec(on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS))
        location = Path(table.store.location)
        Ours().alter(location, ("type", "n", "BIGINT"), ("rename", "v", "w"))
        table = engine.table("d.t")
        table.write(pa.table({"id": [2, 31], "w": ["x", "x"], "n": [2**40, 5]}))
        Ours().alter(location, ("drop", "w"))
        table = engine.table("d.t")
        table.write(pa.table({"id": [3], "n": [7]}))
        numbers = dict[int, int | None].fromkeys(found)
        for batch in live:
            for row in batch.to_pylist():
                if row["_row_kind"] in ("-U", "-D"):
                    del numbers[row["id"]]
                else:
                    numbers[row["id"]] = row["n"]
    of_today = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert numbers == of_today
    again: dict[int, int | None] = {}
    for batch in ended(table, columns=["n", "id"]):
        assert batch.schema.names == ["n", "id", "_row_kind", "_snapshot_id"]
        for row in batch.to_pylist():
            if row["_row_kind"] in ("-U", "-D"):
                assert again.pop(row["id"]) == row["n"]
            else:
                again[row["id"]] = row["n"]
    assert again == of_today


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_more_buckets(engine: Engine, consistency: str) -> None:
    """A key that moves to another partition: its older messages are told first, to live and to late readers."""
    table = made(engine, consistency, buckets=2)
    everything = {f"_{n}": "b" for n in range(1, 40)}
    with ended(table) as live:
        found = folded(changes(live))
        table.write(rows(**everything))
        table.rescale(5)
        table.write(rows(**dict.fromkeys(everything, "c")))
        table.write(deletes(*range(20, 30)))
        found = folded(changes(live), found)
        assert found == stored(table)
    for snapshot in table.snapshot_ids():
        late = ended(table, "from-snapshot-full", snapshot_id=snapshot, batch_rows=7)
        assert folded(changes(late)) == stored(table), snapshot
    assert folded(changes(ended(table))) == stored(table)


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_a_restore(engine: Engine, consistency: str) -> None:
    """The way back is told as changes."""
    table = made(engine, consistency)
    with ended(table) as live:
        found = folded(changes(live))
        grow(table)
        table.restore(snapshot=2)
        found = folded(changes(live), found)
        assert found == stored(table) == stored(table, 2)
