"""An object store in memory: names and bytes, conditional puts, no folders. For tests of what object stores lack.

INVARIANT  as on a real store a claim looks at nothing but its own name: one whose check passed lands in whatever table
           has the name by then.
INVARIANT  times are the store's, from `now_ms`; content has a new mark at each put.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import TypeVar

import pyarrow as pa

from tablestore_engine.fileio.base import FileStatus, SeenFile
from tablestore_engine.fileio.size_limits import check_size
from tablestore_engine.fileio.storage_errors import missing_file, outside_root

T = TypeVar("T")


@dataclass(frozen=True)
class _Object:
    data: bytes
    mark: str
    modified_ms: int


@dataclass
class MemoryFileIO:
    """Objects below `root`; shared by all threads of a test."""

    root: str
    now_ms: Callable[[], int]
    objects: dict[str, _Object] = field(default_factory=dict)
    _marks: Iterator[int] = field(default_factory=itertools.count, repr=False)
    _lock: RLock = field(default_factory=RLock, repr=False)

    folders = None

    @property
    def conditional(self) -> MemoryFileIO:
        """Itself."""
        return self

    def read(self, path: str) -> bytes:
        """As FileIO."""
        return self.read_seen(path).data

    def read_seen(self, path: str) -> SeenFile:
        """As ConditionalStore."""
        found = self._get(path)
        check_size(path, len(found.data), (found.mark, None))
        return SeenFile(found.data, (found.mark, None))

    def open_input(self, path: str) -> pa.NativeFile:
        """As FileIO."""
        return pa.BufferReader(self._get(path).data)

    def write(self, path: str, data: bytes) -> None:
        """As FileIO."""
        if not self.create_exclusive(path, data):
            raise FileExistsError(path)

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """As FileIO."""
        sink = pa.BufferOutputStream()
        yield sink
        self.write(path, sink.getvalue().to_pybytes())

    def copy(self, source: str, target: str) -> None:
        """As FileIO."""
        self.write(target, self._get(source).data)

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """As FileIO."""
        name = self._checked(path)
        if check is not None:
            check()
        with self._lock:
            if name in self.objects:
                return False
            self._put(name, data)
            return True

    def replace(self, path: str, data: bytes) -> None:
        """As FileIO."""
        with self._lock:
            self._put(self._checked(path), data)

    def replace_if(self, path: str, data: bytes, seen: SeenFile) -> bool:
        """As ConditionalStore."""
        with self._lock:
            found = self.objects.get(self._checked(path))
            if found is None or found.mark != seen.marks[0]:
                return False
            self._put(path, data)
            return True

    def list(self, path: str) -> Sequence[FileStatus]:
        """As FileIO."""
        start = f"{self._checked(path)}/"
        with self._lock:
            inside = [
                (name[len(start) :], one) for name, one in self.objects.items() if name.startswith(start)
            ]
        files = {
            name: FileStatus(start + name, name, len(one.data), one.modified_ms, is_dir=False, mark=one.mark)
            for name, one in inside
            if "/" not in name
        }
        folders = {name.partition("/")[0] for name, _ in inside if "/" in name}
        found = [*files.values(), *(FileStatus(start + name, name, 0, 0, is_dir=True) for name in folders)]
        return sorted((one for one in found if not one.name.startswith(".")), key=lambda one: one.name)

    def exists(self, path: str) -> bool:
        """As FileIO."""
        name = self._checked(path)
        with self._lock:
            return name in self.objects or any(one.startswith(f"{name}/") for one in self.objects)

    def exists_file(self, path: str) -> bool:
        """As FileIO."""
        return self._checked(path) in self.objects

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """As FileIO, one after the other."""
        return [call() for call in calls]

    def size(self, path: str) -> int:
        """As FileIO."""
        return len(self._get(path).data)

    def mkdirs(self, path: str) -> None:
        """As FileIO."""
        self._checked(path)

    def delete(self, path: str) -> None:
        """As FileIO."""
        with self._lock:
            self.objects.pop(self._checked(path), None)

    def delete_many(self, paths: Sequence[str]) -> None:
        """As FileIO."""
        for path in paths:
            self.delete(path)

    def delete_tree(self, path: str) -> None:
        """As FileIO."""
        name = self._checked(path)
        if name == self.root:
            raise outside_root(path, self.root)
        with self._lock:
            for one in [one for one in self.objects if one == name or one.startswith(f"{name}/")]:
                del self.objects[one]

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Let an object look as old as that."""
        found = self._get(path)
        self.objects[path] = _Object(found.data, found.mark, modified_ms)

    def _put(self, path: str, data: bytes) -> None:
        self.objects[path] = _Object(data, str(next(self._marks)), self.now_ms())

    def _get(self, path: str) -> _Object:
        found = self.objects.get(self._checked(path))
        if found is None:
            raise missing_file(path)
        return found

    def _checked(self, path: str) -> str:
        parts = path[len(self.root) :].split("/")[1:]
        inside = path == self.root or path.startswith(f"{self.root}/")
        if not inside or any(part in ("", ".", "..") for part in parts):
            raise outside_root(path, self.root)
        return path
