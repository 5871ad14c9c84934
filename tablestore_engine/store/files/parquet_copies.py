"""Parquet copies of data files of other formats, in the scratch of this process: every reader reads one format.

CHANGE     where copies of ORC and Avro files lie, and how long they stay
Steps      a file is asked for → its copy of this process, or all its rows as Parquet → the reader opens that
INVARIANT  a copy has the rows of its file in the same order: positions of deletion vectors mean the same rows.
INVARIANT  files never change and their paths hold a uuid, so a copy stays right. The oldest go when all copies together
           are larger than BYTES_MAX, and all when the process ends. A plan keeps those that it names
           (StoredFile.fileio).
WHY        filters, look-ups, Spark and DuckDB need statistics, row groups and positions; one way has them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.files.scratch_folder import ScratchFolder, open_scratch_folder
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.files.stored_formats import full_schema, is_parquet, read_stored

BYTES_MAX = 4 << 30
_GROUP_ROWS = 65_536
_NAME = "rows.parquet"


def as_parquet(fileio: FileIO, file: StoredFile) -> StoredFile:
    """The file, or its copy; `fileio` is the table's. Raises Unsupported TS1377, NotFound TS1201."""
    if (file.fileio is not None and not file.is_external) or is_parquet(file.path):
        return file
    place = _COPIES.get(file.fileio or fileio, file)
    return replace(file, path=f"{place.path}/{_NAME}", fileio=place.fileio, is_external=False)


class _Copies:
    """Of all tables of this process, the one used last at the end."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, str], tuple[ScratchFolder, int]] = {}
        self._lock = OrderedLock("copies of data files", Rank.PROCESS)

    def get(self, fileio: FileIO, file: StoredFile) -> ScratchFolder:
        """Two threads may make one copy at once; the first one stays."""
        key = (os.getpid(), file.path)
        with self._lock:
            found = self._held.get(key)
        made = found or _make(fileio, file)
        with self._lock:
            kept = self._held.pop(key, made)
            self._held[key] = kept
            for old in list(self._surplus()):
                del self._held[old]
        return kept[0]

    def _surplus(self) -> Iterator[tuple[int, str]]:
        """Those that go, the oldest first, but never the newest."""
        total = sum(size for _, size in self._held.values())
        for key, (_, size) in list(self._held.items())[:-1]:
            if total <= BYTES_MAX:
                return
            total -= size
            yield key


_COPIES = _Copies()


def _make(fileio: FileIO, file: StoredFile) -> tuple[ScratchFolder, int]:
    place = open_scratch_folder("copy-")
    path = Path(place.path, _NAME)
    writer: pq.ParquetWriter | None = None
    try:
        for rows in read_stored(fileio, file.path, file.schema):
            writer = writer or pq.ParquetWriter(path, rows.schema, compression="lz4")
            writer.write_table(rows, row_group_size=_GROUP_ROWS)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        pq.write_table(full_schema(file.schema).empty_table(), path)
    return place, path.stat().st_size
