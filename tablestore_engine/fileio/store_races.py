"""Whether of many writers that create one object at once exactly one succeeds, asked before the first claim.

CHANGE     the check of conditional puts before the first claim of a process
WHY        some stores ignore the condition of a put, others check it only against puts that have ended: two puts in
           sequence look right, and of writers at once several win. Acknowledged commits would be lost.
INVARIANT  nothing is claimed or replaced by condition in a store that has not passed in this process, or, as an object
           of the warehouse says, in another one during the last `MAX_AGE_MS`.
INVARIANT  only a pass is remembered. It names the store, so that a copied warehouse is checked again.
CRASH      objects `race-…` of a few bytes stay in the warehouse's hidden folder.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from tablestore_engine.errors import NotFound, StorageError, StoreAnswerUnknown
from tablestore_engine.fileio.storage_errors import no_exclusive_create
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

MAX_AGE_MS = 7 * 86_400_000
WRITERS, ROUNDS = 32, 6  # a store with several winners in half of its races passes one check of 64
_FOLDER, _RESULT = ".tablestore", "races-passed.json"
_LOCK = OrderedLock("stores that passed", Rank.PROCESS)
_PASSED: set[str] = set()


class RacedStore(Protocol):
    """What the check uses of an object store."""

    root: str

    def read(self, path: str) -> bytes:
        """All bytes. Raises NotFound."""

    def replace(self, path: str, data: bytes) -> None:
        """Old or new content."""

    def put_once(self, path: str, data: bytes) -> bool:
        """One conditional put; False when it is refused. Raises StorageError, StoreAnswerUnknown."""

    def delete_many(self, paths: Sequence[str]) -> None:
        """A missing one is fine."""


@dataclass(frozen=True)
class RaceCheck:
    """The check of one store, `store` by its endpoint and bucket. `passed`: the stores that this process knows."""

    store: str
    runtime: Runtime = SYSTEM
    passed: set[str] = field(default_factory=lambda: _PASSED)

    def ensure(self, fileio: RacedStore) -> None:
        """Once in a process. Raises Unsupported TS1203, StorageError, StoreAnswerUnknown when no put was answered."""
        with _LOCK:
            if self.store in self.passed:
                return
        place = f"{fileio.root}/{_FOLDER}/{_RESULT}"
        if not self._has_passed(fileio, place):
            self._race(fileio)
            record = {"store": self.store, "checked_ms": self.runtime.now_ms(), "writers": WRITERS}
            with suppress(OSError):  # the next process checks again
                fileio.replace(place, json.dumps(record).encode())
        with _LOCK:
            self.passed.add(self.store)

    def _has_passed(self, fileio: RacedStore, place: str) -> bool:
        """Whether a process has checked this store not long ago; a date in the future counts as long ago."""
        try:
            record = json.loads(fileio.read(place))
            age = self.runtime.now_ms() - int(record["checked_ms"])
            return record["store"] == self.store and 0 <= age <= MAX_AGE_MS
        except NotFound:
            return False
        except (ValueError, KeyError, TypeError):
            return False  # not what this file writes

    def _race(self, fileio: RacedStore) -> None:
        problem: OSError | None = None
        is_decided = False
        paths = [f"{fileio.root}/{_FOLDER}/race-{self.runtime.new_uuid()}" for _ in range(ROUNDS)]
        try:
            with ThreadPoolExecutor(WRITERS) as pool:
                for path in paths:
                    start = threading.Barrier(WRITERS)
                    running = [pool.submit(_put_at, fileio, path, start) for _ in range(WRITERS)]
                    answers = [one.result() for one in running]
                    winners = sum(one is True for one in answers)
                    if winners > 1:
                        why = f"its store accepted {winners} of {WRITERS} conditional puts of one name"
                        raise no_exclusive_create(fileio.root, why)
                    is_decided = is_decided or winners == 1
                    problem = next((one for one in answers if isinstance(one, OSError)), problem)
        finally:
            with suppress(OSError):  # an identity that may not delete can commit
                fileio.delete_many(paths)
        if not is_decided and problem is not None:
            raise problem


def _put_at(fileio: RacedStore, path: str, start: threading.Barrier) -> bool | OSError:
    start.wait()
    try:
        return fileio.put_once(path, b"race")
    except (StorageError, StoreAnswerUnknown) as error:
        return error
