"""Where work on stored rows runs: threads of the driver, or Spark tasks. Pure: sizes in, a choice out.

CHANGE     whether bucket tasks run on the driver or on executors
WHY        starting tasks costs more than small work, and the driver must not hold or read what is large. A task costs
           something besides its bytes, most of it Python around small files, which threads of one process take in turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tablestore_engine.store.tasks.bucket_task import BucketTask
from tablestore_engine.store.tasks.task_size import carried_bytes, input_bytes

SMALL_BYTES = 64 << 20  # of the files that a query or bucket tasks read: some million rows at most
TASK_BYTES = 128 << 10  # what a task costs besides its bytes: a few seconds of such Python go to Spark
START_FACTOR = 4  # threads read so many times the small size while Spark starts
CARRIED_BYTES_MAX = (
    256 << 20
)  # rows that are in the driver's memory anyhow; an element of a job must stay below 2 GiB


@dataclass(frozen=True)
class JobSize:
    """Bytes of the stored files that the tasks read, and of the rows that travel with them; the number of tasks."""

    input: int
    carried: int
    count: int = 1

    @property
    def work(self) -> int:
        """What the tasks cost beyond one, as bytes read."""
        return self.input + (self.count - 1) * TASK_BYTES

    @classmethod
    def of(cls, tasks: Iterable[BucketTask]) -> JobSize:
        """By metadata."""
        each = [(input_bytes(task), carried_bytes(task)) for task in tasks]
        return cls(sum(one for one, _ in each), sum(one for _, one in each), len(each))


def use_spark_tasks(size: JobSize, *, small_bytes: int, is_started: bool) -> bool:
    """Whether Spark tasks do it. `small_bytes`: of work, that stay in the driver as rows of writes do.

    A session that would have to start for it is worth it only for more. Rows that fill the driver already stay there.
    """
    if size.carried > CARRIED_BYTES_MAX:
        return False
    return size.work > small_bytes * (1 if is_started else START_FACTOR)
