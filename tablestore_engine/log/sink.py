"""The port of the log: what a warehouse needs of the place where changelogs go. Kafka is one such place.

CHANGE     the port of a log for another system than Kafka
Promises   1 making a sink asks nobody and costs little; two are equal when they reach the same log in the same way
           2 `prepare` repeated changes nothing; whose log it is, is decided once, for all processes
           3 `publish` of a shard sends its rows of each snapshot once and in order, whoever publishes, also after an
             answer was lost: a shard knows by itself how far it is (P4). Readers see what it sent when it returns. A
             log has a snapshot when each of its shards has it
           4 `check` meets everything that `publish` would meet first, and sends nothing
           5 a log that takes rows early takes back, with the next `publish` of anybody, what no snapshot has
INVARIANT  a second system is a class that keeps these promises; nothing above log/ says what a log is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from tablestore_engine.format.schema import TableSchema

if TYPE_CHECKING:
    from tablestore_engine.log.changes import ReadChanges, ReadState
    from tablestore_engine.log.decode import LogMessage
    from tablestore_engine.log.followed_log import FollowedLog

FindCommit = Callable[[int], str | None]  # snapshot id → "user:identifier", None when there is none any more


@dataclass(frozen=True)
class LoggedTable:
    """`name` for messages, `place` its folder; the options of `schema` say which log it has."""

    name: str
    place: str
    schema: TableSchema


@dataclass(frozen=True)
class LogPosition:
    """`name` of a log of `system`; `ranges` maps a part of it to [first, next) of the messages of one call."""

    system: str
    name: str
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def as_lists(self) -> dict[str, list[int]]:
        """`ranges` as JSON has them."""
        return {str(part): list(ends) for part, ends in sorted(self.ranges.items())}

    def summary(self) -> str:
        """`kafka orders[0] 4100..4253`."""
        parts = " ".join(f"[{part}] {first}..{after}" for part, (first, after) in sorted(self.ranges.items()))
        return f"{self.system} {self.name}{parts}"


@dataclass(frozen=True)
class SentChanges:
    """`reached`: the newest snapshot that the log, or a shard of it, has now, whoever sent it; `position`: the rows of
    this call.
    """

    reached: int
    position: LogPosition


def merge_sent(sent: Sequence[SentChanges]) -> SentChanges:
    """Of the shards of one log, which have no part of it in common: it is where the last of them is."""
    first = sent[0].position
    ranges = {part: ends for one in sent for part, ends in one.position.ranges.items()}
    return SentChanges(
        min(one.reached for one in sent), LogPosition(first.system, first.name, dict(sorted(ranges.items())))
    )


@dataclass(frozen=True)
class LogWriter:
    """`name`: by which writers of one log fence each other; the rest is None where it cannot be found out.

    `epoch` grows with each writer that took over; `state` of its newest transaction, in the system's own word.
    """

    name: str
    number: int | None = None
    epoch: int | None = None
    state: str | None = None
    is_open: bool | None = None
    changed_ms: int | None = None


@dataclass(frozen=True)
class EarlyState:
    """Of a log whose rows go out before their snapshot: {part: (first, end)} that readers see already.

    `ahead`: behind the newest marker; rows of snapshots to come, of writes that failed, a transaction's own records.
    `unchecked`: before it, and not answered for by it: whoever publishes next looks at them.
    """

    ahead: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    unchecked: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardState:
    """One of those that share a log: as in LogState, of its own part."""

    reached: int | None
    part_of_next: int
    writer: LogWriter


@dataclass(frozen=True)
class LogState:
    """Seen from outside. `reached`: the newest snapshot that it has as a whole, None when that cannot be told.

    `part_of_next`: messages of the next snapshot that readers see already. `ends`: {part: end as readers see it}.
    `unseen`: {part: (first, end)} of what was written and readers do not see yet: a transaction is open there.
    `settings`: of each thing that the log is made of. `shards`: those that share it, () for one that is not shared;
    `reached` is the smallest of theirs, `writer` one with an open transaction, or the first. `early`: None for a log
    that waits for snapshots. `trouble`: what publishing would meet.
    """

    system: str
    name: str
    reached: int | None
    commit: str | None
    part_of_next: int
    ends: Mapping[int, int]
    unseen: Mapping[str, tuple[int, int]]
    writer: LogWriter
    settings: Mapping[str, Mapping[str, str]]
    early: EarlyState | None = None
    shards: tuple[ShardState, ...] = ()
    trouble: str | None = None


@dataclass(frozen=True)
class LogRemains:
    """Of a table that is gone. `names`: parts of its log that are provably still its own; `kept`: why others stay."""

    names: tuple[str, ...]
    kept: str = ""


class RowLimit(Protocol):
    def check(self, rows: pa.Table, schema: TableSchema) -> None:
        """Raises FixData for a row of the table's columns that publishing would refuse."""


class ReceiveEarly(Protocol):
    """Trouble is no failure of the write: the answer is None then, and the rows go behind the commit."""

    def __call__(
        self, commit: str, bucket: int, schema: TableSchema, batches: Iterable[pa.Table]
    ) -> object | None:
        """`commit`: "user:identifier"; `batches`: the columns of `schema` and `_ROW_KIND`, in changelog order."""


@dataclass(frozen=True)
class PrepublishedCommit:
    """A commit of this process whose rows were all taken: `answers` in no order, for the sink that gave them."""

    commit: str
    answers: tuple[object, ...]


class ChangelogShard(Protocol):
    """Publishes one share of a table's log. Used by one thread at a time; may raise what its system raises (TS17xx)."""

    def takes(self, bucket: int) -> bool:
        """Whether rows of the bucket are its own to send; of a table without buckets (-1) it picks them itself."""

    def publish(
        self,
        latest_id: int,
        read_changes: ReadChanges,
        find_commit: FindCommit,
        read_state: ReadState,
        early: Mapping[int, PrepublishedCommit],
    ) -> SentChanges:
        """Send of every snapshot up to this one what the log lacks; `early`: what it got before, by snapshot.

        Changes may hold rows of other shards' buckets, which are passed over.
        """

    def close(self) -> None:
        """Give connections up; the next call opens them again."""


class ChangelogSink(Protocol):
    """One table's log. Used by one thread at a time; every method may raise what its system raises (TS17xx)."""

    def prepare(self, after_snapshot: int) -> Mapping[str, str]:
        """Make and claim the log; snapshots up to this one count as published. Options for the table to keep."""

    def check_schema(self) -> None:
        """Raises when rows of the schema that the sink was made with could not be published; changes nothing."""

    def check(self, latest_id: int, find_commit: FindCommit) -> int:
        """The newest snapshot that the log has, when the next ones could be published now."""

    def shards(self) -> Sequence[ChangelogShard]:
        """Those that publish it, in an order that never varies; at least one."""

    def receive_early(self) -> ReceiveEarly | None:
        """For one write; None when the log waits for snapshots."""

    def reset(self, after_snapshot: int) -> int:
        """Begin anew behind a snapshot; how many rows that no reader had seen were dropped."""

    def drop(self) -> None:
        """Take the log away; a missing one is fine."""

    def find_remains(self) -> LogRemains:
        """Of a table that is gone; changes nothing."""

    def delete_remains(self) -> LogRemains:
        """The same; its `names` are deleted."""

    def read(self) -> list[LogMessage]:
        """Every message that readers see."""

    def decode(self, messages: Sequence[LogMessage], schema: TableSchema) -> pa.Table:
        """Messages as rows of the table's columns and `_ROW_KIND`, in order."""

    def look(self) -> LogState:
        """Where it stands, without disturbing whoever writes it."""

    def follow(self) -> FollowedLog:
        """For one reader, which closes it. Raises what the system raises when the log cannot be read."""

    def row_limit(self) -> RowLimit | None:
        """What the log refuses by size; None when it takes everything."""

    def close(self) -> None:
        """Give connections up; the next call opens them again."""


class ChangelogSystem(Protocol):
    """`needs`: options that give a table a log; `flags`: what `tablestore publish` may have to be told, in words."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of options."""

    @property
    def flags(self) -> str:
        """Such as `--bootstrap`."""

    def find_name(self, schema: TableSchema) -> str | None:
        """The log's name from options alone; None for a table without one."""

    def find_sink(self, table: LoggedTable) -> ChangelogSink | None:
        """None for a table without a log. Raises FixRequest, Unsupported for options that cannot be served."""

    def find_owned(self, table: LoggedTable) -> ChangelogSink | None:
        """The sink of a log that was made for this table and goes with it; None when there is none."""

    def find_former(self, table: LoggedTable) -> ChangelogSink | None:
        """The sink of a log that a dropped table had: finds what is left of the log, and deletes it."""

    def check_reachable(self) -> str | None:
        """A line for people when what all logs need answers; None when nothing is configured."""
