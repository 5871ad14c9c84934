"""format("tablestore"): what Spark asks for readers and writers.

INVARIANT  made anew, by its options, in every process that Spark starts for it: it holds nothing else.
Steps      write, in each task → messages → commit, in a process of its own, a new writer each time
INVARIANT  a batch of a stream is committed under (query id, batch id): one that comes again after a crash is found and
           not written again. The query id lies in the checkpoint; a new checkpoint is another query.
INVARIANT  an empty batch makes no snapshot. A batch that failed leaves the table as it was.
INVARIANT  abort deletes nothing: a commit whose answer was lost may still be reading. What it left is cleared by the
           next batch, or found by tablestore orphans. A commit clears its own files only: the driver before may have
           been killed, and its commit still run.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from tablestore_engine.datasource.asked_columns import all_columns
from tablestore_engine.datasource.batch_reader import FilteringReader, TablestoreReader
from tablestore_engine.datasource.open_table import open_store
from tablestore_engine.datasource.source_options import parse_address, parse_read, parse_write, shows_changes
from tablestore_engine.datasource.staged_write import StagedMessage, TableWrite
from tablestore_engine.datasource.stream_reader import TablestoreStreamReader
from tablestore_engine.datasource.stream_versions import check_version
from tablestore_engine.errors import (
    CommitExpired,
    EngineBug,
)
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spark import ship_package
from tablestore_engine.spark.worker_check import is_cluster
from tablestore_engine.spark.worker_versions import check_here

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
_REGISTERING = OrderedLock("source of Spark", Rank.SOURCE)


class TablestoreWriter(DataSourceArrowWriter):
    """Made once; the same is sent to tasks and to the commit."""

    def __init__(self, write: TableWrite) -> None:
        """Raises FixRequest TS1025."""
        write.spec()
        self._write, self._name = write, f"batch-{SYSTEM.new_uuid()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return StagedMessage(None, self._write.stage(self._write.folder(self._name), iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Once, behind all tasks."""
        folder, staged = self._write.folder(self._name), _staged(messages)
        self._write.commit(folder, staged, self._write.spec())
        self._write.clear(folder, staged)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing was committed, or nobody knows."""


class TablestoreStreamWriter(DataSourceStreamArrowWriter):
    """Created for each commit: no state is kept between micro-batches."""

    def __init__(self, write: TableWrite) -> None:
        """Raises FixRequest TS1025."""
        write.spec()
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task. Raises EngineBug TS1453."""
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY)
        batch = None if context is None else context.getLocalProperty(_BATCH)
        if not query or not batch:
            raise EngineBug(
                "TS1453",
                "a task of a stream does not know which batch it writes",
                why=f"Spark's properties {_QUERY} and {_BATCH} are {query!r} and {batch!r}",
                fix="nothing was committed; write with foreachBatch and Engine.write, and report this",
            )
        return StagedMessage(query, self._write.stage(self._write.folder(query, batch), iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Once for each batch, and again for the last one after a crash."""
        staged = _staged(messages)
        query = next((one.owner for one in staged if one is not None and one.owner), None)
        if query is None:  # a batch without a single task
            return
        folder = self._write.folder(query, str(batchId))
        with suppress(CommitExpired):  # this very batch was committed, and its snapshot has expired since
            self._write.commit(folder, staged, self._write.spec(commit_user=query, commit_identifier=batchId))
        self._write.clear(folder, staged)
        self._write.clear_before(query, batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing was committed, or nobody knows: the batch comes again, under the same name."""


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[StagedMessage | None]:
    return [one if isinstance(one, StagedMessage) else None for one in messages]


class TablestoreSource(DataSource):
    """One table of a warehouse, by the options `warehouse` and `table`, or `path`.

    >>> reader = engine.spark.read.format("tablestore").option("warehouse", engine.warehouse)  # doctest: +SPARK
    >>> reader.option("table", "demo.orders").load().count()  # doctest: +SPARK
    3
    """

    spark_version: ClassVar[str] = pyspark.__version__

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_here()
        self._address = parse_address(options)

    @classmethod
    def name(cls) -> str:
        """What stands in format(…)."""
        return "tablestore"

    def schema(self) -> StructType:
        """All columns of the table now; with read.changelog those of a changelog."""
        return all_columns(open_store(self._address).schema, with_changes=shows_changes(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Raises FixRequest TS144x, NotFound TS13xx."""
        options = parse_read(self.options)
        kind = FilteringReader if options.pushes_filters else TablestoreReader
        return kind(self._address, options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - pyspark's name
        """Raises Unsupported TS1448, FixRequest TS144x."""
        check_version(self.spark_version)
        return TablestoreStreamReader(self._address, dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Raises FixRequest TS1440, TS1442, TS1025."""
        return TablestoreStreamWriter(self._write(schema, overwrite))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Raises FixRequest TS1440, TS1442, TS1025."""
        return TablestoreWriter(self._write(schema, overwrite))

    def _write(self, schema: StructType, replaces: bool) -> TableWrite:
        return TableWrite(self._address, parse_write(self.options), schema, replaces)


def register_source(session: SparkSession, scratch: Path) -> None:
    """Doing it again is fine. On a cluster the package is sent before: Spark keeps what workers get with the source.

    One thread at a time: Spark may refuse one of two at once, with DATA_SOURCE_ALREADY_EXISTS.
    Raises FixRequest TS1540 to TS1543 when workers cannot run it.
    """
    with _REGISTERING:
        if is_cluster(session.sparkContext):
            ship_package.ship(session, scratch)
        session.dataSource.register(TablestoreSource)
