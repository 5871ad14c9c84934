"""Bucket tasks where they belong: few bytes in threads of the driver, many in Spark tasks. The store's RunTasks.

CHANGE     bucket tasks on executors
Steps      size of the tasks (task_placement) → threads (store.tasks.task_runner), or: groups → one Spark task
           each → outcomes → changes in order
INVARIANT  small work never starts Spark; the caller cannot tell where its tasks ran, but by the time they took.
INVARIANT  nothing is committed here. When a task fails, what all of them made is deleted: nobody will name it.
CRASH      of the driver, or a job that Spark gives up: files that nothing names; orphan cleaning finds them.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.spark.lazy_session import LazySession
from tablestore_engine.store.tasks.task_runner import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tablestore_engine.spark.task_outcomes import Outcome
    from tablestore_engine.store.files.bucket_state import BucketChange
    from tablestore_engine.store.tasks.bucket_task import BucketTask
    from tablestore_engine.store.tasks.task_runner import FileAccess


@dataclass(frozen=True)
class Executors:
    """`session` is started by the first work that is worth it."""

    session: LazySession

    def __call__(self, tasks: Sequence[BucketTask], access: FileAccess) -> list[BucketChange]:
        """As task_runner.run_tasks. Raises what run_task raises, and TS15xx when Spark fails."""
        from tablestore_engine.spark import ship_package, task_placement
        from tablestore_engine.spark.task_outcomes import discard, gather
        from tablestore_engine.spark.task_placement import JobSize, use_spark_tasks

        size = JobSize.of(tasks)
        if not use_spark_tasks(
            size, small_bytes=task_placement.SMALL_BYTES, is_started=self.session.is_started
        ):
            return run_tasks(tasks, access)
        session = self.session.get()
        ship_package.ship(session, self.session.scratch())
        gathered = gather(_run_job(session, tasks, access))
        if gathered.failure is not None:
            for place, change in gathered.changes.items():
                table = tasks[place].table
                discard(access.fileio, table.layout, table.schema, [change])
        return gathered.in_order(len(tasks))


def _run_job(session: SparkSession, tasks: Sequence[BucketTask], access: FileAccess) -> list[Outcome]:
    """One Spark job, a group of tasks in each of its partitions."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from tablestore_engine.spark import spark_errors
    from tablestore_engine.spark.task_attempts import may_speculate
    from tablestore_engine.spark.task_job import encode_group, plan_groups, run_group
    from tablestore_engine.spark.task_outcomes import dump_receiver
    from tablestore_engine.store.tasks.task_size import input_bytes

    context = session.sparkContext
    groups = plan_groups([input_bytes(task) for task in tasks], cores=context.defaultParallelism)
    work = [encode_group(tasks, group) for group in groups]
    early = None if may_speculate(context) else access.early
    try:
        # as many slices as elements: each group is a Spark task of its own
        return (
            context.parallelize(work, len(work))
            .flatMap(functools.partial(run_group, access.fileio, dump_receiver(early)))
            .collect()
        )
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None
