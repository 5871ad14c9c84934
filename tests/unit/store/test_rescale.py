"""Rescale: another number of buckets, and nothing changes for whoever reads the table or its changes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.files import row_budget
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doses import examples, pairs
from tests.unit.store.table_world import (
    acting,
    as_table,
    delete,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)
from tests.unit.store.test_changelog import foreign_level_zero

_DAYS = {"id": "BIGINT", "name": "STRING", "n": "INT", "dt": "STRING"}
_TABLES: dict[str, dict[str, object]] = {
    "keyed": {},
    "partitions": {"keys": ("dt", "id"), "partitions": ("dt",), "columns": _DAYS},
    "by another column": {"keys": ("id", "name"), "options": {"bucket-key": "name"}},
    "mod": {"options": {"bucket-function.type": "mod"}},
    "sequence field": {"options": {"sequence.field": "n"}},
    "appended": {"keys": (), "options": {"bucket-key": "id"}},
    "appended with vectors": {
        "keys": (),
        "options": {"bucket-key": "id", "deletion-vectors.enabled": "true"},
    },
}

_COUNTS = ((3, 6), (4, 6), (2, 1), (1, 4), (4, 2), (5, 3))


def _made(root: Path, name: str, buckets: int) -> TableStore:
    wanted = dict(_TABLES[name])
    options = {**wanted.pop("options", {}), "bucket": str(buckets)}  # type: ignore[dict-item]
    return make_table(root, options=options, **wanted)  # type: ignore[arg-type]


def _filled(store: TableStore, chance: random.Random) -> None:
    """Some commits with deletes, folds and overwrites among them."""
    days = bool(store.schema.partition_keys)
    for turn in range(examples(4, 6)):
        rows = [
            row(key, chance.choice("abc"), turn, **({"dt": f"d{key % 3}"} if days else {}))
            for key in chance.sample(range(60), 20)
        ]
        put(store, *rows)
        if store.schema.is_keyed and turn % 2:
            delete(store, *rows[:5])
        if turn == 2:
            store.compact(full=True)
    if not store.schema.is_keyed:
        overwrite(store, *(one for one in rows_of(store) if chance.random() < 0.7))


def _check_places(store: TableStore) -> None:
    """Each row lies in the bucket of its key, and each bucket is one of the table's."""
    schema = store.schema
    fields = schema.fields_of(schema.bucket_keys)
    function = schema.options.get("bucket-function.type", "default")
    for file in store.plan_scan().files:
        rows = FileReader(store.fileio, schema).read_visible(file)
        columns = [rows.column(field.name) for field in fields]
        found = assign_buckets(columns, [one.type for one in fields], schema.bucket_count, function)
        assert set(np.unique(found).tolist()) <= {file.bucket}
        assert file.total_buckets == schema.bucket_count


@pytest.mark.parametrize(("name", "counts"), pairs(list(_TABLES), _COUNTS))
def test_rows_move_and_stay_the_same(tmp_path: Path, name: str, counts: tuple[int, int]) -> None:
    """From any count to any other: equal rows, each where its key belongs, no change in the snapshot; writes go on, and
    past snapshots read as they were.
    """
    before, after = counts
    chance = random.Random(f"{name} {before} {after}")
    store = _made(tmp_path, name, before)
    _filled(store, chance)
    past = {number: rows_of(store, number) for number in store.snapshots.list_ids()}
    rows = rows_of(store)
    report = store.rescale(after)
    assert report.snapshot_id is not None
    snapshot = store.snapshots.get(report.snapshot_id)
    assert (snapshot.commit_kind, snapshot.operation) == (CommitKind.COMPACT, "RESCALE")
    assert rows_of(store) == rows
    assert not ChangelogReader(store.context).has_changes(snapshot)
    assert store.schema.bucket_count == after
    _check_places(store)
    assert {number: rows_of(store, number) for number in past} == past
    assert store.rescale(after).is_empty
    _filled(store, chance)
    _check_places(store)
    assert store.verify() == ()


def _totals(store: TableStore, number: int) -> dict[str, set[int]]:
    """File → bucket counts of the entries that add or remove it, up to this snapshot."""
    found: dict[str, set[int]] = {}
    for one in range(1, number + 1):
        for entry in store.context.manifests.read_entries(store.snapshots.get(one).delta_manifest_list):
            found.setdefault(entry.file.file_name, set()).add(entry.total_buckets)
    return found


def test_entry_that_removes_a_file_has_the_bucket_count_of_the_one_that_added_it(tmp_path: Path) -> None:
    """Other engines look for a key in entries one by one: the removal would be passed by, and the old row come back.

    Of a rescale, of an overwrite into other buckets, and of a compaction in a partition that has its old ones.
    """
    store = make_table(tmp_path / "a", options={"bucket": "2"})
    put(store, *(row(number) for number in range(20)))
    store.rescale(3)
    assert {len(counts) for counts in _totals(store, 2).values()} == {1}
    days = make_table(
        tmp_path / "b", keys=("dt", "id"), partitions=("dt",), columns=_DAYS, options={"bucket": "2"}
    )
    for name in "ab":
        put(days, *(row(number, name, dt=dt) for number in range(20) for dt in "xy"))
    wider = replace(days.schema, id=1, options={**days.schema.options, "bucket": "3"})
    overwritten = {"mode": WriteMode.OVERWRITE_STATIC, "partition": {"dt": "x"}, "new_schema": wider}
    days.write(WriteRequest(as_table([row(1, dt="x")], wider).drop_columns(["dt"]), **overwritten))  # type: ignore[arg-type]
    days.compact(full=True)
    newest = days.latest()
    assert newest is not None
    assert {len(counts) for counts in _totals(days, newest.id).values()} == {1}
    assert {file.partition: file.total_buckets for file in days.plan_scan().files} == {("x",): 3, ("y",): 2}
    assert days.verify() == ()


def test_large_buckets_go_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With steps of a few rows the outcome is the same as at once."""
    store = make_table(tmp_path, options={"parquet.row-group-rows": "4", "bucket": "2"})
    put(store, *(row(number) for number in range(120)))
    put(store, *(row(number, "b") for number in range(0, 150, 3)))
    rows = rows_of(store)
    monkeypatch.setattr(row_budget, "STEP_ROWS", 10)
    store.rescale(3)
    assert rows_of(store) == rows
    _check_places(store)
    assert store.verify() == ()


def test_rows_of_other_writers_are_taken_in_first(tmp_path: Path) -> None:
    """Level 0 of another engine is not lost, and not moved unseen: its changes are in a snapshot before."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    foreign_level_zero(store, [row(1, "theirs"), row(5)], [0, 0])
    store.rescale(2)
    assert rows_of(store) == sorted([row(1, "theirs"), row(2), row(5)], key=repr)
    assert store.verify() == ()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_write_at_the_same_time(tmp_path: Path, is_first: bool) -> None:
    """Whoever is quicker: both are done, the rows of the write lie in the new buckets."""
    store = make_table(tmp_path)
    put(store, *(row(number) for number in range(20)))
    other = open_table(tmp_path)
    if is_first:
        late = acting("commit.manifests", lambda: put(other, row(3, "new"), row(50)))
        open_table(tmp_path, runtime=late).rescale(4)
    else:
        late = acting("commit.manifests", lambda: other.rescale(4))
        put(open_table(tmp_path, runtime=late), row(3, "new"), row(50))
    expected = [row(number) for number in range(20) if number != 3] + [row(3, "new"), row(50)]
    assert rows_of(store) == sorted(expected, key=repr)
    _check_places(store)
    assert store.verify() == ()


def test_a_staged_snapshot_of_the_old_buckets(tmp_path: Path) -> None:
    """What was staged before is never put on top of the new buckets as it lies: it is refused, or planned anew."""
    store = make_table(tmp_path)
    put(store, *(row(number) for number in range(20)))
    put(store, row(3, "staged"), stage="gate")
    store.rescale(4)
    with pytest.raises(Exception, match="TS1308"):
        store.staging.publish("gate")
    assert rows_of(store) == sorted((row(number) for number in range(20)), key=repr)
    _check_places(store)
    assert store.verify() == ()


@pytest.mark.parametrize(
    ("table", "buckets"),
    [({"keys": ()}, 2), ({}, 0), ({"options": {"log.system": "kafka", "bucket": "4"}}, 2)],
)
def test_what_cannot_be_rescaled(tmp_path: Path, table: dict[str, object], buckets: int) -> None:
    """No fixed buckets, no number of buckets, fewer than a topic has partitions: TS1344, nothing is written."""
    store = make_table(tmp_path, **table)  # type: ignore[arg-type]
    put(store, row(1))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FixRequest, match="TS1344"):
        store.rescale(buckets)
    assert sorted(tmp_path.rglob("*")) == before
