"""What travels between the table's store and the log, as plain data: the log never reads files itself.

INVARIANT  reading the changes of a snapshot twice gives the same rows in the same order: a publisher that
           died inside a big snapshot goes on behind the rows that are already visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from tablestore_engine.format.schema import TableSchema


class ChangelogRows(Protocol):
    """Rows of one bucket: all table columns and `_ROW_KIND` (int8); bucket -1 is a table without buckets."""

    @property
    def bucket(self) -> int:
        """The bucket, which is also the topic partition."""

    @property
    def rows(self) -> pa.Table:
        """Table columns and `_ROW_KIND`."""


@dataclass(frozen=True)
class SnapshotChanges:
    """One snapshot's changelog; `batches` is iterated once, so that it may read files as it goes.

    `count_rows` for people, from metadata, when asked; None where that cannot be told without reading.
    """

    snapshot_id: int
    commit_user: str
    commit_identifier: int
    schema: TableSchema
    batches: Iterable[ChangelogRows]
    count_rows: Callable[[], int | None] = lambda: None

    @property
    def commit(self) -> str:
        """Who committed and which attempt, as in header `c`."""
        return f"{self.commit_user}:{self.commit_identifier}"


ReadChanges = Callable[[int], "SnapshotChanges | None"]


@dataclass(frozen=True)
class TableState:
    """`find_rows`: columns of the primary key → the rows that have these keys, in any order."""

    schema: TableSchema
    find_rows: Callable[[pa.Table], pa.Table]


ReadState = Callable[[int], TableState]


@dataclass(frozen=True)
class PublishReport:
    """`snapshots` and `rows` sent by this call; `offsets` {partition: (first, next)} of those rows.

    `published` is the last snapshot that is in the log now, whoever published it.
    """

    published: int
    snapshots: tuple[int, ...] = ()
    rows: int = 0
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)
