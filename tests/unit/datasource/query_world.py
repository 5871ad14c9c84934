"""Spark's side of a stream in plain Python: a checkpoint, a query that can die anywhere, a sink that knows its batches.

WHY        Spark's order of calls (measured): newest offset → offset written → commit of the batch before → partitions
           → rows → sink → commit written. A new run plans an offset without a commit again, and asks for an initial one
           where it has no batch before it.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tablestore_engine.datasource.asked_columns import all_columns
from tablestore_engine.datasource.source_options import parse_address
from tablestore_engine.datasource.stream_reader import TablestoreStreamReader
from tests.unit.store.table_world import Row, open_table

_TYPES = {"bigint": LongType(), "int": IntegerType(), "string": StringType()}
POINTS = ("before offsets", "after offsets", "before sink", "after sink", None)


class Crash(Exception):
    """The driver is gone."""


@dataclass
class Checkpoint:
    """`batches`: what the sink has, each by its number; a batch that comes again has to be the same."""

    offsets: list[str] = field(default_factory=list)
    commits: int = 0
    batches: dict[int, list[Row]] = field(default_factory=dict)

    def deliver(self, rows: list[Row]) -> None:
        """As a sink does that keeps a batch once."""
        known = self.batches.setdefault(self.commits, rows)
        assert sorted(map(repr, known)) == sorted(map(repr, rows)), "a batch came again with other rows"

    @property
    def rows(self) -> list[Row]:
        """All that was delivered, in order."""
        return [row for number in sorted(self.batches) for row in self.batches[number]]


def struct(text: str) -> StructType:
    """A schema as `.schema(…)` takes it; NOT NULL is understood."""
    fields = [part.strip().split(" ", 2) for part in text.split(",")]
    return StructType([StructField(one[0], _TYPES[one[1]], len(one) == 2) for one in fields])


def reader_of(root: Path, wanted: str | None = None, /, **options: str) -> TablestoreStreamReader:
    """As Spark makes one: `wanted`, or all columns with those of a changelog."""
    said = {"warehouse": str(root), "table": "demo.t", **options}
    schema = all_columns(open_table(root).schema, with_changes=True) if wanted is None else struct(wanted)
    return TablestoreStreamReader(parse_address(said), said, schema)


def rows_of_offset(reader: TablestoreStreamReader, start: str, end: str) -> list[Row]:
    """Rows of a batch: slices and reader go through a pickle each, as to workers."""
    worker = pickle.loads(pickle.dumps(reader))
    slices = pickle.loads(pickle.dumps(reader.partitions(json.loads(start), json.loads(end))))
    return [row for one in slices for batch in worker.read(one) for row in batch.to_pylist()]


def run_query(
    reader: TablestoreStreamReader,
    checkpoint: Checkpoint,
    *,
    crash_at: str | None = None,
    after: int = 0,
    available_now: bool = True,
) -> None:
    """Until nothing is there, or until it dies at a point of the batch after `after` others."""
    left = after

    def point(name: str) -> None:
        if name == crash_at and left <= 0:
            raise Crash(name)

    if available_now:
        reader.prepareForTriggerAvailableNow()
    while True:
        done = checkpoint.commits
        start = checkpoint.offsets[done - 1] if done else json.dumps(reader.initialOffset())
        if len(checkpoint.offsets) == done:
            end = json.dumps(reader.latestOffset(json.loads(start), reader.getDefaultReadLimit()))
            if done and end == start:
                return
            point("before offsets")
            checkpoint.offsets.append(end)
            point("after offsets")
            if done:
                reader.commit(json.loads(start))
        rows = rows_of_offset(reader, start, checkpoint.offsets[done])
        point("before sink")
        checkpoint.deliver(rows)
        point("after sink")
        checkpoint.commits += 1
        left -= 1
