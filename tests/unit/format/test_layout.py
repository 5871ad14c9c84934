"""Paths: every file where the format puts it, and names that cannot leave their place."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.layout import (
    TableLayout,
    bucket_name,
    file_format,
    find_id,
    table_location,
)

LAYOUT = TableLayout(table_location("/w/", "db", "t"))


def test_paths_of_main() -> None:
    """All paths (format.md#layout) for a table of the filesystem catalog."""
    assert LAYOUT.location == "/w/db.db/t"
    assert LAYOUT.schema_path(0) == "/w/db.db/t/schema/schema-0"
    assert LAYOUT.snapshot_path(3) == "/w/db.db/t/snapshot/snapshot-3"
    assert LAYOUT.latest_hint == "/w/db.db/t/snapshot/LATEST"
    assert LAYOUT.earliest_hint == "/w/db.db/t/snapshot/EARLIEST"
    assert LAYOUT.manifest_path("m-1") == "/w/db.db/t/manifest/m-1"
    assert LAYOUT.index_path("i-1") == "/w/db.db/t/index/i-1"
    assert LAYOUT.statistics_path("s") == "/w/db.db/t/statistics/s"
    assert LAYOUT.tag_path("v1") == "/w/db.db/t/tag/tag-v1"
    assert LAYOUT.consumer_path("7") == "/w/db.db/t/consumer/consumer-7"
    assert (
        LAYOUT.data_file("dt=1/h=2/", 3, "data-u-0.parquet")
        == "/w/db.db/t/dt=1/h=2/bucket-3/data-u-0.parquet"
    )
    assert LAYOUT.bucket_dir("", 0) == "/w/db.db/t/bucket-0"
    assert LAYOUT.partition_dir("") == "/w/db.db/t"


def test_a_branch_has_own_metadata_and_shared_files() -> None:
    """Schema, snapshot, tag, consumer and changelog move into the branch; data, manifest and index stay."""
    branch = LAYOUT.on_branch("b")
    for moved in (branch.schema_path(0), branch.snapshot_path(1), branch.tag_path("x"), branch.consumer_path("c"),
                  branch.changelog_dir, branch.latest_hint):  # fmt: skip
        assert moved.startswith("/w/db.db/t/branch/branch-b/")
    assert branch.manifest_path("m") == LAYOUT.manifest_path("m")
    assert branch.index_path("i") == LAYOUT.index_path("i")
    assert branch.data_file("", 0, "f") == LAYOUT.data_file("", 0, "f")
    assert branch.on_branch("main").root == LAYOUT.root


def test_special_buckets() -> None:
    """Unaware tables use bucket-0, postponed rows bucket-postpone."""
    assert [bucket_name(b) for b in (-2, -1, 0, 11)] == [
        "bucket-postpone",
        "bucket-0",
        "bucket-0",
        "bucket-11",
    ]


def test_ids_and_formats_of_names() -> None:
    """Only exact `<prefix><digits>` is an id, and the last extension is the format."""
    assert find_id("snapshot-12", "snapshot-") == 12
    assert [
        find_id(n, "snapshot-")
        for n in ("snapshot-", "snapshot-1x", ".snapshot-1.tmp", "LATEST", "snapshot-²")
    ] == [None] * 5
    assert file_format("data-u-0.zstd.parquet") == "parquet"
    assert file_format("data-u-0.ORC") == "orc"
    assert file_format("data-u-0") == ""


@pytest.mark.parametrize("name", ["", "  ", "..", "a/b", "a\\b", "1", "a\nb"])
def test_tag_names_that_are_refused(name: str) -> None:
    """Blank, numeric and path-like tag names give TS1107."""
    with pytest.raises(FixRequest) as raised:
        LAYOUT.tag_path(name)
    assert raised.value.code == "TS1107"


@pytest.mark.parametrize("name", ["main", "12", "x/y", ""])
def test_branch_names_that_are_refused(name: str) -> None:
    """`main`, numbers and path-like branch names give TS1107."""
    with pytest.raises(FixRequest):
        LAYOUT.branch_dir(name)


def test_tables_cannot_leave_the_warehouse() -> None:
    """A database or table name with a slash or dots is refused."""
    for database, table in (("a/b", "t"), ("..", "t"), ("d", "../x"), ("d", "..")):
        with pytest.raises(FixRequest):
            table_location("/w", database, table)
