"""Faults on purpose: a file system that fails before, fails after (lost answer) or tears, and crashes in process.

INVARIANT  everything is decided by arguments and seeds: a failing test replays exactly.
"""

from __future__ import annotations

import itertools
import random
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

import pyarrow as pa

from tablestore_engine.fileio.base import (
    ConditionalStore,
    FileIO,
    FileStatus,
    FolderStore,
    NewFile,
    SeenFile,
    conditional_of,
    folders_of,
    list_hidden,
)
from tablestore_engine.format.checksum import (
    CHECKSUM_KEY,
    CHECKSUM_PLACEHOLDER,
    HAS_CHECKSUM_KEY,
    insert_checksum,
)
from tablestore_engine.runtime.outside_world import Runtime

T = TypeVar("T")
_CHECKSUM_OF_JSON = re.compile(rb'("' + re.escape(CHECKSUM_KEY.encode()) + rb'": ?")[0-9a-f]{8}')
_CHANGES = frozenset(
    {
        "write",
        "copy",
        "create_exclusive",
        "replace",
        "replace_if",
        "mkdirs",
        "delete",
        "delete_tree",
        "rename",
    }
)


class FaultKind(StrEnum):
    """What goes wrong."""

    BEFORE = "before"  # nothing is done, an error is raised
    AFTER = "after"  # everything is done, the answer is lost
    TORN = "torn"  # half of the bytes are written, an error is raised (write and open_output only)


@dataclass(frozen=True)
class Fault:
    """The `call`-th call (from 1) of `operation` on a path that contains `part` fails; `times` calls in a row."""

    kind: FaultKind
    operation: str
    part: str = ""
    call: int = 1
    times: int = 1


class InjectedFaultError(OSError):
    """What a faulty file system raises."""


class SimulatedCrash(BaseException):
    """The process died here."""


@dataclass
class FaultyFileIO:
    """`inner` with faults; `rate` also fails that share of calls at random, before or after."""

    inner: FileIO
    faults: Sequence[Fault] = ()
    seed: int = 0
    rate: float = 0.0
    calls: list[tuple[str, str]] = field(default_factory=list)
    _hits: dict[Fault, int] = field(default_factory=dict)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    @property
    def folders(self) -> FolderStore | None:
        """With faults too, where the inner one has them."""
        return None if self.inner.folders is None else self

    @property
    def conditional(self) -> ConditionalStore | None:
        """With faults too, where the inner one replaces by compare-and-set."""
        return None if self.inner.conditional is None else self

    # ---- reading -------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """As FileIO."""
        return self._run("read", path, lambda: self.inner.read(path))

    def read_seen(self, path: str) -> SeenFile:
        """As FileIO."""
        return self._run("read_seen", path, lambda: conditional_of(self.inner).read_seen(path))

    def open_input(self, path: str) -> pa.NativeFile:
        """As FileIO."""
        return self._run("open_input", path, lambda: self.inner.open_input(path))

    def list(self, path: str) -> Sequence[FileStatus]:
        """As FileIO."""
        return self._run("list", path, lambda: self.inner.list(path))

    def list_hidden(self, path: str) -> Sequence[FileStatus]:
        """As FileIO."""
        return self._run("list_hidden", path, lambda: list_hidden(self.inner, path))

    def exists(self, path: str) -> bool:
        """As FileIO."""
        return self._run("exists", path, lambda: self.inner.exists(path))

    def exists_file(self, path: str) -> bool:
        """As FileIO."""
        return self._run("exists_file", path, lambda: self.inner.exists_file(path))

    def size(self, path: str) -> int:
        """As FileIO."""
        return self._run("size", path, lambda: self.inner.size(path))

    # ---- writing -------------------------------------------------------------------------------------------

    def write(self, path: str, data: bytes) -> None:
        """As FileIO; torn: half of the data stays under the name."""
        self._run(
            "write",
            path,
            lambda: self.inner.write(path, data),
            torn=lambda: self.inner.write(path, data[: len(data) // 2]),
        )

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """As FileIO."""
        return self._output(path)

    @contextmanager
    def _output(self, path: str) -> Iterator[pa.NativeFile]:
        kind = self._next_fault("open_output", path)
        if kind is FaultKind.BEFORE:
            raise self._failure("open_output", path)
        with self.inner.open_output(path) as sink:
            yield sink
            if kind is FaultKind.TORN:
                raise self._failure("open_output", path)
        if kind is FaultKind.AFTER:
            raise self._failure("open_output", path)

    def copy(self, source: str, target: str) -> None:
        """As FileIO."""
        self._run("copy", target, lambda: self.inner.copy(source, target))

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """As FileIO."""
        return self._run(
            "create_exclusive", path, lambda: self.inner.create_exclusive(path, data, check=check)
        )

    def replace_if(self, path: str, data: bytes, seen: SeenFile) -> bool:
        """As FileIO."""
        return self._run("replace_if", path, lambda: conditional_of(self.inner).replace_if(path, data, seen))

    def replace(self, path: str, data: bytes) -> None:
        """As FileIO."""
        self._run("replace", path, lambda: self.inner.replace(path, data))

    def mkdirs(self, path: str) -> None:
        """As FileIO."""
        self._run("mkdirs", path, lambda: self.inner.mkdirs(path))

    def delete(self, path: str) -> None:
        """As FileIO."""
        self._run("delete", path, lambda: self.inner.delete(path))

    def delete_many(self, paths: Sequence[str]) -> None:
        """As FileIO, one after the other."""
        for path in paths:
            self.delete(path)

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """As FileIO, one after the other, so that a test replays."""
        return [call() for call in calls]

    def write_many(self, files: Sequence[NewFile]) -> None:
        """As FolderStore, one after the other: a failure leaves what is written."""
        for one in files:
            self.write(one.path, one.data)
            if one.also is not None:
                self.copy(one.path, one.also)

    def delete_tree(self, path: str) -> None:
        """As FileIO."""
        self._run("delete_tree", path, lambda: self.inner.delete_tree(path))

    def rename(self, source: str, target: str) -> bool:
        """As FileIO."""
        return self._run(
            "rename", source, lambda: folders_of(self.inner, source, "a rename", "-").rename(source, target)
        )

    # --------------------------------------------------------------------------------------------------------

    def _run(
        self, operation: str, path: str, work: Callable[[], T], *, torn: Callable[[], None] | None = None
    ) -> T:
        kind = self._next_fault(operation, path)
        if kind is FaultKind.TORN and torn is not None:
            torn()
        if kind in (FaultKind.BEFORE, FaultKind.TORN):
            raise self._failure(operation, path)
        result = work()
        if kind is FaultKind.AFTER:
            raise self._failure(operation, path)
        return result

    def _next_fault(self, operation: str, path: str) -> FaultKind | None:
        self.calls.append((operation, path))
        for fault in self.faults:
            if fault.operation == operation and fault.part in path:
                self._hits[fault] = self._hits.get(fault, 0) + 1
                if fault.call <= self._hits[fault] < fault.call + fault.times:
                    return fault.kind
        if self.rate and self._random.random() < self.rate:
            return self._random.choice((FaultKind.BEFORE, FaultKind.AFTER))
        return None

    @staticmethod
    def _failure(operation: str, path: str) -> InjectedFaultError:
        return InjectedFaultError(f"injected: {operation} of {path}")


@dataclass
class DyingFileIO(FaultyFileIO):
    """Dies when `changes_left` changes of names are made; `delete_tree` takes the files in an order of the seed."""

    changes_left: int = 1_000_000

    def delete_tree(self, path: str) -> None:
        """As FileIO."""
        files = tree_files(self.inner, path)
        self._random.shuffle(files)
        for file in files:
            self.delete(file)
        super().delete_tree(path)

    def _next_fault(self, operation: str, path: str) -> FaultKind | None:
        if operation in _CHANGES:
            if not self.changes_left:
                raise SimulatedCrash(f"{operation} of {path}")
            self.changes_left -= 1
        return super()._next_fault(operation, path)


def tree_files(fileio: FileIO, path: str) -> list[str]:
    """Every file below a folder."""
    found: list[str] = []
    for status in fileio.list(path):
        found += tree_files(fileio, status.path) if status.is_dir else [status.path]
    return found


def seeded_runtime(seed: int = 0, *, start_ms: int = 1_700_000_000_000) -> Runtime:
    """A clock that moves one millisecond per look, ids and randomness from the seed, sleep that returns at once."""
    chance = random.Random(seed)
    clock = itertools.count(start_ms)
    return Runtime(
        now_ms=lambda: next(clock),
        new_uuid=lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        sleep=lambda _: None,
        random=random.Random(seed + 1),
        on_crash_point=lambda _: None,
    )


def crashing(runtime: Runtime, point: str, nth: int = 1) -> Runtime:
    """The runtime, with a crash at the n-th time it passes the point."""
    passed = itertools.count(1)

    def crash(name: str) -> None:
        if name == point and next(passed) == nth:
            raise SimulatedCrash(name)

    return replace(runtime, on_crash_point=crash)


def counting(runtime: Runtime, passed: Counter[str]) -> Runtime:
    """The runtime; `passed` gets how often it passes each crash point."""
    return replace(runtime, on_crash_point=lambda name: passed.update((name,)))


def without_checksum(data: bytes) -> bytes:
    """The same file as a writer without checksums makes it: damage in it reaches the code behind the check."""
    for key in (CHECKSUM_KEY, HAS_CHECKSUM_KEY):
        data = data.replace(key.encode(), b"x" * len(key), 1)
    return data


def with_new_checksum(data: bytes) -> bytes:
    """A changed JSON file with the checksum that fits it; unchanged when it has none."""
    plain, found = _CHECKSUM_OF_JSON.subn(rb"\g<1>" + CHECKSUM_PLACEHOLDER.encode(), data, count=1)
    return insert_checksum(plain) if found else data
