"""Where the values of one DATE or TIMESTAMP column lie, file by file: whether an interval can have any.

Steps      statistics of the manifest → for a file whose statistics do not exclude the interval, its column is read
           once and kept in memory as disjoint intervals, for later questions
INVARIANT  False only when no visible row has a value in the interval: a file that is too large to be read, and one
           without statistics, may have any.
WHY        one small file often spans the whole time of a table, which its statistics alone cannot tell from a file that
           has rows in every hour. Reading a column of a million rows costs as much as one Spark job of no rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.files.comparable_values import comparable_column
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import facts_of

Bounds = npt.NDArray[np.int64]
READ_ROWS_MAX = 20_000_000  # of all files that one process reads for this
_GAP = {"DATE": 1}  # values that are not farther apart are one interval
_HOUR = 3_600_000_000  # the shortest batch of dbt: an interval without values between two of them is as long
_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class FileIntervals:
    """Intervals of files that were read, by file, column and deletion vector; data files never change."""

    def __init__(self, rows_max: int = READ_ROWS_MAX) -> None:
        self._known: dict[tuple[str, int, bytes], tuple[Bounds, Bounds]] = {}
        self._rows_left = rows_max
        self._lock = OrderedLock("intervals of files", Rank.PROCESS)

    def find(
        self, fileio: FileIO, schema: TableSchema, file: StoredFile, name: str
    ) -> tuple[Bounds, Bounds] | None:
        """Begins and ends (both inclusive) of the intervals with values, ascending; None: too many rows to read."""
        column = schema.field(name)
        key = (file.path, column.id, b"" if file.deleted is None else bytes(file.deleted.serialize()))
        with self._lock:
            if key in self._known:
                return self._known[key]
            if file.meta.row_count > self._rows_left:
                return None
            self._rows_left -= file.meta.row_count
        rows = FileReader(fileio, schema).read_visible(file, [name])
        values = comparable_column(rows.column(0), column.type).drop_null().to_numpy()
        found = _intervals(values.astype(np.int64), _GAP.get(column.type.root, _HOUR))
        with self._lock:
            self._known[key] = found
        return found


class ColumnIntervals:
    """Of one column of the files of one state of a table. REQUIRES a DATE or TIMESTAMP of at most microseconds."""

    def __init__(
        self,
        fileio: FileIO,
        schema: TableSchema,
        files: Sequence[StoredFile],
        name: str,
        read: FileIntervals,
    ) -> None:
        self._fileio, self._schema, self._name, self._read = fileio, schema, name, read
        facts = facts_of(files, name, schema)
        held = [
            (file, fact)
            for file, fact in zip(files, facts, strict=True)
            if file.visible_rows and not (fact is not None and fact.is_all_null)
        ]
        self._files = [file for file, _ in held]
        self._low = np.array([_LOWEST if f is None or f.low is None else f.low for _, f in held], np.int64)
        self._high = np.array(
            [_HIGHEST if f is None or f.high is None else f.high for _, f in held], np.int64
        )

    def may_have(self, low: int, high: int) -> bool:
        """Whether a visible row can have low <= value < high: days, or microseconds since 1970."""
        able = np.flatnonzero((self._low < high) & (self._high >= low))
        return any(self._file_may_have(int(at), low, high) for at in able)

    def _file_may_have(self, at: int, low: int, high: int) -> bool:
        found = self._read.find(self._fileio, self._schema, self._files[at], self._name)
        if found is None:
            return True
        begins, ends = found
        return bool(np.any((begins < high) & (ends >= low)))


def _intervals(values: Bounds, gap: int) -> tuple[Bounds, Bounds]:
    """Values that are at most `gap` apart are one interval."""
    distinct = np.unique(values)
    if not len(distinct):
        return distinct, distinct
    cuts = np.flatnonzero(np.diff(distinct) > gap)
    return distinct[np.concatenate([[0], cuts + 1])], distinct[np.concatenate([cuts, [len(distinct) - 1]])]
