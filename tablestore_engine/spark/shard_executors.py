"""The shards of a log where they belong: few bytes by the driver, many in Spark tasks, a shard in each.

CHANGE     when Spark tasks send a changelog (option log.publish.shards)
Steps      size of what is pending (task_placement) → None: the driver sends them, or: one Spark task for
           each shard → outcomes → sent changes in order
INVARIANT  small work never starts Spark. Who sends is all the same to the log: the identities are those of the shards.
INVARIANT  under speculation the driver sends: two attempts of one shard would fence each other (task_attempts).
INVARIANT  the driver's own producers are given up before: the tasks take their transactional ids over.
CRASH      of the driver, or a job that Spark gives up: some shards are further than others, and the next publication
           goes on from where each of them is.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.errors import TablestoreError
from tablestore_engine.spark.lazy_session import LazySession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tablestore_engine.log.sink import SentChanges
    from tablestore_engine.spark.shard_task import ShardTask

    RunShards = Callable[[Sequence[ShardTask]], list[SentChanges | None]]


@dataclass(frozen=True)
class ShardExecutors:
    """`session` is started by the first log that is worth it; None: the driver sends everything."""

    session: LazySession | None

    def plan(self, pending_bytes: int, shards: int) -> RunShards | None:
        """Who sends so many bytes by so many shards; None: the driver. A log with one shard is always sent there."""
        from tablestore_engine.spark import ship_package, task_placement
        from tablestore_engine.spark.task_attempts import may_speculate
        from tablestore_engine.spark.task_placement import JobSize, use_spark_tasks

        if shards == 1 or self.session is None:
            return None
        size = JobSize(pending_bytes, 0)
        if not use_spark_tasks(
            size, small_bytes=task_placement.SMALL_BYTES, is_started=self.session.is_started
        ):
            return None
        try:
            session = self.session.get()
            ship_package.ship(session, self.session.scratch())
        except TablestoreError:  # no Java here, no cluster: it takes longer without
            return None
        if may_speculate(session.sparkContext):
            return None
        return lambda tasks: _run_job(session, tasks)


def _run_job(session: SparkSession, tasks: Sequence[ShardTask]) -> list[SentChanges | None]:
    """None for a task whose worker has no client of the log. Raises the first error, TS15xx when Spark fails."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from tablestore_engine.spark import spark_errors
    from tablestore_engine.spark.shard_task import decode_sent, encode_task, run_task

    work = [(place, encode_task(task)) for place, task in enumerate(tasks)]
    try:
        outcomes = session.sparkContext.parallelize(work, len(work)).map(run_task).collect()
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None
    found = [decode_sent(data) for _, data in sorted(outcomes)]
    for one in found:
        if isinstance(one, TablestoreError):
            raise one
    return [one for one in found if not isinstance(one, TablestoreError)]
