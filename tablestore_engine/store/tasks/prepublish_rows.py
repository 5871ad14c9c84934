"""Rows of a change, handed on before the change is committed: the store's side of a log that does not wait.

INVARIANT  the store knows nothing of who receives rows: the answer travels with the change to the report of its commit,
           unread. Only a write asks for it, never a step that changes no row, nor what is staged.
INVARIANT  rows are handed on behind the whole change: all its files are there, and none is named by a snapshot.
DANGER     such rows may belong to a commit that is never made: whoever receives them takes them back then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from tablestore_engine.format.data_file import VALUE_KIND, DataFileMeta
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.row_budget import step_rows


class ReceiveRows(Protocol):
    """Picklable. None: the rows were not taken, or not all of them; that is no failure of the write."""

    def __call__(
        self, commit: str, bucket: int, schema: TableSchema, batches: Iterable[pa.Table]
    ) -> object | None:
        """`commit`: "user:identifier"; `batches`: the columns of `schema` and `_ROW_KIND`, in changelog order."""


TaskReceiver = Callable[[int, TableSchema, Iterable[pa.Table]], object | None]


def with_commit(receive: ReceiveRows, commit: str) -> TaskReceiver:
    """For the tasks of one commit; picklable too."""
    return functools.partial(receive, commit)


def changelog_rows(files: DataFiles, state: BucketState, metas: Sequence[DataFileMeta]) -> Iterator[pa.Table]:
    """The table's columns and `_ROW_KIND`, in the order in which the changelog of the snapshot is read."""
    for meta in metas:
        file = files.stored(state, meta)
        for block in files.reader.read_blocks(file, keep=(VALUE_KIND,), rows_max=step_rows([file])):
            kinds = block.rows.column(VALUE_KIND).cast(pa.int8())
            yield block.rows.drop_columns([VALUE_KIND]).append_column(ROW_KIND_COLUMN, kinds)
