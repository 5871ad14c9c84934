"""How many keys are visible twice in a bucket, for each snapshot of a run, by one look at the keys of each file.

Steps      when rows of a file are visible becomes events: of all its rows, and of the few that vectors hide or show
           → files side by side, one key range after the other → keys of several rows: their events in order of time
           → how many rows of a key are visible after each of them
Cost       each row once; files that stay long are read again after WINDOW_FILES later ones
INVARIANT  what decides are the keys in the files. Nothing trusts statistics, by which a writer may have missed a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
from pyroaring import BitMap

from tablestore_engine.lsm.key_order import order_permutation, starts_of_groups
from tablestore_engine.lsm.range_merge import merge_ranges, share_rows
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.range_read import file_chains, read_chain
from tablestore_engine.store.verify.bucket_history import BucketTurn
from tablestore_engine.store.verify.live_files import Identity

WINDOW_FILES = 256  # that come within one look: each of them may be open
Numbers = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


@dataclass
class FileTimes:
    """When rows of a file are visible: +1 from a snapshot on, -1 from a snapshot on, which add up.

    whole   (snapshot, sign) of all rows
    single  (positions, snapshot, sign) of some of them
    """

    file: StoredFile
    whole: list[tuple[int, int]] = field(default_factory=list)
    single: list[tuple[Numbers, int, int]] = field(default_factory=list)

    def show(self, at: int, hidden: BitMap | None) -> None:
        """The file is live from `at` on; `hidden`: what its vector hides."""
        self._all(at, 1, hidden)

    def remove(self, at: int, hidden: BitMap | None) -> None:
        self._all(at, -1, hidden)

    def change(self, at: int, before: BitMap | None, after: BitMap | None) -> None:
        old, new = before or BitMap(), after or BitMap()
        self._some(at, -1, new - old)
        self._some(at, 1, old - new)

    def _all(self, at: int, sign: int, hidden: BitMap | None) -> None:
        self.whole.append((at, sign))
        self._some(at, -sign, hidden)

    def _some(self, at: int, sign: int, positions: BitMap | None) -> None:
        if positions:
            self.single.append((np.asarray(positions.to_array(), np.int64), at, sign))


@dataclass
class KeyWindow:
    """Files of the snapshots `start` … `end` - 1, by path."""

    start: int
    end: int = 0
    files: dict[str, FileTimes] = field(default_factory=dict)

    def times(self, file: StoredFile) -> FileTimes:
        return self.files.setdefault(file.path, FileTimes(file))


def key_windows(turns: Iterable[tuple[BucketTurn, bool]], end: int) -> Iterator[KeyWindow]:
    """The states of a bucket in windows; the flag of a turn says whether all files can be read from there on."""
    live: dict[Identity, StoredFile] = {}
    window: KeyWindow | None = None
    new = 0
    for turn, is_readable in turns:
        if window is not None and (not is_readable or new >= max(WINDOW_FILES, len(live))):
            yield _ended(window, turn.at)
            window = None
        if window is None:
            _apply(turn, live, None)
            if is_readable:
                window, new = KeyWindow(turn.at), 0
                for file in live.values():
                    window.times(file).show(turn.at, file.deleted)
        else:
            new += _apply(turn, live, window)
    if window is not None:
        yield _ended(window, end)


def _ended(window: KeyWindow, end: int) -> KeyWindow:
    window.end = end
    return window


def _apply(turn: BucketTurn, live: dict[Identity, StoredFile], window: KeyWindow | None) -> int:
    """How many files came. Level 0 is no part of the table (Scanner)."""
    came = 0
    for identity in turn.gone:
        old = live.pop(identity, None)
        if old is not None and window is not None:
            window.times(old).remove(turn.at, old.deleted)
    for identity, file in turn.shown.items():
        if not file.meta.level:
            continue
        old = live.get(identity)
        live[identity] = file
        if window is None:
            continue
        if old is None:
            came += file.path not in window.files
            window.times(file).show(turn.at, file.deleted)
        else:
            window.times(file).change(turn.at, old.deleted, file.deleted)
    return came


def count_repeats(
    reader: FileReader, window: KeyWindow, keys: Mapping[str, pl.DataFrame | None]
) -> dict[int, int]:
    """Snapshot → visible rows whose key another visible row has, where there are some. `keys`: path → those that are
    in memory. Files are sorted. Raises as range_read.read_chain, FixData TS1697.
    """
    found = np.zeros(window.end - window.start, np.int64)
    for part in _ranges(reader, window, keys):
        found += _repeats_of_range(part, window)
    counts = np.cumsum(found)
    return {window.start + int(at): int(counts[at]) for at in np.flatnonzero(counts)}


@dataclass(frozen=True)
class _Part:
    """Rows of a file from position `first` on."""

    times: FileTimes
    first: int
    keys: pl.DataFrame


def _ranges(
    reader: FileReader, window: KeyWindow, keys: Mapping[str, pl.DataFrame | None]
) -> Iterator[list[_Part]]:
    held = [(times, keys.get(path)) for path, times in window.files.items() if times.file.meta.row_count]
    parts = [_Part(times, 0, frame) for times, frame in held if frame is not None]
    if len(parts) == len(held):
        yield parts
        return
    names = reader.schema.trimmed_primary_keys
    chains = file_chains(reader, [times.file for times in window.files.values()])
    counts = [sum(file.meta.row_count for file in chain) for chain in chains]
    shares = share_rows(counts, step_rows([file for chain in chains for file in chain]))
    reads = [
        read_chain(reader, chain, names, rows_max=share) for chain, share in zip(chains, shares, strict=True)
    ]
    for pieces in merge_ranges(reads, shares):
        yield [_Part(window.files[piece.source.path], piece.first, piece.keys) for piece in pieces]


def _repeats_of_range(parts: list[_Part], window: KeyWindow) -> Numbers:
    """By how much the number of repeats changes at each snapshot of the window, for the keys of one range."""
    changes = np.zeros(window.end - window.start, np.int64)
    if len(parts) < 2:
        return changes  # a file has no key twice
    keys = pl.concat([part.keys for part in parts])
    order = order_permutation(keys)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(starts_of_groups(keys[order])) - 1
    sizes = np.bincount(group)
    if int(sizes.max(initial=0)) < 2:
        return changes
    starts = np.cumsum([0, *(part.keys.height for part in parts)])
    events = [
        event
        for part, start in zip(parts, starts, strict=False)
        for event in _events(part, group[start : start + part.keys.height], sizes)
    ]
    groups, times, signs = (np.concatenate(column) for column in zip(*events, strict=True))
    order = np.lexsort((times, groups))
    groups, times, signs = groups[order], times[order], signs[order]
    visible = np.cumsum(signs)
    firsts = np.flatnonzero(np.diff(groups, prepend=-1))
    visible -= np.repeat(visible[firsts] - signs[firsts], np.diff([*firsts, len(groups)]))
    excess = np.maximum(visible - 1, 0)
    before = np.concatenate([[0], excess[:-1]])
    before[firsts] = 0
    np.add.at(changes, times - window.start, excess - before)
    return changes


def _events(part: _Part, group: Numbers, sizes: Numbers) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """(group, snapshot, sign) of the rows whose key other rows have as well."""
    shared = sizes[group] > 1
    mine = group[shared]
    for at, sign in part.times.whole:
        yield mine, np.full(len(mine), at), np.full(len(mine), sign)
    for positions, at, sign in part.times.single:
        low, high = np.searchsorted(positions, (part.first, part.first + len(group)))
        rows = positions[low:high] - part.first
        some = group[rows[shared[rows]]]
        if len(some):
            yield some, np.full(len(some), at), np.full(len(some), sign)
