"""The hold of a name on stores without folders: a first schema file that is no table, while one is changed as a whole.

    schema/schema-0   {"tablestore.held": {"uuid", "turn", "then", "original", "next"}, …the schema of a dropped table}

Steps      begin: the schema is replaced by its held form (compare-and-set), or a held file is created where there is
           none: from here the name means no table  → files are put and deleted  → end: the held file is replaced by
           a schema, or deleted last
INVARIANT  one process holds a name; it renews the hold by compare-and-set, and changes files under shared names only
           while the hold is young. A hold that was not renewed for LEASE_MS is taken over by whoever needs the name.
CRASH      the hold stays, and `then` says how it ends: `drop`, all files go; `restore`, the original schema comes
           back; `swap`, the table at `next` comes here (catalog.flat_tables).
PAIMON     other engines read the schema of a dropped table as before, until it is deleted; that of a table which is
           being made is no schema for them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.fileio.base import FileIO, SeenFile, conditional_of
from tablestore_engine.format.checksum import CHECKSUM_KEY, HAS_CHECKSUM_KEY, checksummed_json
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.store_clock import store_now_ms

HELD_KEY = "tablestore.held"
LEASE_MS = 120_000
_RENEW_MS = LEASE_MS // 4


def find_held(data: bytes) -> Mapping[str, object] | None:
    """What a held file says of its hold; None for a schema."""
    if json.dumps(HELD_KEY).encode() not in data:
        return None
    try:
        found = parse_object(data).get(HELD_KEY)
    except DAMAGE:
        return None
    return found if isinstance(found, dict) else None


def is_held(data: bytes) -> bool:
    """Whether the file is no schema."""
    return find_held(data) is not None


def held_form(data: bytes, hold: Mapping[str, object]) -> bytes:
    """The held form of a schema file, or of nothing."""
    try:
        content = dict(parse_object(data)) if data else {}
    except DAMAGE:
        content = {}
    for key in (CHECKSUM_KEY, HAS_CHECKSUM_KEY):
        content.pop(key, None)
    return checksummed_json({**content, HELD_KEY: dict(hold)})


@dataclass
class NameHold:
    """One process's hold: `path` the first schema file, `seen` its content, `renewed_ms` by this process's clock."""

    fileio: FileIO
    runtime: Runtime
    path: str
    seen: SeenFile
    renewed_ms: int

    @property
    def says(self) -> Mapping[str, object]:
        return find_held(self.seen.data) or {}

    @property
    def original(self) -> bytes | None:
        """The schema file that was there before."""
        return original_of(self.says)

    def keep(self) -> None:
        """Before files under shared names are deleted or put. Raises RetryError TS1367 when the hold was taken over."""
        if self.runtime.now_ms() - self.renewed_ms >= _RENEW_MS:
            self.renew()

    def renew(self, **said: str) -> None:
        """`said` changes what the hold says. Raises RetryError TS1367 when the hold was taken over."""
        turn = self.says.get("turn")
        following = turn + 1 if isinstance(turn, int) else 1
        now, data = self.runtime.now_ms(), held_form(self.seen.data, {**self.says, **said, "turn": following})
        if not conditional_of(self.fileio).replace_if(self.path, data, self.seen):
            raise taken_over(self.path)
        self.seen, self.renewed_ms = _read_own(self.fileio, self.path, data), now

    def end(self, data: bytes | None) -> None:
        """The name means a table whose first schema file is `data`, or (None) nothing. Raises RetryError TS1367."""
        if data is None:
            self.renew()
            self.fileio.delete(self.path)
        elif not conditional_of(self.fileio).replace_if(self.path, data, self.seen):
            raise taken_over(self.path)


def begin_hold(
    fileio: FileIO, runtime: Runtime, path: str, seen: SeenFile | None, then: str, **said: str
) -> NameHold | None:
    """Hold the name instead of `seen`, a schema or a stale hold, or (None) while it is free; None when it is not so.

    INVARIANT  `renewed_ms` is taken before the request, so that the hold ends for this process first.
    """
    before = b"" if seen is None else seen.data
    hold: dict[str, object] = {"uuid": runtime.new_uuid(), "turn": 0, "then": then, **said}
    inherited = find_held(before)
    if inherited is not None:
        hold = {**inherited, **hold}
    elif seen is not None:
        hold["original"] = base64.b64encode(before).decode()
    now, data = runtime.now_ms(), held_form(before, hold)
    won = (
        fileio.create_exclusive(path, data)
        if seen is None
        else conditional_of(fileio).replace_if(path, data, seen)
    )
    return NameHold(fileio, runtime, path, _read_own(fileio, path, data), now) if won else None


def original_of(says: Mapping[str, object]) -> bytes | None:
    """The schema file that a hold took the place of."""
    found = says.get("original")
    return base64.b64decode(found) if isinstance(found, str) else None


def hold_age_ms(fileio: FileIO, runtime: Runtime, path: str) -> int:
    """How long the file has been as it is, by the store's clock; 0 or less when somebody is at work."""
    folder = path.rpartition("/")[0]
    now = store_now_ms(fileio, runtime, folder)
    return now - next((one.modified_ms for one in fileio.list(folder) if one.path == path), now)


def _read_own(fileio: FileIO, path: str, data: bytes) -> SeenFile:
    """What was just put. Raises RetryError TS1367 when it is something else by now."""
    try:
        seen = conditional_of(fileio).read_seen(path)
    except NotFound as gone:
        raise taken_over(path) from gone
    if seen.data != data:
        raise taken_over(path)
    return seen


def taken_over(path: str) -> RetryError:
    """TS1367: what this process held is held by another one."""
    return RetryError(
        "TS1367",
        f"the table at {path.rpartition('/schema/')[0]} was taken over by another process",
        why=f"this process did not renew its hold of the name for {LEASE_MS // 1000} seconds",
        fix="run the command again; the other process finishes it",
    )


def name_is_held(path: str) -> RetryError:
    """TS1368: another process is at work."""
    return RetryError(
        "TS1368",
        f"the table at {path.rpartition('/schema/')[0]} is being dropped, cloned or replaced by another process",
        why=f"it holds the name by {path}",
        fix=f"run the command again when that process has ended; after a kill, {LEASE_MS // 1000} seconds later",
    )
