"""The shape of one bucket: which files make which sorted run, and where the next run goes.

CHANGE     the levels of a bucket (option num-levels)
INVARIANT  files of one level ≥ 1 never overlap; a level is one sorted run.
INVARIANT  new runs go below (to a smaller level than) all others, never to level 0, which is other writers' inbox.
PAIMON     a file at a higher level than num-levels − 1 raises the number of levels (format.md#merge-order).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tablestore_engine.errors import EngineBug, FixRequest

DEFAULT_TRIGGER = 5


@dataclass(frozen=True)
class FileSummary:
    """One file; `min_key` and `max_key` compare as keys do (key_order.key_at)."""

    name: str
    level: int
    rows: int
    dead: int
    size_bytes: int
    min_key: tuple[Any, ...]
    max_key: tuple[Any, ...]

    @property
    def live(self) -> int:
        """Rows that readers see."""
        return self.rows - self.dead


@dataclass(frozen=True)
class SortedRun:
    level: int
    files: tuple[FileSummary, ...]

    @property
    def live(self) -> int:
        """Rows that readers see."""
        return sum(file.live for file in self.files)

    @property
    def live_bytes(self) -> float:
        """Their share of the bytes: about what a compaction writes of this run."""
        return sum(file.size_bytes * file.live / max(file.rows, 1) for file in self.files)


@dataclass(frozen=True)
class Levels:
    """Runs of levels ≥ 1, lowest level first; `count` levels are numbered 0 … count − 1."""

    count: int
    runs: tuple[SortedRun, ...]

    @classmethod
    def of(cls, files: Iterable[FileSummary], count: int) -> Levels:
        """Group files by level; level 0 is left out."""
        by_level: dict[int, list[FileSummary]] = {}
        for file in files:
            if file.level > 0:
                by_level.setdefault(file.level, []).append(file)
        runs = tuple(
            SortedRun(level, tuple(sorted(by_level[level], key=lambda one: one.min_key)))
            for level in sorted(by_level)
        )
        return cls(max([count, *(level + 1 for level in by_level)]), runs)

    @property
    def top(self) -> int:
        """The highest level: where a full compaction writes."""
        return self.count - 1

    @property
    def next_level(self) -> int:
        """Level of the next run: lowest non-empty − 1, the top for an empty bucket; 0 means: compact first."""
        return _next_level((run.level for run in self.runs), self.count)


def get_free_level(levels: Iterable[int], count: int) -> int:
    """Levels.next_level by the levels of the files alone: no key is decoded. Raises EngineBug TS1650 when it is 0."""
    runs = sorted(set(levels) - {0})
    free = _next_level(runs, count)
    if free < 1:
        raise EngineBug(
            "TS1650",
            "a bucket has no free level for a new run",
            why=f"the levels with runs are {', '.join(map(str, runs))}",
            fix="compact the bucket before writing to it; please report this",
        )
    return free


def _next_level(runs: Iterable[int], count: int) -> int:
    return min(runs, default=count) - 1


def level_count(options: Mapping[str, str]) -> int:
    """Levels of a table: `num-levels`, else trigger + 1 as other engines take it. Raises FixRequest TS1651."""
    text = options.get("num-levels") or str(
        int(options.get("num-sorted-run.compaction-trigger", DEFAULT_TRIGGER)) + 1
    )
    if not text.strip().isdigit() or int(text) < 3:
        raise FixRequest(
            "TS1651",
            f"option 'num-levels' is {text!r}",
            why="keyed tables need at least 3 levels: one for other writers, two for runs",
            fix="set num-levels to 3 or more",
        )
    return int(text)
