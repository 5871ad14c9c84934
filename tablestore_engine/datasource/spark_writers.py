"""Spark's writers: of a batch query, and of a stream.

Steps      write, in each task → messages → commit, in a process of its own, a new writer each time
INVARIANT  a batch of a stream is committed under (query id, batch id): one that comes again after a crash is found and
           not written again. The query id lies in the checkpoint; a new checkpoint is another query.
INVARIANT  an empty batch makes no snapshot. A batch that failed leaves the table as it was.
INVARIANT  abort deletes nothing: a commit whose answer was lost may still be reading. What it left is cleared by the
           next batch, or found by tablestore orphans. A commit clears its own files only: the driver before may have
           been killed, and its commit still run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tablestore_engine.datasource.staged_write import StagedMessage, TableWrite
from tablestore_engine.errors import (
    CommitExpired,
    EngineBug,
)
from tablestore_engine.runtime.outside_world import SYSTEM

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


class TablestoreWriter(DataSourceArrowWriter):
    """Made once; the same is sent to tasks and to the commit."""

    def __init__(self, write: TableWrite) -> None:
        """Raises FixRequest TS1025."""
        write.spec()
        self._write, self._name = write, f"batch-{SYSTEM.new_uuid()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return StagedMessage(None, self._write.stage(self._write.folder(self._name), iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Once, behind all tasks."""
        folder, staged = self._write.folder(self._name), _staged(messages)
        self._write.commit(folder, staged, self._write.spec())
        self._write.clear(folder, staged)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing was committed, or nobody knows."""


class TablestoreStreamWriter(DataSourceStreamArrowWriter):
    """Made anew for every commit: it keeps nothing from batch to batch."""

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
