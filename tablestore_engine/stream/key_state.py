"""The newest message of each key since an offset of a log: in memory, and on disk above a number of keys.

CHANGE     the rows that a reader of a log stores by key
Disk       a private SQLite file in the folder that is given, made when it is needed, gone with the state: no journal,
           no waiting for the disk, since a state that is lost is read again from the log (decision 0038)
INVARIANT  what was put last is found, wherever it lies; memory holds `keys_max` keys and one call's.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tablestore_engine.errors import RetryError
from tablestore_engine.log.followed_log import Place

KEYS_MAX = 500_000
Entry = tuple[bytes | None, int, int]  # value (None: deleted), partition, offset
_TABLES = """
create table known (key blob primary key, value blob, part integer, place integer) without rowid;
create temp table asked (number integer primary key, key blob);
"""
_PUT = (
    "insert into known values (?, ?, ?, ?) on conflict (key) do update set value = excluded.value, "
    "part = excluded.part, place = excluded.place"
)
_FIND = "select number, value, part, place from asked cross join known using (key)"


class KeyState:
    """Of one reader; `folder` None: the system's temporary one."""

    def __init__(self, folder: Path | None = None, *, keys_max: int = KEYS_MAX) -> None:
        self._folder, self._keys_max = folder, keys_max
        self._near: dict[bytes, Entry] = {}
        self._far: sqlite3.Connection | None = None
        self._far_ends: dict[int, int] = {}  # the last place of each partition on disk

    def put(self, entries: Iterable[tuple[bytes, Entry]]) -> None:
        """In order: the last of a key counts. Raises RetryError TS1359."""
        self._near.update(entries)
        if len(self._near) > self._keys_max:
            self._spill()

    def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Entry]:
        """Of these keys those that are known. Raises RetryError TS1359."""
        near = self._near
        if not near and self._far is None:
            return {}
        found = {key: near[key] for key in keys if key in near}
        if self._far is not None and len(found) < len(keys):
            found.update(self._find_far([key for key in keys if key not in found]))
        return found

    def forget(self, place: Place) -> None:
        """What lies before a place need not be known any more; some of it may stay."""
        if self._far is not None:
            if any(end >= place.get(part, 0) for part, end in self._far_ends.items()):
                return  # an older entry of a key may lie there: what is known newer of it must not go before it
            self._drop_far()
        get = place.get
        self._near = {key: one for key, one in self._near.items() if one[2] >= get(one[1], 0)}

    def clear(self) -> None:
        """Nothing is known any more; the file is gone."""
        self._near = {}
        self._drop_far()

    def _spill(self) -> None:
        with _disk(self._folder):
            far = self._open_far()
            far.executemany(_PUT, ((key, *one) for key, one in sorted(self._near.items())))
        for _, part, place in self._near.values():
            if place > self._far_ends.get(part, -1):
                self._far_ends[part] = place
        self._near = {}

    def _find_far(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        far = self._far
        assert far is not None
        with _disk(self._folder):
            far.execute("delete from asked")
            far.executemany("insert into asked (key) values (?)", zip(keys, strict=True))
            rows = far.execute(_FIND).fetchall()
        return {keys[number - 1]: (value, part, place) for number, value, part, place in rows}

    def _open_far(self) -> sqlite3.Connection:
        if self._far is None:
            handle, path = tempfile.mkstemp(prefix="keys-", suffix=".sqlite", dir=self._folder)
            os.close(handle)
            far = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for setting in (
                "journal_mode = off",
                "synchronous = off",
                "locking_mode = exclusive",
                "temp_store = memory",
            ):
                far.execute(f"pragma {setting}")
            far.executescript(_TABLES)
            os.unlink(path)  # it lives as long as it is open, and no kill leaves it behind
            self._far = far
        return self._far

    def _drop_far(self) -> None:
        if self._far is not None:
            self._far.close()
            self._far, self._far_ends = None, {}


class _disk:  # noqa: N801 - a context manager, read as a word
    """What goes wrong on the disk, in our words."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error | OSError):
            raise RetryError(
                "TS1359",
                f"keys that a reader of a log has seen cannot be kept in {self._folder or tempfile.gettempdir()}",
                why=str(error),
                fix="give the folder room (TMPDIR names another one), and resume at the reader's position",
            ) from error
