"""What one Spark task of a job of bucket tasks does, and which bucket tasks it gets. Nothing here touches Spark.

Names      plan_groups()  pure choice: sizes → which bucket tasks share a Spark task
           encode_group() bucket tasks with their places in the answer, as bytes
           run_group()    performs them in the worker
           gather()       outcomes of all groups → changes in order
Steps      the driver plans (store.bucket_plan) and groups → a worker performs (store.task_runner) → the driver commits
INVARIANT  a Spark task commits nothing: one that runs twice (retry, speculation) leaves files that nothing names, and
           the answer has the outcomes of one of them.
INVARIANT  a group ends at its first error; what it made before counts as made, so that the driver deletes it.
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tablestore_engine.errors import EngineBug, TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spark.task_outcomes import decode_outcome, encode_change, encode_failure
from tablestore_engine.store.bucket_state import BucketChange
from tablestore_engine.store.bucket_task import BucketTask
from tablestore_engine.store.task_runner import FileAccess, run_task

_GROUPS_PER_CORE = 4

Outcome = tuple[int, bytes]  # place in the answer; see outcomes


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


def run_group(fileio: FileIO, group: bytes) -> Iterator[Outcome]:
    """In the worker: one outcome for each task, the last may be a failure."""
    access = FileAccess(fileio, SYSTEM)
    wanted: list[tuple[int, BucketTask]] = pickle.loads(group)  # noqa: S301 - written by our own driver
    for place, task in wanted:
        try:
            yield place, encode_change(run_task(task, access))
        except TablestoreError as error:
            yield place, encode_failure(error)
            return


@dataclass(frozen=True)
class Gathered:
    """What was made, by place, and the first failure: then nothing of it may be committed."""

    changes: Mapping[int, BucketChange]
    failure: TablestoreError | None

    def in_order(self, count: int) -> list[BucketChange]:
        """All of `count` changes. Raises the failure, EngineBug TS1563 when one is missing."""
        if self.failure is not None:
            raise self.failure
        if sorted(self.changes) != list(range(count)):
            raise EngineBug(
                "TS1563",
                "a Spark job did not answer for all of its tasks",
                why=f"{count} were sent, {len(self.changes)} came back",
                fix="nothing was committed; run it again, and report this",
            )
        return [self.changes[place] for place in range(count)]


def gather(outcomes: Iterable[Outcome]) -> Gathered:
    """Outcomes in whatever order they came."""
    changes: dict[int, BucketChange] = {}
    failure: TablestoreError | None = None
    for place, data in sorted(outcomes):
        outcome = decode_outcome(data)
        if isinstance(outcome, BucketChange):
            changes[place] = outcome
        else:
            failure = failure or outcome
    return Gathered(changes, failure)
