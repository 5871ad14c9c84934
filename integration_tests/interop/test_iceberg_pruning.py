"""Bounds in Iceberg manifests: readers skip files by them, and a read that skips files gives the same rows."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.interop.golden import Golden, Kind, make_table
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.predicates import assert_pruned_alike
from integration_tests.interop.scenarios import Step
from integration_tests.interop.schemas import schema
from integration_tests.interop.test_iceberg import (
    NAMES,
    OursWithIceberg,
    iceberg,
)
from tests.doses import cases

__all__ = ["iceberg"]  # the fixture


@pytest.mark.parametrize("name", cases(NAMES, 2))
def test_a_pruned_read_gives_the_same_rows(
    iceberg: Callable[[str, str], Golden], duckdb: ProcessPeer, pyiceberg: ProcessPeer, name: str
) -> None:
    """Random filters over every type, at the first, a middle and the newest snapshot, promoted columns included."""
    table = iceberg(name, "3")
    numbers = sorted(table.history.rows)
    for snapshot in {numbers[0], numbers[len(numbers) // 2], numbers[-1]}:
        for peer in (duckdb, pyiceberg):
            assert_pruned_alike(peer, table.location, snapshot, random.Random(f"{name} {snapshot}"))


@pytest.mark.parametrize("version", ["2", "3"])
def test_files_are_skipped(tmp_path: Path, duckdb: ProcessPeer, pyiceberg: ProcessPeer, version: str) -> None:
    """Twelve files with a range of numbers each, in three partitions: a filter leaves one of them, or its partition."""
    made = schema({"day": "STRING", "n": "BIGINT", "text": "STRING", "maybe": "INT"}, partitions=("day",))
    steps = [
        Step(
            tuple(
                (
                    "+I",
                    {
                        "day": f"d{at % 3}",
                        "n": 100 * at + one,
                        "text": f"{'x' * 20}{at:02}",
                        "maybe": at % 2 or None,
                    },
                )
                for one in range(10)
            )
        )
        for at in range(12)
    ]
    table = make_table(OursWithIceberg(version), tmp_path / "ours.db" / "t", Kind(made, steps, early=False))
    counts = {
        "n >= 0": 12,
        "n = 305": 1,
        "n < 200": 2,
        "n > 1150": 0,
        "day = 'd1'": 4,
        "day = 'd1' and n < 200": 1,
        "text > 'y'": 0,
        "text >= 'xxxx'": 12,
        "maybe is null": 6,
        "maybe is not null": 6,
    }
    found = {text: pyiceberg.ask("planned", location=str(table.location), filter=text) for text in counts}
    assert found == counts
    files = re.search(
        r"Total Files Read: (\d+)", duckdb.ask("explain", location=str(table.location), filter="n = 305")
    )
    assert files is not None
    assert files[1] == "1"
    last = max(table.history.rows)
    for peer in (duckdb, pyiceberg):
        assert_pruned_alike(peer, table.location, last, random.Random(version))
