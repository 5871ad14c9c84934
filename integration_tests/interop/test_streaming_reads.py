"""Readers that follow: ours, Java's and pypaimon's get the same, begin alike, honour each other's consumers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.interop.golden import Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import Change, arrow_rows, assert_same
from integration_tests.interop.schemas import Schema, schema
from integration_tests.interop.test_changelog import CHANGING, THEIRS
from tablestore_engine.errors import NotFound
from tablestore_engine.store.retention import Retention
from tablestore_engine.stream.open_stream import StreamRequest, open_stream
from tablestore_engine.stream.startup_mode import parse_request
from tablestore_engine.stream.table_stream import TableStream
from tests.doses import cases

PYPAIMON = ["folding", "overwritten_keyed", "partitioned_keyed", "sequence_field"]
BATCHES = list[tuple[int, list[Change]]]


def assert_same_batches(expected: BATCHES, got: BATCHES, where: str) -> None:
    """Snapshot by snapshot; those without changes may be left out."""
    wanted, found = ({number: rows for number, rows in one if rows} for one in (expected, got))
    assert list(wanted) == list(found), where
    for number, rows in wanted.items():
        assert_same(rows, found[number], f"{where}, snapshot {number}")


def begun(
    location: Path, mode: str | None = None, *, snapshot_id: int | None = None, **words: object
) -> TableStream:
    """A reader of ours that ends at the newest snapshot."""
    start = None if mode is None else parse_request(mode, snapshot_id=snapshot_id)
    request = StreamRequest(start=start, until="now", **words)  # type: ignore[arg-type]
    return open_stream(Ours().store(location).context, request)


def as_inserts(batches: BATCHES, snapshot: int) -> BATCHES:
    """`$audit_log` gives the rows that a stream begins with as they were stored: as +U too, and those deleted as -D."""
    kinds = ("+I", "+U")
    return [
        (number, [("+I", row) for kind, row in changes if kind in kinds] if number == snapshot else changes)
        for number, changes in batches
    ]


def kept(schema_: Schema, location: Path, commits: int) -> Schema:
    """A table of ours with a new key, and an update of the one before, in each snapshot."""
    Ours().create(location, schema_)
    for number in range(commits):
        rows = [{"id": number, "v": f"new {number}"}, {"id": max(number - 1, 0), "v": f"{number}"}]
        Ours().write(location, arrow_rows(schema_, rows if number else rows[:1]))
    return schema_


PLAIN = schema({"id": "BIGINT", "v": "STRING"}, keys=("id",), options={"bucket": "2"})


# the same changes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cases(CHANGING, 2))
def test_a_reader_gets_what_javas_stream_gets(
    ours: Callable[[str], Golden], java: JavaPaimon, name: str
) -> None:
    """On our tables: all changes; and from every snapshot the full rows, then the changes."""
    table = ours(name)
    streamed = java.stream(table.location, scan__mode="from-snapshot", scan__snapshot_id="1").poll()
    assert_same_batches(streamed, Ours().follow(table.location, "earliest", batch_rows=3), name)
    for snapshot in table.history.rows:
        words = {"scan__mode": "from-snapshot-full", "scan__snapshot_id": str(snapshot)}
        theirs = java.stream(table.location, **words).poll()
        mine = Ours().follow(table.location, "from-snapshot-full", snapshot_id=snapshot)
        assert_same_batches(theirs, mine, f"{name} from {snapshot}")


BY_DAY = {"changelog_input"}  # the others' changes by day in test_changelog.py


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly if name not in BY_DAY else ()) for name in THEIRS],
)
def test_a_reader_gets_what_javas_stream_gets_of_javas_tables(
    golden: Callable[[str], Golden], java: JavaPaimon, name: str
) -> None:
    """Of every changelog producer; rows that wait for a compaction come once, where a reader begins in between too."""
    table = golden(name)
    for snapshot in table.history.rows:
        for mode in ("from-snapshot", "from-snapshot-full"):
            theirs = java.stream(table.location, scan__mode=mode, scan__snapshot_id=str(snapshot)).poll()
            mine = Ours().follow(table.location, mode, snapshot_id=snapshot)
            theirs = as_inserts(theirs, snapshot) if mode == "from-snapshot-full" else theirs
            assert_same_batches(theirs, mine, f"{name} {mode} {snapshot}")
    for mode in ("latest-full", "compacted-full", "latest"):
        theirs = java.stream(table.location, scan__mode=mode).poll()
        theirs = as_inserts(theirs, theirs[0][0]) if mode != "latest" and theirs else theirs
        assert_same_batches(theirs, Ours().follow(table.location, mode), f"{name} {mode}")


@pytest.mark.parametrize("name", cases(PYPAIMON, 1))
def test_a_reader_gets_what_pypaimons_stream_gets(
    ours: Callable[[str], Golden], pypaimon: ProcessPeer, name: str
) -> None:
    """pypaimon's streaming scan from snapshot 1."""
    table = ours(name)
    mine = [change for _, changes in Ours().follow(table.location, "earliest") for change in changes]
    last = max(number for number, changes in table.history.changes.items() if changes)
    assert_same(mine, pypaimon.follow(table.location, last), name)


def test_an_overwrite_of_java_is_told(java: JavaPaimon, tmp_path: Path) -> None:
    """Java's stream passes its own INSERT OVERWRITE over; ours gives the difference, so that a fold is the table."""
    location = tmp_path / "theirs.db" / "replaced"
    made = schema(
        {"p": "STRING", "id": "BIGINT", "v": "STRING"}, keys=("p", "id"), partitions=("p",)
    ).with_options(bucket="2", changelog_producer="lookup")
    java.create(location, made)
    first = [{"p": p, "id": n, "v": "old"} for p in "ab" for n in range(4)]
    java.write(location, arrow_rows(made, first))
    java.compact(location)
    new = [{"p": "a", "id": 1, "v": "old"}, {"p": "a", "id": 2, "v": "new"}, {"p": "a", "id": 9, "v": "new"}]
    java.write(location, arrow_rows(made, new), overwrite={"p": "a"})
    java.compact(location)
    state: dict[tuple[object, ...], object] = {}
    for _, changes in Ours().follow(location, "earliest"):
        for kind, row in changes:
            if kind in ("+I", "+U"):
                assert row[:2] not in state
                state[row[:2]] = row
            else:
                assert state.pop(row[:2]) == row
    assert_same(java.read(location), list(state.values()), "folded")


# the same places ------------------------------------------------------------------------------------------------


def test_a_time_means_the_same(java: JavaPaimon, tmp_path: Path) -> None:
    """from-timestamp of each commit's time, and a millisecond later."""
    location = tmp_path / "ours.db" / "timed"
    kept(PLAIN, location, 5)
    snapshots = Ours().store(location).snapshots.list_all()
    for time in {one.time_millis + more for one in snapshots for more in (0, 1)}:
        theirs = java.stream(location, scan__mode="from-timestamp", scan__timestamp_millis=str(time)).poll()
        mine = Ours().follow(location, "from-timestamp", timestamp_ms=time)
        assert_same_batches(theirs, mine, f"{time} ms")


def test_what_java_passes_over_is_refused(java: JavaPaimon, tmp_path: Path) -> None:
    """A start that has expired: Java begins with the oldest snapshot, without a word; ours is TS1333."""
    location = tmp_path / "ours.db" / "short"
    kept(PLAIN, location, 6)
    assert java.expire(location, 2) == 4
    [first, *_] = java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="2").poll()
    assert first[0] == 5
    for mode in ("from-snapshot", "from-snapshot-full"):
        with pytest.raises(NotFound, match="TS1333"):
            begun(location, mode, snapshot_id=2)


# consumers ------------------------------------------------------------------------------------------------------


def test_java_honours_our_consumer(java: JavaPaimon, tmp_path: Path) -> None:
    """Its expiry keeps what our reader has not read, and its stream goes on where ours stopped."""
    location = tmp_path / "ours.db" / "consumed"
    kept(PLAIN, location, 6)
    stream = begun(location, "earliest", consumer_id="shared")
    while stream.snapshot_id < 4:
        next(stream)
    stream.commit()
    java.expire(location, 1)
    assert [number for number, _ in java.snapshots(location)] == [4, 5, 6]
    theirs = java.stream(location, consumer_id="shared")
    assert_same_batches(Ours().follow(location, "from-snapshot", snapshot_id=4), theirs.poll(), "rest")
    assert theirs.keep_progress() == 7
    assert begun(location, consumer_id="shared").snapshot_id == 7


def test_we_honour_javas_consumer(java: JavaPaimon, tmp_path: Path) -> None:
    """The reverse; and ours goes on behind what Java has read."""
    location = tmp_path / "ours.db" / "consumed"
    made = kept(PLAIN, location, 3)
    theirs = java.stream(location, consumer_id="shared")
    theirs.poll()
    assert theirs.keep_progress() == 4
    for number in range(3, 8):
        Ours().write(location, arrow_rows(made, [{"id": number, "v": "x"}]))
    Ours().store(location).expire(Retention(1, None, retained_ms=-1, grace_ms=-1, limit=None))
    assert Ours().store(location).snapshots.list_ids() == (4, 5, 6, 7, 8)
    mine = Ours().follow(location, consumer_id="shared")
    assert [number for number, _ in mine] == [4, 5, 6, 7, 8]
    assert_same_batches(theirs.poll(), mine, "both")


def test_pypaimon_and_we_share_a_consumer(pypaimon: ProcessPeer, tmp_path: Path) -> None:
    """Ours to snapshot 2, pypaimon to 4, ours the rest: each change once."""
    location = tmp_path / "ours.db" / "consumed"
    kept(PLAIN, location, 6)
    whole = [change for _, changes in Ours().follow(location, "earliest") for change in changes]
    stream = begun(location, "earliest", consumer_id="shared")
    told: list[Change] = []
    while stream.snapshot_id < 3:
        rows = next(stream)
        told += [(row.pop("_row_kind"), (row["id"], row["v"])) for row in rows.to_pylist()]
    stream.commit()
    told += pypaimon.follow(location, 4, consumer="shared")
    told += [change for _, changes in Ours().follow(location, consumer_id="shared") for change in changes]
    assert_same(whole, told, "three readers")
