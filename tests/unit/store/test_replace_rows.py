"""Replacing rows in append-only tables: vectors, files that go, files that are rewritten, races and refusals."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.rows.row_filter import Interval, RowPositions, SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.unit.store.table_world import (
    changes,
    changes_of,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)

MARKED = {"deletion-vectors.enabled": "true"}
REPLACE = WriteMode.REPLACE


def names(store: TableStore) -> list[str]:
    """Live files."""
    return sorted(file.meta.file_name for file in store.plan_scan().files)


def remove(store: TableStore, *numbers: int) -> None:
    """Delete by id."""
    keys = pa.table({"id": pa.array(numbers, pa.int64())})
    put(store, mode=REPLACE, replaces=SameKeys(("id",), keys))


def test_deletes_add_up_in_the_vectors_of_a_file(tmp_path: Path) -> None:
    """Two deletes in one file hide both rows, the file stays, and each snapshot tells its own delete."""
    store = make_table(tmp_path, keys=(), options=MARKED)
    put(store, *[row(number) for number in range(10)])
    before = names(store)
    remove(store, 3)
    remove(store, 3, 7)
    assert names(store) == before
    assert rows_of(store) == [row(number) for number in range(10) if number not in (3, 7)]
    assert (changes_of(store, 2), changes_of(store, 3)) == (changes(("-D", row(3))), changes(("-D", row(7))))
    assert store.snapshots.get(3).commit_kind is CommitKind.OVERWRITE
    assert store.snapshots.get(3).delta_record_count == 0
    remove(store, 3, 7, 99)
    assert store.snapshots.find_latest_id() == 3


def test_a_file_that_loses_most_rows_is_rewritten_and_one_that_loses_all_goes(tmp_path: Path) -> None:
    """Vectors never hide more than half of a file; neither move shows in the changelog."""
    store = make_table(tmp_path, keys=(), options=MARKED)
    put(store, *[row(number) for number in range(10)])
    put(store, *[row(number) for number in range(20, 30)])
    remove(store, *range(6), *range(20, 30))
    [file] = store.plan_scan().files
    assert (file.meta.row_count, file.deleted) == (4, None)
    assert changes_of(store, 3) == changes(*[("-D", row(n)) for n in (*range(6), *range(20, 30))])


def test_without_the_option_only_files_that_lose_rows_are_rewritten(tmp_path: Path) -> None:
    """A table whose readers look for no vectors gets none."""
    store = make_table(tmp_path, keys=())
    put(store, *[row(number) for number in range(10)])
    put(store, *[row(number) for number in range(20, 30)])
    untouched = store.plan_scan().files[1].meta.file_name
    remove(store, 3)
    latest = store.latest()
    assert latest is not None
    assert latest.index_manifest is None
    assert untouched in names(store)
    assert len(rows_of(store)) == 19
    assert changes_of(store, 3) == changes(("-D", row(3)))


def test_joining_files_leaves_dead_rows_and_their_vectors_behind(tmp_path: Path) -> None:
    """Compaction of a table with vectors: one file, no vector, nothing told."""
    store = make_table(tmp_path, keys=(), options=MARKED)
    put(store, *[row(number) for number in range(10)])
    remove(store, 3)
    store.compact(full=True)
    latest = store.latest()
    assert latest is not None
    assert (latest.commit_kind, ChangelogReader(store.context).has_changes(latest)) == (
        CommitKind.COMPACT,
        False,
    )
    [file] = store.plan_scan().files
    assert (file.meta.row_count, file.deleted) == (9, None)
    assert store.context.manifests.read_index(latest.index_manifest) == ()


def test_unchanged_tables_commit_nothing_and_changed_ones_the_difference(tmp_path: Path) -> None:
    """A seed that is loaded again: no snapshot; one row changed: one row out, one in, the others untouched."""
    store = make_table(tmp_path, keys=(), options=MARKED)
    rows = [row(number, n=None) for number in range(100)]
    put(store, *rows)
    report = overwrite(store, *reversed(rows))
    assert (report.snapshot_id, report.unchanged, report.inserted, report.deleted) == (1, 100, 0, 0)
    report = overwrite(store, row(0, "new"), *rows[1:])
    assert (report.unchanged, report.inserted, report.deleted) == (99, 1, 1)
    assert changes_of(store, 2) == changes(("-D", rows[0]), ("+I", row(0, "new")))


def test_an_empty_batch_does_not_even_join_files(tmp_path: Path) -> None:
    """Files are joined before a replacement that changes something, never for one that changes nothing."""
    store = make_table(tmp_path, keys=(), options=MARKED)
    for number in range(5):
        put(store, row(number), mode=REPLACE, replaces=SameKeys(("id",)))
    before = store.snapshots.find_latest_id()
    put(store, mode=REPLACE, replaces=SameKeys(("id",), pa.table({"id": [99]})))
    put(store, row(3), mode=REPLACE, replaces=SameKeys(("id",)))
    assert store.snapshots.find_latest_id() == before
    put(store, row(3, "new"), mode=REPLACE, replaces=SameKeys(("id",)))
    kinds = [one.commit_kind for one in store.snapshots.list_all()]
    assert kinds.count(CommitKind.COMPACT) == 1
    assert rows_of(store) == [row(n, "new" if n == 3 else "a") for n in range(5)]
    data = {path.name for path in (tmp_path / "demo.db/t/bucket-0").iterdir()}
    live = {
        e.file.file_name for s in store.snapshots.list_all() for e in store.context.scanner.live_entries(s)
    }
    assert data == live


COLUMNS = {"at": "TIMESTAMP(6)", "day": "DATE", "id": "INT"}
NOON = dt.datetime(2024, 3, 10, 12)  # noqa: DTZ001 - a wall clock


def moment(number: int, hours: int) -> dict[str, object]:
    """A row some hours after noon."""
    at = NOON + dt.timedelta(hours=hours)
    return {"at": at, "day": at.date(), "id": number}


@pytest.mark.parametrize(
    ("column", "zone", "kept"),
    [("at", "UTC", [0, 2]), ("at", "America/New_York", [2]), ("day", "UTC", [0, 1])],
)
def test_an_interval_reads_wall_clocks_in_its_zone(
    tmp_path: Path, column: str, zone: str, kept: list[int]
) -> None:
    """The instants of a batch are wall-clock times of the session's zone for columns that have none of their own."""
    store = make_table(tmp_path, keys=(), columns=COLUMNS, options=MARKED)
    put(store, moment(0, 0), moment(1, 1), moment(2, 13))
    start = (NOON + dt.timedelta(hours=1)).replace(tzinfo=dt.UTC)
    end = start + dt.timedelta(hours=12)
    put(store, mode=REPLACE, replaces=Interval(column, start, end, zone))
    assert sorted(found["id"] for found in rows_of(store)) == kept  # type: ignore[type-var]


def test_files_that_cannot_hold_a_picked_row_are_not_opened(tmp_path: Path) -> None:
    """Statistics in the manifests leave out files by interval and by key."""
    opened: list[str] = []

    class Watched(LocalFileIO):
        def open_input(self, path: str):  # type: ignore[no-untyped-def]
            opened.append(path)
            return super().open_input(path)

    store = make_table(tmp_path, keys=(), columns=COLUMNS, options=MARKED)
    for number in range(4):
        put(store, *[moment(number * 10 + one, number * 24) for one in range(4)])
    watched = open_table(tmp_path, fileio=Watched(str(tmp_path)))
    start = (NOON + dt.timedelta(hours=20)).replace(tzinfo=dt.UTC)
    put(watched, mode=REPLACE, replaces=Interval("at", start, start + dt.timedelta(hours=8)))
    assert len(set(opened)) == 1
    opened.clear()
    keys = pa.table({"id": pa.array([30, 31], pa.int32())})
    put(watched, mode=REPLACE, replaces=SameKeys(("id",), keys))
    assert len(set(opened)) == 1
    assert sorted(found["id"] for found in rows_of(store)) == [0, 1, 2, 3, 20, 21, 22, 23, 32, 33]  # type: ignore[type-var]


def test_positions_of_a_file_that_was_rewritten_are_refused(tmp_path: Path) -> None:
    """A statement's rows moved: it must run again, nothing is deleted."""
    store = make_table(tmp_path, keys=(), options=MARKED)
    put(store, row(1), row(2))
    put(store, row(3))
    name = store.plan_scan().files[0].meta.file_name
    store.compact(full=True)
    with pytest.raises(RetryError, match="TS1386"):
        put(store, mode=REPLACE, replaces=RowPositions({name: BitMap([0])}))
    assert len(rows_of(store)) == 3


def test_a_row_that_comes_between_plan_and_claim_is_replaced_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filter is asked again on the base that the commit lands on."""
    store, other = make_table(tmp_path, keys=(), options=MARKED), open_table(tmp_path)
    put(store, row(1, "old"))
    write = SnapshotStore.claim
    lost: list[int] = []

    def overtaken(*claim: object) -> bool:
        if not lost:
            lost.append(1)
            put(other, row(1, "between"), row(2))
        return write(*claim)  # type: ignore[arg-type]

    monkeypatch.setattr(SnapshotStore, "claim", overtaken)
    put(store, row(1, "new"), mode=REPLACE, replaces=SameKeys(("id",)))
    assert lost
    assert rows_of(store) == [row(1, "new"), row(2)]


@pytest.mark.parametrize(
    "picks", [SameKeys(("nope",)), Interval("name", NOON, NOON), Interval("x", NOON, NOON)]
)
def test_columns_that_cannot_pick_rows_are_refused(tmp_path: Path, picks: Interval | SameKeys) -> None:
    """TS1385 before anything is written; a filter is needed at all (TS1387)."""
    store = make_table(tmp_path, keys=(), options=MARKED)
    put(store, row(1))
    keyed = picks if isinstance(picks, Interval) else SameKeys(picks.columns, pa.table({"nope": [1]}))
    with pytest.raises(FixRequest, match="TS1385"):
        put(store, row(2), mode=REPLACE, replaces=keyed)
    with pytest.raises(FixRequest, match="TS1387"):
        store.write(WriteRequest(mode=REPLACE))
    assert rows_of(store) == [row(1)]


def test_a_batch_wins_over_its_own_interval_and_only_there_over_newer_rows(tmp_path: Path) -> None:
    """Keyed with a sequence field: a picked row is replaced whatever its sequence, another row keeps its protection."""
    options = {"sequence.field": "n"}
    store = make_table(tmp_path, columns={"id": "BIGINT", "at": "TIMESTAMP(6)", "n": "INT"}, options=options)

    def one(number: int, hours: int, n: int) -> dict[str, object]:
        return {"id": number, "at": NOON + dt.timedelta(hours=hours), "n": n}

    put(store, one(1, 0, 9), one(2, 5, 9), one(3, 0, 9))
    start = NOON.replace(tzinfo=dt.UTC)
    picks = Interval("at", start, start + dt.timedelta(hours=1))
    report = put(store, one(1, 0, 1), one(2, 0, 1), mode=REPLACE, replaces=picks)
    assert rows_of(store) == sorted([one(1, 0, 1), one(2, 5, 9)], key=repr)
    assert (report.updated, report.deleted) == (1, 1)
