"""Which table is in a folder: a name may be dropped and created again, a table never becomes another one.

CHANGE     whether a name still means the same table (option tablestore.table-uuid)
Identity   the digest of the first schema file, which never changes; tables that we make carry a uuid in it
           (`tablestore.table-uuid`), and those of other engines the time of their creation.
INVARIANT  a claim belongs to an identity: it is looked at when the claim already has its place in the folder
           (promise 8 of fileio), so that a table made anew under the same name never gets an old writer's snapshot.
INVARIANT  without folders (decision 0064) a claim may land in another table than the checked one. Whatever is written
           under a name that two tables may use says whose it is (`TABLE_KEY`), and readers leave another table's aside.
           What does not say it counts: other engines and older versions do not.
INVARIANT  a first schema that is held (name_hold) is no table; neither is what is left of ours without schema-0.
INVARIANT  nothing that outlives one operation (caches, handles) is used for another identity than it was made for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore_engine.errors import FixData, FixRequest, NotFound, RetryError, TablestoreError
from tablestore_engine.fileio.base import FileIO, find
from tablestore_engine.format.layout import TableLayout, find_id
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema
from tablestore_engine.store.metadata.name_hold import is_held

UUID_OPTION = "tablestore.table-uuid"
TABLE_KEY = (
    "tablestore.table"  # snapshot property, key of consumers and outcomes: the identity of their table
)


@dataclass(frozen=True)
class FirstSchema:
    """The oldest schema file of a folder."""

    number: int
    path: str
    data: bytes


def find_identity(fileio: FileIO, location: str) -> str | None:
    """The identity of the table in the folder `location`; None when there is none."""
    return identity_by(fileio, location, find(fileio, TableLayout(location).schema_path(0)))


def has_first_schema(fileio: FileIO, location: str) -> bool:
    """Whether a table is there. One whose schema file cannot be read is listed too, and says so when it is opened."""
    try:
        return find_identity(fileio, location) is not None
    except FixData:
        return True


def identity_by(fileio: FileIO, location: str, data: bytes | None) -> str | None:
    """The same with the file of schema 0 (None: there is none), which was read already."""
    first = _first_schema(fileio, TableLayout(location), data)
    if first is None or (fileio.folders is None and _is_no_table(first)):
        return None
    return digest_of(first.data)


def find_first_schema(fileio: FileIO, location: str) -> FirstSchema | None:
    """The file whose digest is the identity."""
    layout = TableLayout(location)
    return _first_schema(fileio, layout, find(fileio, layout.schema_path(0)))


def _first_schema(fileio: FileIO, layout: TableLayout, data: bytes | None) -> FirstSchema | None:
    if data is not None:
        return FirstSchema(0, layout.schema_path(0), data)
    try:  # another engine may have removed the oldest schemas
        ids = [find_id(one.name, "schema-") for one in fileio.list(layout.schema_dir)]
        first = min((number for number in ids if number is not None), default=None)
        if first is None:
            return None
        return FirstSchema(first, layout.schema_path(first), fileio.read(layout.schema_path(first)))
    except NotFound:
        return None


def _is_no_table(first: FirstSchema) -> bool:
    """Held, or a late ALTER's file in a table of ours that was dropped: no engine removes the first of ours alone."""
    if is_held(first.data):
        return True
    if first.number == 0:
        return False
    try:
        return UUID_OPTION in decode_schema(first.data, first.path).options
    except TablestoreError:
        return False  # damaged: a table, which says so when it is read


def is_of_another(fileio: FileIO, location: str, said: object, identity: str | None) -> bool:
    """Whether `said`, the value of TABLE_KEY, names another table; None, when nothing is said, does not.

    With folders never: a dropped table leaves no files under its name, and a lost first schema hides no rows.
    Raises FixData when the first schema is damaged: then the identity is wrong, and what is said may be this table's.
    """
    if fileio.folders is not None or None in (said, identity) or said == identity:
        return False
    first = find_first_schema(fileio, location)
    if first is not None and not is_held(first.data):
        decode_schema(first.data, first.path)
    return True


def with_table(identity: str | None) -> Mapping[str, str]:
    """TABLE_KEY of what is written for a table."""
    return {} if identity is None else {TABLE_KEY: identity}


def identity_of(first: TableSchema) -> str:
    """The identity of a table whose first schema file was made of this."""
    return digest_of(encode_schema(first))


@dataclass(frozen=True)
class TableGuard:
    """`identity` None: there was no table, so nothing may be claimed.

    `reads_for`: the branch for whose sake this table is opened while it has no such branch: it is read, and never
    written. Empty: it may be written.
    """

    fileio: FileIO
    location: str
    identity: str | None
    reads_for: str = ""

    def check(self) -> None:
        """Raises RetryError TS1365 when another table, or none, lies there now; FixRequest TS1221."""
        if self.reads_for:
            raise FixRequest(
                "TS1221",
                f"the main branch of the table at {self.location} is not changed",
                why=f"this run works on branch {self.reads_for}, which the table does not have",
                fix="write rows to the table in this run first, which makes its branch, or work without the branch",
            )
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


def digest_of(data: bytes) -> str:
    """The identity of a table whose first schema file has these bytes."""
    return hashlib.sha256(data).hexdigest()
