"""State of the groups of `changed_keys` models between two runs, a file for each commit that has one.

    .tablestore/states/<database>.<table>/groups-<uuid>-<checksum>.parquet   a part; the name of a state has all of its

CHANGE     where the state of a `changed_keys` model lies, and when it cannot be used
Steps      a run: read the parts that the model's newest snapshot names → the groups that changed → a new part, durable
           → the commit of the rows names the parts that are left, and the new one (group_state_file)
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
from tablestore_engine.format.group_state_file import (
    GroupState,
    UnusableState,
    decode_group_state,
    encode_group_state,
)
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.streaming_state_files import GROUPS, PARTS, StreamingStateFiles

NO_STATE = f"{GROUPS}none"  # a position: there are too many groups


@dataclass(frozen=True)
class GroupStateFiles:
    catalog: FilesystemCatalog
    table: Identifier

    def write(self, state: GroupState, header: str, store: TableStore | None) -> str:
        """The name of the new state, durable. `store`: the table, if there is one; old states of it go."""
        files, (stay, rows) = self._files, state.unwritten()
        files.clean(files.named_by(store) | {name for name, _ in stay})
        data = encode_group_state(rows, header)
        name = f"{GROUPS}{self.catalog.runtime.new_uuid()}-{_checksum(data)}"
        with self.catalog.fileio.open_output(files.path(name)) as output:
            output.write(data)
        return PARTS.join([*(one for one, _ in stay), name])

    def read(self, name: str, header: str) -> GroupState:
        """Raises UnusableState."""
        names = name.split(PARTS)
        parts = [decode_group_state(self._bytes(one), header, is_last=one == names[-1]) for one in names]
        sizes = tuple((one, part.num_rows) for one, part in zip(names, parts, strict=True))
        try:
            return GroupState(pa.concat_tables(parts), sizes)
        except pa.ArrowException as error:
            raise UnusableState(f"its parts have different columns: {error}") from error

    def find_damage(self, name: str) -> str | None:
        """A sentence; None where the file is whole, and where there is none any more."""
        for one in name.split(PARTS) if name.startswith(GROUPS) else ():
            if not self.catalog.fileio.exists(self._files.find_path(one)):
                continue
            try:
                self._bytes(one)
            except UnusableState as unusable:
                return f"the state {one} of its groups cannot be used: {unusable.why}"
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
