"""Choose which sorted runs to compact into one, and which of their files can stay.

CHANGE     which runs are compacted (options num-sorted-run.compaction-trigger,
           compaction.max-size-amplification-percent)
Steps      1 deleted rows: a file more than half deleted, in a bucket where that matters → compact down to its run
           2 too many runs, or no free level: the newest runs, extended while the next one is not much larger
           3 where the table sets a bound: upper runs too large for the lowest → all runs
           4 the chosen runs → groups: files that stay are cut out, neighbours join
Example    RUNS_MAX 8, rows of the runs newest first:  1 1 1 1 1 1 1 1 | 40 900 → the eight become 8 | 40 900
INVARIANT  a unit's runs are the newest ones: no version moves above a newer one.
INVARIANT  groups and files that stay have disjoint key ranges, so the output level is one sorted run.
INVARIANT  the output level is below every run that is not in the unit, and at least 2 unless nothing lies above.
Cost       sizes double from run to run, so a row, and a byte, is rewritten O(log n) times and a bucket has ≤ RUNS_MAX
           runs. Below the floors that does not hold: compacting tiny runs rewrites at most RUNS_MAX × BYTES_FLOOR more.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.lsm.levels import FileSummary, Levels

RUNS_MAX = 10  # more runs than this are compacted
ROWS_FLOOR = 8_192  # smaller runs count as this many rows: compacting them costs nothing
BYTES_FLOOR = 65_536  # and as this many bytes
DEAD_ROWS_MIN = 65_536  # fewer dead rows in the whole bucket are not worth a snapshot of their own
SMALL_FILE_SHARE = 0.5  # of the target size: smaller files are joined with their neighbours


@dataclass(frozen=True)
class CompactionUnit:
    """Each group becomes its own file or files on `output_level`; `dropped` files have no visible row."""

    groups: tuple[tuple[str, ...], ...]
    dropped: tuple[str, ...]
    output_level: int

    @property
    def file_names(self) -> frozenset[str]:
        return frozenset(self.dropped).union(*self.groups)


def needs_compaction(levels: Levels) -> bool:
    """Whether an upsert has to compact first, because the next run would be level 0."""
    return levels.next_level < 1


def pick(
    levels: Levels, *, target_bytes: int, runs_max: int = RUNS_MAX, amplification_max: int | None = None
) -> CompactionUnit | None:
    """What to compact now, or None. After that compaction there is a free level and runs ≤ `runs_max`.

    amplification_max   percent: upper runs with more bytes than this share of the lowest are all compacted into it
    """
    allowed = max(1, min(runs_max, levels.count - 2))
    runs = levels.runs
    taken = 0
    if needs_compaction(levels) or len(runs) > allowed:
        taken = _size_tiered(levels, allowed)
    taken = max(taken, _dead_prefix(levels))
    if amplification_max is not None and _amplification(levels) > amplification_max:
        taken = len(runs)
    return _unit(levels, taken, target_bytes) if taken else None


def pick_full(levels: Levels, *, target_bytes: int) -> CompactionUnit | None:
    """One run on the top level without dead rows; None when it is so already."""
    if not levels.runs:
        return None
    only_top = len(levels.runs) == 1 and levels.runs[0].level == levels.top
    if only_top and not any(file.dead for file in levels.runs[0].files):
        return None
    return _unit(levels, len(levels.runs), target_bytes, dead_share=0.0)


def _amplification(levels: Levels) -> float:
    """Bytes of all runs above the lowest, in percent of those of the lowest."""
    sizes = [sum(file.size_bytes for file in run.files) for run in levels.runs]
    return 100 * sum(sizes[:-1]) / sizes[-1] if len(sizes) > 1 else 0.0


def _size_tiered(levels: Levels, allowed: int) -> int:
    """How many of the newest runs: two at least, more while the next is at most as large as those together.

    Larger is larger in rows or in bytes: rows alone would rewrite gigabytes of wide rows for a hundred new ones.
    """
    runs = levels.runs
    taken, rows, size = 0, 0, 0.0
    while taken < len(runs):
        next_rows, next_size = max(runs[taken].live, ROWS_FLOOR), max(runs[taken].live_bytes, BYTES_FLOOR)
        enough = taken >= 2 and len(runs) - taken + 1 <= allowed and _output_level(levels, taken) >= 2
        if enough and (next_rows > rows or next_size > size):
            break
        rows, size = rows + next_rows, size + next_size
        taken += 1
    return taken


def _dead_prefix(levels: Levels) -> int:
    """How many runs down to the oldest one that has a mostly dead file; 0 when it is not worth it."""
    files = [file for run in levels.runs for file in run.files]
    if sum(file.dead for file in files) < DEAD_ROWS_MIN:
        return 0
    oldest = [
        i for i, run in enumerate(levels.runs, start=1) if any(_is_mostly_deleted(file) for file in run.files)
    ]
    return max(oldest, default=0)


def _is_mostly_deleted(file: FileSummary, share: float = 0.5) -> bool:
    return file.dead > share * file.rows


def _output_level(levels: Levels, taken: int) -> int:
    return levels.top if taken == len(levels.runs) else levels.runs[taken].level - 1


def _unit(levels: Levels, taken: int, target_bytes: int, *, dead_share: float = 0.5) -> CompactionUnit:
    """Cut the files of the chosen runs into groups by key range."""
    output_level = _output_level(levels, taken)
    chosen = levels.runs[:taken]
    files = [file for run in chosen for file in run.files]
    groups: list[list[str]] = [[]]
    for section in _sections([file for file in files if file.live]):
        if _can_stay(section, output_level, target_bytes, dead_share):
            groups.append([])
        else:
            groups[-1].extend(file.name for file in section)
    return CompactionUnit(
        groups=tuple(tuple(group) for group in groups if group),
        dropped=tuple(file.name for file in files if not file.live),
        output_level=output_level,
    )


def _can_stay(section: list[FileSummary], output_level: int, target_bytes: int, dead_share: float) -> bool:
    """A lone large file that already lies on the output level and is mostly alive."""
    only = section[0]
    return (
        len(section) == 1
        and only.level == output_level
        and only.size_bytes >= SMALL_FILE_SHARE * target_bytes
        and not _is_mostly_deleted(only, dead_share)
    )


def _sections(files: list[FileSummary]) -> list[list[FileSummary]]:
    """Smallest sets of files whose key ranges overlap, in key order."""
    sections: list[list[FileSummary]] = []
    reached: tuple[object, ...] | None = None
    for file in sorted(files, key=lambda one: one.min_key):
        if reached is not None and file.min_key <= reached:
            sections[-1].append(file)
            reached = max(reached, file.max_key)
        else:
            sections.append([file])
            reached = file.max_key
    return sections
