"""State of the groups of `changed_keys` models between two runs, a file for each commit that has one.

    .tablestore/states/<database>.<table>/groups-<uuid>-<checksum>.parquet

CHANGE     where the state of a `changed_keys` model lies, and when it cannot be used
Steps      a run: read what the model's newest snapshot names → the run's own state → a new file, durable → the commit
           of the rows names it
INVARIANT  a file never changes, and its name has the checksum of its bytes: a damaged or exchanged file is no state.
INVARIANT  state is never needed: without it a run evaluates its whole query. So the files of the newest states are kept
           (streaming_state_files.KEPT), and no reader depends on them.
CRASH      a file that no commit names goes with old states, or with orphans.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import NotFound
from tablestore_engine.format.group_state_file import UnusableState, decode_group_state, encode_group_state
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.streaming_state_files import GROUPS, StreamingStateFiles

NO_STATE = f"{GROUPS}none"  # a position: there are too many groups


@dataclass(frozen=True)
class GroupStateFiles:
    """Of the query that writes one table."""

    catalog: FilesystemCatalog
    table: Identifier

    def write(self, state: pa.Table, header: str, store: TableStore | None) -> str:
        """The name of the new state, durable. `store`: the table, if there is one; old states of it go."""
        files = self._files
        files.clean(files.named_by(store))
        data = encode_group_state(state, header)
        name = f"{GROUPS}{self.catalog.runtime.new_uuid()}-{_checksum(data)}"
        with self.catalog.fileio.open_output(files.path(name)) as output:
            output.write(data)
        return name

    def read(self, name: str, header: str) -> pa.Table:
        """Raises UnusableState."""
        return decode_group_state(self._bytes(name), header)

    def find_damage(self, name: str) -> str | None:
        """A sentence; None where the file is whole, and where there is none any more."""
        if not name.startswith(GROUPS) or not self.catalog.fileio.exists(self._files.path(name)):
            return None
        try:
            self._bytes(name)
        except UnusableState as unusable:
            return f"the state {name} of its groups cannot be used: {unusable.why}"
        return None

    def _bytes(self, name: str) -> bytes:
        if not name.startswith(GROUPS):
            raise UnusableState("it is of a streaming query")
        try:
            data = self.catalog.fileio.read(self._files.find_path(name))
        except NotFound:
            raise UnusableState("it is not there any more") from None
        if _checksum(data) != name.rpartition("-")[2]:
            raise UnusableState("it is damaged: its checksum is another")
        return data

    @property
    def _files(self) -> StreamingStateFiles:
        return StreamingStateFiles(self.catalog, self.table)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
