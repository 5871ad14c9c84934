"""task_size: a task counts the stored bytes that it reads from end to end, and the rows that travel with it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablestore_engine.lsm.compaction_strategy import CompactionUnit
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.rows.row_filter import EVERY_ROW, MatchingRows, RowPositions, SameKeys
from tablestore_engine.store.tasks.bucket_plan import plan_bucket
from tablestore_engine.store.tasks.bucket_task import CompactRuns, Rescale, RestoreBucket
from tablestore_engine.store.tasks.task_size import carried_bytes, input_bytes

from .test_bucket_task import CASES

ALL = ("difference", "emptied", "replace", "delete", "fold", "join", "cluster")


@pytest.mark.parametrize("name", CASES)
def test_what_each_kind_reads(tmp_path: Path, name: str) -> None:
    """Rewriting and comparing count the files, of the past too, level 0 only its own, looking keys up and appending
    count nothing.
    """
    world, task = CASES[name](tmp_path)
    levels = [(file.meta.level, file.meta.file_size) for file in world.state.files]
    total = sum(size for _, size in levels)
    inbox = sum(size for level, size in levels if level == 0)
    if isinstance(task, RestoreBucket | Rescale):
        past = sum(file.meta.file_size for file in task.files)
        assert input_bytes(task) == past + sum(file.meta.file_size for file in task.state.files) > 0
        return
    assert input_bytes(task) == (total if name in ALL else inbox if name == "take in" else 0)


@pytest.mark.parametrize("name", CASES)
def test_what_each_kind_carries(tmp_path: Path, name: str) -> None:
    """Only tasks with rows of a write carry any."""
    _, task = CASES[name](tmp_path)
    assert (carried_bytes(task) > 0) == (name in ("upsert", "difference", "append", "replace"))


def test_only_what_is_read_counts(tmp_path: Path) -> None:
    """A fold does not read the files that it drops, positions name their files, no keys pick nothing, and keys are
    looked up.
    """
    world, _ = CASES["fold"](tmp_path)
    one, other = world.state.files
    unit = CompactionUnit(((one.meta.file_name,),), (other.meta.file_name,), 19)
    assert input_bytes(CompactRuns(world.task_table, world.state, unit)) == one.meta.file_size
    for picks, size in (
        (RowPositions({other.meta.file_name: BitMap([0])}), other.meta.file_size),
        (SameKeys(("id",), pa.table({"id": pa.array([], pa.int32())})), 0),
        (SameKeys(("id",)), 0),
        (SameKeys(("id",), pa.table({"id": pa.array([1], pa.int32())})), 0),
        (MatchingRows(TextCondition("id in (1, 2) and id > 0")), 0),
        (MatchingRows(TextCondition("id > 0")), one.meta.file_size + other.meta.file_size),
    ):
        assert input_bytes(plan_bucket(world.task_table, world.state, None, picks)) == size


def test_whole_files_go_unread(tmp_path: Path) -> None:
    """Without a key, every row by none: nothing to compare, so nothing to read, however large the table is."""
    world, _ = CASES["replace"](tmp_path)
    assert input_bytes(plan_bucket(world.task_table, world.state, None, EVERY_ROW)) == 0
