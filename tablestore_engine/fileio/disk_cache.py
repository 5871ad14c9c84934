"""Immutable objects of a store on the local disk, so that the next process of this user does not fetch them again.

CHANGE     what is cached of an object store on disk
What       manifests, lists and index files whole; of data files and changelogs above TAIL_BYTES the Parquet footer (one
           request gives the whole of a smaller one). Never rows, snapshots, schemas, hints, listings, or absence
Layout     <cache folder>/objects/<digest of address and path>: magic, checksum, size, name, bytes; mode 0600 in 0700
INVARIANT  an entry counts only with its checksum and its name, compared at each read. A damaged one is deleted.
INVARIANT  the name has endpoint, account and bucket: two stores with equal keys share no entry.
INVARIANT  no error of the disk fails the caller. The first one of a write switches the cache off, with one warning.
Bound      `capacity_bytes` and ENTRIES_MAX; the entries that were used longest ago leave first. Each process looks at
           the folder again after an eighth of the capacity, so many processes together may hold a little more.
CRASH      an entry appears by a rename. Temporary files of killed processes go after an hour.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.object_input import TAIL_BYTES
from tablestore_engine.runtime.java import cache_folder, make_in_cache
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

ENTRIES_MAX = 20_000
_FOLDER, _TEMPORARY = "objects", ".new-"
_TEMPORARY_MS = 3_600_000
_BLOCK = 4096  # of file systems: a small entry takes one
_MAGIC = b"tablestore object 1\n"
_CHECKSUM_BYTES = 32
_HEAD = struct.Struct(">QI")  # size of the object, length of the name
_PARQUET, _PARQUET_TAIL = b"PAR1", 8
_ROWS = ("data-", "changelog-")
_LOGGER = logging.getLogger("tablestore_engine.fileio")
_WARNED: list[str] = []


def open_disk_cache(
    store: str, capacity_bytes: int, *, is_made: bool = True, environ: Mapping[str, str] | None = None
) -> DiskCache | None:
    """The cache of this user. None with a capacity of 0, in another user's folder, and without a folder unless
    `is_made`.
    """
    if not capacity_bytes:
        return None
    try:
        folder = cache_folder(environ) / _FOLDER
    except TablestoreError as error:
        _warn(str(error))
        return None
    return DiskCache(store, folder, capacity_bytes) if is_made or folder.is_dir() else None


def _write_private(place: Path, data: bytes) -> None:
    """A new file of this user alone."""
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


@dataclass
class DiskCache:
    """Path → (size, last bytes), as ObjectMemory. `store`: of StoreAddress. Shared by threads and processes.

    Picklable: a worker uses the folder where it is there.
    """

    store: str
    folder: Path
    capacity_bytes: int
    runtime: Runtime = SYSTEM
    write: Callable[[Path, bytes], None] = _write_private
    is_off: bool = False
    _held: int | None = None  # bytes in the folder when it was looked at, and what was written since
    _since: int = 0
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("objects on disk", Rank.PROCESS))

    def __reduce__(self) -> tuple[Callable[..., DiskCache | None], tuple[str, int]]:
        return _open_in_worker, (self.store, self.capacity_bytes)

    def find(self, path: str) -> tuple[int, bytes] | None:
        if self.is_off:
            return None
        place = self._place(path)
        try:
            data = place.read_bytes()
        except OSError:
            return None  # missing, or closed to us: a write says so
        found = _decode(data, self._name(path))
        with suppress(OSError):
            if found is None:
                place.unlink()
            else:
                self._mark_used(place)
        return found

    def put(self, path: str, size: int, end: bytes) -> None:
        """Remember a file just read or written."""
        kept = _worth(path, size, end)
        if self.is_off or kept is None or len(kept) > self.capacity_bytes // 8:
            return
        data = _encode(self._name(path), size, kept)
        try:
            self._make_room(_footprint(len(data)))
            self._write(self._place(path), data)
        except (OSError, TablestoreError) as error:
            self.is_off = True
            _warn(str(error))

    def _name(self, path: str) -> bytes:
        return f"{self.store}\n{path}".encode()

    def _place(self, path: str) -> Path:
        return self.folder / hashlib.sha256(self._name(path)).hexdigest()

    def _mark_used(self, place: Path) -> None:
        now = self.runtime.now_ms() * 1_000_000
        os.utime(place, ns=(now, now))

    def _write(self, place: Path, data: bytes) -> None:
        temporary = self.folder / f"{_TEMPORARY}{self.runtime.new_uuid()}"
        try:
            self.write(temporary, data)
            self._mark_used(temporary)
            temporary.replace(place)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _make_room(self, more: int) -> None:
        """Before `more` bytes are written. Raises OSError, FixRequest TS1992."""
        with self._lock:
            is_known = self._held is not None and self._since <= self.capacity_bytes // 8
            held = (self._held or 0) + more
        if not is_known:
            make_in_cache(self.folder)
            self.folder.chmod(0o700)
        if not is_known or held > self.capacity_bytes:
            held, since = self._evict(more) + more, more
            with self._lock:
                self._held, self._since = held, since
            return
        with self._lock:
            self._held, self._since = held, self._since + more

    def _evict(self, more: int) -> int:
        """Bytes that stay: all, or what leaves an eighth of the room free."""
        found = sorted(self._entries())
        held = sum(size for _, size, _ in found)
        if held + more <= self.capacity_bytes and len(found) < ENTRIES_MAX:
            return held
        bound, entries = self.capacity_bytes // 8 * 7 - more, len(found)
        for _, size, place in found:
            if held <= bound and entries <= ENTRIES_MAX // 8 * 7:
                break
            with suppress(FileNotFoundError):  # another process was faster
                place.unlink()
            held, entries = held - size, entries - 1
        return held

    def _entries(self) -> list[tuple[int, int, Path]]:
        """When used (ns), bytes on disk, place; temporary files of killed processes are deleted."""
        entries: list[tuple[int, int, Path]] = []
        end_ns = (self.runtime.now_ms() - _TEMPORARY_MS) * 1_000_000
        with os.scandir(self.folder) as listed:
            for one in listed:
                with suppress(FileNotFoundError):
                    facts = one.stat(follow_symlinks=False)
                    if not stat.S_ISREG(facts.st_mode):
                        continue
                    if one.name.startswith(_TEMPORARY) and facts.st_mtime_ns < end_ns:
                        Path(one.path).unlink()
                    else:
                        entries.append((facts.st_mtime_ns, _footprint(facts.st_size), Path(one.path)))
        return entries


def _open_in_worker(store: str, capacity_bytes: int) -> DiskCache | None:
    return open_disk_cache(store, capacity_bytes, is_made=False)


def _warn(why: str) -> None:
    """Once in a process."""
    if not _WARNED:
        _WARNED.append(why)
        _LOGGER.warning("The disk cache of object stores is off (storage setting cache_mb): %s", why)


def _footprint(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _worth(path: str, size: int, end: bytes) -> bytes | None:
    """What is kept of a file: the footer where it has rows, else all of it; None where that is no gain, or not here."""
    if not path.rpartition("/")[2].startswith(_ROWS):
        return end if len(end) == size else None
    if size <= TAIL_BYTES or not end.endswith(_PARQUET):
        return None
    footer = int.from_bytes(end[-_PARQUET_TAIL:-4], "little") + _PARQUET_TAIL
    return end[-footer:] if footer <= len(end) else None


def _encode(name: bytes, size: int, kept: bytes) -> bytes:
    body = _HEAD.pack(size, len(name)) + name + kept
    return _MAGIC + hashlib.sha256(body).digest() + body


def _decode(data: bytes, name: bytes) -> tuple[int, bytes] | None:
    """None for what is damaged, or of another name."""
    start = len(_MAGIC) + _CHECKSUM_BYTES
    body = data[start:]
    is_whole = data[:start] == _MAGIC + hashlib.sha256(body).digest()
    if not is_whole or len(body) < _HEAD.size:
        return None
    size, length = _HEAD.unpack_from(body)
    behind = _HEAD.size + length
    return (size, body[behind:]) if body[_HEAD.size : behind] == name else None
