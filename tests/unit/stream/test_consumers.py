"""Consumers: progress that is kept in Paimon's files, and that keeps expiry back."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tablestore_engine.errors import FixData, FixRequest, NotFound
from tablestore_engine.format.consumer import Consumer
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.consumer_lag import delete_consumer, list_consumers, reset_consumer
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import make_table, open_table, overwrite, put, row
from tests.unit.stream.stream_world import reader, rows_of_batches, told


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    """Snapshots 1 to 5, two new keys in each."""
    made = make_table(tmp_path)
    for number in range(5):
        put(made, row(10 * number), row(10 * number + 1))
    return made


def file_of(store: TableStore, name: str) -> Path:
    """Its file."""
    return Path(store.context.layout.consumer_path(name))


def test_progress_goes_on_where_it_was_committed(store: TableStore, tmp_path: Path) -> None:
    """To the row, in another process; nothing is kept without a commit."""
    stream = reader(store, "earliest", consumer_id="c", batch_rows=1)
    for _ in range(3):
        next(stream)
    assert not file_of(store, "c").exists()
    stream.commit()
    next(stream)
    assert told(reader(open_table(tmp_path), consumer_id="c"))[:2] == [("+I", 11), ("+I", 20)]
    assert json.loads(file_of(store, "c").read_text())["nextSnapshot"] == 2


def test_expiry_keeps_what_a_consumer_needs(store: TableStore) -> None:
    """From its next snapshot on, also within the rows that a reader begins with; then no more."""
    stream = reader(store, "from-snapshot-full", snapshot_id=2, consumer_id="c", batch_rows=1)
    next(stream)
    stream.commit()
    store.expire(newest(1))
    assert store.snapshots.list_ids() == (2, 3, 4, 5)
    rest = rows_of_batches(stream)
    assert len(rest) == 3 + 6
    stream.commit()
    store.expire(newest(1))
    assert store.snapshots.list_ids() == (5,)
    put(store, row(99))
    assert told(reader(store, consumer_id="c")) == [("+I", 99)]


def test_a_consumer_goes_forward_only(store: TableStore) -> None:
    """A second reader with the same id cannot take its progress back, unless that is asked for."""
    slow, fast = (reader(store, "earliest", consumer_id="c") for _ in range(2))
    next(slow)
    list(fast)
    fast.commit()
    with pytest.raises(FixRequest, match="TS1352"):
        slow.commit()
    assert told(reader(store, consumer_id="c")) == []
    slow.commit(backward=True)
    assert len(told(reader(store, consumer_id="c"))) == 8
    with pytest.raises(FixRequest, match="TS1351"):
        reader(store).commit()


def test_a_commit_that_expiry_overtook_is_an_error(store: TableStore) -> None:
    """The snapshot went before anybody knew that it was needed: a commit that returns holds it."""
    stream = reader(store, "earliest", consumer_id="c")
    next(stream)
    store.expire(newest(1))
    with pytest.raises(NotFound, match="TS1337"):
        stream.commit()


@pytest.mark.folders
def test_progress_of_another_engine_counts(store: TableStore) -> None:
    """Their file knows whole snapshots; where they moved a consumer of ours on, our position is void."""
    file = file_of(store, "flink")
    file.parent.mkdir(exist_ok=True)
    file.write_text('{\n  "nextSnapshot" : 4\n}')
    stream = reader(store, consumer_id="flink", batch_rows=1)
    assert next(stream).to_pylist()[0]["id"] == 30
    stream.commit()
    moved = {**json.loads(file.read_text()), "nextSnapshot": 5}
    file.write_text(json.dumps(moved))
    assert told(reader(store, consumer_id="flink")) == [("+I", 40), ("+I", 41)]


def test_progress_that_cannot_be_kept_to_is_refused(store: TableStore) -> None:
    """Expired: TS1337; behind a rollback: TS1338; unreadable: TS1391. Paimon begins with what there is instead."""
    context = store.context
    context.consumers.put("old", Consumer(2))
    context.consumers.put("ahead", Consumer(9))
    file_of(store, "torn").write_text('{"nextSn')
    store.expire(newest(5))
    for number in (1, 2):
        store.fileio.delete(store.context.layout.snapshot_path(number))
    with pytest.raises(NotFound, match="TS1337"):
        reader(store, consumer_id="old")
    with pytest.raises(FixRequest, match="TS1338"):
        reader(store, consumer_id="ahead")
    with pytest.raises(FixData, match="TS1391"):
        reader(store, consumer_id="torn")
    with pytest.raises(FixRequest, match="TS1107"):
        reader(store, consumer_id="../c")


def test_a_rollback_is_noticed_by_a_consumer(store: TableStore) -> None:
    """Its file says which snapshot was read last."""
    stream = reader(store, "earliest", consumer_id="c")
    list(stream)
    stream.commit()
    store.rollback(4)
    put(store, row(7))
    with pytest.raises(FixRequest, match="TS1338"):
        reader(store, consumer_id="c")


def test_a_file_that_is_being_written_is_looked_at_again(store: TableStore) -> None:
    """Other engines truncate and write: an empty file is no error at first sight."""
    file = file_of(store, "c")
    file.parent.mkdir()
    file.write_text("")
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        file.write_text('{"nextSnapshot": 3}')

    runtime = store.runtime.__class__(sleep=nap)
    found = open_table(Path(store.location).parents[1], runtime=runtime).context.consumers.find("c")
    assert found == Consumer(3)
    assert len(naps) == 1


def test_progress_may_be_ignored(store: TableStore) -> None:
    """The mode decides then; a commit is forward all the same."""
    stream = reader(store, "earliest", consumer_id="c")
    list(stream)
    stream.commit()
    again = reader(store, "from-snapshot", snapshot_id=5, consumer_id="c", ignore_progress=True)
    assert told(again) == [("+I", 40), ("+I", 41)]
    again.commit()


def test_a_position_goes_before_progress(store: TableStore) -> None:
    """Who says exactly where means that."""
    position = reader(store, "from-snapshot", snapshot_id=5).position
    reset_consumer(store.context, "c", 1)
    assert len(told(reader(store, position=position, consumer_id="c"))) == 2


def test_two_threads_commit(store: TableStore) -> None:
    """Whole files only, whoever wins."""
    streams = [reader(store, "earliest", consumer_id="c", batch_rows=1) for _ in range(2)]
    trouble: list[Exception] = []

    def run(stream: object) -> None:
        try:
            for _ in stream:  # type: ignore[attr-defined]
                stream.commit(backward=True)  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001 - handed to the test
            trouble.append(error)

    threads = [threading.Thread(target=run, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == []
    assert store.context.consumers.find("c") is not None


@pytest.mark.folders
def test_an_idle_consumer_is_forgotten(tmp_path: Path) -> None:
    """Option consumer.expiration-time, by the time of its file; a dry run forgets nobody."""
    at_once = {
        "snapshot.num-retained.min": "1",
        "snapshot.time-retained": "0",
        "tablestore.expire-grace": "0",
    }
    store = make_table(tmp_path, options={"consumer.expiration-time": "1 h", **at_once})
    for number in range(4):
        put(store, row(number))
    for name, hours in (("idle", 2.0), ("busy", 0.5)):
        reset_consumer(store.context, name, 1 if name == "idle" else 3)
        os.utime(file_of(store, name), (store.runtime.now_ms() / 1000 - hours * 3600,) * 2)
    assert store.expire(dry_run=True).end == 3
    assert file_of(store, "idle").exists()
    store.expire()
    assert not file_of(store, "idle").exists()
    assert store.snapshots.list_ids() == (3, 4)


def test_lag(store: TableStore) -> None:
    """Snapshots and rows that are not read, from metadata; what keeps a consumer from going on."""
    stream = reader(store, "earliest", consumer_id="within", batch_rows=1)
    for _ in range(3):
        next(stream)
    stream.commit()
    full = reader(store, "from-snapshot-full", snapshot_id=4, consumer_id="full", batch_rows=1)
    next(full)
    full.commit()
    store.context.consumers.put("ahead", Consumer(8))
    reset_consumer(store.context, "done", 6)
    found = {one.name: one for one in list_consumers(store.context)}
    assert {name: (one.next_snapshot, one.lag_snapshots, one.lag_rows) for name, one in found.items()} == {
        "within": (2, 4, 7),
        "full": (4, 2, 7 + 2),
        "ahead": (8, 0, 0),
        "done": (6, 0, 0),
    }
    assert "rolled back" in str(found["ahead"].trouble)
    assert found["done"].trouble is None
    store.fileio.delete(store.context.layout.snapshot_path(1))
    store.fileio.delete(store.context.layout.snapshot_path(2))
    [gone] = [one for one in list_consumers(store.context) if one.name == "within"]
    assert (gone.lag_rows, "expired" in str(gone.trouble)) == (None, True)


def test_lag_of_rows_that_would_have_to_be_compared(tmp_path: Path) -> None:
    """An overwrite without changelog: not known, rather than wrong."""
    store = make_table(tmp_path, keys=())
    put(store, row(1))
    overwrite(store, row(2))
    reset_consumer(store.context, "c", 1)
    assert [one.lag_rows for one in list_consumers(store.context)] == [None]
    reset_consumer(store.context, "c", 3)
    assert [one.lag_rows for one in list_consumers(store.context)] == [0]


def test_reset_and_delete(store: TableStore) -> None:
    """Within what is there; a name that is not known is an error."""
    for number in (0, 7):
        with pytest.raises(FixRequest, match="TS1354"):
            reset_consumer(store.context, "c", number)
    reset_consumer(store.context, "c", 6)
    assert told(reader(store, consumer_id="c")) == []
    delete_consumer(store.context, "c")
    with pytest.raises(NotFound, match="TS1355"):
        delete_consumer(store.context, "c")
