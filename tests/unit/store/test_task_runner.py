"""task_runner: upserts, deletes, difference commits and appends give the right rows, files, vectors and changelog."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.errors import EngineBug, FixData, StorageError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.binary_row import EMPTY_ROW, decode_row
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.tasks.bucket_plan import plan_rows
from tablestore_engine.store.tasks.bucket_task import Append
from tablestore_engine.store.tasks.task_runner import run_tasks
from tests.unit.store.bucket_world import Row, World, make_schema

COLUMNS = {"id": "BIGINT", "v": "STRING", "at": "INT"}
INSERT, BEFORE, AFTER, DELETE = range(4)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty bucket of (id BIGINT key, v STRING, at INT)."""
    return World(tmp_path, make_schema(COLUMNS))


def _row(key: int, value: str | None, at: int | None = 0) -> Row:
    return {"id": key, "v": value, "at": at}


def test_first_upsert_inserts(world: World) -> None:
    """Rows land sorted on the top level with numbers from 0, and all are +I in the changelog."""
    change = world.upsert([_row(2, "b"), _row(1, "a")])
    assert (change.inserted, change.updated, change.deleted, change.unchanged) == (2, 0, 0, 0)
    assert change.deletion_vectors is None
    (meta,) = change.added
    assert (meta.level, meta.row_count, meta.delete_row_count, meta.file_source) == (19, 2, 0, 0)
    assert (meta.min_sequence_number, meta.max_sequence_number) == (0, 1)
    types = [world.schema.field("id").type]
    assert (decode_row(meta.min_key, types), decode_row(meta.max_key, types)) == ((1,), (2,))
    assert world.changelog(change) == [(INSERT, _row(1, "a")), (INSERT, _row(2, "b"))]
    assert change.changelog[0].file_name.startswith("changelog-")
    assert change.changelog[0].file_name != meta.file_name


def test_update_insert_delete_in_one_batch(world: World) -> None:
    """Each kind of change gives its changelog rows in key order, old rows with their own sequence numbers."""
    world.upsert([_row(1, "a"), _row(2, "b"), _row(3, "c")])
    rows = [_row(4, "d"), _row(3, None), _row(1, "A"), _row(9, None)]
    change = world.upsert(rows, [INSERT, DELETE, AFTER, DELETE])
    assert (change.inserted, change.updated, change.deleted) == (1, 1, 1)
    assert world.rows() == [_row(1, "A"), _row(2, "b"), _row(4, "d")]
    assert world.changelog(change) == [
        (BEFORE, _row(1, "a")),
        (AFTER, _row(1, "A")),
        (DELETE, _row(3, "c")),
        (INSERT, _row(4, "d")),
    ]
    numbers = [row["_SEQUENCE_NUMBER"] for row in world.physical(change.changelog[0])]
    assert numbers == [0, 3, 2, 4]
    (meta,), (log,) = change.added, change.changelog
    assert (meta.level, log.level, log.delete_row_count, log.row_count) == (18, 18, 2, 4)
    assert {name: list(dead) for name, dead in (change.deletion_vectors or {}).items()} == {
        world.state.files[0].meta.file_name: [0, 2]
    }


def test_delete_only_commit_has_no_data_file(world: World) -> None:
    """A batch of deletes writes a vector and -D rows, and no data file."""
    world.upsert([_row(1, "a"), _row(2, "b")])
    change = world.upsert([_row(2, None)], [DELETE])
    assert change.added == ()
    assert world.changelog(change) == [(DELETE, _row(2, "b"))]
    assert world.rows() == [_row(1, "a")]


def test_delete_of_an_absent_key_is_nothing(world: World) -> None:
    """A delete without a stored row leaves no trace: the change is empty."""
    world.upsert([_row(1, "a")])
    assert world.upsert([_row(7, None)], [DELETE]).is_empty


def test_deleted_key_comes_back_as_insert(world: World) -> None:
    """A key that was deleted is +I when it returns."""
    world.upsert([_row(1, "a")])
    world.upsert([_row(1, None)], [DELETE])
    change = world.upsert([_row(1, "z")])
    assert world.changelog(change) == [(INSERT, _row(1, "z"))]
    assert world.rows() == [_row(1, "z")]


def test_insert_and_delete_in_one_batch_stores_nothing(tmp_path: Path) -> None:
    """With a sequence field, a key that is put and then deleted in one batch leaves nothing."""
    world = World(tmp_path, make_schema(COLUMNS, options={"sequence.field": "at"}))
    change = world.upsert([_row(1, "a", 1), _row(1, "a", 2)], [INSERT, DELETE])
    assert change.is_empty


def test_update_before_with_its_after(world: World) -> None:
    """A -U +U pair of one key is an update, not a repeated key; a lone -U deletes."""
    world.upsert([_row(1, "a"), _row(2, "b")])
    change = world.upsert([_row(1, "a"), _row(1, "A"), _row(2, "b")], [BEFORE, AFTER, BEFORE])
    assert (change.updated, change.deleted) == (1, 1)
    assert world.rows() == [_row(1, "A")]


def test_repeated_keys_are_refused_and_shown(world: World) -> None:
    """TS1601 names how many keys repeat and shows up to five of them; nothing is written."""
    rows = [_row(key, value) for key in range(7) for value in "ab"] + [_row(99, "x")]
    with pytest.raises(FixData) as caught:
        world.upsert(rows)
    assert caught.value.code == "TS1601"
    assert "7 keys" in str(caught.value)
    assert len(caught.value.facts["keys"]) == 5
    assert not (world.root / "t").exists()


def test_repeated_keys_last_wins(tmp_path: Path) -> None:
    """With duplicates=last the row that came last is stored."""
    world = World(tmp_path, make_schema(COLUMNS, options={"tablestore.duplicates": "last"}))
    world.upsert([_row(1, "a"), _row(2, "x"), _row(1, "b")])
    assert world.rows() == [_row(1, "b"), _row(2, "x")]


def test_sequence_field_against_stored_rows(tmp_path: Path) -> None:
    """An older row loses, an equal one wins, NULL loses, and losers count as unchanged."""
    world = World(tmp_path, make_schema(COLUMNS, options={"sequence.field": "at"}))
    world.upsert([_row(1, "a", 5), _row(2, "b", 5), _row(3, "c", 5), _row(4, "d", None)])
    change = world.upsert([_row(1, "old", 4), _row(2, "same", 5), _row(3, "null", None), _row(4, "new", 0)])
    assert (change.updated, change.unchanged) == (2, 2)
    assert [row["v"] for row in world.rows()] == ["a", "same", "c", "new"]
    assert world.upsert([_row(1, None, 4)], [DELETE]).is_empty


def test_sequence_field_in_one_batch(tmp_path: Path) -> None:
    """In a batch the largest sequence wins; equal sequences are refused."""
    world = World(tmp_path, make_schema(COLUMNS, options={"sequence.field": "at"}))
    world.upsert([_row(1, "new", 2), _row(1, "old", 1)])
    assert world.rows() == [_row(1, "new", 2)]
    with pytest.raises(FixData, match="TS1601"):
        world.upsert([_row(1, "x", 3), _row(1, "y", 3)])


@pytest.mark.parametrize("deduplicate", ["true", "false"])
def test_identical_row(tmp_path: Path, deduplicate: str) -> None:
    """An identical row is an update unless changelog-producer.row-deduplicate says otherwise."""
    world = World(tmp_path, make_schema(COLUMNS, options={"changelog-producer.row-deduplicate": deduplicate}))
    world.upsert([_row(1, None)])
    change = world.upsert([_row(1, None)])
    assert (change.updated, change.unchanged) == ((0, 1) if deduplicate == "true" else (1, 0))
    assert change.is_empty == (deduplicate == "true")


def test_difference_commit(world: World) -> None:
    """replace: absent keys are deleted, changed ones updated, new ones inserted, identical ones not touched."""
    world.upsert([_row(1, "a"), _row(2, "b"), _row(3, "c")])
    world.upsert([_row(5, "e"), _row(7, "g")])
    change = world.upsert([_row(2, "b"), _row(3, "C"), _row(4, "d"), _row(7, "g")], replace=True)
    assert (change.inserted, change.updated, change.deleted, change.unchanged) == (1, 1, 2, 2)
    assert world.changelog(change) == [
        (DELETE, _row(1, "a")),
        (BEFORE, _row(3, "c")),
        (AFTER, _row(3, "C")),
        (INSERT, _row(4, "d")),
        (DELETE, _row(5, "e")),
    ]
    assert [row["id"] for row in world.rows()] == [2, 3, 4, 7]
    assert change.added[0].row_count == 2


def test_difference_commit_of_nothing_empties_the_bucket(world: World) -> None:
    """replace with no rows deletes every row, each with its -D."""
    world.upsert([_row(1, "a"), _row(2, "b")])
    change = world.upsert([], replace=True)
    assert change.deleted == 2
    assert world.changelog(change) == [(DELETE, _row(1, "a")), (DELETE, _row(2, "b"))]
    assert world.rows() == []


def test_difference_commit_ignores_the_sequence_field(tmp_path: Path) -> None:
    """Overwriting means these rows, even if a stored row has a newer sequence."""
    world = World(tmp_path, make_schema(COLUMNS, options={"sequence.field": "at"}))
    world.upsert([_row(1, "a", 9)])
    world.upsert([_row(1, "b", 1)], replace=True)
    assert world.rows() == [_row(1, "b", 1)]


def test_no_changelog_on_request(tmp_path: Path) -> None:
    """changelog-producer=none writes no changelog file and still marks old rows."""
    world = World(tmp_path, make_schema(COLUMNS, options={"changelog-producer": "none"}))
    world.upsert([_row(1, "a")])
    change = world.upsert([_row(1, "b"), _row(2, "c")])
    assert (change.changelog, change.updated, change.inserted) == ((), 1, 1)
    assert world.rows() == [_row(1, "b"), _row(2, "c")]


def test_file_is_as_java_readers_expect(world: World) -> None:
    """Key and system columns first, Parquet field ids, exact size, statistics, no dictionary for the key."""
    change = world.upsert([_row(1, "a"), _row(2, "b")])
    path = Path(world.state.files[0].path)
    parquet = pq.ParquetFile(path)
    assert parquet.schema_arrow.names == ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "v", "at"]
    ids = [int(one.metadata[b"PARQUET:field_id"]) for one in parquet.schema_arrow]
    assert ids == [1073741823, 2147483646, 2147483645, 0, 1, 2]
    assert change.added[0].file_size == path.stat().st_size
    group = parquet.metadata.row_group(0)
    assert group.column(0).statistics.max == 2
    assert "RLE_DICTIONARY" not in group.column(3).encodings
    assert group.column(3).compression == "ZSTD"
    assert change.added[0].value_stats.null_counts == (0, 0, 0)


def test_only_columns_that_repeat_have_a_dictionary(tmp_path: Path) -> None:
    """A column of unique values is written plain, one of few values with a dictionary, each by its first rows."""
    world = World(tmp_path, make_schema(COLUMNS))
    world.upsert([_row(key, f"value {key}", at=key % 3) for key in range(2000)])
    group = pq.ParquetFile(world.state.files[0].path).metadata.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)}
    assert "RLE_DICTIONARY" not in encodings["v"]
    assert "RLE_DICTIONARY" in encodings["at"]


def test_milliseconds_have_no_dictionary(tmp_path: Path) -> None:
    """Iceberg's vectorized reader would take them for microseconds; microseconds that repeat have one."""
    columns = {"id": "BIGINT", "s": "TIMESTAMP(0)", "ms": "TIMESTAMP(3)", "us": "TIMESTAMP(6)"}
    world = World(tmp_path, make_schema(columns))
    moment = datetime(2026, 1, 1)  # noqa: DTZ001 - of a column without a zone
    world.upsert([{"id": key, "s": moment, "ms": moment, "us": moment} for key in range(2000)])
    group = pq.ParquetFile(world.state.files[0].path).metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    assert {one.path_in_schema for one in chunks if "RLE_DICTIONARY" in one.encodings} == {
        "_VALUE_KIND",
        "us",
    }


def test_files_roll_into_disjoint_ranges(tmp_path: Path) -> None:
    """A run larger than target-file-size becomes several files of one level whose key ranges do not meet."""
    options = {"target-file-size": "4 kb", "parquet.row-group-rows": "500"}
    world = World(tmp_path, make_schema(COLUMNS, options=options))
    change = world.upsert([_row(key, f"value {key}") for key in range(3000)])
    assert len(change.added) > 1
    assert len(change.changelog) == len(change.added)
    types = [world.schema.field("id").type]
    ranges = [(decode_row(one.min_key, types), decode_row(one.max_key, types)) for one in change.added]
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))
    assert {one.level for one in change.added} == {19}
    assert sum(one.row_count for one in change.added) == 3000
    assert len(world.rows()) == 3000


def test_upsert_over_several_files_of_a_run(tmp_path: Path) -> None:
    """Old rows are found in whichever file and row group of a run they lie, and fetched in key order."""
    options = {"target-file-size": "4 kb", "parquet.row-group-rows": "100"}
    world = World(tmp_path, make_schema(COLUMNS, options=options))
    world.upsert([_row(key, f"value {key}") for key in range(2000)])
    touched = [3, 150, 151, 777, 1999]
    change = world.upsert([_row(key, "new") for key in reversed(touched)])
    before = [row for kind, row in world.changelog(change) if kind == BEFORE]
    assert before == [_row(key, f"value {key}") for key in touched]


def test_level_zero_must_be_taken_in_first(world: World) -> None:
    """An upsert over level 0 files is a bug of the caller: their keys could not be seen."""
    change = world.upsert([_row(1, "a")])
    world.take(type(change)(EMPTY_ROW, 0, added=(replace(change.added[0], level=0),), removed=change.added))
    with pytest.raises(EngineBug, match="TS1653"):
        world.upsert([_row(2, "b")])


def test_schema_change_between_commits(world: World) -> None:
    """Old rows of a file with an older schema appear in the changelog as the present schema has them."""
    world.upsert([_row(1, "a"), _row(2, "b")])
    newer = make_schema({**COLUMNS, "extra": "INT"})
    world.schema = type(newer)(
        1, newer.fields, newer.highest_field_id, primary_keys=newer.primary_keys, options=newer.options
    )
    change = world.upsert([{**_row(1, "A"), "extra": 7}])
    assert world.changelog(change) == [
        (BEFORE, {**_row(1, "a"), "extra": None}),
        (AFTER, {**_row(1, "A"), "extra": 7}),
    ]
    assert world.rows() == [{**_row(1, "A"), "extra": 7}, {**_row(2, "b"), "extra": None}]


def test_append_rows_keep_their_order(tmp_path: Path) -> None:
    """Append-only rows are stored as given, without keys, numbered from the given start."""
    world = World(tmp_path, make_schema(COLUMNS, keys=()))
    rows = [_row(3, "x"), _row(1, "y"), _row(1, "y")]
    change = world.run(Append(world.task_table, world.state, world.table(rows), 10))
    (meta,) = change.added
    assert (meta.level, meta.min_key, meta.max_key, meta.file_source) == (0, EMPTY_ROW, EMPTY_ROW, 0)
    assert (meta.min_sequence_number, meta.max_sequence_number, change.inserted) == (10, 12, 3)
    path = Path(world.task_table.layout.data_file("", 0, meta.file_name))
    assert pq.ParquetFile(path).read().to_pylist() == rows
    assert pa.int64() == pq.ParquetFile(path).schema_arrow.field("id").type


def test_losers_in_interleaved_files_keep_their_row(tmp_path: Path) -> None:
    """With old rows spread over two files, exactly the row that was replaced is marked, in its own file."""
    world = World(tmp_path, make_schema(COLUMNS, options={"sequence.field": "at"}))
    world.upsert([_row(key, "a", 5) for key in (1, 2, 3, 4)])
    world.upsert([_row(key, "b", 6) for key in (2, 4)])
    change = world.upsert([_row(1, "x", 1), _row(2, "x", 9), _row(3, "x", 1), _row(4, "x", 1)])
    assert (change.updated, change.unchanged) == (1, 3)
    assert world.rows() == [_row(1, "a", 5), _row(2, "x", 9), _row(3, "a", 5), _row(4, "b", 6)]


class _FullBucket(LocalFileIO):
    """A disk that has no room for data files of bucket 1: which task meets a full disk is not ours to choose else."""

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Refuses the path with what a full disk is."""
        if "/bucket-1/data-" in path:
            raise StorageError("TS1261", f"no room for {path}", why="test", fix="test")
        return super().open_output(path)


def test_tasks_beside_a_refused_one_leave_nothing(tmp_path: Path) -> None:
    """When the disk refuses a file of one task, the files of the tasks that were done are deleted."""
    alone = {
        "bucket": "2",
        "parquet.row-group-rows": "1",
    }  # too many row groups for a pass of several buckets
    world = World(tmp_path, make_schema(COLUMNS, options=alone))
    routed = route_rows(world.table([_row(key, "a") for key in range(20)]), None, world.schema)
    tasks = plan_rows(world.task_table, routed, {}, None)
    assert [task.state.bucket for task in tasks] == [0, 1]
    with pytest.raises(StorageError):
        run_tasks(tasks, replace(world.access, fileio=_FullBucket(str(tmp_path))))
    assert not list(tmp_path.rglob("*.parquet"))
    assert len(run_tasks(tasks, world.access)) == 2
    assert list(tmp_path.rglob("*.parquet"))
