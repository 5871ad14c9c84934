"""What a table wants to keep, of its snapshots, partitions and records: values that its options give (table_traits)."""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.options import DEFAULT_FORMAT, TimeFormat

# options of tables whose commits mark partitions as done (expiry.done_rule)
DONE_BY_COMMITS = frozenset(
    {"partition.end-input-to-done", "partition.idle-time-to-done", "partition.time-interval"}
)


@dataclass(frozen=True)
class Retention:
    """`keep_min` at least 1: the newest stays. `keep_max`, `limit`: None for any number; the others in ms.

    `consumer_idle_ms`: a consumer that did not move for so long keeps nothing; None: each keeps what it needs.
    """

    keep_min: int
    keep_max: int | None
    retained_ms: int
    grace_ms: int
    limit: int | None
    consumer_idle_ms: int | None = None


@dataclass(frozen=True)
class PartitionRule:
    """`pattern` None: the first partition column; `most` partitions go at once."""

    retained_ms: int
    pattern: str | None = None
    time_format: TimeFormat = DEFAULT_FORMAT
    most: int = 100


@dataclass(frozen=True)
class RecordRule:
    """A record whose time, in column `field`, is more than `age_s` seconds ago expires."""

    age_s: int
    field: str | None


@dataclass(frozen=True)
class DoneRule:
    """How partitions are marked as done. `idle_ms`, `interval_ms`: one is done when nothing came for the first, after
    the second has passed since its time; None: never by itself. `on_commit`: each commit marks its own partitions.
    """

    actions: tuple[str, ...]
    url: str | None = None
    params: str | None = None
    on_commit: bool = False
    idle_ms: int | None = None
    interval_ms: int | None = None
    pattern: str | None = None
    time_format: TimeFormat | None = None
