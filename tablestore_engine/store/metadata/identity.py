"""Which table lies in a folder: a name may be dropped and made anew, a table never becomes another one.

Identity   the digest of the first schema file, which never changes; tables that we make carry a uuid in it
           (`tablestore.table-uuid`), and those of other engines the time of their creation.
INVARIANT  a claim belongs to an identity: it is looked at when the claim already has its place in the folder
           (promise 8 of fileio), so that a table made anew under the same name never gets an old writer's snapshot.
INVARIANT  nothing that outlives one operation (caches, handles) is used for another identity than it was made for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.fileio.base import FileIO, find
from tablestore_engine.format.layout import TableLayout, find_id
from tablestore_engine.format.schema import TableSchema, encode_schema

UUID_OPTION = "tablestore.table-uuid"


def find_identity(fileio: FileIO, location: str) -> str | None:
    """The identity of the table in the folder `location`; None when there is none."""
    return identity_by(fileio, location, find(fileio, TableLayout(location).schema_path(0)))


def identity_by(fileio: FileIO, location: str, first: bytes | None) -> str | None:
    """The same with the file of schema 0 (None: there is none), which was read already."""
    if first is not None:
        return _digest(first)
    layout = TableLayout(location)
    try:  # another engine may have removed the oldest schemas
        ids = [find_id(one.name, "schema-") for one in fileio.list(layout.schema_dir)]
        oldest = min((number for number in ids if number is not None), default=None)
        return None if oldest is None else _digest(fileio.read(layout.schema_path(oldest)))
    except NotFound:
        return None


def identity_of(first: TableSchema) -> str:
    """The identity of a table whose first schema file was made of this."""
    return _digest(encode_schema(first))


@dataclass(frozen=True)
class TableGuard:
    """`identity` None: there was no table, so nothing may be claimed."""

    fileio: FileIO
    location: str
    identity: str | None

    def check(self) -> None:
        """Raises RetryError TS1365 when another table, or none, lies there now."""
        found = find_identity(self.fileio, self.location)
        if found is None or found != self.identity:
            raise table_gone(self.location, is_replaced=found is not None)


def table_gone(location: str, *, is_replaced: bool) -> RetryError:
    """TS1365: the table of this operation is not there any more."""
    return RetryError(
        "TS1365",
        f"the table at {location} was dropped while it was used",
        why="another table of that name is there now" if is_replaced else "nothing of that name is there now",
        fix="run the command again: it looks up the name again; nothing was committed",
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
