"""The hash index files of one table, read where they are needed: picklable, so also in the tasks of a large write."""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.checksum import verify_name_checksum
from tablestore_engine.format.hash_index import Hashes, decode_hashes
from tablestore_engine.format.index_manifest import IndexEntry
from tablestore_engine.format.layout import TableLayout


@dataclass(frozen=True)
class HashFiles:
    """Nothing is remembered: a file has millions of hashes."""

    fileio: FileIO
    layout: TableLayout

    def read(self, entry: IndexEntry) -> Hashes:
        """The hashes in the order of the file. Raises FixData TS1160, TS1195, NotFound TS1201."""
        data = self.fileio.read(self.layout.index_path(entry.file_name))
        verify_name_checksum(data, "index file", entry.file_name)
        return decode_hashes(data, entry)
