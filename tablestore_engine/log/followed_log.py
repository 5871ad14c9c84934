"""What a reader that follows a table needs of its log: the port, beside that of writers (log/sink.py).

Place      {partition: offset of the next message}; a partition that is not named is at its beginning
INVARIANT  only what is decided is seen: no message of a transaction that is open or was given up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.schema import TableSchema

Place = Mapping[int, int]
NO_SNAPSHOT, UNSAID = 0, -1


@dataclass(frozen=True)
class LogBoundary:
    """`is_exact`: the latest message per key up to `place` is the table at the snapshot, and rows of later ones follow.
    `begins`: the log was (re)started here; what came before is unknown: `beginning` names it.
    `schema_id`: of the snapshot, None where nobody says.
    """

    snapshot_id: int
    place: Place
    is_exact: bool = True
    begins: bool = False
    schema_id: int | None = None

    @property
    def beginning(self) -> str:
        """What tells this beginning from any other of the same log."""
        ends = ",".join(f"{partition}:{offset}" for partition, offset in sorted(self.place.items()))
        return f"{self.snapshot_id}@{ends}"


@dataclass(frozen=True)
class Messages:
    """`keys`, `values`: None where there is none; `kinds`: numbers of RowKind, UNSAID where the message does not say;
    `snapshots`: NO_SNAPSHOT for a row that was sent before its snapshot. `reached`: the place behind all that was read,
    messages or not.
    """

    partitions: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    kinds: npt.NDArray[np.int8]
    snapshots: npt.NDArray[np.int64]
    reached: Place

    def __len__(self) -> int:
        return len(self.offsets)

    def with_snapshots(self, snapshots: npt.NDArray[np.int64]) -> Messages:
        return replace(self, snapshots=snapshots)

    def take(self, order: npt.NDArray[np.int64]) -> Messages:
        """These, in this order."""
        places = order.tolist()
        return Messages(
            self.partitions[order],
            self.offsets[order],
            [self.keys[one] for one in places],
            [self.values[one] for one in places],
            self.kinds[order],
            self.snapshots[order],
            self.reached,
        )


class FollowedLog(Protocol):
    """One table's log; used by one thread at a time. Methods raise what the system raises (TS17xx)."""

    @property
    def log_id(self) -> str:
        """What tells it from another log of the same name."""

    @property
    def is_eventual(self) -> bool:
        """Rows lie there before their snapshot; else whole snapshots follow each other."""

    @property
    def is_upsert(self) -> bool:
        """The row before a change is not sent."""

    def boundaries(self) -> Sequence[LogBoundary]:
        """All that are known now, in the order in which they were set."""

    def ends(self) -> Place:
        """Behind the last decided message of each partition."""

    def beginnings(self) -> Place:
        """The first message of each partition that is not deleted."""

    def check_there(self, place: Place) -> None:
        """Raises NotFound TS1358 when messages behind it were deleted."""

    def read(self, start: Place, until: Place, rows_max: int, *, with_headers: bool = True) -> Messages:
        """Messages from `start` up to `until`, about `rows_max` at most. Raises NotFound TS1358.

        Without headers, which cost as much as all else, nothing says `kinds` and `snapshots`.
        """

    def decode(self, messages: Messages, schemas: Sequence[TableSchema]) -> pa.Table:
        """The row that each message is of, of a tombstone its key alone, in the columns of schemas[0], and `_ROW_KIND`;
        `schemas`: all that the table has had, newest first. Raises FixData TS1718.
        """

    def close(self) -> None:
        """Give connections up."""
