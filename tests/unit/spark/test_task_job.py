"""task_job: where bucket tasks run, how they are spread, and that they come back as they would from a thread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import EngineBug, FixData
from tablestore_engine.spark.task_job import encode_group, plan_groups, run_group
from tablestore_engine.spark.task_outcomes import gather
from tablestore_engine.spark.task_placement import (
    CARRIED_BYTES_MAX,
    START_FACTOR,
    TASK_BYTES,
    JobSize,
    use_spark_tasks,
)
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.tasks.bucket_task import Upsert
from tests.unit.store.test_bucket_task import CASES, _nameless, _rows

SMALL = 16 << 20


@pytest.mark.parametrize(
    ("size", "is_started", "on_executors"),
    [
        (JobSize(SMALL, 0), True, False),
        (JobSize(SMALL + 1, 0), True, True),
        (JobSize(START_FACTOR * SMALL, 0), False, False),
        (JobSize(START_FACTOR * SMALL + 1, 0), False, True),
        (JobSize(0, CARRIED_BYTES_MAX + 1), True, False),
        (JobSize(1 << 40, CARRIED_BYTES_MAX), True, True),
        (JobSize(1 << 40, CARRIED_BYTES_MAX + 1), True, False),
        (JobSize(0, 0, SMALL // TASK_BYTES + 1), True, False),
        (JobSize(0, 0, SMALL // TASK_BYTES + 2), True, True),
        (JobSize(0, 0, START_FACTOR * SMALL // TASK_BYTES + 1), False, False),
        (JobSize(0, 0, START_FACTOR * SMALL // TASK_BYTES + 2), False, True),
    ],
)
def test_the_place(size: JobSize, is_started: bool, on_executors: bool) -> None:
    """Bytes and number of tasks decide; starting Spark must pay; rows that fill the driver already do not travel."""
    assert use_spark_tasks(size, small_bytes=SMALL, is_started=is_started) is on_executors


@given(st.lists(st.integers(0, 1 << 40), max_size=60), st.integers(1, 8))
def test_groups_hold_each_task_once(sizes: list[int], cores: int) -> None:
    """Each task is in exactly one group, no group is empty, and the heaviest is at most the best one plus one task."""
    groups = plan_groups(sizes, cores=cores)
    assert sorted(place for group in groups for place in group) == list(range(len(sizes)))
    assert all(groups)
    assert len(groups) == min(len(sizes), 4 * cores)
    if groups:
        heaviest = max(sum(sizes[place] + 1 for place in group) for group in groups)
        assert heaviest <= sum(size + 1 for size in sizes) / len(groups) + max(sizes) + 1


@pytest.mark.parametrize("name", CASES)
def test_a_task_in_a_worker_makes_what_a_thread_makes(tmp_path: Path, name: str) -> None:
    """Through both pickles: the same change under other file names."""
    world, task = CASES[name](tmp_path)
    outcomes = list(run_group(world.access.fileio, None, encode_group([task], [0])))
    (change,) = gather(outcomes).in_order(1)
    assert _nameless(change) == _nameless(world.run(task))


def test_a_group_ends_at_its_first_error(tmp_path: Path) -> None:
    """What was made before it is in the answer, the error is itself, and nothing runs after it."""
    world, good = CASES["upsert"](tmp_path)
    assert isinstance(good, Upsert)
    bad = replace(good, rows=world.table(_rows(7, 7)), kinds=None)
    outcomes = list(run_group(world.access.fileio, None, encode_group([good, bad, good], [0, 1, 2])))
    assert [place for place, _ in outcomes] == [0, 1]
    assert isinstance(gather(outcomes[:1]).changes[0], BucketChange)
    gathered = gather(reversed(outcomes))
    assert list(gathered.changes) == [0]
    with pytest.raises(FixData, match="TS1601"):
        gathered.in_order(3)


def test_an_answer_that_is_not_complete_is_a_bug(tmp_path: Path) -> None:
    """TS1563: a task without an outcome must not be taken for one that changed nothing."""
    world, task = CASES["fold"](tmp_path)
    outcomes = list(run_group(world.access.fileio, None, encode_group([task, task], [1])))
    with pytest.raises(EngineBug, match="TS1563"):
        gather(outcomes).in_order(2)
