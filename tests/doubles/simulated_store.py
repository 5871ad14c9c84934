"""A simulated object store below ObjectFileIO: objects in memory, time as a number, faults by a plan.

Time       a request takes a latency, and its bytes a time by the bandwidth of one connection. A slow list takes longer.
Limits     more requests in a second than `reads_per_s` or `writes_per_s` get 503 SlowDown, as on S3.
INVARIANT  answers and errors are those that obstore gives for S3: an entity tag is the MD5 of the content, a listing
           has pages of 1,000 names, and each page is a request that can fail.
INVARIANT  the same seed and the same requests give the same answers, times and log.
"""

from __future__ import annotations

import bisect
import hashlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, GenericError

from tests.doubles.simulated_time import SimulatedTime
from tests.doubles.store_faults import (
    BEFORE,
    AskedRequest,
    FaultPlan,
    StoreFault,
    no_faults,
    stable_name,
)

T = TypeVar("T")
_READS = frozenset({"GET", "HEAD", "LIST"})
_LATE_REQUESTS = 20  # the most that others do before a late put is done
_TEXTS = {
    StoreFault.SLOW_DOWN: "Server returned non-2xx status code: 503 Service Unavailable: "
    "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
    StoreFault.ERROR_AFTER: "Server returned error response: status 500: "
    "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>",
    StoreFault.LOST_BEFORE: "HTTP error: error sending request",
    StoreFault.LOST_AFTER: "HTTP error: connection closed before message completed",
    StoreFault.LATE: "HTTP error: request or response body error: operation timed out",
}


@dataclass(frozen=True)
class StoreTraits:
    """Seconds of a request of any method, bytes per second of one connection, limits of requests in a second."""

    latency_s: float = 0.03
    bytes_per_s: float = 85e6
    slow_list_rate: float = 0.0
    slow_list_factor: float = 10.0
    timeout_s: float = 30.0
    reads_per_s: int | None = None
    writes_per_s: int | None = None


@dataclass(frozen=True)
class StoredObject:
    """`attributes`: its metadata."""

    data: bytes
    attributes: dict[str, str]
    modified_s: float

    @property
    def e_tag(self) -> str:
        """As S3 gives it to an object of one put."""
        return f'"{hashlib.md5(self.data, usedforsecurity=False).hexdigest()}"'


@dataclass(frozen=True)
class SimulatedRequest:
    """`outcome`: done, the name of a fault, or what the store refused."""

    method: str
    key: str
    sent: int
    received: int
    outcome: str
    begin_s: float
    end_s: float


@dataclass
class SimulatedStore:
    """One bucket, shared by its clients. `requests` in the order in which they were made."""

    traits: StoreTraits = field(default_factory=StoreTraits)
    plan: FaultPlan = no_faults
    seed: int = 0
    time: SimulatedTime = field(default_factory=SimulatedTime)
    objects: dict[str, StoredObject] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    requests: list[SimulatedRequest] = field(default_factory=list)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _in_second: Counter[tuple[bool, int]] = field(default_factory=Counter)
    _late: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock, repr=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    # what a client asks -------------------------------------------------------------------------------------

    def ask(
        self,
        method: str,
        key: str,
        work: Callable[[], T],
        *,
        sent: int = 0,
        received: Callable[[T], int] = lambda _: 0,
        is_conditional: bool = False,
    ) -> T:
        """The answer of `work`, which looks at `objects`. Raises what obstore raises."""
        with self._lock:
            name = stable_name(key)
            self._counts[method, name] += 1
            asked = AskedRequest(method, name, self._counts[method, name], is_conditional)
            self._do_late()
            fault = StoreFault.SLOW_DOWN if self._is_throttled(method) else self.plan(asked)
            begin_s = self.time.now_s
            outcome, got = "done" if fault is None else fault.name, 0
            try:
                if fault in BEFORE:
                    raise _failure(fault)
                if fault is StoreFault.LATE:
                    due = len(self.requests) + self._chance.randint(1, _LATE_REQUESTS)
                    self._late.append((due, work))
                    raise _failure(fault)
                result = _answered(work, fault)
                got = received(result)
            except (BaseError, FileNotFoundError) as refused:
                outcome = type(refused).__name__ if fault is None else outcome
                raise
            else:
                return result
            finally:
                self.time.sleep(self._seconds(method, fault, sent + got))
                self.requests.append(
                    SimulatedRequest(method, key, sent, got, outcome, begin_s, self.time.now_s)
                )

    def _seconds(self, method: str, fault: StoreFault | None, count: int) -> float:
        if fault is StoreFault.LATE:
            return self.traits.timeout_s
        is_slow = method == "LIST" and self._chance.random() < self.traits.slow_list_rate
        latency_s = self.traits.latency_s * (self.traits.slow_list_factor if is_slow else 1)
        return latency_s + count / self.traits.bytes_per_s

    def _is_throttled(self, method: str) -> bool:
        is_read = method in _READS
        limit = self.traits.reads_per_s if is_read else self.traits.writes_per_s
        second = (is_read, int(self.time.now_s))
        self._in_second[second] += 1
        return limit is not None and self._in_second[second] > limit

    def _do_late(self) -> None:
        due = [work for at, work in self._late if at <= len(self.requests)]
        self._late = [(at, work) for at, work in self._late if at > len(self.requests)]
        for work in due:
            try:
                work()
            except (BaseError, FileNotFoundError):
                continue  # nobody waits for the answer of a condition that failed

    # objects; callers hold the answer of `ask` -----------------------------------------------------------------

    def get(self, key: str) -> StoredObject:
        """Raises FileNotFoundError, as obstore does."""
        if key not in self.objects:
            raise FileNotFoundError(f"Object at location {key} not found: <Code>NoSuchKey</Code>")
        return self.objects[key]

    def put(self, key: str, data: bytes, attributes: dict[str, str]) -> StoredObject:
        """Make or replace."""
        if key not in self.objects:
            bisect.insort(self.names, key)
        self.objects[key] = StoredObject(bytes(data), dict(attributes), self.time.now_s)
        return self.objects[key]

    def remove(self, key: str) -> None:
        """A missing one is fine."""
        if self.objects.pop(key, None) is not None:
            del self.names[bisect.bisect_left(self.names, key)]

    def names_after(self, last: str, prefix: str, count: int) -> list[str]:
        """At most `count` names that begin with `prefix` and come after `last`."""
        at = max(bisect.bisect_right(self.names, last), bisect.bisect_left(self.names, prefix))
        return [one for one in self.names[at : at + count] if one.startswith(prefix)]

    def entries_after(self, last: str, prefix: str, count: int) -> list[str]:
        """The same, with those of a common prefix as one name that ends with a slash."""
        found: list[str] = []
        while len(found) < count:
            is_folder = last.endswith("/") and last != prefix
            names = self.names_after(f"{last}\U0010ffff" if is_folder else last, prefix, 1)
            if not names:
                break
            inside, slash, _ = names[0][len(prefix) :].partition("/")
            last = f"{prefix}{inside}{slash}"
            found.append(last)
        return found


def _answered(work: Callable[[], T], fault: StoreFault | None) -> T:
    """The answer, unless it is lost: then also that of a refusal."""
    try:
        result = work()
    except (BaseError, FileNotFoundError):
        if fault is None:
            raise
        raise _failure(fault) from None
    if fault is not None:
        raise _failure(fault)
    return result


def _failure(fault: StoreFault | None) -> BaseError:
    if fault is StoreFault.CONFLICT:  # object_store takes a 409 for a name that is taken
        return AlreadyExistsError("status 409: <Error><Code>ConditionalRequestConflict</Code></Error>")
    return GenericError("" if fault is None else f"Generic S3 error: {_TEXTS[fault]}")
