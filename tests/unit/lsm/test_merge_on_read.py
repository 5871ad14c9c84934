"""merge_on_read: the bitmaps of a table without deletion vectors leave exactly what a merging reader returns."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tablestore_engine.lsm.key_order import order_frame
from tablestore_engine.lsm.merge_engine_registry import Deduplicate
from tablestore_engine.lsm.merge_on_read import VersionFile, deleted_positions
from tablestore_engine.lsm.runs_by_age import order_by_age
from tablestore_engine.lsm.sequence_field import SequenceOrder


def _file(
    name: str, rows: list[tuple[object, int, int]], field: list[int | None] | None = None
) -> VersionFile:
    """Rows of (key, sequence number, kind), sorted by key."""
    keys = order_frame([pa.array([row[0] for row in rows])])
    sequence = None
    if field is not None:
        sequence = SequenceOrder.of(order_frame([pa.array(field, pa.int64())]), descending=False)
    numbers, kinds = np.array([row[1] for row in rows]), np.array([row[2] for row in rows], dtype=np.int8)
    return VersionFile(name, keys, numbers, kinds, sequence)


def _plain(found) -> dict[str, list[int]]:
    return {name: list(positions) for name, positions in found.items()}


def test_newest_version_survives() -> None:
    """Of several versions the largest sequence number wins, wherever its file lies."""
    files = [_file("a", [(1, 0, 0), (2, 5, 2), (3, 1, 0)]), _file("b", [(2, 3, 2), (3, 4, 0)])]
    assert _plain(deleted_positions(Deduplicate(), files)) == {"a": [2], "b": [0]}


def test_deletes_hide_the_key() -> None:
    """A key whose newest version is -D or -U is gone in all files."""
    files = [_file("a", [(1, 0, 0), (2, 1, 0)]), _file("b", [(1, 2, 3), (2, 3, 1)])]
    assert _plain(deleted_positions(Deduplicate(), files)) == {"a": [0, 1], "b": [0, 1]}


def test_lone_file_loses_only_its_delete_rows() -> None:
    """Files whose key ranges meet no other are not sorted; their delete rows are hidden all the same."""
    files = [_file("a", [(1, 0, 0), (2, 1, 3)]), _file("b", [(5, 2, 0), (6, 3, 0)])]
    assert _plain(deleted_positions(Deduplicate(), files)) == {"a": [1]}


def test_versions_that_a_vector_hides_do_not_compete() -> None:
    """A late row wins over a hidden one; a hidden row stays hidden, also in a file that meets no other."""
    old = replace(_file("a", [("k", 0, 0), ("l", 1, 0)], [9, 1]), gone=np.array([True, False]))
    late = _file("b", [("k", 7, 0)], [3])
    assert _plain(deleted_positions(Deduplicate(), [old, late])) == {"a": [0]}
    assert _plain(deleted_positions(Deduplicate(), [old])) == {"a": [0]}


def test_sequence_field_comes_before_the_number() -> None:
    """With a sequence field the larger value wins over a later number; NULL loses."""
    files = [
        _file("a", [("k", 0, 0), ("l", 1, 0)], [9, 1]),
        _file("b", [("k", 7, 0), ("l", 8, 0)], [3, None]),
    ]
    assert _plain(deleted_positions(Deduplicate(), files)) == {"b": [0, 1]}


@pytest.mark.parametrize("is_by_age", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_equals_a_dict(seed: int, is_by_age: bool) -> None:
    """Random versions over random files, or file by file as writers leave them in level 0, leave what replaying them in
    sequence order into a dict leaves.
    """
    dice = random.Random(seed)
    versions = [(dice.choice("abcdefgh"), number, dice.choice([0, 0, 2, 3])) for number in range(40)]
    per_file: dict[str, dict[str, tuple[object, int, int]]] = {}
    for version in versions:
        name = "yxz"[version[1] // 14] if is_by_age else dice.choice("xyz")
        per_file.setdefault(name, {})[version[0]] = version
    stored = [version for one in per_file.values() for version in one.values()]
    expected = {key: number for key, number, kind in sorted(stored, key=lambda one: one[1])}
    expected = {key: number for key, number, kind in stored if expected[key] == number and kind in (0, 2)}
    files = [_file(name, sorted(one.values())) for name, one in sorted(per_file.items())]
    runs = [((one.keys,), (one.sequence_numbers,)) for one in files]
    assert not is_by_age or order_by_age(runs) == [1, 0, 2]
    hidden = deleted_positions(Deduplicate(), files)
    seen = {}
    for file in files:
        for at, number in enumerate(file.sequence_numbers.tolist()):
            if at not in hidden.get(file.name, ()):
                seen[file.keys.row(at)[0]] = number
    assert seen == expected
    assert isinstance(files[0].keys, pl.DataFrame)


def test_runs_that_time_does_not_order_have_no_order() -> None:
    """Numbers that overlap, and a key that a run has twice: then the numbers of the rows decide."""
    first, second = _file("a", [(1, 0, 0), (2, 3, 0)]), _file("b", [(1, 2, 0)])
    assert order_by_age([((one.keys,), (one.sequence_numbers,)) for one in (first, second)]) is None
    twice, later = _file("a", [(1, 1, 0), (1, 0, 3)]), _file("b", [(2, 5, 0)])
    assert order_by_age([((one.keys,), (one.sequence_numbers,)) for one in (twice, later)]) is None
    assert _plain(deleted_positions(Deduplicate(), [twice, _file("b", [(1, 5, 3)])])) == {
        "a": [0, 1],
        "b": [0],
    }
