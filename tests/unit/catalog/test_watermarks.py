"""Reads of the first snapshot whose watermark has been reached; our commits carry watermarks of Flink on."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table
from tablestore_engine.catalog.name_lookup import find_snapshot
from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.format.snapshot import encode_snapshot
from tablestore_engine.sql.table_version import TableVersion, split_database, versioned_database
from tests.doses import cases


def set_watermark(table: Table, number: int, watermark: int | None) -> None:
    """As if Flink had committed the snapshot with it."""
    store = table.store
    snapshot = replace(store.snapshots.get(number), watermark=watermark)
    Path(store.context.layout.snapshot_path(number)).write_bytes(encode_snapshot(snapshot))


def history(root: Path, watermarks: list[int | None]) -> Table:
    """d.t, whose row in snapshot N has v = N."""
    engine = Engine(str(root))
    engine.create_database("d")
    table = engine.create_table("d.t", pa.schema({"id": pa.int64(), "v": pa.int64()}), primary_key="id")
    for number, watermark in enumerate(watermarks, start=1):
        table.upsert([{"id": 1, "v": number}])
        set_watermark(table, number, watermark)
    return engine.table("d.t")


@pytest.mark.parametrize("seed", cases(range(40), 4))
def test_the_first_snapshot_that_has_reached_it_is_read(tmp_path: Path, seed: int) -> None:
    """Random watermarks, with none and equal ones between: as a walk over all snapshots finds it, by each spelling."""
    draw = random.Random(seed)
    reached, marks = 0, list[int | None]()
    for _ in range(6):
        reached += draw.choice([0, 0, 5, 10])
        marks.append(draw.choice([reached, reached, None, -(2**63)]))
    table = history(tmp_path, marks)
    for asked in range(0, reached + 12, 3):
        expected = next(
            (n for n, mark in enumerate(marks, 1) if (mark or (0 if mark == 0 else -1)) >= asked), None
        )
        moment = datetime.fromtimestamp(asked / 1000, UTC)
        for read in (
            lambda asked=asked: table.scan(watermark=asked),
            lambda moment=moment: table.scan(watermark=moment),
            lambda asked=asked: table.scan(tag=f"watermark-{asked}"),
        ):
            if expected is None:
                with pytest.raises(NotFound, match="TS1224"):
                    read()
            else:
                assert read().to_arrow()["v"].to_pylist() == [expected], (asked, marks)


def test_commits_here_keep_the_watermark(tmp_path: Path) -> None:
    """Of rows, a compaction, a branch and what is staged: as Java, which takes the larger of both."""
    table = history(tmp_path, [7_000])
    table.upsert([{"id": 2, "v": 2}])
    table.compact(full=True)
    table.create_branch("dev", snapshot=2)
    table.branch("dev").upsert([{"id": 3, "v": 3}])
    found = [*table.snapshots(), *table.branch("dev").snapshots()]
    assert {one.watermark for one in found} == {7_000}
    assert table.scan(watermark=6_999).to_arrow()["v"].to_pylist() == [1]


def test_a_tag_of_that_name_wins_and_names_in_sql_come_back(tmp_path: Path) -> None:
    """`watermark-7` is a tag where there is one; `demo__at_watermark_7` means the watermark."""
    table = history(tmp_path, [5, 9])
    table.tag("watermark-9", 1)
    assert table.scan(tag="watermark-9").to_arrow()["v"].to_pylist() == [1]
    version = TableVersion(watermark=9)
    assert split_database(versioned_database("d", version)) == ("d", version)
    found = find_snapshot(table.store, version)
    assert found is not None
    assert found.id == 2
    with pytest.raises(TablestoreError, match="TS1569"):
        table.scan(watermark="2026")  # type: ignore[arg-type]
