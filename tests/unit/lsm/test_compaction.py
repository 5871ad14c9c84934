"""compaction: the choice of runs keeps buckets small, levels free and rewriting cheap."""

from __future__ import annotations

import random

import pytest

from tablestore_engine.errors import EngineBug, FixRequest
from tablestore_engine.lsm.compaction_strategy import (
    BYTES_FLOOR,
    DEAD_ROWS_MIN,
    ROWS_FLOOR,
    RUNS_MAX,
    CompactionUnit,
    needs_compaction,
    pick,
    pick_full,
)
from tablestore_engine.lsm.levels import FileSummary, Levels, get_free_level, level_count

TARGET = 1000


def _file(
    name: str, level: int, rows: int, *, dead: int = 0, low: int = 0, high: int = 100, size: int = 10
) -> FileSummary:
    return FileSummary(name, level, rows, dead, size, ((1, low),), ((1, high),))


def _levels(*files: FileSummary, count: int = 20) -> Levels:
    return Levels.of(files, count)


def test_level_of_the_next_run() -> None:
    """The first run goes to the top, each next one below the lowest; level 0 files do not count."""
    assert _levels().next_level == 19
    assert _levels(_file("a", 19, 1), _file("b", 17, 1), _file("c", 0, 1)).next_level == 16
    assert _levels(_file("a", 25, 1), count=20).top == 25


def test_no_free_level_is_a_bug_of_the_caller() -> None:
    """Level 0 is never written: a bucket whose lowest run is on level 1 must fold first."""
    full = _levels(_file("a", 19, 1), _file("b", 1, 1))
    assert needs_compaction(full)
    with pytest.raises(EngineBug, match="TS1650"):
        get_free_level([1, 19], 20)


def test_level_count_of_tables_made_elsewhere() -> None:
    """num-levels counts; without it the trigger plus one, as other engines take it; fewer than 3 are refused."""
    assert level_count({"num-levels": "20"}) == 20
    assert level_count({}) == 6
    assert level_count({"num-sorted-run.compaction-trigger": "8"}) == 9
    with pytest.raises(FixRequest, match="TS1651"):
        level_count({"num-levels": "2"})


def test_few_runs_are_left_alone() -> None:
    """Up to RUNS_MAX runs nothing is folded."""
    files = [_file(str(i), 19 - i, 10) for i in range(RUNS_MAX)]
    assert pick(_levels(*files), target_bytes=TARGET) is None
    assert pick(_levels(), target_bytes=TARGET) is None


def test_small_runs_fold_and_large_ones_stay() -> None:
    """One run too many: the small ones become one below the large one, which is not touched."""
    small = [_file(f"s{i}", 18 - i, 10) for i in range(RUNS_MAX)]
    unit = pick(_levels(_file("big", 19, 1000 * ROWS_FLOOR), *small), target_bytes=TARGET)
    assert unit is not None
    assert unit.output_level == 18
    assert unit.file_names == {file.name for file in small}


def test_the_next_run_is_absorbed_when_it_is_not_much_larger() -> None:
    """A run at most as large as the chosen ones together joins them."""
    runs = [_file(f"r{i}", 18 - i, ROWS_FLOOR) for i in range(RUNS_MAX)]
    unit = pick(_levels(_file("top", 19, 5 * ROWS_FLOOR), *runs), target_bytes=TARGET)
    assert unit is not None
    assert (unit.output_level, "top" in unit.file_names) == (19, True)


def test_mostly_dead_top_is_folded_fully() -> None:
    """When more than half of the top file is dead (and it matters), everything goes into one run."""
    rows = 2 * DEAD_ROWS_MIN
    alive = _levels(_file("top", 19, rows, dead=rows // 2), _file("new", 18, 10))
    assert pick(alive, target_bytes=TARGET) is None
    dead = _levels(_file("top", 19, rows, dead=rows // 2 + 1), _file("new", 18, 10))
    assert pick(dead, target_bytes=TARGET) == CompactionUnit((("new", "top"),), (), 19)


def test_files_without_a_visible_row_are_dropped_unread() -> None:
    """A file that is all dead is removed with the unit, in no group."""
    unit = pick_full(_levels(_file("top", 19, 10, dead=10), _file("new", 18, 10)), target_bytes=TARGET)
    assert unit == CompactionUnit((("new",),), ("top",), 19)


def test_large_files_without_overlap_stay() -> None:
    """Top files that meet no chosen run stay; what is written around them goes into separate groups."""
    top = [_file(f"t{i}", 19, 10, low=20 * i, high=20 * i + 9, size=TARGET) for i in range(3)]
    new = _file("n", 18, 5, low=0, high=5), _file("m", 17, 5, low=45, high=47)
    assert pick_full(_levels(*top, *new), target_bytes=TARGET) == CompactionUnit(
        (("n", "t0"), ("t2", "m")), (), 19
    )


def test_small_neighbours_join() -> None:
    """Small files are rewritten together even without overlap, so their number stays bounded."""
    files = [_file(f"t{i}", 19 - i, 10, low=20 * i, high=20 * i + 9) for i in range(4)]
    assert pick_full(_levels(*files), target_bytes=TARGET) == CompactionUnit(
        (("t0", "t1", "t2", "t3"),), (), 19
    )


def test_nothing_to_fold_fully() -> None:
    """One run on top without dead rows is as good as it gets."""
    assert pick_full(_levels(_file("t", 19, 10)), target_bytes=TARGET) is None
    assert pick_full(_levels(), target_bytes=TARGET) is None
    assert pick_full(_levels(_file("t", 19, 10, dead=1)), target_bytes=TARGET) is not None


@pytest.mark.parametrize("count", [3, 4, 6, 20])
@pytest.mark.parametrize("seed", range(5))
def test_levels_never_run_out(count: int, seed: int) -> None:
    """Whatever happens: after each pick a level is free, runs are few, rows are rewritten O(log n) times."""
    dice = random.Random(seed)
    files: list[FileSummary] = []
    total = rewritten = 0
    for step in range(400):
        levels = _levels(*files, count=count)
        unit = pick(levels, target_bytes=TARGET)
        if unit is not None:
            chosen = [file for file in files if file.name in unit.file_names]
            live = sum(file.live for file in chosen)
            rewritten += live
            files = [file for file in files if file.name not in unit.file_names]
            assert all(file.level != unit.output_level for file in files)
            if live:
                files.append(_file(f"fold{step}", unit.output_level, live))
            levels = _levels(*files, count=count)
        assert not needs_compaction(levels)
        assert len(levels.runs) <= min(RUNS_MAX, max(1, count - 2))
        rows = dice.choice([10, 1000, 20_000])
        total += rows
        files = [
            _file(
                file.name,
                file.level,
                file.rows,
                dead=min(file.rows, file.dead + dice.choice([0, 0, 5, file.rows])),
            )
            if dice.random() < 0.1
            else file
            for file in files
        ]
        files.append(_file(f"run{step}", get_free_level((file.level for file in files), count), rows))
    if count == 20:
        assert rewritten < 12 * total


def test_tiny_runs_leave_a_bottom_run_of_wide_rows_alone() -> None:
    """A hundred rows are not worth rewriting 4 GB, though 80,000 rows of 50 kB are few; narrow ones are taken along."""
    tiny = [_file(f"s{i}", 18 - i, 10, size=500_000) for i in range(RUNS_MAX)]
    unit = pick(_levels(_file("wide", 19, 80_000, size=4 << 30), *tiny), target_bytes=TARGET)
    assert unit is not None
    assert (unit.output_level, "wide" in unit.file_names) == (18, False)
    few = [_file(f"s{i}", 18 - i, 10, size=1_000) for i in range(RUNS_MAX)]
    unit = pick(_levels(_file("narrow", 19, 80_000, size=RUNS_MAX * BYTES_FLOOR), *few), target_bytes=TARGET)
    assert unit is not None
    assert "narrow" in unit.file_names


@pytest.mark.parametrize("width", [10, 400, 50_000])
@pytest.mark.parametrize("seed", range(3))
def test_bytes_are_rewritten_a_bounded_number_of_times(width: int, seed: int) -> None:
    """600 commits on a table of 100 MB or more: beside the floor, a byte is rewritten O(log n) times, however wide."""
    dice = random.Random(seed)
    rows = max(80_000, 100_000_000 // width)
    files = [_file("first", 19, rows, size=rows * width)]
    written = rewritten = folds = 0
    for step in range(600):
        unit = pick(_levels(*files), target_bytes=1 << 40)
        if unit is not None:
            chosen = [file for file in files if file.name in unit.file_names]
            files = [file for file in files if file.name not in unit.file_names]
            live = sum(file.live for file in chosen)
            files.append(_file(f"fold{step}", unit.output_level, live, size=live * width))
            rewritten, folds = rewritten + live * width, folds + 1
        added = dice.choice([5, 10, 100])
        free = get_free_level((file.level for file in files), 20)
        files.append(_file(f"run{step}", free, added, size=added * width))
        written += added * width
    assert folds > 5
    assert rewritten <= 6 * written + folds * RUNS_MAX * 2 * BYTES_FLOOR


def test_size_amplification_folds_everything_where_it_is_bounded() -> None:
    """Upper runs of three times the bytes of the lowest: folded under a bound of 200 %, not at 300 % or without."""
    levels = _levels(
        _file("new", 17, 10, size=20), _file("mid", 18, 10, size=10), _file("low", 19, 10, size=10)
    )
    assert pick(levels, target_bytes=TARGET) is None
    assert pick(levels, target_bytes=TARGET, amplification_max=300) is None
    unit = pick(levels, target_bytes=TARGET, amplification_max=200)
    assert unit is not None
    assert (unit.file_names, unit.output_level) == ({"new", "mid", "low"}, 19)
    assert pick(_levels(_file("only", 19, 10)), target_bytes=TARGET, amplification_max=1) is None
