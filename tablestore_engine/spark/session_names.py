"""What a session's catalog holds for us: names, the states that they stand for, and when these may go.

Steps      a name gets another state → the one before is retired → it may go once all work has ended that was going on
           then · of names of states (`demo__s7.orders`) the newest MOST_FIXED stay
INVARIANT  a state that work may still read stays: work that has begun before it was retired for the last time, and for
           ever where a frame of it was handed to somebody, since nobody can tell when that is used.
INVARIANT  everything here is asked and changed under `lock`.
WHY        a process that goes on for weeks reads a state of each table after every commit.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.spark.remote_files import RemoteFiles

MOST_FIXED = 32
_WORTH = 8  # to drop one costs some calls to the JVM: not one by one
Name = tuple[str, str]


@dataclass(frozen=True)
class MadeState:
    """`tables`: as `database.name`; `folders`: patterns of paths."""

    tables: frozenset[str]
    folders: frozenset[Path]


@dataclass(frozen=True)
class Idle:
    """What may be dropped now."""

    views: tuple[Name, ...]
    states: tuple[MadeState, ...]


@dataclass
class SessionNames:
    """`versions`: name in lower case → key of its state, or version of a view."""

    lock: OrderedLock = field(default_factory=lambda: OrderedLock("names of a session", Rank.SESSION_NAMES))
    versions: dict[Name, str] = field(default_factory=dict)
    functions: dict[Name, tuple[str, str]] = field(default_factory=dict)  # → session that has it, version
    made: dict[str, MadeState] = field(default_factory=dict)
    stand_ins: dict[str, RemoteFiles] = field(
        default_factory=dict
    )  # hidden table → the files that it stands for
    _fixed: set[Name] = field(default_factory=set)
    _handed_out: set[str] = field(default_factory=set)
    _retired: dict[str, int] = field(default_factory=dict)  # key → when it was retired last
    _working: set[int] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def put(self, name: Name, version: str, *, is_fixed: bool = False) -> None:
        """What a name stands for now; also says that it is used. `is_fixed`: the name of a state; there is no end of
        these.
        """
        before = self.versions.pop(name, None)
        self.versions[name] = version
        if is_fixed:
            self._fixed.add(name)
        if before is not None and before != version:
            self._retire(before)

    def remove(self, name: Name) -> bool:
        """Whether it was there."""
        before = self.versions.pop(name, None)
        self._fixed.discard(name)
        if before is not None:
            self._retire(before)
        return before is not None

    def hand_out(self, keys: Iterable[str]) -> None:
        """Frames over these states are somebody's from here on."""
        self._handed_out.update(keys)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Work that uses frames, which end with it."""
        with self.lock:
            number = next(self._numbers)
            self._working.add(number)
        try:
            yield
        finally:
            with self.lock:
                self._working.discard(number)

    def take_idle(self) -> Idle:
        """What may go; it is ours no more. Nothing, while that would not be worth it."""
        views: tuple[Name, ...] = ()
        if len(self._fixed) >= MOST_FIXED + _WORTH:
            views = tuple(name for name in self.versions if name in self._fixed)[:-MOST_FIXED]
        for name in views:
            self.remove(name)
        if len(self._retired) < _WORTH:
            return Idle(views, ())
        oldest = min(self._working, default=None)
        kept: dict[str, int] = {}
        gone = []
        living = set(self.versions.values()) | self._handed_out
        for key, mark in self._retired.items():
            if key in living or key not in self.made:
                continue
            if oldest is not None and oldest < mark:
                kept[key] = mark
            else:
                gone.append(self.made.pop(key))
        self._retired = kept
        return Idle(views, tuple(gone))

    def _retire(self, key: str) -> None:
        if key not in self.versions.values():
            self._retired[key] = next(
                self._numbers
            )  # an older mark would drop it under work that began since


_APPLICATIONS: dict[str, SessionNames] = {}
_APPLICATIONS_LOCK = OrderedLock("sessions of the process", Rank.PROCESS)


def names_of_application(identifier: str) -> SessionNames:
    """Those of a Spark application, whose sessions share one catalog."""
    with _APPLICATIONS_LOCK:
        return _APPLICATIONS.setdefault(identifier, SessionNames())


def digest(parts: Sequence[str]) -> str:
    """Of texts, in their order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
