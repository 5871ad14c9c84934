"""Changes of a snapshot: exact, in a fixed order, whoever wrote it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import NotFound
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.commit.commit_report import CommitIdentity
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.difference import changed_rows
from tablestore_engine.store.files.bucket_state import BucketChange, empty_bucket
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.table_context import committer_of
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.write_request import WriteMode
from tests.unit.store.bucket_world import write_run
from tests.unit.store.table_world import as_table, changes, changes_of, delete, make_table, put, row, rows_of


def foreign_level_zero(store: TableStore, rows: list[dict[str, object]], kinds: list[int]) -> None:
    """What a Java writer with write-only leaves: an APPEND snapshot with one level-0 file, no changelog."""
    _foreign(store, rows, kinds, CommitKind.APPEND, level=0)


def foreign_run(store: TableStore, rows: pa.Table) -> None:
    """The same of many rows, in the order of `id`."""
    _foreign(store, rows, [0] * rows.num_rows, CommitKind.APPEND, level=0)


def foreign_overwrite(store: TableStore, rows: list[dict[str, object]]) -> None:
    """What Java's INSERT OVERWRITE leaves: everything removed, one file at the top, no changelog."""
    _foreign(
        store,
        rows,
        [0] * len(rows),
        CommitKind.OVERWRITE,
        level=store.context.task_table(store.schema).traits.level_count - 1,
    )


def _foreign(
    store: TableStore,
    rows: list[dict[str, object]] | pa.Table,
    kinds: list[int],
    kind: CommitKind,
    *,
    level: int,
) -> None:
    schema = store.schema
    latest = store.latest()
    states = store.bucket_states(latest)
    state = states[0] if states else empty_bucket(schema, (), 0)
    first = state.next_sequence
    context = store.context
    table = rows if isinstance(rows, pa.Table) else as_table(_in_order(rows), schema)
    run = RunRows(table, np.arange(first, first + table.num_rows), np.array(kinds, np.int8))
    output = DataFiles(context.fileio, context.layout, TableTraits(schema), context.runtime)
    files = write_run(output, state, run, level=level)
    change = BucketChange(state.partition_bytes, state.bucket, added=files)
    if kind is CommitKind.OVERWRITE:
        removed = tuple(file.meta for file in state.files)
        change = replace(change, removed=removed, deletion_vectors={} if state.deletion_vectors else None)
    plan = Planned(kind, schema, (change,), ConflictScope(everything=True))
    committer_of(store.context).commit(lambda _: plan, CommitIdentity("java", 1, is_new=True))


def _in_order(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda one: one["id"])  # type: ignore[arg-type,return-value] # numbers


def test_changes_are_the_same_every_time_and_in_order(tmp_path: Path) -> None:
    """Two readings give equal batches: bucket by bucket, by key, -U before +U."""
    store = make_table(tmp_path, options={"bucket": "3"})
    put(store, *[row(number) for number in range(30)])
    put(store, *[row(number, "b") for number in range(10, 40)])
    first, again = (
        [(batch.bucket, batch.rows) for batch in ChangelogReader(store.context).read(store.snapshots.get(2))]
        for _ in range(2)
    )
    assert first == again
    assert [bucket for bucket, _ in first] == [0, 1, 2]
    for _, rows in first:
        order = [(one["id"], one["_ROW_KIND"]) for one in rows.to_pylist()]
        assert order == sorted(order)
        assert rows.schema.names[-1] == "_ROW_KIND"
        assert rows.schema.field("_ROW_KIND").type == pa.int8()


def test_folds_change_nothing(tmp_path: Path) -> None:
    """A COMPACT snapshot has no changes."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(1, "b"))
    store.compact(full=True)
    newest = store.latest()
    assert newest is not None
    assert newest.commit_kind is CommitKind.COMPACT
    assert not ChangelogReader(store.context).has_changes(newest)
    assert changes_of(store, newest.id) == changes()
    assert ChangelogReader(store.context).has_changes(store.snapshots.get(2))


def test_foreign_level_zero_is_invisible_until_our_next_commit_takes_it_in(tmp_path: Path) -> None:
    """The next write makes a COMPACT snapshot with the changelog of the foreign rows, then its own."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    foreign_level_zero(store, [row(1, "java"), row(2), row(3)], [0, 3, 0])
    assert rows_of(store) == [row(1), row(2)]
    put(store, row(9))
    assert [one.commit_kind for one in store.snapshots.list_all()] == [
        "APPEND",
        "APPEND",
        "COMPACT",
        "APPEND",
    ]
    taken = changes_of(store, 3)
    assert taken == changes(("-U", row(1)), ("+U", row(1, "java")), ("-D", row(2)), ("+I", row(3)))
    assert rows_of(store) == [row(1, "java"), row(3), row(9)]
    assert store.verify() == ()


def test_compacting_takes_level_zero_in_as_well(tmp_path: Path) -> None:
    """CALL compact on a table with foreign rows makes them visible and leaves one run."""
    store = make_table(tmp_path)
    put(store, row(1))
    foreign_level_zero(store, [row(2)], [0])
    store.compact(full=True)
    assert rows_of(store) == [row(1), row(2)]
    assert {file.meta.level for file in store.plan_scan().files} == {19}
    assert store.verify() == ()


def test_partition_values_and_bucket_come_with_the_batch(tmp_path: Path) -> None:
    """Append-only tables say bucket -1, keyed ones their bucket."""
    store = make_table(tmp_path, keys=(), partitions=("dt",), columns={"id": "INT", "dt": "STRING"})
    put(store, {"id": 1, "dt": "x"})
    [batch] = ChangelogReader(store.context).read(store.snapshots.get(1))
    assert (batch.partition, batch.bucket) == (("x",), -1)


def test_an_overwrite_whose_past_is_expired_is_not_found(tmp_path: Path) -> None:
    """The difference needs the snapshot before: TS1315, not wrong changes."""
    store = make_table(tmp_path, keys=())
    put(store, row(1))
    put(store, row(2), mode=WriteMode.OVERWRITE_TABLE)
    store.fileio.delete(store.context.layout.snapshot_path(1))
    with pytest.raises(NotFound, match="TS1315"):
        list(ChangelogReader(store.context).read(store.snapshots.get(2)))


def test_the_difference_counts_occurrences() -> None:
    """Two of three equal rows stay; NULL and NaN equal themselves; nested rows compare too."""
    before = pa.table({"a": [1, 1, 1, None, float("nan")], "l": [[1], [1], [1], None, [2]]})
    after = pa.table({"a": [1, 1, None, float("nan"), 2], "l": [[1], [1], None, [2], [3]]})
    gone, came = changed_rows(before, after)
    assert (gone.tolist(), came.tolist()) == ([2], [4])


def test_a_zero_that_changes_its_sign_is_a_change() -> None:
    """Rows are compared as keys are: -0.0 differs from 0.0, NaN does not differ from NaN."""
    before, after = pa.table({"n": [0.0, float("nan")]}), pa.table({"n": [-0.0, float("nan")]})
    gone, came = changed_rows(before, after)
    assert (gone.tolist(), came.tolist()) == ([0], [0])


def test_delete_only_commits_have_changes(tmp_path: Path) -> None:
    """No added file, but a changelog."""
    store = make_table(tmp_path)
    put(store, row(1))
    delete(store, {"id": 1})
    assert ChangelogReader(store.context).has_changes(store.snapshots.get(2))
    assert changes_of(store, 2) == changes(("-D", row(1)))


def test_foreign_rows_are_told_once(tmp_path: Path) -> None:
    """Without a producer: kinds as they lie in the files. With one: when they are taken in, not before."""
    store = make_table(tmp_path / "none", options={"changelog-producer": "none"})
    foreign_level_zero(store, [row(1), row(2)], [0, 3])
    assert changes_of(store, 1) == changes(("+I", row(1)), ("-D", row(2)))
    store = make_table(tmp_path / "lookup")
    foreign_level_zero(store, [row(1), row(2)], [0, 3])
    assert not ChangelogReader(store.context).has_changes(store.snapshots.get(1))
    assert changes_of(store, 1) == changes()
