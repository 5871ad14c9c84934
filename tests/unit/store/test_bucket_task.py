"""bucket_task: work on a bucket is a value, wherever and however often it runs; planning it touches no file."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.cluster_order import ClusterOrder
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.files.bucket_state import BucketChange, empty_bucket
from tablestore_engine.store.merge.lookup import KeyCache
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.rows.row_filter import EVERY_ROW, SameKeys
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.tasks import bucket_plan
from tablestore_engine.store.tasks.bucket_plan import (
    plan_bucket,
    plan_compaction,
    plan_preparation,
    plan_replaced,
    plan_rescale,
    plan_restore,
    plan_rows,
    plan_write,
)
from tablestore_engine.store.tasks.bucket_task import Append, BucketTask, Replace, Upsert
from tablestore_engine.store.tasks.small_file_plan import plan_clustering, plan_small_file_tasks
from tests.doubles.faults import FaultyFileIO
from tests.unit.store.bucket_world import Row, World, make_schema
from tests.unit.store.table_world import make_table, put, row

COLUMNS = {"id": "INT", "v": "STRING"}
INSERT, BEFORE, AFTER, DELETE = range(4)


def _rows(*keys: int, value: str = "a") -> list[Row]:
    return [{"id": key, "v": value} for key in keys]


def _keyed(root: Path) -> World:
    """Two runs: keys 1 to 6, then 2 and 3 anew."""
    world = World(root, make_schema(COLUMNS, options={"parquet.row-group-rows": "2"}))
    world.upsert(_rows(1, 2, 3, 4, 5, 6))
    world.upsert(_rows(2, 3, value="b"))
    return world


def _append_only(root: Path, *, vectors: bool = True) -> World:
    """Three files of two rows each, in a fixed bucket."""
    options = {"deletion-vectors.enabled": str(vectors).lower(), "bucket": "1", "bucket-key": "id"}
    world = World(root, make_schema(COLUMNS, keys=(), options=options))
    for key in (1, 3, 5):
        world.take(world.run(world.plan(_rows(key, key + 1))))
    return world


def _upsert(root: Path) -> tuple[World, BucketTask]:
    world = _keyed(root)
    return world, world.plan(_rows(2, 3, 9, value="c"), [AFTER, DELETE, INSERT])


def _difference(root: Path) -> tuple[World, BucketTask]:
    world = _keyed(root)
    return world, world.plan(_rows(1, 2, 7), replace=True)


def _emptied(root: Path) -> tuple[World, BucketTask]:
    world = _keyed(root)
    (task,) = plan_replaced(world.task_table, [world.state], EVERY_ROW)
    return world, task


def _append(root: Path) -> tuple[World, BucketTask]:
    world = _append_only(root)
    return world, world.plan(_rows(8, 7))


def _replace(root: Path) -> tuple[World, BucketTask]:
    world = _append_only(root)
    return world, world.plan(_rows(2, 9), replace=True)


def _delete(root: Path) -> tuple[World, BucketTask]:
    world = _append_only(root, vectors=False)
    keys = SameKeys(("id",), pa.table({"id": pa.array([1, 4], pa.int32())}))
    return world, plan_bucket(world.task_table, world.state, None, keys)


def _fold(root: Path) -> tuple[World, BucketTask]:
    world = _keyed(root)
    (task,) = plan_compaction(world.task_table, [world.state])
    return world, task


def _compact_level_zero(root: Path) -> tuple[World, BucketTask]:
    world = _keyed(root)
    world.add_level_zero([(20, INSERT, _rows(3, value="theirs")[0]), (21, DELETE, _rows(5)[0])])
    (task,) = plan_preparation(world.task_table, [world.state])
    return world, task


def _join(root: Path) -> tuple[World, BucketTask]:
    world = _append_only(root)
    (task,) = plan_small_file_tasks(world.task_table, [world.state], files_min=2)
    return world, task


def _cluster(root: Path) -> tuple[World, BucketTask]:
    world = _append_only(root)
    world.schema = replace(world.schema, options={**world.schema.options, "bucket": "-1"})
    (task,) = plan_clustering(world.task_table, [world.state], ClusterOrder("zorder", ("id", "v")))
    return world, task


def _restore(root: Path, *, keyed: bool = True) -> tuple[World, BucketTask]:
    """The rows that the bucket had before its last write."""
    world = _keyed(root) if keyed else _append_only(root)
    past = world.state.files
    world.take(world.run(world.plan(_rows(1, 2, 9, value="new"))))
    key = (world.state.partition_bytes, world.state.bucket)
    (task,) = plan_restore(world.task_table, {key: world.state}, {key: past})
    return world, task


def _rescale(root: Path, *, keyed: bool = True) -> tuple[World, BucketTask]:
    """All rows, some of them dead, into one new bucket; the old one is empty then."""
    world = _keyed(root) if keyed else _append_only(root)
    world.schema = replace(world.schema, options={**world.schema.options, "bucket": "1"})
    (task,) = plan_rescale(world.task_table, [world.state], bucket_count=1)
    world.state = replace(world.state, files=())
    return world, task


CASES: Mapping[str, Callable[[Path], tuple[World, BucketTask]]] = {
    "upsert": _upsert,
    "difference": _difference,
    "emptied": _emptied,
    "append": _append,
    "replace": _replace,
    "delete": _delete,
    "fold": _fold,
    "take in": _compact_level_zero,
    "join": _join,
    "cluster": _cluster,
    "rescale": _rescale,
    "rescale appended": lambda root: _rescale(root, keyed=False),
    "restore": _restore,
    "restore appended": lambda root: _restore(root, keyed=False),
}


def _created(change: BucketChange) -> list[DataFileMeta]:
    return [*change.added, *change.changelog]


def _nameless(change: BucketChange) -> BucketChange:
    """The change with what ids and the clock decide left out."""
    added, changelog = (
        tuple(replace(meta, file_name="", creation_time=0) for meta in metas)
        for metas in (change.added, change.changelog)
    )
    return replace(change, added=added, changelog=changelog)


def _parts_of(value: object) -> Iterator[object]:
    """A value and everything that is reached from it."""
    yield value
    if is_dataclass(value) and not isinstance(value, type):
        inner: list[object] = [getattr(value, one.name) for one in fields(value)]
    elif isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    else:
        inner = list(value) if isinstance(value, tuple | list | frozenset) else []
    for one in inner:
        yield from _parts_of(one)


def test_every_kind_of_task_is_among_the_cases(tmp_path: Path) -> None:
    """A new kind of task has to pass the tests below."""
    kinds = {type(make(tmp_path / name)[1]) for name, make in CASES.items()}
    assert kinds == set(get_args(BucketTask))


@pytest.mark.parametrize("name", CASES)
def test_a_task_is_a_value(tmp_path: Path, name: str) -> None:
    """It survives pickling, is equal afterwards, and reaches no file system, clock, cache or store."""
    _, task = CASES[name](tmp_path)
    assert pickle.loads(pickle.dumps(task)) == task
    handles = (LocalFileIO, Runtime, KeyCache, TableContext)
    assert not [one for one in _parts_of(task) if isinstance(one, handles)]


def test_kinds_tell_tasks_apart(tmp_path: Path) -> None:
    """Tasks are equal when all they say is: another kind of one row, or none, is another task."""
    _, task = _upsert(tmp_path)
    assert isinstance(task, Upsert)
    assert replace(task) == task
    assert replace(task, kinds=np.array([AFTER, DELETE, AFTER], np.int8)) != task
    assert replace(task, kinds=None) != task
    assert task != replace(task, kinds=None)


@pytest.mark.parametrize("is_keyed", [True, False])
def test_a_task_is_as_large_as_its_rows(tmp_path: Path, is_keyed: bool) -> None:
    """Rows are slices of the batch that was routed: the task of one of many buckets sends its own along, not all."""
    options = {"bucket": "50", "bucket-key": "id"}
    world = World(tmp_path, make_schema(COLUMNS, keys=("id",) if is_keyed else (), options=options))
    rows, kinds = world.table(_rows(*range(20_000), value="x" * 50)), np.ones(20_000, np.int8) * AFTER
    tasks = plan_rows(world.task_table, route_rows(rows, kinds if is_keyed else None, world.schema), {}, None)
    assert len(tasks) == 50
    assert len(pickle.dumps(tasks[7])) < rows.nbytes / 20


@pytest.mark.parametrize("name", CASES)
def test_a_task_that_runs_twice_gives_equal_changes(tmp_path: Path, name: str) -> None:
    """Its copy elsewhere, without memory of keys, writes the same under other names, which nobody names."""
    world, task = CASES[name](tmp_path)
    thrown_away = world.run(pickle.loads(pickle.dumps(task)))
    world.cache = KeyCache()
    change = world.run(task)
    assert not change.is_empty
    assert _nameless(change) == _nameless(thrown_away)
    assert not {one.file_name for one in _created(change)} & {one.file_name for one in _created(thrown_away)}
    world.take(change)
    named = {file.meta.file_name for file in world.state.files} | {
        meta.file_name for meta in change.changelog
    }
    assert not named & {meta.file_name for meta in _created(thrown_away)}
    world.rows()


@pytest.mark.parametrize("name", CASES)
def test_a_change_survives_pickling(tmp_path: Path, name: str) -> None:
    """What a task in another process made comes back as it was."""
    world, task = CASES[name](tmp_path)
    change = world.run(task)
    assert pickle.loads(pickle.dumps(change)) == change


@pytest.mark.parametrize(
    ("is_keyed", "picks", "kind"),
    [
        (True, None, Upsert),
        (True, EVERY_ROW, Upsert),
        (False, None, Append),
        (False, EVERY_ROW, Replace),
    ],
)
def test_the_kind_of_task(tmp_path: Path, is_keyed: bool, picks: object, kind: type) -> None:
    """A key decides between looking up and appending, replaced rows between appending and comparing."""
    world = World(tmp_path, make_schema(COLUMNS, keys=("id",) if is_keyed else ()))
    (task,) = plan_rows(world.task_table, route_rows(world.table(_rows(1)), None, world.schema), {}, picks)
    assert type(task) is kind


@pytest.mark.parametrize("is_keyed", [True, False])
def test_planning_opens_nothing(tmp_path: Path, is_keyed: bool) -> None:
    """From states and rows to tasks no file is touched; getting the states creates, replaces and deletes none."""
    fileio = FaultyFileIO(LocalFileIO(str(tmp_path)))
    store = make_table(tmp_path, keys=("id",) if is_keyed else (), fileio=fileio)
    for turn in range(4):
        put(store, *(row(number, f"t{turn}") for number in range(turn + 3)))
    latest, schema, context = store.latest(), store.schema, store.context
    fileio.calls.clear()
    states = context.scanner.bucket_states(latest, schema)
    assert {operation for operation, _ in fileio.calls} <= {"read", "open_input", "list", "exists", "size"}
    assert states
    fileio.calls.clear()
    table = context.task_table(schema)
    routed = route_rows(store.read().slice(0, 2), None, schema)
    fileio.calls.clear()
    plans = [
        plan_rows(table, routed, states, None),
        plan_write(table, routed, states, EVERY_ROW),
        plan_replaced(table, states.values(), EVERY_ROW),
        plan_preparation(table, states.values()) if is_keyed else (),
        plan_compaction(table, states.values())
        if is_keyed
        else plan_small_file_tasks(table, states.values(), files_min=2),
    ]
    assert fileio.calls == []
    assert [len(plan) for plan in plans] == [1, 1, 1, 0, 1]


def test_a_write_plans_each_bucket_once(tmp_path: Path) -> None:
    """Buckets with rows in their order, then those that only lose rows; nothing of others when nothing is replaced."""
    world = World(tmp_path, make_schema(COLUMNS, options={"bucket": "4", "bucket-key": "id"}))
    buckets = [empty_bucket(world.schema, (), number) for number in range(4)]
    states = {(one.partition_bytes, one.bucket): one for one in buckets}
    routed = route_rows(world.table(_rows(1)), None, world.schema)
    (mine,) = {one.bucket for one in routed}
    others = [number for number in range(4) if number != mine]
    plain = plan_write(world.task_table, routed, states, None)
    replacing = plan_write(world.task_table, routed, states, EVERY_ROW)
    assert [task.state.bucket for task in plain] == [mine]
    assert [task.state.bucket for task in replacing] == [mine, *others]


def test_what_plans_imports_nothing_that_writes() -> None:
    """A module with a function plan_… gets neither writers of files nor the performing of tasks into its hands."""
    store = Path(bucket_plan.__file__).parents[1]
    planning = {
        path: ast.parse(path.read_text()) for path in store.rglob("*.py") if "def plan_" in path.read_text()
    }
    assert store / "tasks" / "bucket_plan.py" in planning
    writing = {
        "data_files",
        "parquet_output",
        "task_runner",
        "compaction_step",
        "file_join",
        "compact_runs",
        "rolling_writer",
        "merge_steps",
        "merge_on_write",
    }
    for path, tree in planning.items():
        if path.name == "table_store.py":
            continue  # the handle: its plan_scan asks the scanner
        imported = {
            node.module.rpartition(".")[2]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module is not None
        }
        assert not imported & writing, path.name
