"""Several writes in one staged snapshot: nothing is visible before, all of it is one snapshot after."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.rows.row_filter import Interval
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tests.doses import cases
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.unit.store.table_world import acting, changes, changes_of, make_table, open_table, put, rows_of

COLUMNS = {"id": "BIGINT", "at": "TIMESTAMP(6)", "v": "STRING"}
DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SHAPES: dict[str, dict[str, Any]] = {
    "keyed": {"options": {"bucket": "2", "num-levels": "5"}},
    "append": {"keys": (), "options": {"deletion-vectors.enabled": "true"}},
}


def row(number: int, day: int, text: str = "a") -> dict[str, object]:
    """A row of a day."""
    return {"id": number, "at": (DAY + dt.timedelta(days=day, hours=1)).replace(tzinfo=None), "v": text}


def batch(store: TableStore, day: int, *rows: dict[str, object], stage: str = "s") -> CommitReport:
    """One day of a staged microbatch."""
    picks = Interval("at", DAY + dt.timedelta(days=day), DAY + dt.timedelta(days=day + 1))
    return put(store, *rows, mode=WriteMode.REPLACE, replaces=picks, stage=stage, builds_on_stage=True)


@pytest.mark.parametrize("shape", cases(SHAPES, 1))
def test_batches_of_one_stage_are_published_as_one_snapshot(tmp_path: Path, shape: str) -> None:
    """Twelve batches, two without change: readers of the stage see all so far, main nothing; then one snapshot with
    the sum of the counts and a changelog that leads from the old rows to the new ones.
    """
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES[shape])
    put(store, *[row(n, n % 12) for n in range(24)])
    old = rows_of(store)
    now = {n: row(n, n % 12) for n in range(24)}
    for day in range(12):
        new = [] if day == 11 else [row(day, day, "a" if day == 4 else "b"), row(100 + day, day)]
        if day == 4:
            new = [now[4], now[16]]
        report = batch(store, day, *new)
        now = {n: one for n, one in now.items() if n % 12 != day or n >= 100} | {
            one["id"]: one for one in new
        }  # type: ignore[misc]
        assert report.staged == "s"
        assert rows_of(store.on_staged("s")) == sorted(now.values(), key=repr)
        assert rows_of(store) == old
        assert store.snapshots.list_ids() == (1,)
    assert store.on_staged("s").verify() == ()
    report = store.staging.publish("s")
    assert store.snapshots.list_ids() == (1, 2)
    assert rows_of(store) == sorted(now.values(), key=repr)
    kinds = changes_of(store, 2)
    replayed = changes(*[("+I", one) for one in old])
    for (kind, one), count in kinds.items():
        replayed[0, one] += count if kind in (0, 2) else -count
    assert +replayed == changes(*[("+I", one) for one in now.values()])
    assert (report.inserted + report.updated, report.unchanged) == (20, 0)
    assert store.verify() == ()
    assert not list((tmp_path / "demo.db/t/branch").glob("*"))
    put(store, row(500, 1))
    assert store.verify() == ()


def test_an_empty_batch_leaves_the_stage_and_its_outcomes(tmp_path: Path) -> None:
    """Outcomes go when the rows change, and stay when they do not."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES["append"])
    put(store, row(1, 1))
    batch(store, 2, row(2, 2))
    store.staging.record_outcome("s", "unique", "green")
    assert batch(store, 3).staged == "s"
    assert [(one.test_id, one.status) for one in store.staging.list_all()[0].outcomes] == [
        ("unique", "green")
    ]
    batch(store, 3, row(3, 3))
    assert store.staging.list_all()[0].outcomes == ()
    assert len(rows_of(store.on_staged("s"))) == 3


def test_a_batch_that_dies_before_it_is_staged_is_not_there_and_can_be_written_again(tmp_path: Path) -> None:
    """Killed before its turn was taken: the stage is without it; killed behind it: the next writer puts it in place."""
    make_table(tmp_path, columns=COLUMNS, **SHAPES["append"])
    store = open_table(tmp_path)
    put(store, row(1, 1))
    batch(store, 2, row(2, 2))
    for point, left in (("write.data_files", 2), ("stage.claimed", 2)):
        dying = open_table(tmp_path, runtime=crashing(seeded_runtime(5), point))
        with pytest.raises(SimulatedCrash):
            batch(dying, 3, row(3, 3))
        assert len(rows_of(store.on_staged("s"))) == left
    batch(store, 4, row(4, 4))
    assert rows_of(store.on_staged("s")) == [row(n, n) for n in (1, 2, 3, 4)]
    batch(store, 3, row(3, 3, "again"))
    store.staging.publish("s")
    assert store.snapshots.list_ids() == (1, 2)
    assert rows_of(store) == [row(1, 1), row(2, 2), row(3, 3, "again"), row(4, 4)]
    assert changes_of(store, 2) == changes(*[("+I", one) for one in rows_of(store)[1:]])
    assert store.verify() == ()


@pytest.mark.parametrize("point", ["write.data_files", "stage.claimed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_two_batches_at_once_are_both_in_the_stage(tmp_path: Path, shape: str, point: str) -> None:
    """Another process takes the turn first, or comes between our turn and its place: no row of either is lost."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES[shape])
    put(store, row(1, 1))
    batch(store, 2, row(2, 2))
    ours = open_table(
        tmp_path,
        runtime=acting(point, lambda: [batch(store, day, row(day, day)) for day in (4, 5)]),
    )
    batch(ours, 3, row(3, 3))
    assert rows_of(store.on_staged("s")) == [row(n, n) for n in (1, 2, 3, 4, 5)]
    files = {path.name for path in (tmp_path / "demo.db/t").rglob("*.parquet")}
    store.staging.publish("s")
    live = {
        e.file.file_name for s in store.snapshots.list_all() for e in store.context.scanner.live_entries(s)
    }
    if shape == "append":  # folds of a stage leave files that came and went
        assert {name for name in files if name.startswith("data-")} == live
    assert rows_of(store) == [row(n, n) for n in (1, 2, 3, 4, 5)]
    assert store.verify() == ()


@pytest.mark.parametrize("has_rows", [True, False])
@pytest.mark.parametrize("point", ["write.data_files", "commit.manifests", "stage.made"])
@pytest.mark.parametrize("shape", SHAPES)
def test_two_first_batches_at_once_are_both_in_the_stage(
    tmp_path: Path, shape: str, point: str, has_rows: bool
) -> None:
    """Both found no stage: who comes second writes into that of the first, and what tests said of it is void."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES[shape])
    before = [row(1, 1)] if has_rows else []
    put(store, *before)

    def other() -> None:
        batch(store, 3, row(3, 3))
        store.staging.record_outcome("s", "unique", "green")

    report = batch(open_table(tmp_path, runtime=acting(point, other)), 2, row(2, 2))
    assert (report.staged, report.inserted) == ("s", 1)
    assert rows_of(store.on_staged("s")) == [*before, row(2, 2), row(3, 3)]
    assert store.staging.list_all()[0].outcomes == ()
    store.staging.publish("s")
    assert rows_of(store) == [*before, row(2, 2), row(3, 3)]
    assert store.verify() == ()
    live = {
        e.file.file_name for s in store.snapshots.list_all() for e in store.context.scanner.live_entries(s)
    }
    assert {path.name for path in (tmp_path / "demo.db/t").rglob("data-*.parquet")} == live


def test_threads_that_begin_a_stage_lose_no_batch(tmp_path: Path) -> None:
    """Three at once, with and without rows in the table, also where a stage of that name was dropped before."""
    for number in range(16):
        root = tmp_path / str(number)
        root.mkdir()
        store = make_table(root, columns=COLUMNS, **SHAPES["append" if number % 2 else "keyed"])
        before = [row(0, 0)] if number % 4 < 2 else []
        put(store, *before)
        if number % 8 < 4:
            batch(store, 9, row(9, 9))
            store.staging.discard("s")
        begin = threading.Barrier(3)

        def write(day: int, root: Path = root, begin: threading.Barrier = begin) -> CommitReport:
            begin.wait()
            return batch(open_table(root), day, row(day, day))

        with ThreadPoolExecutor(3) as threads:
            assert [one.inserted for one in threads.map(write, (1, 2, 3))] == [1, 1, 1]
        assert rows_of(store.on_staged("s")) == [*before, row(1, 1), row(2, 2), row(3, 3)]
        store.staging.publish("s")
        assert store.verify() == ()


@pytest.mark.parametrize("died", ["stage.made", "commit.manifests"])
def test_what_a_first_batch_left_that_died_is_no_stage(tmp_path: Path, died: str) -> None:
    """Nor in the way of the next one, on the same base and on a newer one."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES["append"])
    put(store, row(1, 1))
    for number in (2, 3):
        with pytest.raises(SimulatedCrash):
            batch(open_table(tmp_path, runtime=crashing(seeded_runtime(5), died)), 9, row(9, 9))
        assert store.staging.list_all() == ()
        batch(store, number, row(number, number))
        store.staging.publish("s")
    with pytest.raises(SimulatedCrash):
        batch(open_table(tmp_path, runtime=crashing(seeded_runtime(5), died)), 9, row(9, 9))
    put(store, row(4, 4))
    batch(store, 5, row(5, 5))
    store.staging.publish("s")
    assert rows_of(store) == [row(n, n) for n in range(1, 6)]
    assert store.verify() == ()


def test_a_first_batch_whose_table_moves_is_planned_again(tmp_path: Path) -> None:
    """A commit between its look at the table and its stage: the stage of another batch on the new rows takes it in."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES["append"])
    put(store, row(1, 1))

    def others() -> None:
        put(store, row(4, 4))
        batch(store, 3, row(3, 3))

    batch(open_table(tmp_path, runtime=acting("stage.made", others)), 2, row(2, 2))
    assert rows_of(store.on_staged("s")) == [row(n, n) for n in (1, 2, 3, 4)]
    store.staging.publish("s")
    assert rows_of(store) == [row(n, n) for n in (1, 2, 3, 4)]
    assert store.verify() == ()


@pytest.mark.folders
def test_a_half_removed_stage_does_not_come_back(tmp_path: Path) -> None:
    """Its base is gone already: a batch after that begins anew."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES["append"])
    put(store, row(1, 1))
    batch(store, 2, row(2, 2, "red"))
    (tmp_path / "demo.db/t/branch/branch-ts_staged_s/snapshot/snapshot-1").unlink()
    assert store.staging.list_all() == ()
    batch(store, 3, row(3, 3))
    assert rows_of(store.on_staged("s")) == [row(1, 1), row(3, 3)]


def test_a_stage_that_is_published_meanwhile_takes_no_further_batch(tmp_path: Path) -> None:
    """NotFound, and the batch is nowhere; repeated, it begins a stage of its own."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES["append"])
    batch(store, 1, row(1, 1))
    ours = open_table(tmp_path, runtime=acting("write.data_files", lambda: store.staging.publish("s")))
    with pytest.raises(NotFound, match="TS1316"):
        batch(ours, 2, row(2, 2))
    assert rows_of(store) == [row(1, 1)]
    assert batch(store, 2, row(2, 2)).staged == "s"
    store.staging.publish("s")
    assert rows_of(store) == [row(1, 1), row(2, 2)]


def test_the_first_rows_of_a_table_may_come_in_batches(tmp_path: Path) -> None:
    """A stage without a base: the first snapshot of the table holds all batches."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES["keyed"])
    for day in range(4):
        batch(store, day, row(day, day))
    assert store.snapshots.list_ids() == ()
    store.staging.publish("s")
    assert store.snapshots.list_ids() == (1,)
    assert rows_of(store) == [row(day, day) for day in range(4)]
    assert store.verify() == ()


def test_a_stage_is_published_as_it_was_tested_or_not_at_all(tmp_path: Path) -> None:
    """A batch that came behind the tests, or whose turn is taken, stops publishing; a closed stage takes no batch."""
    store = make_table(tmp_path, columns=COLUMNS, **SHAPES["append"])
    batch(store, 1, row(1, 1))
    tested = store.staging.get("s").snapshot.uuid
    batch(store, 2, row(2, 2))
    with pytest.raises(RetryError, match="TS1389"):
        store.staging.publish_found(store.staging.get("s"), only=tested)
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(5), "stage.claimed"))
    with pytest.raises(SimulatedCrash):
        batch(dying, 3, row(3, 3))
    with pytest.raises(RetryError, match="TS1389"):
        store.staging.publish("s")
    assert store.snapshots.list_ids() == ()
    batch(store, 3, row(3, 3))
    failing = open_table(tmp_path, runtime=crashing(seeded_runtime(5), "stage.published"))
    with pytest.raises(SimulatedCrash):
        failing.staging.publish("s")
    with pytest.raises(RetryError, match="TS1388"):
        batch(store, 4, row(4, 4))
    assert store.staging.publish("s").snapshot_id == 1
    assert rows_of(store) == [row(n, n) for n in (1, 2, 3)]
