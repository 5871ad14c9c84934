"""The problems that verify finds, and where in its report each of them stands.

INVARIANT  a report is ordered by snapshot, then by the kind of problem, then by place: two runs report the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from tablestore_engine.errors import StoreAnswerUnknown, TablestoreError


class ReportPart(IntEnum):
    """The parts of a snapshot's report, in their order."""

    METADATA = 0
    FILES = 1
    ENTRIES = 2
    BUCKETS = 3


@dataclass(order=True)
class Problem:
    """`at`: number of the snapshot in the run; `place` orders the problems of one part."""

    at: int
    part: ReportPart
    place: tuple[Any, ...]
    text: str = field(compare=False)


def describe_error(broken: TablestoreError) -> str:
    """A problem of the table. Raises StoreAnswerUnknown: a store that does not answer says nothing about the table."""
    if isinstance(broken, StoreAnswerUnknown):
        raise broken
    return f"{broken.code} {broken.what}: {broken.why}"
