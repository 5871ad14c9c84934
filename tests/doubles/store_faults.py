"""What goes wrong with requests to an object store, decided by a seed and the request alone.

INVARIANT  the fault of the n-th request of a method on a name depends on seed, method, name and n: the order of other
           requests changes nothing. A checksum in a name is left out: Avro files have a random marker, so the bytes
           of two equal runs differ.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum


class StoreFault(Enum):
    """What happens to a request."""

    SLOW_DOWN = "503 SlowDown; nothing is done"
    LOST_BEFORE = "the connection is lost; nothing is done"
    LOST_AFTER = "it is done; the connection is lost before the answer"
    ERROR_AFTER = "it is done; the answer is 500 InternalError"
    CONFLICT = "409 ConditionalRequestConflict to a put with a condition; nothing is done"
    LATE = "a put has no answer until the time-out; it is done some requests later"


_CHECKSUM = re.compile(r"-crc32-[0-9a-f]{8}")
BEFORE = frozenset({StoreFault.SLOW_DOWN, StoreFault.LOST_BEFORE, StoreFault.CONFLICT})


@dataclass(frozen=True)
class AskedRequest:
    """`key`: a stable name; `count`: 1 for the first of this method and name; `is_conditional`: of a put."""

    method: str
    key: str
    count: int
    is_conditional: bool = False


FaultPlan = Callable[[AskedRequest], StoreFault | None]


def stable_name(key: str) -> str:
    """The same in each run of a seed."""
    return _CHECKSUM.sub("", key)


def no_faults(_: AskedRequest) -> StoreFault | None:
    """All is well."""
    return None


def seeded_faults(
    seed: int, rate: float, kinds: Sequence[StoreFault] = tuple(StoreFault), part: str = ""
) -> FaultPlan:
    """A share `rate` of the requests on names that contain `part` meet one of `kinds`."""

    def plan(asked: AskedRequest) -> StoreFault | None:
        chance = random.Random(f"{seed} {asked.method} {asked.key} {asked.count}")
        if part not in asked.key or chance.random() >= rate:
            return None
        kind = chance.choice(kinds)
        if kind is StoreFault.CONFLICT and not asked.is_conditional:
            return StoreFault.SLOW_DOWN
        if kind is StoreFault.LATE and asked.method != "PUT":
            return StoreFault.LOST_AFTER
        return kind

    return plan
