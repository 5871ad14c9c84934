"""Spark's state stores after a run: merged on disk, and released.

Steps      folders state/<operator>/<partition>[/<store>] of the checkpoint → the store's id → Spark's own maintenance
           of it: a snapshot where more than ten deltas lie, older files go → out of memory
WHY        Spark does so once a minute, in queries that go on. Of one that ends after a second each run would leave its
           delta, every run would read all of them, and the JVM would keep the rows of each run for a minute.
INVARIANT  behind it nobody changes a file of the checkpoint any more, so it can be packed.
DANGER     executors of a cluster have stores of their own: they are merged by their maintenance, when it comes by, also
           behind the run (StreamingStateFiles.pack begins again then).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
_DEFAULT = "default"
Store = tuple[int, int, str]


def merge_stores(session: SparkSession, checkpoint: Path, run_id: str) -> None:
    """`run_id`: of the run that was the last to write the checkpoint."""
    jvm: Any = session._jvm
    state = checkpoint / "state"
    if not state.is_dir():
        return
    package = getattr(jvm, _PACKAGE)
    root = jvm.org.apache.hadoop.fs.Path(str(state))
    root = root.getFileSystem(session.sparkContext._jsc.hadoopConfiguration()).makeQualified(root).toString()
    with suppress(Py4JError):  # a Spark that has it elsewhere merges when its minute comes by
        stores = getattr(getattr(jvm, f"{_PACKAGE}.StateStore$"), "MODULE$")
        run = jvm.java.util.UUID.fromString(run_id)
        for operator, partition, name in _find_stores(state):
            one = package.StateStoreProviderId(package.StateStoreId(root, operator, partition, name), run)
            if stores.isLoaded(one):
                stores.doMaintenanceAndUnload(one)


def _find_stores(state: Path) -> Iterator[Store]:
    for partition in sorted(state.glob("[0-9]*/[0-9]*")):
        operator, number = int(partition.parent.name), int(partition.name)
        names = [one.name for one in partition.iterdir() if one.is_dir() and not one.name.startswith("_")]
        for name in names or [_DEFAULT]:
            yield operator, number, name
