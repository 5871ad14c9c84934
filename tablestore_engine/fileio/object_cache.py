"""Immutable objects of a store in memory and on disk: what was read or written once is not asked for again.

CHANGE     what is cached of an object store in memory
What       Files whose names hold a uuid: data, changelogs, manifests, lists, index files. Small ones whole, of large
           ones the end, which has the footer. Never snapshots, schemas, hints, listings, or that a name is missing.
INVARIANT  such a name is given once and its file never changes, so that an entry is right for ever, whoever deletes the
           file. Who asks what the store has now (verify, orphan files) reads by `uncached`.
INVARIANT  bytes are checked where they are decoded (store/metadata/manifests.py, store/files/parquet_input.py), whether
           they come from here or from the store.
Memory     CAPACITY_BYTES for each address in a process; least recently used entries leave first.
Disk       what other processes of this user read or wrote (disk_cache.py); of data files the footer alone.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

import pyarrow as pa

from tablestore_engine.fileio.base import ConditionalStore, FileIO, FileStatus
from tablestore_engine.fileio.disk_cache import DiskCache
from tablestore_engine.fileio.object_input import TAIL_BYTES, Range, open_object
from tablestore_engine.runtime.locks import OrderedLock, Rank

T = TypeVar("T")
CAPACITY_BYTES = 64 << 20
WHOLE_BYTES_MAX = 1 << 20  # larger ones would push out many small ones
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_IMMUTABLE = re.compile(
    rf"(data|changelog|manifest|manifest-list|index|index-manifest)-{_UUID}(-[A-Za-z0-9.-]+)?"
)


class RangedFileIO(FileIO, Protocol):
    """A store that is read by ranges of bytes."""

    def read_end(self, path: str, count: int) -> tuple[int, bytes]:
        """The file's size and its last bytes, at most `count`. Raises NotFound TS1201."""

    def read_ranges(self, path: str, ranges: Sequence[Range]) -> Sequence[bytes]:
        """The bytes of ranges, asked for together."""


def is_immutable(path: str) -> bool:
    """Whether a file of this name is written once and never again."""
    return _IMMUTABLE.fullmatch(path.rpartition("/")[2]) is not None


@dataclass
class ObjectMemory:
    """Path → (size, last bytes). Shared by threads."""

    capacity_bytes: int = CAPACITY_BYTES
    _ends: OrderedDict[str, tuple[int, bytes]] = field(default_factory=OrderedDict)
    _held: int = 0
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("objects in memory", Rank.PROCESS))

    def find(self, path: str) -> tuple[int, bytes] | None:
        with self._lock:
            if path in self._ends:
                self._ends.move_to_end(path)
            return self._ends.get(path)

    def put(self, path: str, size: int, end: bytes) -> None:
        """Remember a file just read or written."""
        with self._lock:
            if path in self._ends or len(end) > self.capacity_bytes // 2:
                return
            self._ends[path] = (size, end)
            self._held += len(end)
            while self._held > self.capacity_bytes:
                self._held -= len(self._ends.popitem(last=False)[1][1])


class CachedFileIO:
    """`inner` with a memory, and a disk cache if there is one. Picklable: a worker begins with an empty memory."""

    def __init__(
        self, inner: RangedFileIO, memory: ObjectMemory | None = None, disk: DiskCache | None = None
    ) -> None:
        self.inner, self.memory, self.disk = inner, memory or ObjectMemory(), disk

    def __reduce__(self) -> tuple[type[CachedFileIO], tuple[RangedFileIO, None, DiskCache | None]]:
        return CachedFileIO, (self.inner, None, self.disk)

    @property
    def folders(self) -> None:
        """None: only stores without folders are remembered."""

    @property
    def conditional(self) -> ConditionalStore | None:
        """As the inner one: what is replaced has no name with a uuid."""
        return self.inner.conditional

    # reading -------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        if not is_immutable(path):
            return self.inner.read(path)
        known = self._find(path)
        if known is not None and len(known[1]) == known[0]:
            return known[1]
        data = self.inner.read(path)
        self._remember(path, data)
        return data

    def open_input(self, path: str) -> pa.NativeFile:
        if not is_immutable(path):
            return self.inner.open_input(path)

        def read_end(count: int) -> tuple[int, bytes]:
            known = self._find(path)
            if known is None:
                known = self.inner.read_end(path, count)
                self._put(path, *known)
            return known

        return open_object(read_end, lambda ranges: self.inner.read_ranges(path, ranges))

    def list(self, path: str) -> Sequence[FileStatus]:
        return self.inner.list(path)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def exists_file(self, path: str) -> bool:
        return self.inner.exists_file(path)

    def size(self, path: str) -> int:
        return self.inner.size(path)

    # writing -------------------------------------------------------------------------------------

    def mkdirs(self, path: str) -> None:
        self.inner.mkdirs(path)

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)
        if is_immutable(path):
            self._remember(path, data)

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        return self.inner.create_exclusive(path, data, check=check)

    def replace(self, path: str, data: bytes) -> None:
        self.inner.replace(path, data)

    def copy(self, source: str, target: str) -> None:
        self.inner.copy(source, target)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """As FileIO; the end of the file is remembered on the way."""
        with self.inner.open_output(path) as sink:
            tee = _Tee(sink)
            yield pa.PythonFile(tee, mode="w")
        if is_immutable(path):
            self._put(path, tee.tell(), tee.end)

    def delete(self, path: str) -> None:
        self.inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        self.inner.delete_many(paths)

    def delete_tree(self, path: str) -> None:
        self.inner.delete_tree(path)

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        return self.inner.run_together(calls)

    def _remember(self, path: str, data: bytes) -> None:
        end = data if len(data) <= WHOLE_BYTES_MAX else data[-TAIL_BYTES:]
        self._put(path, len(data), end)

    def _put(self, path: str, size: int, end: bytes) -> None:
        self.memory.put(path, size, end)
        if self.disk is not None:
            self.disk.put(path, size, end)

    def _find(self, path: str) -> tuple[int, bytes] | None:
        known = self.memory.find(path)
        if known is None and self.disk is not None:
            known = self.disk.find(path)
            if known is not None:
                self.memory.put(path, *known)
        return known


def uncached(fileio: FileIO) -> FileIO:
    """The store itself: for who wants to know what it has now."""
    return fileio.inner if isinstance(fileio, CachedFileIO) else fileio


def read_once(direct: FileIO) -> FileIO:
    """A store that `uncached` gave, with an empty memory: one operation fetches each file from the store once."""
    return CachedFileIO(cast(RangedFileIO, direct))


class _Tee(io.RawIOBase):
    """Passes bytes on and keeps the last ones: all of a small file, TAIL_BYTES or more of a large one."""

    def __init__(self, sink: pa.NativeFile) -> None:
        super().__init__()
        self._sink, self._end, self._written = sink, bytearray(), 0

    @property
    def end(self) -> bytes:
        return bytes(self._end)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """Bytes written."""
        return self._written

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # typeshed's buffer is wider
        block = bytes(data)
        self._sink.write(block)
        self._written += len(block)
        self._end += block
        if len(self._end) > WHOLE_BYTES_MAX:
            del self._end[:-TAIL_BYTES]
        return len(block)
