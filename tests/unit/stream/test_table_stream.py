"""Readers that follow: what happens to a table meanwhile is seen, or said."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest, NotFound, TablestoreError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema_change import add_column, rename_column
from tablestore_engine.format.snapshot import encode_snapshot
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.alter import SchemaChange
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.table_stream import Pace, TableStream
from tests.doubles.faults import Fault, FaultKind, FaultyFileIO, InjectedFaultError
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import make_table, open_table, overwrite, put, row
from tests.unit.store.test_changelog import foreign_overwrite
from tests.unit.stream.stream_world import ID, KIND, reader, rows_of_batches, told


def acting(*actions: Callable[[], object]) -> Callable[[float], bool]:
    """A wait in which somebody else acts, one action each time; stopped when there are no more."""
    left = list(actions)

    def wait(_: float) -> bool:
        if left:
            left.pop(0)()
            return False
        return True

    return wait


def refused(code: str, act: Callable[[], object]) -> TablestoreError:
    """The error of that code."""
    with pytest.raises(TablestoreError, match=code) as found:
        act()
    return found.value


# following ------------------------------------------------------------------------------------------------------


def test_new_snapshots_come_as_they_are_committed(tmp_path: Path) -> None:
    """Each once, in order; folds give nothing; then it waits again."""
    store = make_table(tmp_path, options={"num-levels": "3"})
    writes = [lambda number=number: put(store, row(1, f"v{number}")) for number in range(5)]
    stream = reader(store, "latest", until=None, wait=acting(*writes, lambda: store.compact(full=True)))
    rows = rows_of_batches(stream)
    assert [(one[KIND], one["name"]) for one in rows][:3] == [("+I", "v0"), ("-U", "v0"), ("+U", "v1")]
    assert [one["name"] for one in rows if one[KIND] in ("+I", "+U")] == [f"v{number}" for number in range(5)]
    kinds = {one.id: one.commit_kind for one in store.snapshots.list_all()}
    assert "COMPACT" in kinds.values()
    assert {one[ID] for one in rows} == {number for number, kind in kinds.items() if kind != "COMPACT"}
    assert stream.snapshot_id == max(kinds) + 1


def test_a_table_without_snapshots_is_waited_for(tmp_path: Path) -> None:
    """Every mode that promises no snapshot begins with the first one's changes."""
    for at, mode in enumerate(["latest", "earliest", "latest-full", "compacted-full", None]):
        store = make_table(tmp_path / str(at))
        stream = reader(store, mode, until=None, wait=acting(lambda store=store: put(store, row(1))))
        assert told(stream) == [("+I", 1)]


def test_it_ends_behind_until_and_waits_for_it(tmp_path: Path) -> None:
    """A snapshot that is to come is waited for; what comes behind it is not read."""
    store = make_table(tmp_path)
    put(store, row(1))
    stream = reader(store, "earliest", until=2, wait=acting(lambda: [put(store, row(2)), put(store, row(3))]))
    assert told(stream) == [("+I", 1), ("+I", 2)]
    assert told(reader(store, position=stream.position)) == [("+I", 3)]
    refused("TS1353", lambda: reader(store, "latest", until=1))
    assert told(reader(store, "latest", until=3)) == []
    refused("TS1353", lambda: reader(store, "latest", until="then"))
    refused("TS1353", lambda: reader(store, "latest", batch_rows=0))


def test_a_stop_ends_the_wait_at_once(tmp_path: Path) -> None:
    """From another thread, however long the interval is; and between two batches."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    stream = reader(store, "latest", until=None, pace=Pace(3600.0))
    threading.Timer(0.05, stream.stop).start()
    assert list(stream) == []
    stream = reader(store, "earliest", batch_rows=1, pace=Pace())
    assert next(stream).num_rows == 1
    stream.stop()
    assert list(stream) == []
    assert told(reader(store, position=stream.position)) == [("+I", 2)]


def test_an_error_ends_no_reader(tmp_path: Path) -> None:
    """A disk that fails once: the same reader goes on behind the last batch."""
    store = make_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    fileio = FaultyFileIO(
        LocalFileIO(str(tmp_path)), [Fault(FaultKind.BEFORE, "open_input", "changelog", call=2)]
    )
    stream = reader(open_table(tmp_path, fileio=fileio), "earliest")
    assert next(stream).to_pylist()[0]["id"] == 0
    with pytest.raises(InjectedFaultError):
        next(stream)
    assert told(stream) == [("+I", 1), ("+I", 2)]


# columns --------------------------------------------------------------------------------------------------------


def test_columns_are_those_of_today_until_newer_rows_come(tmp_path: Path) -> None:
    """By field id: a rename moves values along, a new column is NULL before; a reader that follows gets it with the
    first snapshot that has it.
    """
    store = make_table(tmp_path)
    put(store, row(1))
    store.alter(_change(lambda schema: rename_column(schema, "name", "title")))

    def widen() -> None:
        store.alter(_change(lambda schema: add_column(schema, "more", parse_type("STRING"))))
        put(store, {"id": 2, "title": "b", "n": 0, "more": "x"})

    batches = list(reader(store, "earliest", until=None, wait=acting(widen)))
    assert [batch.schema.names[:-2] for batch in batches] == [
        ["id", "title", "n"],
        ["id", "title", "n", "more"],
    ]
    assert [one["title"] for one in rows_of_batches(batches)] == ["a", "b"]
    again = pa.Table.from_batches(list(reader(open_table(tmp_path), "earliest")))
    assert again.column("more").to_pylist() == [None, "x"]


def test_some_columns(tmp_path: Path) -> None:
    """The ones asked for, in that order, with kind and snapshot; an unknown one is refused before the first row."""
    store = make_table(tmp_path)
    put(store, row(1))
    [batch] = reader(store, columns=["n", "id"])
    assert batch.schema.names == ["n", "id", KIND, ID]
    assert batch.schema.types[-2:] == [pa.string(), pa.int64()]
    [batch] = reader(store, columns=[])
    assert batch.to_pylist() == [{KIND: "+I", ID: 1}]
    refused("TS1110", lambda: reader(store, columns=["nope"]))


def _change(change: Callable[..., object]) -> SchemaChange:
    return change  # type: ignore[return-value]


# what is gone ---------------------------------------------------------------------------------------------------


@pytest.fixture
def five(tmp_path: Path) -> TableStore:
    """Snapshots 1 to 5, a new key in each."""
    store = make_table(tmp_path)
    for number in range(1, 6):
        put(store, row(number))
    return store


def test_a_start_that_has_expired_is_refused(five: TableStore) -> None:
    """Paimon begins with the oldest one instead; the code names the way out. `earliest` gets all rows."""
    five.expire(newest(2))
    for mode, words in [
        ("from-snapshot", {"snapshot_id": 3}),
        ("from-snapshot-full", {"snapshot_id": 1}),
        ("from-timestamp", {"timestamp_ms": 1}),
    ]:
        assert "earliest" in refused("TS1333", lambda mode=mode, words=words: reader(five, mode, **words)).fix
    assert told(reader(five, "from-snapshot", snapshot_id=4)) == [("+I", 4), ("+I", 5)]
    earliest = rows_of_batches(reader(five, "earliest"))
    assert sorted((one[ID], one["id"]) for one in earliest) == [(4, 1), (4, 2), (4, 3), (4, 4), (5, 5)]


def test_a_position_that_has_expired_is_refused(five: TableStore) -> None:
    """Within a snapshot and before one; behind all that there is it goes on."""
    stream = reader(five, "earliest", batch_rows=1)
    next(stream)
    before_two = stream.position
    list(stream)
    behind = stream.position
    five.expire(newest(1))
    refused("TS1337", lambda: reader(five, position=before_two))
    assert told(reader(five, position=behind)) == []
    put(five, row(6))
    assert told(reader(five, position=behind)) == [("+I", 6)]


def test_a_snapshot_that_goes_away_while_it_is_read(tmp_path: Path) -> None:
    """The files of a snapshot vanish between two of its batches: TS1337, never an end or a gap."""
    store = make_table(tmp_path, options={"bucket": "2"})
    put(store, *(row(number) for number in range(20)))
    for number in range(3):
        put(store, row(number, "new"))
    for mode in ("from-snapshot", "from-snapshot-full"):
        stream = reader(open_table(tmp_path), mode, snapshot_id=store.snapshots.list_ids()[0], batch_rows=4)
        next(stream)
        if mode == "from-snapshot":
            at_half = stream
    next(at_half)
    store.expire(newest(1))
    for follower in (at_half, stream):
        error = refused("TS1337", lambda follower=follower: list(follower))
        assert isinstance(error, NotFound)
        refused("TS1337", lambda follower=follower: next(follower))


def test_the_next_snapshot_expires_while_it_waits(five: TableStore) -> None:
    """Slower than the expiry: a gap is an error."""

    def rush() -> None:
        put(five, row(6))
        put(five, row(7))
        five.expire(newest(1))

    stream = reader(five, "latest", until=None, wait=acting(rush))
    refused("TS1337", lambda: next(stream))


def test_a_table_that_is_dropped_and_made_anew(five: TableStore, tmp_path: Path) -> None:
    """Neither its end nor its successor's rows: TS1336 for who follows, TS1335 for a position of the old one."""
    other = make_table(tmp_path / "other", options={"tablestore.table-uuid": "another"})
    drop = acting(lambda: LocalFileIO(str(tmp_path)).delete_tree(five.location))
    stream = reader(five, "latest", until=None, wait=drop)
    position = stream.position
    refused("TS1336", lambda: next(stream))
    refused("TS1335", lambda: reader(other, position=position))
    refused("TS1310", lambda: reader(five))


# rollback -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [0, 1, 2, 4])
def test_a_rollback_is_noticed(five: TableStore, later: int, tmp_path: Path) -> None:
    """However many snapshots were committed since, also with the number that the reader waits for."""
    behind = reader(five, "latest")
    within = reader(five, "earliest", until=4)
    list(within)

    def roll_back() -> None:
        five.rollback(3)
        for number in range(later):
            put(five, row(10 + number))

    stream = reader(open_table(tmp_path), "latest", until=None, wait=acting(roll_back))
    error = refused("TS1338", lambda: next(stream))
    assert isinstance(error, FixRequest)
    for position in (behind.position, within.position):
        refused("TS1338", lambda position=position: reader(five, position=position))


def test_a_rollback_behind_expired_snapshots_is_noticed(five: TableStore) -> None:
    """What was read last is gone, and the one behind it says that it was planned on another one."""
    position = reader(five, "latest").position
    five.rollback(3)
    for number in range(4):
        put(five, row(10 + number))
    five.expire(newest(2))
    assert five.snapshots.list_ids() == (6, 7)
    refused("TS1338", lambda: reader(five, position=position))


@pytest.mark.folders
def test_a_rollback_of_another_engines_snapshots_is_noticed(five: TableStore) -> None:
    """Theirs do not say which snapshot they were planned on; the one that has the number of the last one tells."""
    position = reader(five, "latest").position
    five.rollback(3)
    for number in range(4):
        put(five, row(10 + number))
    for one in five.snapshots.list_all():
        data = encode_snapshot(replace(one, properties=None))
        five.fileio.replace(five.context.layout.snapshot_path(one.id), data)
    refused("TS1338", lambda: reader(open_table(Path(five.location).parents[1]), position=position))


def test_a_rollback_to_where_the_reader_is_changes_nothing(five: TableStore) -> None:
    """What it has been told is still the table's history."""
    stream = reader(five, "earliest", until=3)
    list(stream)
    five.rollback(3)
    put(five, row(9))
    assert told(reader(five, position=stream.position)) == [("+I", 9)]


# tables of all kinds --------------------------------------------------------------------------------------------


def test_an_overwrite_of_another_engine_is_a_difference(tmp_path: Path) -> None:
    """Without changelog files: keys that went are deleted, those that stay as they are give nothing."""
    store = make_table(tmp_path)
    put(store, row(1), row(2), row(3))
    foreign_overwrite(store, [row(2), row(3, "b")])
    changed = rows_of_batches(reader(store, "from-snapshot", snapshot_id=2))
    rows = [(one[KIND], one["id"], one["name"]) for one in changed]
    assert rows == [("-D", 1, "a"), ("-D", 3, "a"), ("+I", 3, "b")]


def test_a_difference_whose_past_has_expired_is_refused(tmp_path: Path) -> None:
    """TS1315: the rows that went are not known any more; a consumer would have kept the snapshot before it."""
    store = make_table(tmp_path, keys=())
    put(store, row(1))
    overwrite(store, row(2))
    stream = reader(store, "from-snapshot", snapshot_id=2, consumer_id="c")
    stream.commit()
    store.expire(newest(1))
    assert store.snapshots.list_ids() == (1, 2)
    assert told(reader(store, consumer_id="c")) == [("-D", 1), ("+I", 2)]
    store.context.consumers.delete("c")
    store.expire(newest(1))
    refused("TS1315", lambda: list(stream))


def test_rows_without_a_key_come_and_go(tmp_path: Path) -> None:
    """Equal rows are told as often as they are there."""
    store = make_table(tmp_path, keys=())
    put(store, row(1), row(1))
    overwrite(store, row(1), row(2))
    assert told(reader(store, "earliest")) == [("+I", 1), ("+I", 1), ("-D", 1), ("+I", 2)]


def test_no_producer(tmp_path: Path) -> None:
    """Keyed without changelog: rows as they were written, and the fold that follows tells nothing."""
    store = make_table(tmp_path, options={"changelog-producer": "none"})
    put(store, row(1))
    put(store, row(1, "b"))
    rows = rows_of_batches(reader(store, "earliest"))
    assert [(one[KIND], one["name"]) for one in rows] == [("+I", "a"), ("+I", "b")]


def test_a_reader_is_an_iterator(tmp_path: Path) -> None:
    """`for` and `next` go on together."""
    store = make_table(tmp_path)
    put(store, row(1), row(2), row(3))
    stream = reader(store, batch_rows=1)
    assert isinstance(stream, TableStream)
    first = next(stream)
    assert len([first, *stream]) == 3
    with pytest.raises(StopIteration):
        next(stream)
