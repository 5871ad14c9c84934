"""Hive's read path shows our tables as they are, but for faults of its connector, each of which is named here."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from integration_tests.interop.golden import Golden
from integration_tests.interop.hive_tables import HiveTables
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.rows import Row, assert_same

pytestmark = pytest.mark.nightly  # 90 MB of jars
TIME = "with_time"
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - rows.py has no zones


@pytest.mark.parametrize("name", OURS)
def test_hive_reads_the_newest_state(ours: Callable[[str], Golden], hive: HiveTables, name: str) -> None:
    """Every row and column. A row that the connector cannot show has a fraction of a second before 1970."""
    table = ours(name)
    fixed = {at for at, one in enumerate(table.kind.schema.columns) if str(one.type).startswith("CHAR")}
    newest = table.history.rows[max(table.history.rows)]
    expected = Counter(_without_padding(row, fixed) for row in newest)
    rows, errors = hive.read(table.location)
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
