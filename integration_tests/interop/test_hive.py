"""Hive's read path shows our tables as they are, but for faults of its connector, each of which is named here."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from integration_tests.docs.snippets import read_snippets
from integration_tests.interop.engine_matrix import CELL
from integration_tests.interop.golden import Golden
from integration_tests.interop.hive_tables import HiveRefused, HiveTables
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Row, assert_same
from integration_tests.interop.test_iceberg_page import PAGE, make_orders

pytestmark = pytest.mark.nightly  # 90 MB of jars
TIME = "with_time"
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - rows.py has no zones


@pytest.mark.parametrize("name", OURS)
def test_hive_reads_the_newest_state(ours: Callable[[str], Golden], hive: HiveTables, name: str) -> None:
    """Every row and column. A row that the connector cannot show has a fraction of a second before 1970."""
    table = ours(name)
    assert_shown(table, table.history.rows[max(table.history.rows)], *hive.read(table.location))


@pytest.mark.parametrize("name", OURS)
def test_hive_reads_past_snapshots(
    ours: Callable[[str], Golden],
    hive: HiveTables,
    name: str,
    record_property: Callable[[str, object], None],
) -> None:
    """By `SET paimon.scan.snapshot-id`; those with older columns end with errors, never with other rows."""
    table = ours(name)
    snapshots = Ours().store(table.location).snapshots
    today = snapshots.get(max(table.history.rows)).schema_id
    is_changed = False
    for snapshot, expected in table.history.rows.items():
        if snapshots.get(snapshot).schema_id == today:
            assert_shown(table, expected, *hive.read(table.location, snapshot))
            continue
        is_changed = True
        with suppress(HiveRefused):
            rows, errors = hive.read(table.location, snapshot)
            assert errors
            assert not Counter(rows) - Counter(Ours().read_in_newest_columns(table.location, snapshot))
    if is_changed:
        record_property(CELL, "OK: snapshots before a change of columns end with an error")


def test_the_statement_of_the_page_creates_a_table(hive: HiveTables, tmp_path: Path) -> None:
    """Hive's parser, and the hooks of the storage handler that it names; then the table's location is read."""
    location = make_orders(Ours(), tmp_path / "warehouse")
    (text,) = (one.text for one in read_snippets(PAGE) if one.file_name == "hive/create.sql")
    statement = text.partition("\n")[2].replace("/path/to/warehouse", str(tmp_path / "warehouse"))
    rows, errors = hive.create(statement.replace("\n", " ").strip().removesuffix(";"))
    assert (sorted(rows), errors) == (sorted(Ours().read(location)), [])
    with pytest.raises(HiveRefused, match="ParseException"):
        hive.create("CREATE EXTERNAL orders STORED BY nothing")


def assert_shown(table: Golden, expected_rows: list[Row], rows: list[Row], errors: list[str]) -> None:
    """Every row is there, or hidden by an error that it causes."""
    name = table.location.name
    fixed = {at for at, one in enumerate(table.kind.schema.columns) if str(one.type).startswith("CHAR")}
    expected = Counter(_without_padding(row, fixed) for row in expected_rows)
    got = Counter(map(_with_time, rows) if name == TIME else rows)
    hidden = expected - got
    assert_same(list((expected - hidden).elements()), list(got.elements()), name)
    assert sum(hidden.values()) == len(errors), set(errors)
    assert all("NanoOfSecond" in error for error in errors)
    assert all(map(_has_early_fraction, hidden))


def _without_padding(row: Row, fixed: set[int]) -> Row:
    """Blanks at the end of a CHAR count for nothing in Hive."""
    return tuple(one.rstrip(" ") if at in fixed and one is not None else one for at, one in enumerate(row))


def _with_time(row: Row) -> Row:
    """TIME is a text in Hive."""
    return row[0], None if row[1] is None else dt.time.fromisoformat(row[1])


def _has_early_fraction(row: Row) -> bool:
    return any(one < EPOCH and one.microsecond > 0 for one in _moments(row))


def _moments(value: Any) -> Iterator[dt.datetime]:
    if isinstance(value, tuple):
        for one in value:
            yield from _moments(one)
    elif isinstance(value, dt.datetime):
        yield value
