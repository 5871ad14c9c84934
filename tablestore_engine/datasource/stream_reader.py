"""The stream of one query: offsets in the driver's Python process, rows in the workers.

Steps      latestOffset: start → begin (start rule, consumer, or the end of the batch before) → stream_walk → end
           Spark writes it down → commit of the batch before → partitions: the offset alone → slices → read, in workers
INVARIANT  reads of one offset give the same rows: begin and end are positions between immutable snapshots.
INVARIANT  a consumer's progress is the end of a batch that Spark has committed, never further. Its file is there before
           the first batch is planned, so that what the batch needs cannot expire.
DANGER     Spark makes two readers of a query: this process keeps one, the workers have a pickled other. Nothing passes
           between them but slices.

    {"version": 1, "begin": {position}, "end": {position}}      position: see stream/position.py

INVARIANT  a batch is planned from its own end offset alone, never from the start that Spark hands along. After a crash
           in the first batch Spark asks for an initial offset again, and gets another one when the table has moved on:
           rows would come twice, or never. What `begin` says is written down before the first row is read.
INVARIANT  equal offsets are equal texts: Spark compares them so, and would run an empty batch for each other text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tablestore_engine.datasource.admission import NO_LIMITS
from tablestore_engine.datasource.asked_columns import AskedColumns, find_columns
from tablestore_engine.datasource.kind_policy import ALL_KINDS, KindPolicy
from tablestore_engine.datasource.open_table import open_store
from tablestore_engine.datasource.slices import Slice, read_slice
from tablestore_engine.datasource.source_options import TableAddress, parse_stream
from tablestore_engine.datasource.stream_versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from tablestore_engine.datasource.stream_walk import StreamWalk
from tablestore_engine.errors import FixRequest
from tablestore_engine.spark.worker_versions import check_here
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.stream.consumer_progress import ConsumerProgress
from tablestore_engine.stream.open_stream import begin_in_files
from tablestore_engine.stream.position import Part, Position, decode_position, encode_position
from tablestore_engine.stream.snapshot_enumerator import SnapshotEnumerator

_VERSION = 1
INITIAL: Mapping[str, Any] = {"version": _VERSION}


@dataclass(frozen=True)
class StreamOffset:
    """Everything from `begin` to `end` is the batch; what follows begins at `end`."""

    begin: Position
    end: Position


def encode_offset(offset: StreamOffset) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "begin": json.loads(encode_position(offset.begin)),
        "end": json.loads(encode_position(offset.end)),
    }


def decode_offset(value: Mapping[str, Any]) -> StreamOffset | None:
    """None for INITIAL. Raises FixRequest TS1444, TS1334."""
    if not isinstance(value, Mapping) or value.get("version") != _VERSION:
        raise _unreadable(value)
    if dict(value) == INITIAL:
        return None
    try:
        begin, end = value["begin"], value["end"]
    except KeyError:
        raise _unreadable(value) from None
    return StreamOffset(decode_position(json.dumps(begin)), decode_position(json.dumps(end)))


def _unreadable(value: object) -> FixRequest:
    return FixRequest(
        "TS1444",
        "an offset of the checkpoint cannot be read",
        why=f"expected one of version {_VERSION} of tablestore, got {str(value)[:200]}",
        fix="give the query the checkpoint that it wrote, with its sources in the same order, or a new checkpoint",
    )


@dataclass
class SlicePartition(InputPartition):
    """One task's work, as Spark carries it."""

    value: Slice


class TablestoreStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc,unused-ignore]
    """Of one table; `options` as Spark gives them, `wanted` the columns of the stream."""

    def __init__(self, address: TableAddress, options: Mapping[str, str], wanted: StructType) -> None:
        """Raises FixRequest TS144x, NotFound TS1414."""
        self._address, self._wanted = address, wanted
        self._store = open_store(address)
        self._pinned = self._store.schema
        self._asked = find_columns(wanted, self._pinned)
        self._options = parse_stream(options, shows_kinds=self._asked.shows_kinds)
        self._until: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For workers: what read() needs. A store has caches, and locks."""
        return {"_address": self._address, "_wanted": self._wanted, "_options": self._options}

    # the driver's side --------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - pyspark's name, as below
        """Nothing: it is asked for again after a crash, and would be another one then."""
        return dict(INITIAL)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Whether there is a limit at all; what it is is ours to know."""
        limits = self._options.limits
        return ReadAllAvailable() if limits.are_none else ReadMaxRows(limits.rows or 1)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is the end. Where the query is, only its checkpoint knows: it is not looked for here."""
        self._until = self._store.context.snapshots.find_latest_id() or 0

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch; `start` itself when nothing is there."""
        context, known = self._store.context, decode_offset(start)
        begin = self._beginning(context) if known is None else known.end
        limits = NO_LIMITS if isinstance(limit, ReadAllAvailable) else self._options.limits
        end = self._walk(context).next_end(begin, limits, until=self._until)
        if known is not None and end == begin:
            return start
        return encode_offset(StreamOffset(begin, end))

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """For progress events: the newest snapshot there is."""
        return {"snapshot": self._store.context.snapshots.find_latest_id() or 0}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:  # noqa: ARG002
        """Of the batch that ends there; `start` says nothing that its end does not know better."""
        offset = decode_offset(end)
        if offset is None:
            return []
        slices = self._walk(self._store.context).slices(offset.begin, offset.end)
        return [SlicePartition(one) for one in slices]

    def commit(self, end: dict[str, Any]) -> None:
        """The batch that ends there is done."""
        offset, progress = decode_offset(end), self._progress(self._store.context)
        if offset is not None and progress is not None:
            progress.commit(offset.end)

    def stop(self) -> None:
        """Nothing is held; Spark mostly kills the process without asking."""

    def _walk(self, context: TableContext) -> StreamWalk:
        return StreamWalk(context, self._pinned, self._asked)

    def _progress(self, context: TableContext) -> ConsumerProgress | None:
        name = self._options.consumer_id
        return (
            None if name is None else ConsumerProgress(context.consumers, SnapshotEnumerator(context), name)
        )

    def _beginning(self, context: TableContext) -> Position:
        """Where a query begins that has no batch: at its consumer's progress, else by its mode.

        Raises FixRequest TS1449, TS1332, NotFound TS1333.
        """
        options, progress = self._options, self._progress(context)
        if progress is None:
            return begin_in_files(context, options.start)
        asked = options.ignores_progress
        ignores = TableTraits(context.latest_schema()).ignores_progress if asked is None else asked
        begin = None if ignores else progress.find()
        if begin is not None and begin.part is Part.LOG:
            raise FixRequest(
                "TS1449",
                f"consumer {progress.name} cannot be taken over by a stream of Spark",
                why="it follows the table's log, and how far it is there says nothing of the table's files",
                fix="give the query a consumer of its own, or set consumer.ignore-progress",
            )
        begin = begin or begin_in_files(context, options.start)
        progress.commit(begin, backward=ignores)
        return begin

    # the workers' side --------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return SliceRows(self._address, self._wanted, self._options.kinds).read(partition.value)


@dataclass(frozen=True)
class SliceRows:
    """How a worker reads slices of a table into what Spark asked for."""

    address: TableAddress
    wanted: StructType
    kinds: KindPolicy = ALL_KINDS

    def read(self, one: Slice) -> Iterator[pa.RecordBatch]:
        """Raises FixRequest TS1335, TS1338, TS1443, TS1540, NotFound TS1336, TS1337."""
        check_here()
        context = open_store(self.address).context
        asked: AskedColumns = find_columns(self.wanted, context.schemas.get(one.schema_id))
        for changes in read_slice(context, one, asked.stored_names):
            keep = self.kinds.keep_rows(
                changes.kinds, table=str(self.address.identifier), snapshot_id=changes.snapshot_id
            )
            yield from changes.filtered(keep).to_spark(asked)
