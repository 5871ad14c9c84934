"""How far each watermark of a query has come, kept from run to run.

Steps      a run's first batch: what each watermark had reached is put into Spark's tracker, before it looks at the
           rows of this batch → the run → what each has reached, into a file of the checkpoint
WHY        Spark remembers the least of all watermarks, and each one's own only as long as it runs. A run is a
           restart: an input without rows in it counts as one that never had any, the least of all stays where it is,
           and rows that wait for it never come out. With what is kept here a run goes on as if Spark had never stopped.
INVARIANT  a watermark is known by its place in the query's plan: its id is another in each run, its text is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_FILE = (
    "tablestore-watermarks.json"  # beside Spark's own files of a checkpoint: part of what a state is on disk
)
_FIELD = "operatorToWatermarkMap"
Jvm = Any  # an object of the JVM


class StreamWatermarks:
    """`frame`: the query; `checkpoint`: its folder."""

    def __init__(self, session: SparkSession, frame: DataFrame, checkpoint: Path) -> None:
        self._session, self._path = session, checkpoint / _FILE
        found = dict.fromkeys(_nodes(frame._jdf.queryExecution().analyzed()))
        self._nodes = list(found) if len(found) > 1 else []  # one alone is the least of all
        self._is_carried = False

    def carry(self) -> None:
        """In a batch, by the thread that runs it."""
        if self._is_carried or not self._nodes or not self._path.exists():
            return
        self._is_carried = True
        reached = json.loads(self._path.read_text())
        tracked = _tracked(self._session.streams.active[0]._jsq)
        jvm: Any = self._session._jvm
        for node, millis in zip(self._nodes, reached, strict=True):
            key = jvm.java.util.UUID.fromString(node)
            if millis is not None and tracked.contains(key):
                tracked.put(key, _some_long(jvm, millis))

    def keep(self, query: Jvm) -> None:
        """Behind a run."""
        if not self._nodes:
            return
        tracked = _tracked(query)
        jvm: Any = self._session._jvm
        keys = [jvm.java.util.UUID.fromString(node) for node in self._nodes]
        reached = [_value(tracked.apply(key)) if tracked.contains(key) else None for key in keys]
        self._path.write_text(json.dumps(reached))


def _nodes(plan: Jvm) -> Iterator[str]:
    if plan.nodeName() == "EventTimeWatermark":
        yield str(plan.nodeId().toString())
    children = plan.children()
    for n in range(children.size()):
        yield from _nodes(children.apply(n))


def _tracked(query: Jvm) -> Jvm:
    """Spark's own map, node → watermark in milliseconds or none."""
    tracker = query.streamingQuery().watermarkTracker()
    field = tracker.getClass().getDeclaredField(_FIELD)
    field.setAccessible(True)
    return field.get(tracker)


def _some_long(jvm: Jvm, value: int) -> Jvm:
    """An option of a Long, which py4j would make an Integer of if it is small."""
    return jvm.scala.collection.StringOps(str(value)).toLongOption()


def _value(option: Jvm) -> int | None:
    return int(option.get()) if option.isDefined() else None
