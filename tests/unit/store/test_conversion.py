"""Conversion: a table whose readers merge versions gets deletion vectors; every reader has the same rows throughout.

Two forms  what another engine reads is this engine's plan with the options of the newest schema file: a snapshot must
           have the same rows with the old options and with the new ones, from the moment that the new file exists
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest, RetryError, Unsupported
from tablestore_engine.format.consumer import Consumer
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.runtime.outside_world import CRASH_POINTS
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.tasks.bucket_task import BucketTask
from tablestore_engine.store.tasks.task_runner import FileAccess, run_tasks
from tablestore_engine.warehouse.write.converted_schema import plan_conversion
from tests.doses import cases, pairs
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.unit.store.table_world import (
    Row,
    acting,
    changes_of,
    delete,
    make_table,
    open_table,
    put,
    row,
    rows_of,
)
from tests.unit.store.test_changelog import foreign_level_zero, foreign_overwrite

MERGED = {
    "deletion-vectors.enabled": "false",
    "changelog-producer": "none",
    "write-only": "false",
    "num-levels": "6",
}
INSERT, DELETE = 0, 3
LEFT = [row(1, "c"), row(3, "b"), row(4, "b")]


def merged_table(root: Path, **options: str) -> TableStore:
    """Three commits of another engine into level 0: keys 1 to 4, of which 1 is updated twice and 2 deleted."""
    store = make_table(root, options={**MERGED, **{key.replace("_", "-"): v for key, v in options.items()}})
    foreign_level_zero(store, [row(1), row(2), row(3, "b")], [INSERT] * 3)
    foreign_level_zero(store, [row(1, "b"), row(2), row(4, "b")], [INSERT, DELETE, INSERT])
    foreign_level_zero(store, [row(1, "c"), row(2)], [INSERT, DELETE])
    return store


def convert(store: TableStore, buckets: int | None = None) -> CommitReport:
    """As the command does."""
    return store.convert(plan_conversion(store, buckets, "uuid"))


def newest_file_schema(store: TableStore) -> TableSchema:
    """What other engines take for the table's."""
    return store.context.schemas.get(store.context.schemas.list_ids()[-1])


def seen_by_others(store: TableStore) -> dict[int, list[Row]]:
    """The rows of each snapshot file with the options of the newest schema file."""
    schema, found = newest_file_schema(store), {}
    for number in store.snapshots.list_file_ids():
        snapshot = store.snapshots.get(number)
        plan = store.context.scanner.plan_scan(snapshot, schema=schema)
        found[number] = sorted(store.read(plan).to_pylist(), key=repr)
    return found


def test_a_conversion_beside_another_one_plans_again(tmp_path: Path) -> None:
    """The other one expires the snapshot that this one has planned on, and deletes its files."""
    merged_table(tmp_path)
    others = [open_table(tmp_path)]

    def run_late(tasks: Sequence[BucketTask], access: FileAccess) -> list[BucketChange]:
        while others:
            convert(others.pop(), 2)
        return run_tasks(tasks, access)

    store = replace(open_table(tmp_path), runner=run_late)
    convert(store, 2)
    assert rows_of(store) == LEFT
    assert [one.id for one in store.snapshots.list_all()] == [5]
    assert store.verify() == ()


@pytest.mark.parametrize("buckets", [None, 1, 3])
def test_conversion_keeps_rows_and_makes_the_table_writable(tmp_path: Path, buckets: int | None) -> None:
    """No row and no change; older snapshots are gone; the next write has its changelog; again: nothing to do."""
    store = merged_table(tmp_path)
    with pytest.raises(Unsupported, match="tablestore convert"):
        put(store, row(9))
    convert(store, buckets)
    assert rows_of(store) == LEFT
    assert store.snapshots.list_file_ids() == (4, 5)
    assert set(map(repr, seen_by_others(store).values())) == {repr(LEFT)}
    assert [one.commit_kind for one in store.snapshots.list_all()] == [CommitKind.COMPACT] * 2
    assert not any(ChangelogReader(store.context).has_changes(one) for one in store.snapshots.list_all())
    assert store.schema.bucket_count == (buckets or 1)
    assert store.schema.options["tablestore.table-uuid"] == "uuid"
    put(store, row(1, "d"), row(9))
    delete(store, row(3, "b"))
    assert rows_of(store) == [row(1, "d"), row(4, "b"), row(9)]
    assert sorted(kind for kind, _ in changes_of(store, 6)) == [0, 1, 2]
    assert store.verify() == ()
    assert convert(store).is_empty
    assert store.latest().id == 7  # type: ignore[union-attr]


def test_conversion_of_a_table_that_is_one_run_commits_the_schema_alone(tmp_path: Path) -> None:
    """Rows that need no merging are not written again, and an empty table gets its schema."""
    empty = make_table(tmp_path / "empty", options=MERGED)
    convert(empty)
    assert (rows_of(empty), empty.schema.options["deletion-vectors.enabled"]) == ([], "true")
    put(empty, row(1))
    store = merged_table(tmp_path)
    died = crashing(seeded_runtime(1), "commit.claimed", 2)
    with pytest.raises(SimulatedCrash):
        convert(open_table(tmp_path, runtime=died))
    files = [file.path for file in store.plan_scan().files]
    convert(store)
    assert [file.path for file in store.plan_scan().files] == files
    assert rows_of(store) == LEFT


def test_conversion_of_dynamic_buckets_makes_them_fixed(tmp_path: Path) -> None:
    """bucket=-1: merged where the rows are, then moved into the buckets of their keys."""
    store = make_table(tmp_path, options={**MERGED, "bucket": "-1"})
    foreign_level_zero(store, [row(n) for n in range(20)], [INSERT] * 20)
    foreign_level_zero(store, [row(1), row(2, "b")], [DELETE, INSERT])
    expected = rows_of(store)
    with pytest.raises(Unsupported, match=r"(?s)TS1309.*tablestore convert"):
        put(store, row(9))
    convert(store, 4)
    assert rows_of(store) == expected
    assert {file.total_buckets for file in store.plan_scan().files} == {4}
    put(store, row(2, "c"), row(50))
    assert len(rows_of(store)) == 20
    assert store.verify() == ()


def test_conversion_is_refused_while_past_snapshots_are_needed(tmp_path: Path) -> None:
    """A tag, a consumer: TS1558 names them, and nothing changes."""
    store = merged_table(tmp_path)
    store.tags.create("kept", 1)
    with pytest.raises(FixRequest, match=r"(?s)TS1558.*tag kept"):
        convert(store)
    store.tags.delete("kept")
    store.context.consumers.put("flink", Consumer(2))
    with pytest.raises(FixRequest, match=r"(?s)TS1558.*consumer flink"):
        convert(store)
    assert store.snapshots.list_file_ids() == (1, 2, 3)
    assert rows_of(store) == LEFT


def test_conversion_is_refused_for_changes_that_no_changelog_has(tmp_path: Path) -> None:
    """changelog-producer=lookup: level 0 comes into a changelog with a compaction of its engine (TS1558)."""
    store = merged_table(tmp_path, changelog_producer="lookup")
    with pytest.raises(FixRequest, match=r"(?s)TS1558.*no changelog"):
        convert(store)
    assert store.snapshots.list_file_ids() == (1, 2, 3)


def test_conversion_of_what_it_does_not_change_is_refused(tmp_path: Path) -> None:
    """No key, no buckets, a feature that stays: nothing is committed."""
    keyless = make_table(tmp_path / "a", keys=(), options={"bucket": "-1"})
    with pytest.raises(FixRequest, match="TS1576"):
        convert(keyless)
    with pytest.raises(FixRequest, match="TS1577"):
        convert(merged_table(tmp_path / "b"), 0)
    orc = make_table(tmp_path / "c", options={**MERGED, "file.format": "orc"})
    with pytest.raises(Unsupported, match=r"(?s)TS1127.*orc") as refused:
        convert(orc)
    assert "tablestore convert" not in str(refused.value)
    assert orc.snapshots.list_file_ids() == ()


@pytest.mark.parametrize("point", ["commit.manifests", "commit.done", "expire.hidden", "commit.schema"])
def test_conversion_beside_a_commit_of_another_engine_begins_again(tmp_path: Path, point: str) -> None:
    """Rows that come between the steps are merged too."""
    other = merged_table(tmp_path)
    store = open_table(
        tmp_path,
        runtime=acting(point, lambda: foreign_level_zero(other, [row(1, "late"), row(8)], [INSERT] * 2)),
    )
    convert(store)
    assert rows_of(store) == [row(1, "late"), row(3, "b"), row(4, "b"), row(8)]
    assert set(map(repr, seen_by_others(store).values())) == {repr(rows_of(store))}
    put(store, row(1, "ours"))
    assert store.verify() == ()


def test_conversion_gives_up_after_commits_without_end(tmp_path: Path) -> None:
    """TS1559, and the rows are those of the other engine."""
    other = merged_table(tmp_path)
    numbers = iter(range(100, 200))

    def act(name: str) -> None:
        if name == "commit.done":
            foreign_level_zero(other, [row(next(numbers))], [INSERT])

    store = open_table(tmp_path, runtime=replace(seeded_runtime(7), on_crash_point=act))
    with pytest.raises(RetryError, match="TS1559"):
        convert(store)
    assert rows_of(store)[0] == row(1, "c")
    assert len(rows_of(store)) == 3 + 10


POINTS = sorted(name for name in CRASH_POINTS if name.startswith(("write.", "commit.", "expire.")))


@pytest.mark.parametrize("nth", cases([1, 2], 1))
@pytest.mark.parametrize(("point", "buckets"), pairs(POINTS, [None, 3]))
def test_conversion_killed_anywhere_has_equal_rows_for_both_readers(
    tmp_path: Path, point: str, nth: int, buckets: int | None
) -> None:
    """At each failpoint: our rows, and those of a reader with the newest schema file, are the table's at its newest
    snapshot; while old snapshots are there, that schema is the old one. The same command ends it.
    """
    merged_table(tmp_path)
    with suppress(SimulatedCrash):
        convert(
            open_table(tmp_path, runtime=crashing(seeded_runtime(POINTS.index(point)), point, nth)), buckets
        )
    killed = open_table(tmp_path)
    assert rows_of(killed) == LEFT
    newest = killed.snapshots.list_file_ids()[-1]
    if newest_file_schema(killed).id == 0:
        assert seen_newest(killed, newest) == LEFT
    else:
        assert set(map(repr, seen_by_others(killed).values())) == {repr(LEFT)}
    assert killed.verify() == ()
    convert(killed, buckets)
    assert rows_of(killed) == LEFT
    assert set(map(repr, seen_by_others(killed).values())) == {repr(LEFT)}
    put(killed, row(1, "ours"))
    assert killed.verify() == ()


def seen_newest(store: TableStore, number: int) -> list[Row]:
    """With the newest schema file."""
    plan = store.context.scanner.plan_scan(store.snapshots.get(number), schema=newest_file_schema(store))
    return sorted(store.read(plan).to_pylist(), key=repr)


def test_the_order_of_steps_is_needed(tmp_path: Path) -> None:
    """A reader with the new options reads other rows of a table that is not merged: what the order keeps from it."""
    store = merged_table(tmp_path)
    new = set_options(store.schema, {"deletion-vectors.enabled": "true"})
    assert store.context.schemas.claim(replace(new, id=1))
    assert seen_by_others(store)[3] != LEFT


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}])
def test_rows_that_no_reader_shows_are_not_lost(tmp_path: Path, options: dict[str, str]) -> None:
    """Level 0 that waits for a compaction stops the conversion of dynamic buckets, also without a changelog."""
    store = make_table(tmp_path, options={**MERGED, "bucket": "-1", **options})
    foreign_level_zero(store, [row(1), row(2)], [INSERT] * 2)
    assert rows_of(store) == []
    with pytest.raises(FixRequest, match="TS1558"):
        convert(store)


def test_first_row_keeps_its_files_without_vectors(tmp_path: Path) -> None:
    """A converted first-row table has no deletion vectors, which Paimon refuses beside it, and is written on."""
    store = make_table(tmp_path, options={**MERGED, "bucket": "-1", "merge-engine": "first-row"})
    foreign_overwrite(store, [row(1), row(2)])
    convert(store)
    assert store.schema.options["deletion-vectors.enabled"] == "false"
    put(store, row(1, "later"), row(3))
    assert rows_of(store) == [row(1), row(2), row(3)]
