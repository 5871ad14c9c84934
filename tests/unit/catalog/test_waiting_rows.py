"""Rows that another engine left in level 0: counted, not shown, and readers of the newest state are warned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.catalog.name_lookup import resolve_table
from tablestore_engine.catalog.waiting_rows import sentence
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.read.scan import ScanPlan
from tests.unit.store.table_world import make_table, put, row, rows_of
from tests.unit.store.test_changelog import foreign_level_zero


def test_a_reader_is_warned_of_waiting_rows_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With their number and the command; not of a past snapshot, and no more once they are compacted."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    foreign_level_zero(store, [row(2, "theirs"), row(3), row(4)], [0, 0, 0])

    def plan(version: TableVersion | None = None) -> ScanPlan:
        found = resolve_table(store, version).load_plan(rows_max=1)
        assert isinstance(found, ScanPlan)
        return found

    assert [plan().waiting_rows, plan().waiting_rows] == [3, 3]
    assert caplog.messages == [sentence("demo.t", 3)]
    assert "tablestore compact demo.t" in caplog.text
    assert {one["id"] for one in rows_of(store)} == {1, 2}
    assert plan(TableVersion(snapshot=1)).waiting_rows == 0
    assert plan(TableVersion(snapshot=2)).waiting_rows == 3
    store.compact()
    assert plan().waiting_rows == 0
    assert {one["id"] for one in rows_of(store)} == {1, 2, 3, 4}
    assert len(caplog.messages) == 1


def test_tables_without_key_have_no_waiting_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Level 0 of a table without a key is the table, and no warning is logged."""
    store = make_table(tmp_path, keys=())
    put(store, row(1))
    found = resolve_table(store, None).load_plan()
    assert isinstance(found, ScanPlan)
    assert (found.waiting_rows, found.visible_rows, caplog.messages) == (0, 1, [])


def test_facts_count_waiting_rows(tmp_path: Path) -> None:
    """Beside the rows that are visible, as `tablestore show` prints them."""
    store = make_table(tmp_path)
    put(store, row(1))
    with Engine(str(tmp_path)) as engine:
        assert engine.table("demo.t").facts().waiting_rows == 0
        foreign_level_zero(store, [row(7)], [0])
        facts = engine.table("demo.t").facts()
    assert (facts.rows, facts.waiting_rows) == (1, 1)
