"""The rules of a bucket, for all snapshots at once: vectors inside their files, levels without overlap, keys sorted and
each visible once.

Steps      the changes of the bucket, one after the other: is anything wrong from here on? → keys that are visible twice
           (key_history) → only where something is wrong: each state as a whole, for what its snapshots report
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tablestore_engine.errors import TablestoreError
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask
from tablestore_engine.store.merge.lookup import key_range
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.verify.bucket_history import BucketHistory, BucketTurn
from tablestore_engine.store.verify.file_check import FileOutcome
from tablestore_engine.store.verify.key_facts import KeyFacts
from tablestore_engine.store.verify.key_history import count_repeats, key_windows
from tablestore_engine.store.verify.live_files import Identity
from tablestore_engine.store.verify.problems import describe_error

KeyRange = tuple[tuple[Any, ...], tuple[Any, ...]]
Found = tuple[int, int, str]  # the first snapshot, the snapshot after the last one, the problem


@dataclass
class LevelRanges:
    """Key ranges of the files of one level, in order; `overlaps`: neighbours of which the second begins too early."""

    ranges: list[KeyRange] = field(default_factory=list)
    overlaps: int = 0

    def add(self, one: KeyRange) -> None:
        insort(self.ranges, one)
        self._count(bisect_left(self.ranges, one), 1)

    def remove(self, one: KeyRange) -> None:
        at = bisect_left(self.ranges, one)
        self._count(at, -1)
        self.ranges.pop(at)

    def _count(self, at: int, sign: int) -> None:
        around = self.ranges[max(at - 1, 0) : at + 2]
        self.overlaps += sign * count_overlaps(around)
        if at and at + 1 < len(self.ranges):
            self.overlaps -= sign * count_overlaps([self.ranges[at - 1], self.ranges[at + 1]])


def count_overlaps(ranges: Sequence[KeyRange]) -> int:
    """Of sorted ranges: how many begin before the one before has ended."""
    return sum(after[0] <= before[1] for before, after in pairwise(ranges))


@dataclass
class BucketCheck:
    """One bucket. `outcome_of` a path: what the look at the file found."""

    reader: FileReader
    history: BucketHistory
    outcome_of: Callable[[str], FileOutcome]
    deep: bool
    _ranges: dict[str, KeyRange | str] = field(default_factory=dict)

    def run(self) -> Iterator[Found]:
        """Raises nothing: what cannot be read is a problem."""
        turns = list(self._turns())
        repeats = self._count_repeats(turns)
        if repeats or any(turn.is_wrong for turn in turns):
            for start, end, files in self.history.states():
                for problem in self._problems_of(files, repeats.get(start, 0)):
                    yield start, end, problem

    # ---- is anything wrong? --------------------------------------------------------------------------------

    def _turns(self) -> Iterator[_JudgedTurn]:
        wrong: set[Identity] = set()
        unreadable: set[Identity] = set()
        files: dict[Identity, StoredFile] = {}
        levels: dict[int, LevelRanges] = {}
        for turn in self.history.turns():
            for identity in turn.gone:
                wrong.discard(identity)
                unreadable.discard(identity)
                self._leave(files.pop(identity, None), levels)
            for identity, file in turn.shown.items():
                if identity not in files:
                    self._enter(file, levels)
                files[identity] = file
                is_wrong, can_read = self._judge(file)
                (wrong.add if is_wrong else wrong.discard)(identity)
                (unreadable.discard if can_read else unreadable.add)(identity)
            overlaps = any(ranges.overlaps for ranges in levels.values())
            yield _JudgedTurn(turn, bool(wrong) or overlaps, not unreadable)

    def _judge(self, file: StoredFile) -> tuple[bool, bool]:
        """Whether the file has a problem with its vector, its key range or its keys, and whether its keys can be
        compared with those of other files.
        """
        last = file.deleted.max() if file.deleted else -1
        is_wrong = last >= file.meta.row_count
        if not self.history.schema.is_keyed:
            return is_wrong, True
        if isinstance(self._range_of(file), str):
            return True, False
        if not self.deep:
            return is_wrong, True
        outcome = self.outcome_of(file.path)
        if not outcome.is_whole:
            return is_wrong, False
        keys = outcome.keys
        if not isinstance(keys, KeyFacts):
            return True, False
        fits = last < keys.rows
        is_wrong |= not fits or any(True for _ in keys.problems(file))
        return is_wrong, fits and keys.is_sorted

    def _enter(self, file: StoredFile, levels: dict[int, LevelRanges]) -> None:
        found = self._range_in_level(file)
        if found is not None:
            levels.setdefault(file.meta.level, LevelRanges()).add(found)

    def _leave(self, file: StoredFile | None, levels: dict[int, LevelRanges]) -> None:
        found = None if file is None else self._range_in_level(file)
        if file is not None and found is not None:
            levels[file.meta.level].remove(found)

    def _range_in_level(self, file: StoredFile) -> KeyRange | None:
        if not self.history.schema.is_keyed or not file.meta.level:
            return None
        found = self._range_of(file)
        return None if isinstance(found, str) else found

    def _range_of(self, file: StoredFile) -> KeyRange | str:
        """The key range as metadata has it, or the error of its bytes."""
        if file.path not in self._ranges:
            try:
                self._ranges[file.path] = key_range(self.history.schema, file)
            except TablestoreError as broken:
                self._ranges[file.path] = describe_error(broken)
        return self._ranges[file.path]

    # ---- keys that are visible twice -----------------------------------------------------------------------

    def _count_repeats(self, turns: Sequence[_JudgedTurn]) -> Mapping[int, int | str]:
        """Snapshot → how many, or why they cannot be counted; only where there is something to report."""
        schema = self.history.schema
        if not (self.deep and schema.is_keyed and TableTraits(schema).has_inbox):
            return {}
        found: dict[int, int | str] = {}
        kept = {path: _kept(self.outcome_of(path)) for path in self.history.files()}
        flagged = ((turn.turn, turn.is_readable) for turn in turns)
        for window in key_windows(flagged, self.history.end):
            try:
                found |= count_repeats(self.reader, window, kept)
            except TablestoreError as broken:
                found |= dict.fromkeys(range(window.start, window.end), describe_error(broken))
        return found

    # ---- what the snapshots of one state report ------------------------------------------------------------

    def _problems_of(self, files: Sequence[StoredFile], repeats: int | str) -> Iterator[str]:
        place = f"{files[0].partition_path}bucket-{files[0].bucket}" if files else ""
        for file in files:
            if file.deleted and file.deleted.max() >= file.meta.row_count:
                yield f"{place}: the vector of {file.meta.file_name} points beyond its rows"
        if self.history.schema.is_keyed:
            yield from (f"{place}: {problem}" for problem in self._levels(files))
            if self.deep and all(self.outcome_of(file.path).is_whole for file in files):
                yield from (f"{place}: {problem}" for problem in self._keys(files, repeats))

    def _levels(self, files: Sequence[StoredFile]) -> Iterator[str]:
        by_level: dict[int, list[KeyRange]] = {}
        for file in files:
            found = self._range_of(file)
            if isinstance(found, str):
                yield found
            else:
                by_level.setdefault(file.meta.level, []).append(found)
        for level, ranges in by_level.items():
            if level > 0:
                yield from [f"files of level {level} overlap"] * count_overlaps(sorted(ranges))

    def _keys(self, files: Sequence[StoredFile], repeats: int | str) -> Iterator[str]:
        for file in files:
            keys = self.outcome_of(file.path).keys
            if not isinstance(keys, KeyFacts):
                yield str(keys)
                return
            try:
                visible_mask(file, keys.rows)
            except TablestoreError as broken:
                yield describe_error(broken)
                return
            yield from keys.problems(file)
        if repeats:
            yield repeats if isinstance(repeats, str) else f"{repeats} keys are visible twice"


@dataclass(frozen=True)
class _JudgedTurn:
    turn: BucketTurn
    is_wrong: bool
    is_readable: bool


def _kept(outcome: FileOutcome) -> Any:  # noqa: ANN401
    return outcome.keys.keys if isinstance(outcome.keys, KeyFacts) else None
