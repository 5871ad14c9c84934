"""Objects that several writers may make at once: exactly one of them does, and each learns whether it was the one.

CHANGE     the conditional put of a claim on an object store, and what becomes of a lost answer
Steps      check -> one conditional put without retries below us -> no clear answer: read back, and try the same put
           again while nothing is there
INVARIANT  every object carries the token of the call that made it (metadata `claim`), so that a put whose answer was
           lost is recognised, as a hard link is by its inode; «exists» means another token.
INVARIANT  a 409 means «try again», not «taken».
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from obstore.exceptions import AlreadyExistsError, PreconditionError

from tablestore_engine.errors import NotFound, StoreAnswerUnknown
from tablestore_engine.fileio.base import SeenFile
from tablestore_engine.fileio.object_clients import StoreClient
from tablestore_engine.fileio.object_errors import (
    TAKEN_BY_NOTHING,
    answer_unknown,
    explained_store,
    head_or_reason,
    while_open,
)
from tablestore_engine.fileio.store_retries import ATTEMPTS, Retries
from tablestore_engine.runtime.outside_world import Runtime

if TYPE_CHECKING:
    from obstore import PutMode, UpdateVersion  # exist for type checkers alone

_CLAIM_KEY = "claim"


@dataclass(frozen=True)
class ConditionalPuts:
    """Puts into one store. `path` is for messages, `key` the object's name in the bucket."""

    store: Callable[[], StoreClient]
    retries: Retries
    runtime: Runtime

    def create(self, path: str, key: str, data: bytes, check: Callable[[], None] | None) -> bool:
        """Whether this call made the object; `check` is called before each put.

        Raises StoreAnswerUnknown when the outcome stays open, Unsupported TS1203.
        """
        token = self.runtime.new_uuid()
        problem: StoreAnswerUnknown | None = None
        for turn in range(1, ATTEMPTS + 1):
            if check is not None:
                with while_open(problem):
                    check()
            try:
                with while_open(problem), explained_store(path):
                    self._put(key, data, token, "create")
            except StoreAnswerUnknown as failure:
                problem = failure
            except (AlreadyExistsError, PreconditionError):
                pass
            else:
                return True
            with while_open(problem):
                found = self.find_token(path, key)
            if found is not None:
                return found == token
            # a conflict of two puts, or a lost request: the same claim again
            self.retries.pause(turn, problem)
        raise problem or answer_unknown(path, TAKEN_BY_NOTHING)

    def replace(
        self, path: str, key: str, data: bytes, seen: SeenFile, has_changed: Callable[[], bool]
    ) -> bool:
        """Whether this call replaced what has the marks of `seen`; `has_changed` asks whether it has others now.

        Raises StoreAnswerUnknown when the outcome stays open, Unsupported TS1203.
        """
        token = self.runtime.new_uuid()
        problem: StoreAnswerUnknown | None = None
        for turn in range(1, ATTEMPTS + 1):
            try:
                with while_open(problem), explained_store(path):
                    self._put(key, data, token, _while_seen(seen))
            except StoreAnswerUnknown as failure:
                problem = failure
            except NotFound:
                return False
            except (AlreadyExistsError, PreconditionError):
                pass
            else:
                return True
            with while_open(problem):
                if self.find_token(path, key) == token:
                    return True
                is_another = has_changed()
            if is_another:
                if problem is not None:
                    raise problem  # a put without an answer may have landed, and been replaced since
                return False
            # a conflict of two puts, or a lost request: the same put again
            self.retries.pause(turn, problem)
        raise problem or answer_unknown(path, "the store reports a conflict, and no change")

    def once(self, path: str, key: str, data: bytes) -> bool:
        """One put, not repeated and not read back; False when it is refused."""
        try:
            with explained_store(path):
                self._put(key, data, self.runtime.new_uuid(), "create")
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def overwrite(self, path: str, key: str, data: bytes) -> None:
        """Without a condition, repeated."""
        token = self.runtime.new_uuid()
        self.retries.repeat(path, lambda: self._put(key, data, token, "overwrite"))

    def find_token(self, path: str, key: str) -> str | None:
        """Who made the object: the token of the call, empty for another program's; None when there is no object."""

        def look() -> str:
            store = self.store()
            head = partial(store.get, key, options={"head": True})
            kept = head_or_reason(head, partial(first_byte, store, key)).attributes
            return next(
                (str(value) for name, value in kept.items() if str(name).casefold() == _CLAIM_KEY), ""
            )

        try:
            return self.retries.repeat(path, look)
        except NotFound:
            return None

    def _put(self, key: str, data: bytes, token: str, mode: PutMode) -> None:
        self.store().put(key, data, attributes={_CLAIM_KEY: token}, use_multipart=False, mode=mode)


def first_byte(store: StoreClient, key: str) -> object:
    """A request whose refusal has a reason."""
    return store.get_range(key, start=0, end=1)


def _while_seen(seen: SeenFile) -> UpdateVersion:
    """Stores know a content by entity tag, generation, or both."""
    found: UpdateVersion = {}
    if seen.marks[0] is not None:
        found["e_tag"] = seen.marks[0]
    if seen.marks[1] is not None:
        found["version"] = seen.marks[1]
    return found
