"""The newest message of each key since an offset of a log: in memory, and on disk above a number of keys.

CHANGE     the rows that a reader of a log stores by key
Memory     `keys_max` messages and one call's: keys have their numbers; those that newer ones replaced are left out
Disk       one file of records, in the order of puts, and sorted runs of (hash of the key, offset of the record), mapped
           into memory. A run is merged with the one before it unless that one is twice as large
           (decision 0156). Private files in the folder that is given, without a name from the moment they are open:
           a state that is lost is read again from the log (decision 0038)
INVARIANT  what was put last is found, wherever it lies. A hash only says where to look: records have their keys.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import polars as pl

from tablestore_engine.errors import RetryError
from tablestore_engine.log.followed_log import Place

KEYS_MAX = 500_000
Entry = tuple[bytes | None, int, int]  # value (None: deleted), partition, offset
Numbers = npt.NDArray[np.int64]
_HEAD = Struct("<iiiq")  # bytes of the key, of the value (-1: deleted), partition, offset
_RUN = np.dtype([("hash", np.uint64), ("at", np.int64)])


@dataclass(frozen=True)
class _HeldKeys:
    """Messages of one call; `first`: the number of the first one."""

    first: int
    values: Sequence[bytes | None]
    partitions: Numbers
    offsets: Numbers


class KeyState:
    """Of one reader; `folder` None: the system's temporary one."""

    def __init__(self, folder: Path | None = None, *, keys_max: int = KEYS_MAX) -> None:
        self._folder, self._keys_max = folder, keys_max
        self._near: dict[bytes, int] = {}
        self._held: list[_HeldKeys] = []
        self._count = 0
        self._far: _Disk | None = None

    def put(
        self,
        keys: Sequence[bytes],
        values: Sequence[bytes | None],
        partitions: Numbers,
        offsets: Numbers,
    ) -> None:
        """In order: the last of a key counts. Raises RetryError TS1359."""
        self._held.append(_HeldKeys(self._count, values, partitions, offsets))
        self._near.update(zip(keys, range(self._count, self._count + len(keys)), strict=True))
        self._count += len(keys)
        if self._count > self._keys_max:
            if 2 * len(self._near) > self._keys_max:
                self._spill()
            else:  # most messages are older ones of the same keys
                self._hold(self._entries())

    def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Entry]:
        """Of these keys those that are known. Raises RetryError TS1359."""
        near = self._near
        found: dict[bytes, Entry] = {}
        if near and not near.keys().isdisjoint(keys):
            starts = [one.first for one in self._held]
            found = {key: self._entry(starts, near[key]) for key in keys if key in near}
        if self._far is not None and len(found) < len(keys):
            with _disk(self._folder):
                found.update(self._far.find([key for key in keys if key not in found] if found else keys))
        return found

    def forget(self, place: Place) -> None:
        """What lies before a place need not be known any more; some of it may stay."""
        if self._far is not None:
            if any(end >= place.get(part, 0) for part, end in self._far.ends.items()):
                return  # an older entry of a key may lie there: what is known newer of it must not go before it
            self._drop_far()
        self._hold([(key, one) for key, one in self._entries() if one[2] >= place.get(one[1], 0)])

    def clear(self) -> None:
        """Nothing is known any more; the files are gone."""
        self._hold([])
        self._drop_far()

    def _entries(self) -> list[tuple[bytes, Entry]]:
        starts = [one.first for one in self._held]
        return [(key, self._entry(starts, number)) for key, number in self._near.items()]

    def _hold(self, entries: Sequence[tuple[bytes, Entry]]) -> None:
        """These alone, in memory."""
        numbers = np.array([one[1:] for _, one in entries], np.int64).reshape(-1, 2)
        values = [one[0] for _, one in entries]
        self._near = {key: number for number, (key, _) in enumerate(entries)}
        self._held, self._count = [_HeldKeys(0, values, numbers[:, 0], numbers[:, 1])], len(entries)

    def _entry(self, starts: list[int], number: int) -> Entry:
        one = self._held[bisect_right(starts, number) - 1]
        at = number - one.first
        return one.values[at], int(one.partitions[at]), int(one.offsets[at])

    def _spill(self) -> None:
        with _disk(self._folder):
            if self._far is None:
                self._far = _Disk(self._folder)
            self._far.put(self._entries())
        self._hold([])

    def _drop_far(self) -> None:
        if self._far is not None:
            self._far.close()
            self._far = None


@dataclass
class _Disk:
    """What does not fit into memory. `ends`: the last offset of each partition in it. Methods raise OSError."""

    folder: Path | None
    ends: dict[int, int] = field(default_factory=dict)
    _records: BinaryIO | None = None
    _size: int = 0
    _runs: list[npt.NDArray[np.void]] = field(default_factory=list)  # older ones first

    def put(self, entries: Sequence[tuple[bytes, Entry]]) -> None:
        """Each key once."""
        self._records = self._records or self._open()
        places, parts = np.empty(len(entries), np.int64), []
        for number, (key, (value, partition, offset)) in enumerate(entries):
            places[number] = self._size
            size = -1 if value is None else len(value)
            parts += [_HEAD.pack(len(key), size, partition, offset), key, value or b""]
            self._size += _HEAD.size + len(key) + max(size, 0)
            if offset > self.ends.get(partition, -1):
                self.ends[partition] = offset
        self._records.write(b"".join(parts))
        self._records.flush()
        run = np.empty(len(entries), _RUN)
        run["hash"], run["at"] = _hashes([key for key, _ in entries]), places
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
        self._runs.append(self._mapped(run[np.argsort(run["hash"], kind="stable")]))

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """Of each key the record that was put last."""
        found: dict[bytes, Entry] = {}
        hashes = _hashes(keys)
        for run in reversed(self._runs):  # a record of a newer run lies behind those of older ones
            begins = np.searchsorted(run["hash"], hashes, "left")
            ends = np.searchsorted(run["hash"], hashes, "right")
            for number in np.flatnonzero(begins < ends).tolist():
                key = keys[number]
                entry = None if key in found else self._newest(key, run["at"][begins[number] : ends[number]])
                if entry is not None:
                    found[key] = entry
        return found

    def close(self) -> None:
        """The files go with it."""
        if self._records is not None:
            self._records.close()
        self._records, self._runs = None, []

    def _newest(self, key: bytes, places: Numbers) -> Entry | None:
        for place in sorted(places.tolist(), reverse=True):
            stored, entry = self._read(place)
            if stored == key:
                return entry
        return None

    def _read(self, place: int) -> tuple[bytes, Entry]:
        assert self._records is not None
        handle = self._records.fileno()
        key_size, size, partition, offset = _HEAD.unpack(os.pread(handle, _HEAD.size, place))
        rest = os.pread(handle, key_size + max(size, 0), place + _HEAD.size)
        return rest[:key_size], (None if size < 0 else rest[key_size:], partition, offset)

    def _mapped(self, run: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
        """The same in a file of its own, so that the system may take the memory."""
        with self._open() as file:
            run.tofile(file)
            file.flush()
            return np.memmap(file, _RUN, "r", shape=run.shape)

    def _open(self) -> BinaryIO:
        return tempfile.TemporaryFile(prefix="keys-", dir=self.folder)


def _hashes(keys: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    return pl.Series(keys, dtype=pl.Binary).hash().to_numpy()


class _disk:  # noqa: N801 - a context manager, read as a word
    """What goes wrong on the disk, in our words."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise RetryError(
                "TS1359",
                f"keys that a reader of a log has seen cannot be kept in {self._folder or tempfile.gettempdir()}",
                why=str(error),
                fix="give the folder room (TMPDIR names another one), and resume at the reader's position",
            ) from error
