"""Requests that an object store would get: a FileIO that counts them, exactly and without a clock.

Total      every request of `ObjectFileIO` that a port call stands for: `exists` of a missing name is HEAD and LIST, a
           listing is a LIST for each thousand names
Depth      round trips in sequence. Time is a number: a request ends one later than it began, calls of one
           `run_together` begin at the same number (as many at once as `width`), and it ends with the last of them
INVARIANT  calls are made one after the other in the thread of the caller, so a count is the same in each run. Threads
           that somebody else starts would count as a sequence: the depth is never too small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.base import ConditionalStore, FileIO, FileStatus, SeenFile, conditional_of
from tablestore_engine.fileio.object_input import Range, open_object

T = TypeVar("T")
_PAGE = 1_000  # names of a listing, or of a bulk delete
_WIDTH = 16


@dataclass(frozen=True)
class Request:
    """`step`: its place in the sequence, from 1; requests of one step overlap."""

    method: str
    path: str
    step: int


@dataclass
class CountingFileIO:
    """`inner` as a store without folders; `requests` in the order in which they were made."""

    inner: FileIO
    width: int = _WIDTH
    requests: list[Request] = field(default_factory=list)
    _now: int = 0

    @property
    def folders(self) -> None:
        """None, as of every object store."""
        return None

    @property
    def conditional(self) -> ConditionalStore | None:
        """Counted too, where the inner one has it."""
        return None if self.inner.conditional is None else self

    # what was counted ---------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """All requests."""
        return len(self.requests)

    @property
    def depth(self) -> int:
        """Round trips in sequence."""
        return self._now

    def by_method(self) -> Counter[str]:
        """How many of each."""
        return Counter(one.method for one in self.requests)

    def steps(self) -> list[str]:
        """The requests of each step on a line, to be read in a failing test."""
        found: dict[int, list[str]] = {}
        for one in self.requests:
            found.setdefault(one.step, []).append(f"{one.method} {'/'.join(one.path.split('/')[-2:])}")
        return [f"{step:3} {'  '.join(found[step])}" for step in sorted(found)]

    def restart(self) -> None:
        """Count from nothing."""
        self.requests.clear()
        self._now = 0

    def _ask(self, method: str, path: str) -> None:
        self._now += 1
        self.requests.append(Request(method, path, self._now))

    # reading ------------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """GET."""
        self._ask("GET", path)
        return self.inner.read(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """GET of the end, then a GET for each range that is not there yet; ranges of one prefetch overlap."""
        return open_object(partial(self.read_end, path), partial(self.read_ranges, path))

    def read_end(self, path: str, count: int) -> tuple[int, bytes]:
        """GET."""
        self._ask("GET", path)
        with self.inner.open_input(path) as source:
            size = source.size()
            source.seek(max(size - count, 0))
            return size, bytes(source.read())

    def read_ranges(self, path: str, ranges: Sequence[Range]) -> Sequence[bytes]:
        """GET of each, together."""
        return self.run_together([partial(self._read_range, path, one) for one in ranges])

    def _read_range(self, path: str, wanted: Range) -> bytes:
        self._ask("GET", path)
        with self.inner.open_input(path) as source:
            source.seek(wanted[0])
            return bytes(source.read(wanted[1] - wanted[0]))

    def list(self, path: str) -> Sequence[FileStatus]:
        """LIST, once more for each further thousand names."""
        found = self.inner.list(path)
        for _ in range(max(1, -(-len(found) // _PAGE))):
            self._ask("LIST", path)
        return found

    def exists(self, path: str) -> bool:
        """HEAD, and LIST of what begins like it."""
        if self.exists_file(path):
            return True
        self._ask("LIST", path)
        return self.inner.exists(path)

    def exists_file(self, path: str) -> bool:
        """HEAD."""
        self._ask("HEAD", path)
        return self.inner.exists_file(path)

    def size(self, path: str) -> int:
        """HEAD."""
        self._ask("HEAD", path)
        return self.inner.size(path)

    # writing ------------------------------------------------------------------------------------------------

    def mkdirs(self, path: str) -> None:
        """No request."""
        self.inner.mkdirs(path)

    def write(self, path: str, data: bytes) -> None:
        """PUT."""
        self._ask("PUT", path)
        self.inner.write(path, data)

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """PUT when it is closed."""
        with self.inner.open_output(path) as sink:
            yield sink
        self._ask("PUT", path)

    def copy(self, source: str, target: str) -> None:
        """HEAD of both, and COPY."""
        self.exists_file(target)
        self.size(source)
        self._ask("COPY", target)
        self.inner.copy(source, target)

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """PUT behind the check; HEAD of a name that is taken."""

        def checked() -> None:
            if check is not None:
                check()
            self._ask("PUT", path)

        try:
            won = self.inner.create_exclusive(path, data, check=checked)
        except NotFound:  # a disk wants the folder of a checked claim
            self.inner.mkdirs(path.rpartition("/")[0])
            won = self.inner.create_exclusive(path, data, check=checked)
        if not won:
            self._ask("HEAD", path)
        return won

    def read_seen(self, path: str) -> SeenFile:
        """GET."""
        self._ask("GET", path)
        return conditional_of(self.inner).read_seen(path)

    def replace_if(self, path: str, data: bytes, seen: SeenFile) -> bool:
        """PUT."""
        self._ask("PUT", path)
        return conditional_of(self.inner).replace_if(path, data, seen)

    def replace(self, path: str, data: bytes) -> None:
        """PUT."""
        self._ask("PUT", path)
        self.inner.replace(path, data)

    def delete(self, path: str) -> None:
        """DELETE."""
        self._ask("DELETE", path)
        self.inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """POST for each thousand."""
        batches = [paths[at : at + _PAGE] for at in range(0, len(paths), _PAGE)]
        self.run_together([partial(self._ask, "POST", batch[0]) for batch in batches])
        self.inner.delete_many(paths)

    def delete_tree(self, path: str) -> None:
        """LIST and POST for each thousand names, and DELETE of the name itself."""
        count = _count_files(self.inner, path)
        for _ in range(max(1, -(-count // _PAGE))):
            self._ask("LIST", path)
            if count:
                self._ask("POST", path)
        self._ask("DELETE", path)
        self.inner.delete_tree(path)

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """As FileIO; each call begins when one of `width` lanes is free."""
        lanes, results = [self._now] * min(len(calls), self.width), []
        end = self._now
        for call in calls:
            lanes.sort()
            self._now = lanes[0]
            try:
                results.append(call())
            finally:
                lanes[0] = self._now
                end = self._now = max(end, self._now)
        return results


def _count_files(fileio: FileIO, path: str) -> int:
    return sum(_count_files(fileio, one.path) if one.is_dir else 1 for one in fileio.list(path))
