"""What one Spark task of a job of bucket tasks does, and which bucket tasks it gets. Nothing here touches Spark.

Steps      the driver plans (store.tasks.bucket_plan) and groups → a worker performs (store.tasks.task_runner) → the
           driver gathers (task_outcomes) and commits
INVARIANT  a Spark task commits nothing: one that runs twice (retry, speculation) leaves files that nothing names, and
           the answer has the outcomes of one of them.
INVARIANT  a group ends at its first error; what it made before counts as made, so that the driver deletes it.
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterable, Iterator, Sequence

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spark.task_outcomes import Outcome, encode_change, encode_failure, load_receiver
from tablestore_engine.spark.worker_versions import refusal_here
from tablestore_engine.store.tasks.bucket_task import BucketTask
from tablestore_engine.store.tasks.small_upserts import group_upserts
from tablestore_engine.store.tasks.task_runner import FileAccess
from tablestore_engine.store.tasks.task_runner import run_group as run_together

_GROUPS_PER_CORE = 4


def plan_groups(sizes: Sequence[int], *, cores: int) -> tuple[tuple[int, ...], ...]:
    """Places of the tasks of each group: the largest first, each to the group that has least so far."""
    count = min(len(sizes), cores * _GROUPS_PER_CORE)
    groups: list[list[int]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for place in sorted(range(len(sizes)), key=lambda one: (-sizes[one], one)):
        load, number = heapq.heappop(loads)
        groups[number].append(place)
        heapq.heappush(loads, (load + sizes[place] + 1, number))  # 1: empty ones are spread too
    return tuple(tuple(group) for group in groups)


def encode_group(tasks: Sequence[BucketTask], places: Iterable[int]) -> bytes:
    """One pickle, so that what the tasks share is sent once."""
    return pickle.dumps([(place, tasks[place]) for place in places])


def run_group(fileio: FileIO, early: bytes | None, group: bytes) -> Iterator[Outcome]:
    """In the worker: one outcome for each task, the last may be a failure. `early`: see task_outcomes."""
    access = FileAccess(fileio, SYSTEM, early=load_receiver(early))
    wanted: list[tuple[int, BucketTask]] = pickle.loads(group)  # noqa: S301 - written by our own driver
    refusal = refusal_here()
    if refusal is not None:
        yield wanted[0][0], encode_failure(refusal)
        return
    tasks = [task for _, task in wanted]
    for places in group_upserts(tasks):
        try:
            changes = run_together([tasks[place] for place in places], access)
        except TablestoreError as error:
            yield wanted[places[0]][0], encode_failure(error)
            return
        for place, change in zip(places, changes, strict=True):
            yield wanted[place][0], encode_change(change)
