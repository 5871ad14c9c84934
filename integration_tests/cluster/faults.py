"""What happens to one attempt of a task of ours on a real executor, once: it is slow, it fails, processes are killed.

INVARIANT  a fault comes when the attempt has done its work and written its files, and only once: a file marks it.
INVARIANT  only processes above the Python worker are killed: its executor, and the worker that started the executor.
WHY        functions inside functions, since pyspark sends those by value: workers have none of our tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any


class Fault(StrEnum):
    """What befalls the attempt that has written its files."""

    NONE = "none"
    FAILS = "fails"
    SLOW = "slow"
    EXECUTOR_KILLED = "executor killed"
    WORKER_KILLED = "worker killed"
    DRIVER_KILLED = "driver killed"


def strike(fault: Fault, mark: Path, driver: int, gate: Path | None = None) -> Callable[[], None]:
    """To be called in the task. `mark` is made by the attempt that is struck; `driver` is the driver's process id;
    `gate`: a file that the struck attempt waits for.
    """
    kind, path, opened = str(fault), str(mark), None if gate is None else str(gate)

    def parent(pid: int) -> int:
        from pathlib import Path

        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def command(pid: int) -> str:
        from pathlib import Path

        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")

    def ancestor(name: str) -> int:
        import os

        pid = os.getpid()
        while pid > 1 and name not in command(pid):
            pid = parent(pid)
        assert pid > 1, f"no {name} above this process"
        return pid

    def act() -> None:
        import os
        import signal
        import time

        if kind == "none":
            return
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        while opened is not None and not os.path.exists(opened):
            time.sleep(0.1)
        if kind == "fails":
            raise RuntimeError("the attempt fails after it wrote")
        if kind == "slow":
            time.sleep(600)
        elif kind == "executor killed":
            os.kill(ancestor("CoarseGrainedExecutorBackend"), signal.SIGKILL)
        elif kind == "worker killed":
            worker = ancestor("org.apache.spark.deploy.worker.Worker")
            os.kill(worker, signal.SIGKILL)
            os.kill(ancestor("CoarseGrainedExecutorBackend"), signal.SIGKILL)
        elif kind == "driver killed":
            os.kill(driver, signal.SIGKILL)
        time.sleep(600)  # whoever was to end this process has not done so yet

    return act


def struck_write(act: Callable[[], None]) -> Callable[..., Any]:
    """In place of spark.write._run_task."""

    def run(job: Any, batches: Iterator[Any]) -> Iterator[Any]:
        from tablestore_engine.spark import write_job

        done = list(write_job.run_job(job, batches))
        act()
        yield from done

    return run


def struck_group(act: Callable[[], None]) -> Callable[..., Any]:
    """In place of spark.executors.run_group."""

    def run(fileio: Any, early: bytes | None, group: bytes) -> Iterator[Any]:
        from tablestore_engine.spark import task_job

        done = list(task_job.run_group(fileio, early, group))
        act()
        yield from done

    return run


def struck_shard(act: Callable[[], None]) -> Callable[..., Any]:
    """In place of spark.shard_executors.run_task."""

    def run(work: tuple[int, bytes]) -> Any:
        from tablestore_engine.spark import shard_task

        done = shard_task.run_task(work)
        act()
        return done

    return run
