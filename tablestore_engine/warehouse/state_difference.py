"""Changes between two states of a table, computed from the rows of both instead of from changelogs.

When       a changelog between them is gone (a tag keeps the files of its snapshot alone), or does not say what a key
           was before (`changelog-producer` none and input, and tables whose readers merge)
INVARIANT  each row is `-D` or `+I`, and no row is both: equal rows of both states cancel (store.difference).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.difference import Difference
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.stream.change_source import result_schema, told_rows


def tells_both_rows(store: TableStore, first: int, last: int) -> bool:
    """Whether changelogs have the row before and the row after of each change of the snapshots (first, last] that a
    reader sees.
    """
    schema = store.schema
    return not schema.is_keyed or (TableTraits(schema).has_inbox and store.context.tells_all(first, last))


@dataclass(frozen=True)
class OneState:
    """One snapshot and the store that knows its schema: of the table, or of a branch. None: no rows."""

    store: TableStore
    snapshot: Snapshot | None

    def files(self) -> tuple[StoredFile, ...]:
        return () if self.snapshot is None else self.store.plan_scan(self.snapshot).files


@dataclass(frozen=True)
class StateDifference:
    """Changes have the columns of the store of `after`."""

    before: OneState
    after: OneState

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As read_change_batches, with the snapshot id of `after`. Files that both states share are not opened."""
        store = self.after.store
        schema = store.schema
        gone, came = self._unshared()
        difference = Difference(FileReader(store.fileio, schema), gone, came, schema.primary_keys)
        target = result_schema(schema, columns)
        number = 0 if self.after.snapshot is None else self.after.snapshot.id
        for _, rows in difference.read():
            kinds = rows.column(ROW_KIND_COLUMN).combine_chunks()
            ids = pa.array(np.full(rows.num_rows, number), pa.int64())
            yield from told_rows(rows.select(target.names[:-2]), kinds, ids, target).to_batches()

    def count_read(self) -> int:
        """How many stored rows `read` opens."""
        return sum(one.meta.row_count for files in self._unshared() for one in files)

    def _unshared(self) -> tuple[list[StoredFile], list[StoredFile]]:
        old, new = self.before.files(), self.after.files()
        shared = {_visible(one) for one in old} & {_visible(one) for one in new}
        gone, came = ([one for one in files if _visible(one) not in shared] for files in (old, new))
        return gone, came


def _visible(file: StoredFile) -> tuple[str, int, str, bytes]:
    """Equal for files with the same visible rows."""
    dead = b"" if file.deleted is None else file.deleted.serialize()
    return file.partition_path, file.bucket, file.meta.file_name, dead
