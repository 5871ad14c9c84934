"""Flink reads every snapshot of our tables, follows them, and writes in turns with us."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from integration_tests.interop.engine_matrix import CELL, INSERTS, UPSERTS
from integration_tests.interop.flink_tables import FROM_START, FlinkTables
from integration_tests.interop.golden import Golden, Kind, make_table
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Change, Row, assert_same
from integration_tests.soak.random_tables import random_table
from tests.doses import examples

pytestmark = pytest.mark.nightly  # 190 MB of jars, some minutes
KEYLESS = [name for name in OURS if not OURS[name]().schema.keys]
UNTOLD = "without_changelog"
KEYED = [name for name in OURS if name not in {*KEYLESS, UNTOLD}]
SEED = int(os.environ.get("TABLESTORE_SEED", "739580"))
RANDOM_TABLES, AT_ONCE = examples(4, 200), 10


def folded(changes: Iterable[Change], keys: tuple[str, ...], names: list[str]) -> list[Row]:
    """The table that a changelog leads to. Each change has to fit the row before it."""
    at = [names.index(key) for key in keys]
    rows: dict[Row, Row] = {}
    for kind, row in changes:
        key = tuple(row[one] for one in at)
        if kind in ("+I", "+U"):
            assert key not in rows, (kind, row)
            rows[key] = row
        else:
            assert rows.pop(key) == row, (kind, row)
    return list(rows.values())


def _told(location: Path) -> list[Change]:
    """Every change as our own stream gives it."""
    return [change for _, changes in Ours().follow(location, "earliest") for change in changes]


@pytest.mark.parametrize("name", OURS)
def test_flink_reads_ours_at_every_snapshot(
    ours: Callable[[str], Golden], flink_tables: FlinkTables, name: str
) -> None:
    """The newest state by a plain query, past ones by their number, both as we read them ourselves."""
    table = ours(name)
    assert_same(table.history.rows[max(table.history.rows)], flink_tables.read(table.location), name)
    for snapshot, rows in flink_tables.read_all(table.location, list(table.history.rows)).items():
        expected = Ours().read_in_newest_columns(table.location, snapshot)
        assert len(expected) == len(table.history.rows[snapshot])
        assert_same(expected, rows, f"{name}, snapshot {snapshot}")


def test_flink_reads_a_tag(flink_tables: FlinkTables, tmp_path: Path) -> None:
    """Also after its snapshot has expired, by the name of the tag."""
    table = make_table(Ours(), tmp_path / "ours.db" / "t", OURS["folding"]())
    store = Ours().store(table.location)
    store.tags.create("third", 3)
    (table.location / "snapshot" / "snapshot-1").rename(tmp_path / "gone")
    assert_same(table.history.rows[3], flink_tables.read(table.location, tag="third"), "tag")


@pytest.mark.parametrize("name", KEYED)
def test_flink_streams_our_changelog(
    ours: Callable[[str], Golden], flink_tables: FlinkTables, name: str
) -> None:
    """From snapshot 1, change by change as Table.changes gives them; folded by their kinds they are the table."""
    table = ours(name)
    streamed = flink_tables.follow(table.location)
    assert_same(_told(table.location), streamed, name)
    schema = Ours().store(table.location).schema
    newest = table.history.rows[max(table.history.rows)]
    assert_same(newest, folded(streamed, schema.primary_keys, list(schema.field_names)), f"{name}, folded")


def test_flink_gets_no_deletes_of_a_table_without_changelog(
    ours: Callable[[str], Golden], flink_tables: FlinkTables, record_property: Callable[[str, object], None]
) -> None:
    """With `changelog-producer` = `none` a stream has the upserts, as ours; deleted rows stay in its fold."""
    table = ours(UNTOLD)
    streamed = flink_tables.follow(table.location)
    upserts = [row for kind, row in streamed if kind in ("+I", "+U")]
    assert_same([row for _, row in _told(table.location)], upserts, UNTOLD)
    left = folded(streamed, ("id",), list(Ours().store(table.location).schema.field_names))
    assert {*left} > {*table.history.rows[max(table.history.rows)]}
    record_property(CELL, UPSERTS)


@pytest.mark.parametrize("name", KEYLESS)
def test_flink_streams_the_inserts_of_a_table_without_key(
    ours: Callable[[str], Golden],
    flink_tables: FlinkTables,
    name: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Every inserted row once; Flink passes by snapshots that replace rows, which our changelog has. With an option it
    shows their new rows, and still no delete.
    """
    table = ours(name)
    streamed = flink_tables.follow(table.location)
    told = _told(table.location)
    replaced = {number for number, kind in Ours().snapshots(table.location) if kind == "OVERWRITE"}
    assert {kind for kind, _ in streamed} == {"+I"}
    record_property(CELL, INSERTS)
    if not replaced:
        assert_same(told, streamed, name)
        return
    batches = Ours().follow(table.location, "earliest")
    inserts = [change for number, changes in batches if number not in replaced for change in changes]
    assert_same(inserts, streamed, f"{name}, inserts")
    assert Counter(told) != Counter(streamed)
    hints = {**FROM_START, "streaming-read-append-overwrite": "true"}
    with_overwrites = flink_tables.follow(table.location, hints)
    assert_same([change for change in told if change[0] == "+I"], with_overwrites, f"{name}, with overwrites")


@pytest.mark.parametrize("first", range(0, RANDOM_TABLES, AT_ONCE))
def test_flink_reads_random_tables_at_every_snapshot(
    flink_tables: FlinkTables, tmp_path: Path, first: int
) -> None:
    """Any keys, types, partitions, buckets, options and steps: each snapshot as we read it ourselves, and with a key
    the stream from snapshot 1.
    """
    for number in range(first, min(first + AT_ONCE, RANDOM_TABLES)):
        check_random_table(flink_tables, tmp_path / "ours.db" / f"t{number}", 1000 * SEED + number)


def check_random_table(flink: FlinkTables, location: Path, seed: int) -> int:
    """How many snapshots were compared."""
    drawn = random_table(seed)
    make_table(Ours(), location, Kind(drawn.schema, list(drawn.steps), early=False))
    snapshots = [number for number, _ in Ours().snapshots(location)]
    assert_same(Ours().read(location), flink.read(location), f"seed {seed}, newest")
    for snapshot, rows in flink.read_all(location, snapshots).items():
        expected = Ours().read_in_newest_columns(location, snapshot)
        assert_same(expected, rows, f"seed {seed}, snapshot {snapshot}")
    if drawn.schema.keys:
        streamed = flink.follow(location)
        assert_same(_told(location), streamed, f"seed {seed}, stream")
        names = list(Ours().store(location).schema.field_names)
        assert_same(Ours().read(location), folded(streamed, drawn.schema.keys, names), f"seed {seed}, folded")
    return len(snapshots)
