"""compaction: asked for, it does what is due (or everything), says what it did, and bears other writers and crashes."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.errors import FixRequest, NotFound, RetryError, Unsupported
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write import compaction_step
from tablestore_engine.store.write.requested_compaction import NOTHING, CompactionReport, FileTotals
from tests.doses import pairs
from tests.doubles.faults import SimulatedCrash, counting, crashing, seeded_runtime
from tests.unit.store.table_world import (
    acting,
    changes,
    changes_of,
    make_table,
    open_table,
    put,
    row,
    rows_of,
)
from tests.unit.store.test_changelog import foreign_level_zero
from tests.unit.store.test_staging import main_files

DEDICATED = {"tablestore.compaction": "dedicated"}
BY_DAY: dict[str, Any] = {
    "keys": ("dt", "id"),
    "partitions": ("dt",),
    "columns": {"id": "BIGINT", "name": "STRING", "n": "INT", "dt": "DATE"},
}
_PASSED = ("commit.claimed", "commit.done", "commit.manifests", "write.data_files")  # by each step


def _runs(store: TableStore, turns: int) -> None:
    for turn in range(turns):
        put(store, *(row(number, f"t{turn}") for number in range(turn, turn + 5)))


def _kinds(store: TableStore) -> set[CommitKind]:
    return {one.commit_kind for one in store.snapshots.list_all()}


def _days(root: Path) -> TableStore:
    """Three partitions of three runs each."""
    store = make_table(root, **BY_DAY)
    for turn in range(3):
        put(store, *(row(n, f"t{turn}", dt=date(2026, 1, day)) for day in (1, 2, 3) for n in range(4)))
    return store


def _files_of(store: TableStore) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in store.plan_scan().files:
        name = str(file.partition[0])
        found[name] = found.get(name, 0) + 1
    return found


def _unnamed(root: Path, store: TableStore) -> set[str]:
    """Data files on disk that no snapshot's files or changelogs name."""
    named: set[str] = set()
    for snapshot in store.snapshots.list_all():
        for entry in (
            *store.context.manifests.read_entries(snapshot.delta_manifest_list),
            *store.context.manifests.read_changelog_entries(snapshot),
        ):
            named.add(entry.file.file_name)
    return {path.name for path in root.rglob("*.parquet")} - named


# --- what is due ------------------------------------------------------------------------------------------------


def test_nothing_is_due(tmp_path: Path) -> None:
    """Few runs, or no snapshot at all: no commit, and the report says so."""
    store = make_table(tmp_path)
    assert store.compact() == store.compact(full=True) == CompactionReport(None)
    _runs(store, 3)
    assert store.compact() == CompactionReport(3)
    assert store.snapshots.list_ids() == (1, 2, 3)


def test_full_says_what_it_rewrote(tmp_path: Path) -> None:
    """Three runs of 15 rows, 8 of them dead, become one of 7; sizes are those on disk; again: nothing is left."""
    store = make_table(tmp_path)
    _runs(store, 3)
    before, rows = store.plan_scan().files, rows_of(store)
    report = store.compact(full=True)
    (after,) = store.plan_scan().files
    assert report == CompactionReport(
        4,
        (4,),
        FileTotals(3, 15, sum(Path(file.path).stat().st_size for file in before)),
        FileTotals(1, 7, Path(after.path).stat().st_size),
    )
    assert rows_of(store) == rows
    assert changes_of(store, 4) == changes()
    assert store.compact(full=True) == CompactionReport(4)
    assert store.verify() == ()


def test_a_file_that_only_moves_was_not_rewritten(tmp_path: Path) -> None:
    """A run that gets the top level as it is counts neither before nor after."""
    store = make_table(tmp_path, options={"target-file-size": "1 b", "parquet.row-group-rows": "1"})
    put(store, *(row(number) for number in range(4)))
    put(store, row(9))
    before = {file.path for file in store.plan_scan().files}
    report = store.compact(full=True)
    rewritten = before - {file.path for file in store.plan_scan().files}
    assert (report.before.files, report.after.files) == (len(rewritten), len(rewritten))


# --- writers that leave it --------------------------------------------------------------------------------------


def test_a_writer_leaves_folds_to_a_dedicated_compaction(tmp_path: Path) -> None:
    """13 commits: inline folds on the way, dedicated never; compact does then what was due, with equal rows."""
    inline, store = make_table(tmp_path / "inline"), make_table(tmp_path / "dedicated", options=DEDICATED)
    for one in (inline, store):
        _runs(one, 13)
    assert CommitKind.COMPACT in _kinds(inline)
    assert _kinds(store) == {CommitKind.APPEND}
    assert len({file.meta.level for file in store.plan_scan().files}) == 13
    report = store.compact()
    assert report.snapshot_ids == (14,)
    assert len({file.meta.level for file in store.plan_scan().files}) <= 10
    assert rows_of(store) == rows_of(inline)
    assert store.compact().is_empty
    assert store.verify() == ()


def test_joins_are_left_too(tmp_path: Path) -> None:
    """Append-only: twelve appends are twelve files until a compaction joins what is due."""
    store = make_table(tmp_path, keys=(), options=DEDICATED)
    for turn in range(12):
        put(store, row(turn))
    assert len(store.plan_scan().files) == 12
    report = store.compact()
    assert (report.before.files, report.after) == (12, FileTotals(1, 12, report.after.bytes))
    assert len(rows_of(store)) == 12


def test_no_writer_stands_still(tmp_path: Path) -> None:
    """With six levels and nobody who compacts, a bucket without a free level is folded by its writer."""
    store = make_table(tmp_path, options={**DEDICATED, "num-levels": "6"})
    _runs(store, 5)
    assert _kinds(store) == {CommitKind.APPEND}
    _runs(store, 12)
    assert CommitKind.COMPACT in _kinds(store)
    assert store.verify() == ()


# --- partitions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "name"),
    [("dt", "2026-01-02", "2026-01-02"), ("DT", date(2026, 1, 1), "2026-01-01")],
)
def test_one_partition(tmp_path: Path, column: str, value: object, name: str) -> None:
    """A text or a value, the column in any case: its files become one, those of the others stay."""
    store = _days(tmp_path)
    before, rows = (
        {file.path for file in store.plan_scan().files if str(file.partition[0]) != name},
        rows_of(store),
    )
    report = store.compact(full=True, partition={column: value})
    assert report.before.files == 3
    assert _files_of(store)[name] == 1
    assert sum(_files_of(store).values()) == 7
    assert before <= {file.path for file in store.plan_scan().files}
    assert rows_of(store) == rows


@pytest.mark.parametrize(
    ("partition", "error", "code"),
    [
        ({"dt": "2026-05-05"}, NotFound, "TS1370"),
        ({"day": "2026-01-01"}, FixRequest, "TS1311"),
        ({"dt": "May"}, FixRequest, "TS1311"),
        ({"dt": "2026-01-01", "DT": "2026-01-01"}, FixRequest, "TS1311"),
    ],
)
def test_a_partition_that_is_not_there(
    tmp_path: Path, partition: dict[str, object], error: type[Exception], code: str
) -> None:
    """A wrong value, column or text is refused before anything is done: it must not pass for nothing to do."""
    store = _days(tmp_path)
    with pytest.raises(error, match=code):
        store.compact(full=True, partition=partition)
    assert store.snapshots.list_ids() == (1, 2, 3)


def test_the_partition_of_null(tmp_path: Path) -> None:
    """The table's name for it means NULL, as in the folder."""
    store = make_table(tmp_path, keys=(), partitions=("name",), options=DEDICATED)
    for turn in range(3):
        put(store, row(turn, "a"), {**row(turn), "name": None})
    assert store.compact(full=True, partition={"name": "__DEFAULT_PARTITION__"}).before.files == 3
    assert _files_of(store) == {"a": 3, "None": 1}


def test_some_of_the_partition_columns(tmp_path: Path) -> None:
    """All partitions that agree with what is named."""
    columns = {"id": "BIGINT", "name": "STRING", "n": "INT", "dt": "STRING", "eu": "BOOLEAN"}
    store = make_table(tmp_path, keys=("dt", "eu", "id"), partitions=("dt", "eu"), columns=columns)
    for turn in range(2):
        put(store, *(row(turn, dt=dt, eu=eu) for dt in ("a", "b") for eu in (True, False)))
    assert store.compact(full=True, partition={"dt": "a"}).before.files == 4
    assert store.compact(full=True, partition={"eu": "true"}).before.files == 2
    assert len(store.plan_scan().files) == 5


# --- beside others ----------------------------------------------------------------------------------------------


def test_an_overtaken_step_is_planned_again(tmp_path: Path) -> None:
    """Somebody upserts while the fold is about to be committed: his rows are there, folded too, no file is left."""
    store = make_table(tmp_path)
    _runs(store, 3)
    other = open_table(tmp_path)
    late = acting("commit.manifests", lambda: put(other, row(2, "late"), row(50)))
    report = open_table(tmp_path, runtime=late).compact(full=True)
    assert report.snapshot_ids == (5,)
    assert len(store.plan_scan().files) == 1
    assert {one["name"] for one in rows_of(store) if one["id"] == 2} == {"late"}
    assert changes_of(store, 4) == changes(("-U", row(2, "t2")), ("+U", row(2, "late")), ("+I", row(50)))
    assert _unnamed(tmp_path, store) == set()
    assert store.verify() == ()


def test_a_writer_is_not_lost_to_a_compaction(tmp_path: Path) -> None:
    """The other way round: a fold is claimed under a write, which plans again on it."""
    store = make_table(tmp_path)
    _runs(store, 3)
    other = open_table(tmp_path)
    put(
        open_table(tmp_path, runtime=acting("commit.manifests", lambda: other.compact(full=True))),
        row(3, "late"),
    )
    assert [one.commit_kind for one in store.snapshots.list_all()[-2:]] == [
        CommitKind.COMPACT,
        CommitKind.APPEND,
    ]
    assert {one["name"] for one in rows_of(store) if one["id"] == 3} == {"late"}
    assert _unnamed(tmp_path, store) == set()
    assert store.verify() == ()


def test_two_compactions_at_once(tmp_path: Path) -> None:
    """The quicker one does it; the other finds nothing left, says so, and leaves no file."""
    store = make_table(tmp_path, options={"bucket": "3"})
    for turn in range(3):
        put(store, *(row(number, f"t{turn}") for number in range(30)))
    other = open_table(tmp_path)
    reports: list[CompactionReport] = []
    late = acting("commit.manifests", lambda: reports.append(other.compact(full=True)))
    slower = open_table(tmp_path, runtime=late).compact(full=True)
    assert [one.snapshot_ids for one in reports] == [(4,)]
    assert (slower.snapshot_ids, slower.snapshot_id, slower.before) == ((), 4, NOTHING)
    assert _unnamed(tmp_path, store) == set()
    assert store.verify() == ()


def test_it_gives_up_as_often_as_the_table_says(tmp_path: Path) -> None:
    """With commit.max-retries 0 an overtaken compaction is TS1305, and nothing of it stays."""
    store = make_table(tmp_path, options={"commit.max-retries": "0"})
    _runs(store, 3)
    other = open_table(tmp_path)
    with pytest.raises(RetryError, match="TS1305"):
        open_table(tmp_path, runtime=acting("commit.manifests", lambda: put(other, row(2, "late")))).compact(
            full=True
        )
    assert _unnamed(tmp_path, store) == set()


def test_it_works_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step has as many buckets as the bound allows, one at least; the report adds them up."""
    store = _days(tmp_path)
    rows = rows_of(store)
    monkeypatch.setattr(compaction_step, "PORTION_BYTES", 1)
    report = store.compact(full=True)
    assert report.snapshot_ids == (4, 5, 6)
    assert (report.before.files, report.before.rows, report.after.files, report.after.rows) == (9, 36, 3, 12)
    assert rows_of(store) == rows
    assert store.verify() == ()


@pytest.mark.parametrize(("point", "nth"), pairs(_PASSED, [1, 2, 3]))
def test_killed_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, nth: int) -> None:
    """At each crash point of each step: rows are as before, what is claimed stays, the next call does the rest."""
    monkeypatch.setattr(compaction_step, "PORTION_BYTES", 1)
    rows = rows_of(_days(tmp_path))
    with pytest.raises(SimulatedCrash):
        open_table(tmp_path, runtime=crashing(seeded_runtime(nth), point, nth)).compact(full=True)
    passed: Counter[str] = Counter()
    store = open_table(tmp_path, runtime=counting(seeded_runtime(99), passed))
    assert rows_of(store) == rows
    assert store.verify() == ()
    done = len(store.snapshots.list_ids()) - 3
    assert len(store.compact(full=True).snapshot_ids) == 3 - done
    assert passed.keys() <= set(_PASSED)
    assert rows_of(store) == rows
    assert sum(_files_of(store).values()) == 3
    assert store.verify() == ()


def test_staged_snapshots_stay_as_they_are(tmp_path: Path) -> None:
    """A compaction changes no byte of a branch; publishing puts its rows on top."""
    store = make_table(tmp_path)
    _runs(store, 3)
    put(store, row(0, "staged"), row(70), stage="gate")
    branch = tmp_path / "demo.db/t/branch"
    before = {path: path.read_bytes() for path in branch.rglob("*") if path.is_file()}
    assert store.compact(full=True).snapshot_ids == (4,)
    assert {path: path.read_bytes() for path in branch.rglob("*") if path.is_file()} == before
    seen = rows_of(store.on_staged("gate"))
    assert main_files(tmp_path)
    store.staging.publish("gate")
    assert rows_of(store) == seen
    assert store.verify() == ()


# --- rows of others ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [True, False])
def test_level_zero_comes_into_sight(tmp_path: Path, full: bool) -> None:
    """Rows that another engine left are taken in with their changelog, whether or not anything else is due."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    foreign_level_zero(store, [row(1, "theirs"), row(3)], [0, 0])
    report = store.compact(full=full)
    assert report.snapshot_ids == ((3, 4) if full else (3,))
    assert changes_of(store, 3) == changes(("-U", row(1)), ("+U", row(1, "theirs")), ("+I", row(3)))
    assert rows_of(store) == [row(1, "theirs"), row(2), row(3)]
    assert store.verify() == ()


def test_what_we_do_not_write_we_do_not_fold(tmp_path: Path) -> None:
    """A keyed table without deletion vectors has versions that readers merge: TS1309, before its files are opened."""
    store = make_table(tmp_path, options={"deletion-vectors.enabled": "false"})
    with pytest.raises(Unsupported, match="TS1309"):
        store.compact(full=True)
