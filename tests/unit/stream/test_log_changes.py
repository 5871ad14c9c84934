"""Readers over a log: what they get, where they may begin, what ends them."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.fileio.storage_errors import missing_file
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema_change import add_column, drop_column, rename_column, retype_column
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.log.followed_log import Messages
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.store.alter import SchemaChange
from tablestore_engine.stream import log_changes
from tablestore_engine.stream.consumer_lag import list_consumers
from tablestore_engine.stream.open_stream import StreamRequest, open_stream
from tablestore_engine.stream.position import decode_position
from tests.unit.store.table_world import as_table, delete, make_table, put, row
from tests.unit.stream.log_world import MemoryLog, log_reader
from tests.unit.stream.stream_world import ID, KIND, rows_of_batches, told


def a_log(root: Path, **words: object) -> MemoryLog:
    """Snapshot 1: ids 1, 2 · 2: 2 changes · 3: 1 goes; all sent."""
    store = make_table(root)
    log = MemoryLog(store, **words)  # type: ignore[arg-type]
    put(store, row(1), row(2))
    put(store, row(2, "b"))
    delete(store, row(1))
    log.publish()
    return log


def refused(code: str, act: object) -> str:
    """The error's text."""
    with pytest.raises(TablestoreError, match=code) as found:
        act()  # type: ignore[operator]
    return str(found.value)


def test_modes(tmp_path: Path) -> None:
    """Rows of a snapshot and the log behind them, the log from its beginning, only what comes."""
    log = a_log(tmp_path)
    changes = [("+I", 1), ("+I", 2), ("-U", 2), ("+U", 2), ("-D", 1)]
    assert told(log_reader(log, "earliest")) == changes
    assert told(log_reader(log, "from-snapshot", snapshot_id=2)) == changes[2:]
    assert told(log_reader(log, "from-snapshot-full", snapshot_id=1)) == [("+I", 1), ("+I", 2), *changes[2:]]
    assert told(log_reader(log, "latest-full")) == [("+I", 2)]
    assert told(log_reader(log, "latest")) == []
    assert told(log_reader(log, "earliest", until=2)) == changes[:4]
    raw = rows_of_batches(log_reader(log, "earliest", normalizes=False))
    assert [(one[KIND], one["id"], one["name"]) for one in raw][-2:] == [("+U", 2, "b"), ("-D", 1, None)]


def test_rows_say_their_snapshot_when_they_know_it(tmp_path: Path) -> None:
    """A row that was sent before has none."""
    log = a_log(tmp_path, is_eventual=True)
    early = as_table([row(5)], log.store.schema).append_column(ROW_KIND_COLUMN, pa.array([0], pa.int8()))
    log.send(early, log.store.schema)
    rows = rows_of_batches(log_reader(log, "earliest"))
    assert {one[ID] for one in rows} == {1, 2, 3}
    stream = log_reader(log, "earliest", until=None, wait=lambda _: True)
    assert [one[ID] for one in rows_of_batches(stream)][-1] is None


def test_duplicates_and_phantoms(tmp_path: Path) -> None:
    """The same row again gives nothing; one that is taken back is told and taken back."""
    log = a_log(tmp_path, is_eventual=True)

    def early(*rows: dict[str, object], kind: int = 0) -> None:
        kinds = pa.array(np.full(len(rows), kind, np.int8))
        log.send(as_table(rows, log.store.schema).append_column(ROW_KIND_COLUMN, kinds), log.store.schema)

    stream = log_reader(log, "latest", until=None, wait=lambda _: True)
    early(row(2, "b"), row(7), row(7))
    early(row(1), kind=3)
    assert told(stream) == [("+I", 7)]
    early(row(7), kind=3)
    assert told(log_reader(log, position=stream.position, until=None, wait=lambda _: True)) == [("-D", 7)]


def test_a_reader_that_has_a_snapshot_is_told_what_comes_behind_its_boundary(tmp_path: Path) -> None:
    """Whatever snapshot a message names: rows of an attempt that failed, and what set them right, name one that the
    reader has already, and one without the other would be a wrong table.
    """
    log = a_log(tmp_path, is_eventual=True)

    def send(*rows: dict[str, object], kind: int, snapshot: int) -> None:
        kinds = pa.array(np.full(len(rows), kind, np.int8))
        made = as_table(rows, log.store.schema).append_column(ROW_KIND_COLUMN, kinds)
        log.send(made, log.store.schema, snapshot=snapshot)

    send(row(2, "b"), kind=3, snapshot=3)
    send(row(2, "b"), kind=0, snapshot=4)
    put(log.store, row(9))
    log.publish()
    ends = [("+I", 2), ("-D", 2), ("+I", 2), ("+I", 9)]
    assert told(log_reader(log, "from-snapshot-full", snapshot_id=3)) == ends
    assert told(log_reader(log, "from-snapshot", snapshot_id=4)) == ends[1:]  # behind snapshot 3


def test_what_is_pending_is_not_there_yet(tmp_path: Path) -> None:
    """`now` is what the log has; a snapshot that it lacks is waited for; a mode may not begin there."""
    log = a_log(tmp_path)
    put(log.store, row(9))
    assert told(log_reader(log, "latest-full")) == [("+I", 2)]
    waited: list[float] = []
    assert told(log_reader(log, "latest", until=4, wait=lambda s: waited.append(s) or len(waited) > 2)) == []
    assert len(waited) == 3
    stream = log_reader(log, "latest", until=4, wait=lambda _: log.publish() or False)
    assert told(stream) == [("+I", 9)]


def test_an_eventual_log_has_boundaries_only(tmp_path: Path) -> None:
    """Between two of them nobody can begin: TS1356 says which there are."""
    log = MemoryLog(make_table(tmp_path), is_eventual=True)
    put(log.store, row(1))
    put(log.store, row(1, "b"))
    log.publish()
    del log.known[1]  # both snapshots went out under one marker
    assert "snapshots 0, 2" in refused("TS1356", lambda: log_reader(log, "from-snapshot", snapshot_id=2))
    assert told(log_reader(log, "from-snapshot", snapshot_id=1)) == [("+I", 1), ("-U", 1), ("+U", 1)]


def test_a_log_that_begins_anew(tmp_path: Path) -> None:
    """A reader that was there before gets TS1357, also when nothing lies between; a new one begins with all rows."""
    log = a_log(tmp_path)
    stream = log_reader(log, "earliest", until=None, wait=lambda _: True)
    rows_of_batches(stream)
    log.begin(3)
    assert "after snapshot 3" in refused("TS1357", lambda: next(stream))
    refused("TS1357", lambda: log_reader(log, position=stream.position))
    assert told(log_reader(log, "latest-full")) == [("+I", 2)]
    log.log_id = "log-2"
    refused("TS1357", lambda: log_reader(log, position=stream.position))


def test_messages_that_are_gone(tmp_path: Path) -> None:
    """TS1358 at the start and while it follows; earliest begins with the first snapshot whose messages are there."""
    log = a_log(tmp_path)
    stream = log_reader(log, "earliest", batch_rows=1)
    next(stream)
    log.forget(0, 2)
    refused("TS1358", lambda: log_reader(log, position=stream.position))
    refused("TS1358", lambda: log_reader(log, "from-snapshot", snapshot_id=1))
    assert told(log_reader(log, "earliest"))[:2] == [("+I", 1), ("+I", 2)]


def test_base_that_expires_during_a_read_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file becomes TS1337 when the base snapshot is gone; what the log lacks is reported as it is."""
    log = a_log(tmp_path)
    position = log_reader(log, "from-snapshot", snapshot_id=2, batch_rows=1).position
    failure: list[NotFound] = [
        missing_file("data-1.parquet"),
        NotFound("TS1705", "no topic", why="-", fix="-"),
    ]

    def read(*_: object, **__: object) -> Messages:
        raise failure[0]

    monkeypatch.setattr(log, "read", read)
    reader = partial(log_reader, log, position=position, normalizes=False)
    refused("TS1201", lambda: told(reader()))
    for number in (1, 2):
        (tmp_path / f"demo.db/t/snapshot/snapshot-{number}").unlink()
    refused("TS1337", lambda: told(reader()))
    failure.pop(0)
    refused("TS1705", lambda: told(reader()))


def test_a_base_that_has_expired(tmp_path: Path) -> None:
    """The log from its beginning knows the row before a change as well; one that began later does not: TS1337.

    Messages as they are can still be had.
    """
    log = a_log(tmp_path)
    stream = log_reader(log, "from-snapshot", snapshot_id=2, batch_rows=1)
    position = stream.position
    assert decode_position(position).snapshot == 1
    for number in (1, 2):
        (tmp_path / f"demo.db/t/snapshot/snapshot-{number}").unlink()
    assert told(log_reader(log, position=position)) == [("-U", 2), ("+U", 2), ("-D", 1)]
    log.known[0] = replace(log.known[0], is_exact=False)
    assert "has expired" in refused("TS1337", lambda: told(log_reader(log, position=position)))
    assert told(log_reader(log, position=position, normalizes=False)) == [("+U", 2), ("-D", 1)]


def test_a_position_says_where_it_was_taken(tmp_path: Path) -> None:
    """It goes on there without a read mode, and not in another one: TS1339; a table without a log has none to read."""
    log = a_log(tmp_path)
    position = log_reader(log, "earliest").position
    refused("TS1339", lambda: log_reader(log, position=position, read_mode="file"))
    refused("TS1339", lambda: log_reader(log, read_mode="kafka"))
    of_files = log_reader(log, "earliest", read_mode="file").position
    refused("TS1339", lambda: log_reader(log, position=of_files, read_mode="log"))
    assert len(told(log_reader(log, position=of_files))) == 5
    refused("TS1339", lambda: open_stream(log.store.context, StreamRequest(read_mode="log")))


def test_columns_of_every_age(tmp_path: Path) -> None:
    """Found by id: renamed, added and dropped columns, in messages, in what was remembered, in the base."""
    log = MemoryLog(make_table(tmp_path))
    store = log.store
    put(store, row(1, "one", 5))
    log.publish()
    at = log_reader(log, "earliest").position
    changes: tuple[SchemaChange, ...] = (
        lambda schema: rename_column(schema, "name", "label"),
        lambda schema: add_column(schema, "more", parse_type("INT")),
        lambda schema: drop_column(schema, "n"),
    )
    for change in changes:
        store.alter(change)
    put(store, {"id": 1, "label": "two", "more": 3})
    log.publish()
    assert [
        (one[KIND], one["label"], one["more"], "n" in one)
        for one in rows_of_batches(log_reader(log, "earliest"))
    ] == [("+I", "one", None, False), ("-U", "one", None, False), ("+U", "two", 3, False)]
    assert rows_of_batches(log_reader(log, position=at, columns=["label"]))[0] == {
        "label": "one",
        KIND: "+I",
        ID: 1,
    }


def test_messages_that_come_late_are_read_by_their_own_types(tmp_path: Path) -> None:
    """Sent behind an ALTER to a reader that knows it: FLOAT 0.1 stays what it was, told or remembered."""
    log = MemoryLog(make_table(tmp_path, columns={"id": "INT NOT NULL", "v": "FLOAT"}))
    store = log.store
    put(store, {"id": 1, "v": 0.1})
    log.publish()
    put(store, {"id": 2, "v": 0.1})
    store.alter(lambda schema: retype_column(schema, "v", parse_type("DOUBLE")))
    rounds = iter((log.publish, lambda: put(store, {"id": 2, "v": 0.1}), log.publish))

    def wait(_: float) -> bool:
        act = next(rounds, None)
        if act is not None:
            act()
        return act is None

    rows = rows_of_batches(log_reader(log, "earliest", until=None, wait=wait))
    old = float(np.float32(0.1))
    assert [(one[KIND], one["v"]) for one in rows] == [("+I", old), ("+I", old), ("-U", old), ("+U", 0.1)]


def test_rows_before_a_change_are_taken_as_they_are(tmp_path: Path) -> None:
    """`log.changelog-mode` = `all` needs no base."""
    log = a_log(tmp_path, mode=ChangelogMode.ALL)
    assert told(log_reader(log, "earliest")) == [("+I", 1), ("+I", 2), ("-U", 2), ("+U", 2), ("-D", 1)]
    assert log.reads == 1


def test_a_consumer_holds_its_base(tmp_path: Path) -> None:
    """Its file names the snapshot that the log's reader stands on, and it goes on there."""
    log = a_log(tmp_path)
    stream = log_reader(log, "from-snapshot", snapshot_id=2, consumer_id="c", batch_rows=1)
    next(stream)
    stream.commit()
    assert log.store.context.consumers.find("c").next_snapshot == 1  # type: ignore[union-attr]
    (found,) = list_consumers(log.store.context)
    assert (found.next_snapshot, found.lag_snapshots, found.lag_rows, found.trouble) == (2, 2, 3, None)
    assert told(log_reader(log, "latest", consumer_id="c", read_mode=None)) == [("+U", 2), ("-D", 1)]


def test_a_stream_that_is_forgotten_is_gone(tmp_path: Path) -> None:
    """At once, without a collection of garbage: a client of its log has threads of its own that go on fetching."""
    log = a_log(tmp_path)
    stream = log_reader(log, "earliest", batch_rows=1)
    next(stream)
    source = weakref.ref(stream._source)
    gc.disable()
    try:
        del stream
        assert source() is None
    finally:
        gc.enable()


def test_a_stream_gives_its_connection_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its end, by `with`, and when it cannot begin."""
    monkeypatch.setattr(log_changes, "PORTION_ROWS", 1)
    log = a_log(tmp_path)
    told(log_reader(log, "earliest"))
    assert log.closed == 1
    with log_reader(log, "earliest") as stream:
        next(stream)
    assert log.closed == 2
    refused("TS1353", lambda: log_reader(log, "earliest", until="then"))
    assert log.closed == 3


def test_bad_input_asks_no_broker(tmp_path: Path) -> None:
    """Bounds and columns are looked at before the log is opened."""
    log = a_log(tmp_path)
    log.known = None  # type: ignore[assignment]  # who asks it, fails
    refused("TS1353", lambda: log_reader(log, "earliest", batch_rows=0))
    refused("TS1110", lambda: log_reader(log, "earliest", columns=["no"]))
