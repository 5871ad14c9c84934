"""Compaction of append-only tables: few files, the same rows, in fixed buckets also the same order, beside others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store.rows.row_filter import RowPositions, SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.tasks.small_file_plan import pick_all_files, pick_small_files
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doses import examples, pairs
from tests.doubles.faults import SimulatedCrash, counting, crashing, seeded_runtime
from tests.unit.store.file_meta import meta
from tests.unit.store.table_world import acting, changes, changes_of, make_table, open_table, put, row

BUCKETED = {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"}
LEFT = {**BUCKETED, "tablestore.compaction": "dedicated"}
KINDS = {
    "bucketed": BUCKETED,
    "without vectors": {**BUCKETED, "deletion-vectors.enabled": "false"},
    "without buckets": {"bucket": "-1", "deletion-vectors.enabled": "true"},
}
_PASSED = ("commit.claimed", "commit.done", "commit.manifests", "write.data_files")


def _ordered(store: TableStore) -> list[tuple[int, int]]:
    """(id, n) of the rows, bucket after bucket, in the order in which readers get them."""
    return [(one["id"], one["n"]) for one in store.read(store.plan_scan()).to_pylist()]


def _by_id(rows: list[tuple[int, int]]) -> dict[int, list[int]]:
    """The values of each id in their order: an id is in one bucket."""
    found: dict[int, list[int]] = {}
    for number, n in rows:
        found.setdefault(number, []).append(n)
    return found


def _remove(store: TableStore, number: int) -> None:
    keys = pa.table({"id": pa.array([number], pa.int64())})
    store.write(WriteRequest(mode=WriteMode.REPLACE, replaces=SameKeys(("id",), keys)))


def _appends(store: TableStore, turns: int) -> None:
    for turn in range(turns):
        put(store, *(row(number, n=turn) for number in range(6)))


# --- which files ------------------------------------------------------------------------------------------------


def test_the_choice_of_small_files() -> None:
    """Nothing below the count; a full tier takes all smaller files along; large files are left alone."""
    few = [meta(f"f{number}", rows=10) for number in range(4)]
    assert pick_small_files(few, target_bytes=1_000_000, files_min=5) == ()
    more = [*few, meta("f4", rows=10)]
    assert pick_small_files(more, target_bytes=1_000_000, files_min=5) == (("f0", "f1", "f2", "f3", "f4"),)
    mixed = [
        meta("big", rows=20_000, size=900_000),
        *[meta(f"m{n}", rows=10_000) for n in range(5)],
        meta("s", rows=1),
    ]
    names = ("m0", "m1", "m2", "m3", "m4", "s")
    assert pick_small_files(mixed, target_bytes=1_000_000, files_min=5) == (names,)
    assert pick_all_files(few, (), target_bytes=1_000_000, files_min=2) == (("f0", "f1", "f2", "f3"),)
    assert pick_all_files(mixed, ("big",), target_bytes=1_000_000, files_min=2) == (("big", *names),)


def test_of_ordered_files_neighbours_alone_are_chosen() -> None:
    """A large file, or one of a higher tier, cuts the row; a file with deleted rows is taken by itself."""
    files = [
        meta("a", rows=1),
        meta("b", rows=1),
        meta("big", rows=20_000, size=900_000),
        meta("c", rows=1),
        meta("m", rows=10_000),
        meta("d", rows=1),
        meta("e", rows=1),
    ]
    options = {"target_bytes": 1_000_000, "is_ordered": True}
    assert pick_small_files(files, files_min=2, **options) == (("a", "b"), ("d", "e"))
    assert pick_small_files(files, files_min=3, **options) == ()
    assert pick_all_files(files, (), files_min=3, **options) == (("c", "m", "d", "e"),)
    assert pick_all_files(files[:4], ("c",), files_min=2, **options) == (("a", "b"), ("c",))
    assert pick_all_files(files[2:3], (), files_min=1, **options) == ()


# --- what it does -----------------------------------------------------------------------------------------------


def test_appending_to_buckets_for_ever_keeps_few_files_in_order(tmp_path: Path) -> None:
    """40 appends to two buckets: few files, each id's rows in the order of the appends, no change in a compaction."""
    store = make_table(tmp_path, keys=(), options=BUCKETED)
    _appends(store, 40)
    assert len(store.plan_scan().files) <= 2 * 9
    compactions = [one for one in store.snapshots.list_all() if one.commit_kind is CommitKind.COMPACT]
    assert compactions
    assert all(changes_of(store, one.id) == changes() for one in compactions)
    expected = {number: list(range(40)) for number in range(6)}
    assert _by_id(_ordered(store)) == expected
    assert len(store.compact(full=True).snapshot_ids) == 1
    assert len(store.plan_scan().files) == 2
    assert store.compact(full=True).is_empty
    _appends(store, 1)
    assert _by_id(_ordered(store)) == {number: [*values, 0] for number, values in expected.items()}
    assert open_table(tmp_path).verify() == ()


def test_a_dedicated_table_is_compacted_when_asked(tmp_path: Path) -> None:
    """Writers leave twelve appends as they are; `compact` does what is due."""
    store = make_table(tmp_path, keys=(), options=LEFT)
    _appends(store, 12)
    assert len(store.plan_scan().files) == 24
    report = store.compact()
    assert (report.before.files, report.after.files, report.after.rows) == (24, 2, 72)
    assert store.compact().is_empty


def test_files_between_stay_with_their_vectors(tmp_path: Path) -> None:
    """A large file with deleted rows is rewritten, one without stays, and cuts the small ones into two new files."""
    store = make_table(tmp_path, keys=(), options={**LEFT, "bucket": "1", "target-file-size": "4 kb"})
    for turn in range(6):
        many = range(2_000) if turn == 2 else range(3)
        put(store, *(row(number, f"name {number * 7919 % 2003}", turn) for number in many))
    before = store.plan_scan().files
    store.compact(full=True)
    after = store.plan_scan().files
    assert [file.meta.row_count for file in after] == [6, 2_000, 9]
    assert after[1].meta.file_name == before[2].meta.file_name
    store.write(
        WriteRequest(mode=WriteMode.REPLACE, replaces=RowPositions({after[1].meta.file_name: BitMap([5, 7])}))
    )
    left = _ordered(store)
    store.compact(full=True)
    assert [file.deleted for file in store.plan_scan().files] == [None] * len(store.plan_scan().files)
    assert _ordered(store) == left
    assert store.verify() == ()


# --- beside others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", ["write.data_files", "commit.manifests"])
def test_a_row_deleted_beside_a_compaction_stays_deleted(tmp_path: Path, kind: str, point: str) -> None:
    """Somebody deletes and appends at that step of a compaction: it is planned again on what is there then."""
    store = make_table(tmp_path, keys=(), options={**KINDS[kind], "tablestore.compaction": "dedicated"})
    _appends(store, 5)
    other = open_table(tmp_path)

    def act() -> None:
        _remove(other, 3)
        put(other, row(9, n=9))

    open_table(tmp_path, runtime=acting(point, act)).compact(full=True)
    expected = {number: list(range(5)) for number in range(6) if number != 3} | {9: [9]}
    assert {number: sorted(found) for number, found in _by_id(_ordered(store)).items()} == expected
    assert store.verify() == ()
    newest = store.latest()
    assert newest is not None
    assert newest.commit_kind is CommitKind.COMPACT


@pytest.mark.parametrize("kind", KINDS)
def test_a_delete_overtaken_by_a_compaction_finds_its_rows(tmp_path: Path, kind: str) -> None:
    """The other way round: files are compacted while a delete by key is about to be committed."""
    store = make_table(tmp_path, keys=(), options={**KINDS[kind], "tablestore.compaction": "dedicated"})
    _appends(store, 5)
    other = open_table(tmp_path)
    _remove(open_table(tmp_path, runtime=acting("commit.manifests", lambda: other.compact(full=True))), 3)
    expected = {number: list(range(5)) for number in range(6) if number != 3}
    assert {number: sorted(found) for number, found in _by_id(_ordered(store)).items()} == expected
    assert store.verify() == ()


@pytest.mark.parametrize(("point", "kind"), pairs(_PASSED, [*KINDS]))
def test_killed_in_the_middle(tmp_path: Path, point: str, kind: str) -> None:
    """At each crash point: rows and their order are as before, and the next call does what is left."""
    store = make_table(tmp_path, keys=(), options={**KINDS[kind], "tablestore.compaction": "dedicated"})
    _appends(store, 4)
    _remove(store, 2)
    before = _ordered(store)
    with pytest.raises(SimulatedCrash):
        open_table(tmp_path, runtime=crashing(seeded_runtime(1), point, 1)).compact(full=True)
    passed: Counter[str] = Counter()
    store = open_table(tmp_path, runtime=counting(seeded_runtime(99), passed))
    assert _ordered(store) == before
    assert store.verify() == ()
    store.compact(full=True)
    assert passed.keys() <= set(_PASSED)
    assert _ordered(store) == before
    assert len(store.plan_scan().files) == int(BUCKETED["bucket"] if kind != "without buckets" else 1)
    assert store.verify() == ()


# --- random histories -------------------------------------------------------------------------------------------


def _random_steps(seed: int) -> Iterator[tuple[str, int]]:
    chance = random.Random(seed)
    for _ in range(25):
        yield chance.choices(["append", "delete", "due", "full"], [6, 2, 1, 1])[0], chance.randrange(8)


@pytest.mark.parametrize("seed", range(examples(3, 60)))
def test_random_histories_have_the_rows_of_a_list(tmp_path: Path, seed: int) -> None:
    """Appends, deletes and compactions in any order: each id has the values of a plain list, in fixed buckets also in
    its order; every snapshot reads as it did when it was made.
    """
    kind = sorted(KINDS)[seed % 3]
    options = {
        **KINDS[kind],
        "compaction.min.file-num": "3",
        "target-file-size": ["1 kb", "128 mb"][seed % 2],
    }
    store = make_table(tmp_path, keys=(), options=options)
    expected: dict[int, list[int]] = {}
    shown: dict[int, dict[int, list[int]]] = {}
    for turn, (step, number) in enumerate(_random_steps(seed)):
        if step == "append":
            put(store, *(row(one, n=turn) for one in range(number % 4, number + 1)))
            for one in range(number % 4, number + 1):
                expected.setdefault(one, []).append(turn)
        elif step == "delete":
            _remove(store, number)
            expected.pop(number, None)
        else:
            store.compact(full=step == "full")
        newest = store.latest()
        if newest is not None:
            shown[newest.id] = {one: [*values] for one, values in expected.items()}
    for snapshot, rows in shown.items():
        found = _by_id([(one["id"], one["n"]) for one in store.read(
            store.plan_scan(store.snapshots.get(snapshot))).to_pylist()])  # fmt: skip
        is_ordered = kind != "without buckets"
        assert {one: values if is_ordered else sorted(values) for one, values in found.items()} == rows
    assert store.verify() == ()
