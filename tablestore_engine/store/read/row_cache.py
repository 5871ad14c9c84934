"""Decoded rows of data files, for a reader that looks up many keys again and again: it decodes a file once.

CHANGE     which rows of data files the reader of a log keeps decoded
Rule       a file is kept when its row groups were decoded once over by look-ups, and its rows, as large as those that
           were found, fit into the cache; the file that was used longest ago leaves first
Memory     capacity_bytes of rows and as many of keys (KeyCache), whatever the table has; a file that does not fit is
           read as without a cache
INVARIANT  physical rows by position: data files are immutable, and deleted rows are left out by who looks up.
WHY        keys of a log are spread over a table: each portion of messages decoded every row group (decision 0156).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import KeyCache

ROW_CACHE_BYTES = 512 << 20
_FILES_MAX = 10_000
_Name = tuple[str, tuple[str, ...]]  # path, the file's names of the columns


@dataclass
class _Seen:
    """Of one file: row groups that were decoded, bytes of a row that was found, all rows once they are kept."""

    groups: int = 0
    row_bytes: float = 0.0
    rows: pa.Table | None = None


@dataclass
class RowCache:
    """Of one reader; shared by the threads of a look-up."""

    capacity_bytes: int = ROW_CACHE_BYTES
    keys: KeyCache = field(default_factory=KeyCache)
    _files: OrderedDict[_Name, _Seen] = field(default_factory=OrderedDict)
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("remembered rows", Rank.PROCESS))

    @property
    def held_bytes(self) -> int:
        with self._lock:
            return sum(one.rows.nbytes for one in self._files.values() if one.rows is not None)

    def read(
        self, reader: FileReader, file: StoredFile, positions: Index, columns: Sequence[str] | None
    ) -> pa.Table:
        name = (file.path, tuple(reader.stored_names(file, columns, ())))
        with self._lock:
            seen = self._files.setdefault(name, _Seen())
            self._files.move_to_end(name)
        rows = seen.rows
        if rows is None:
            with reader.open(file) as opened:
                count = len(opened.groups)
                if seen.groups < count or seen.row_bytes * file.meta.row_count > self.capacity_bytes:
                    found = opened.read_positions(positions, columns, parallel=True)
                    touched = np.searchsorted(opened.parquet.group_starts, positions, side="right")
                    seen.groups += len(np.unique(touched))
                    seen.row_bytes = found.nbytes / max(found.num_rows, 1)
                    return found
                rows = opened.read_physical(columns)
            self._keep(seen, rows)
        return reader.evolved(take_rows(rows, positions), file, columns, ())

    def _keep(self, seen: _Seen, rows: pa.Table) -> None:
        seen.row_bytes = rows.nbytes / max(rows.num_rows, 1)  # of a file that does not fit after all, too
        if rows.nbytes > self.capacity_bytes:
            return
        with self._lock:
            seen.rows = rows
            held = self.held_bytes
            for other in list(self._files.values()):
                if held <= self.capacity_bytes:
                    break
                if other.rows is not None and other is not seen:
                    held -= other.rows.nbytes
                    other.rows, other.groups = None, 0
            while len(self._files) > _FILES_MAX:
                self._files.popitem(last=False)
