"""One Parquet file of a table, as every reader and writer sees it.

INVARIANT  a value that can be sent anywhere: reading the file takes nothing else but a file system.
WHY        one value for all: what plans of a read, states of a bucket and changelogs know of a file is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.schema import TableSchema


@dataclass(frozen=True)
class StoredFile:
    """A data or changelog file of one snapshot; `deleted` are the positions that readers leave out.

    partition      python objects in the order of the partition keys
    total_buckets  of its partition when it was written
    schema         the one it was written with: its columns have the names and types of that one
    fileio         of a copy of merged rows, in the scratch of this process; None: the table's
    """

    partition: tuple[object, ...]
    partition_bytes: bytes
    partition_path: str
    bucket: int
    total_buckets: int
    meta: DataFileMeta
    path: str
    schema: TableSchema
    deleted: BitMap | None = None
    fileio: FileIO | None = None

    def __str__(self) -> str:
        return self.path

    @property
    def dead_count(self) -> int:
        """Rows of the file that its deletion vector hides."""
        return 0 if self.deleted is None else len(self.deleted)

    @property
    def visible_rows(self) -> int:
        """Rows that a reader returns."""
        return self.meta.row_count - self.dead_count


def visible_mask(file: StoredFile, rows: int | None = None) -> npt.NDArray[np.bool_]:
    """For each physical row whether it is visible; `rows`: as many as the file really has, its metadata's by default.

    Raises FixData TS1390 when a position is behind the last row.
    """
    count = file.meta.row_count if rows is None else rows
    visible = np.ones(count, dtype=np.bool_)
    if file.deleted:
        if file.deleted.max() >= count:
            raise FixData(
                "TS1390",
                f"the deletion vector of {file.path} does not fit it",
                why=f"it marks row {file.deleted.max()}, the file has {count} rows",
                fix="run tablestore verify; roll back to an earlier snapshot",
            )
        visible[np.asarray(file.deleted.to_array())] = False
    return visible
