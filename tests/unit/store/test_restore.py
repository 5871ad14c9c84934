"""Restore: the rows of a past snapshot come back as the newest one, and the changelog tells the way."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema_change import add_column, drop_column, set_options
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.files import row_budget
from tablestore_engine.store.table_store import TableStore
from tests.doses import examples
from tests.doubles.reference_model import Frozen, freeze
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import (
    acting,
    changes,
    changes_of,
    delete,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)
from tests.unit.store.test_changelog import foreign_level_zero

_ADDS = (RowKind.INSERT, RowKind.UPDATE_AFTER)
_TABLES: dict[str, dict[str, object]] = {
    "one bucket": {},
    "buckets": {"options": {"bucket": "3"}},
    "partitions": {
        "keys": ("dt", "id"),
        "partitions": ("dt",),
        "columns": {"id": "BIGINT", "name": "STRING", "n": "INT", "dt": "STRING"},
        "options": {"bucket": "2"},
    },
    "sequence field": {"options": {"sequence.field": "n"}},
    "appended": {"keys": ()},
    "appended in buckets": {"keys": (), "options": {"bucket": "2", "bucket-key": "id"}},
    "appended with vectors": {"keys": (), "options": {"deletion-vectors.enabled": "true"}},
}


def _content(store: TableStore, snapshot_id: int | None = None) -> Counter[Frozen]:
    return Counter(freeze(one) for one in rows_of(store, snapshot_id))


def _after(before: Counter[Frozen], store: TableStore, snapshot_id: int) -> Counter[Frozen]:
    """Rows, with the changes of a snapshot done to them."""
    found = Counter(before)
    for (kind, one), count in changes_of(store, snapshot_id).items():
        found[one] += count if kind in _ADDS else -count
    assert min(found.values(), default=0) >= 0
    return +found


def _act(store: TableStore, chance: random.Random) -> None:
    """One random change."""
    more = {"dt": f"d{chance.randrange(3)}"} if store.schema.partition_keys else {}
    rows = [
        row(key, chance.choice("abc"), chance.randrange(5), **more)
        for key in chance.sample(range(12), chance.randrange(1, 7))
    ]
    turn = chance.randrange(6)
    if turn == 0:
        overwrite(store, *rows)
    elif turn == 1:
        store.compact(full=True)
    elif turn == 2 and store.schema.is_keyed:
        delete(store, *rows)
    else:
        put(store, *rows)


@pytest.mark.parametrize("name", _TABLES)
@pytest.mark.parametrize("seed", range(examples(1, 12)))
def test_any_snapshot_comes_back(tmp_path: Path, name: str, seed: int) -> None:
    """Random histories with restores among them: rows are those of the past, older snapshots keep theirs, the
    changelog leads there, and a second restore has nothing to do.
    """
    chance = random.Random(seed)
    store = make_table(tmp_path, **_TABLES[name])  # type: ignore[arg-type]
    put(store, row(1, **({"dt": "d0"} if store.schema.partition_keys else {})))
    for _ in range(examples(6, 14)):
        _act(store, chance)
        if chance.random() < 0.4:
            kept = {number: _content(store, number) for number in store.snapshots.list_ids()}
            wanted = chance.choice(list(kept))
            newest = store.latest()
            assert newest is not None
            report = store.restore(store.snapshots.get(wanted))
            assert _content(store) == kept[wanted]
            assert {number: _content(store, number) for number in kept} == kept
            assert report.snapshot_id is not None
            assert report.is_empty == (kept[wanted] == kept[newest.id])
            if not report.is_empty:
                assert _after(kept[newest.id], store, report.snapshot_id) == kept[wanted]
            assert store.restore(store.snapshots.get(wanted)).is_empty
    assert store.verify() == ()


def test_the_way_back_is_minimal(tmp_path: Path) -> None:
    """One key came, one changed, one went, one stayed: +I -U +U -D of three, nothing of the fourth."""
    store = make_table(tmp_path)
    put(store, row(1), row(2), row(3))
    put(store, row(2, "new"), row(4))
    delete(store, row(3))
    report = store.restore(store.snapshots.get(1))
    assert report.snapshot_id == 4
    assert (report.inserted, report.updated, report.deleted) == (1, 1, 1)
    expected = changes(("-U", row(2, "new")), ("+U", row(2)), ("+I", row(3)), ("-D", row(4)))
    assert changes_of(store, 4) == expected
    assert store.snapshots.get(4).operation == "RESTORE"


def test_older_rows_come_back_by_a_sequence_field(tmp_path: Path) -> None:
    """The sequence field calls the restored row older, and it comes back all the same."""
    store = make_table(tmp_path, options={"sequence.field": "n"})
    put(store, row(1, "old", 1))
    put(store, row(1, "new", 9))
    store.restore(store.snapshots.get(1))
    assert rows_of(store) == [row(1, "old", 1)]
    put(store, row(1, "later", 2))
    assert rows_of(store) == [row(1, "later", 2)]


def test_large_buckets_are_restored_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With steps of a few rows the outcome is the same as at once."""
    store = make_table(tmp_path, options={"parquet.row-group-rows": "4"})
    put(store, *(row(number) for number in range(100)))
    put(store, *(row(number, "b") for number in range(0, 150, 3)))
    delete(store, *(row(number) for number in range(0, 100, 7)))
    monkeypatch.setattr(row_budget, "STEP_ROWS", 10)
    store.restore(store.snapshots.get(1))
    assert rows_of(store) == rows_of(store, 1)
    assert store.verify() == ()


def test_a_tag_outlives_its_snapshot(tmp_path: Path) -> None:
    """Rows of a tag come back when the snapshot of that number has expired."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    wanted = rows_of(store)
    store.tags.create("good", 1)
    for turn in range(5):
        put(store, row(1, f"t{turn}"))
    store.expire(newest(1))
    assert store.snapshots.find(1) is None
    store.restore(store.tags.get("good").snapshot)
    assert rows_of(store) == wanted
    assert store.verify() == ()


def test_columns_are_todays(tmp_path: Path) -> None:
    """A column that was added since is NULL in rows that come back, one that was dropped stays dropped."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    store.alter(lambda schema: add_column(schema, "more", parse_type("INT")))
    store.alter(lambda schema: drop_column(schema, "name"))
    delete(store, {"id": 1})
    put(store, {"id": 2, "n": 5, "more": 7})
    store.restore(store.snapshots.get(1))
    assert rows_of(store) == [{"id": 1, "n": 0, "more": None}, {"id": 2, "n": 0, "more": None}]


def test_rows_that_come_meanwhile_are_not_undone(tmp_path: Path) -> None:
    """Somebody commits rows while the restore is at work: refused (TS1324), his rows stay."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    other = open_table(tmp_path)
    late = acting("commit.manifests", lambda: put(other, row(3)))
    with pytest.raises(RetryError, match="TS1324"):
        open_table(tmp_path, runtime=late).restore(store.snapshots.get(1))
    assert rows_of(store) == [row(1), row(2), row(3)]


def test_a_fold_meanwhile_is_no_change(tmp_path: Path) -> None:
    """A compaction changes no row, so the restore is planned again on it."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    other = open_table(tmp_path)
    late = acting("commit.manifests", lambda: other.compact(full=True))
    open_table(tmp_path, runtime=late).restore(store.snapshots.get(1))
    assert rows_of(store) == [row(1)]
    assert CommitKind.COMPACT in [one.commit_kind for one in store.snapshots.list_all()]
    assert store.verify() == ()


def test_rows_of_other_writers_are_taken_in_first(tmp_path: Path) -> None:
    """Level 0 of another engine is in the changelog before the restore takes it back."""
    store = make_table(tmp_path)
    put(store, row(1))
    foreign_level_zero(store, [row(1, "theirs"), row(5)], [0, 0])
    report = store.restore(store.snapshots.get(1))
    assert rows_of(store) == [row(1)]
    assert report.snapshot_id is not None
    assert changes_of(store, report.snapshot_id) == changes(
        ("-U", row(1, "theirs")), ("+U", row(1)), ("-D", row(5))
    )


def test_another_bucket_count_is_refused(tmp_path: Path) -> None:
    """Rows of the past lie in other buckets: TS1343, and nothing is committed."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    store.alter(lambda schema: set_options(schema, {"bucket": "2"}))
    overwrite(store, row(1))
    newest = store.latest()
    with pytest.raises(FixRequest, match="TS1343"):
        store.restore(store.snapshots.get(1))
    assert store.latest() == newest
