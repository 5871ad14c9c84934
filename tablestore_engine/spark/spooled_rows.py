"""Rows of a query as Arrow files on the disk that the driver shares with the tasks of a local session.

CHANGE     up to how many bytes the driver writes the rows of a local session by itself
Steps      tasks of the query → a file each → the driver maps all of them into memory → their folder is removed
INVARIANT  rows are in the order of Spark partitions, as those that are collected.
INVARIANT  rows of more than SPOOLED_BYTES_MAX are not held: the tasks stop, and the caller takes another way.
WHY        Spark's shuffle and the second way through Python cost a third of a load. Collected rows would fill the heap
           of the driver's JVM and count for spark.driver.maxResultSize; these never enter it.
CRASH      the folder is in the scratch of this process and goes with it.
"""

from __future__ import annotations

import functools
import itertools
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame

from tablestore_engine.store.files.scratch_folder import open_scratch_folder

SPOOLED_BYTES_MAX = 1 << 30
_OUTCOME_DDL = "place int, name string"  # no name: this task stopped
_OUTCOME = pa.schema([("place", pa.int32()), ("name", pa.string())])


def shares_disk(context: SparkContext) -> bool:
    """Whether tasks run in processes of this machine that belong to the driver."""
    master = str(context.master)
    return master == "local" or master.startswith("local[")


def spool(frame: DataFrame) -> pa.Table | None:
    """All rows, in memory that the kernel may write out; None: there are none, more than SPOOLED_BYTES_MAX, or no disk.

    Raises what the query raises.
    """
    folder = open_scratch_folder("rows-")
    task = functools.partial(_write, folder.path, SPOOLED_BYTES_MAX)
    found = frame.mapInArrow(task, _OUTCOME_DDL).collect()
    names = [row["name"] for row in sorted(found, key=lambda row: int(row["place"]))]
    if not all(names):
        return None
    parts = [_mapped(Path(folder.path) / name) for name in names]
    return pa.concat_tables(parts) if parts else None


def _mapped(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _write(folder: str, limit: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In the worker, called by name. A disk that is full or gone is no error of the query."""
    context = TaskContext.get()
    first = next(batches, None)
    if context is None or first is None:
        return
    name = uuid.uuid4().hex
    try:
        is_whole = _write_file(Path(folder), name, limit, first, batches)
    except OSError:
        is_whole = False
    columns = [
        pa.array([context.partitionId()], pa.int32()),
        pa.array([name if is_whole else None], pa.string()),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=_OUTCOME)


def _write_file(
    folder: Path, name: str, limit: int, first: pa.RecordBatch, others: Iterator[pa.RecordBatch]
) -> bool:
    """False once all tasks together have written more than `limit`."""
    with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
        for batch in itertools.chain([first], others):
            writer.write_batch(batch)
            if sum(entry.stat().st_size for entry in os.scandir(folder)) > limit:
                return False
    return True
