"""Changelog producers of merge-on-write tables: what each commit tells, and when the producer may change."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.sql.statement import SetProperties
from tablestore_engine.store.alter import alter_table
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.table_context import committer_of
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.stream.changes_input import plan_changes
from tablestore_engine.stream.open_stream import NOW, StreamRequest, open_stream
from tablestore_engine.warehouse.compared_states import tells_both_rows
from tablestore_engine.warehouse.statements.alter_statement import alter_schema
from tests.unit.store.table_world import Row, delete, make_table, put, row, rows_of
from tests.unit.store.test_changelog import foreign_level_zero

INPUT = {"changelog-producer": "input"}
QUIET = {
    "changelog-producer.row-deduplicate": "true",
    "changelog-producer.row-deduplicate-ignore-fields": "n",
}


def changes_of(store: TableStore, number: int) -> list[tuple[str, Row]]:
    """(kind, row) of one snapshot, in their order."""
    batches = ChangelogReader(store.context).read(store.snapshots.get(number))
    rows = [one for batch in batches for one in batch.rows.to_pylist()]
    return [(("+I", "-U", "+U", "-D")[one.pop("_ROW_KIND")], one) for one in rows]


def set_producer(store: TableStore, producer: str) -> None:
    """ALTER TABLE SET TBLPROPERTIES."""

    def change(schema: TableSchema) -> TableSchema:
        return alter_schema(schema, SetProperties((("changelog-producer", producer),)), ())

    alter_table(store.context, committer_of(store.context), change)


def test_input_tells_rows_as_they_came(tmp_path: Path) -> None:
    """Repeated keys, late rows and deletes of nothing are all told, in key order; nothing is looked up."""
    store = make_table(tmp_path, options={**INPUT, "sequence.field": "n"})
    put(store, row(2, "x", 5), row(1, "a", 3), row(1, "b", 2))
    assert changes_of(store, 1) == [("+I", row(1, "b", 2)), ("+I", row(1, "a", 3)), ("+I", row(2, "x", 5))]
    put(store, row(2, "late", 1))
    assert changes_of(store, 2) == [("+I", row(2, "late", 1))]
    delete(store, row(9, "none", 9))
    assert changes_of(store, 3) == [("-D", row(9, "none", 9))]
    assert rows_of(store) == [row(1, "a", 3), row(2, "x", 5)]


def test_input_tells_what_statements_change(tmp_path: Path) -> None:
    """An overwrite brings the changes that it made: rows that go, and equal ones stay silent."""
    store = make_table(tmp_path, options=INPUT)
    put(store, row(1), row(2), row(3))
    put(store, row(2), row(3, "b"), mode=WriteMode.OVERWRITE_TABLE)
    assert changes_of(store, 2) == [("-D", row(1)), ("-U", row(3)), ("+U", row(3, "b"))]


def test_input_leaves_level_zero_to_its_writer(tmp_path: Path) -> None:
    """Changes of rows that another engine wrote came with its commit; the compaction has none. A reader cannot begin
    with all rows before it (TS1670).
    """
    store = make_table(tmp_path, options=INPUT)
    put(store, row(1))
    foreign_level_zero(store, [row(2)], [0])
    with pytest.raises(FixRequest, match="TS1670"):
        list(open_stream(store.context, StreamRequest(until=NOW)))
    store.compact()
    assert changes_of(store, 3) == []
    assert [one.num_rows for one in open_stream(store.context, StreamRequest(until=NOW))] == [1, 1]


@pytest.mark.parametrize("seed", range(3))
def test_input_and_lookup_of_equal_commits_hold_equal_rows(tmp_path: Path, seed: int) -> None:
    """Random commits: the rows do not depend on the producer, and the input changelog is what was written."""
    chance = random.Random(seed)
    tables = [
        make_table(tmp_path / name, options={"changelog-producer": name}) for name in ("input", "lookup")
    ]
    for number in range(1, 8):
        rows = [row(chance.randrange(9), chance.choice("abc"), number) for _ in range(5)]
        for store in tables:
            put(store, *rows, duplicates="last")
        told = changes_of(tables[0], number)
        assert sorted(map(repr, told)) == sorted(repr(("+I", one)) for one in rows)
        assert rows_of(tables[0]) == rows_of(tables[1])


def test_ignored_columns_are_stored_and_not_told(tmp_path: Path) -> None:
    """An update of `n` alone replaces the row without a changelog; with another column the changelog has both; a delete
    is always told.
    """
    store = make_table(tmp_path, options=QUIET)
    put(store, row(1, "a", 1), row(2, "b", 1))
    put(store, row(1, "a", 2), row(2, "c", 2), row(3, "d", 2))
    told = [("-U", row(2, "b", 1)), ("+U", row(2, "c", 2)), ("+I", row(3, "d", 2))]
    assert changes_of(store, 2) == told
    put(store, row(1, "a", 3))
    assert changes_of(store, 3) == []
    assert rows_of(store)[0] == row(1, "a", 3)
    delete(store, row(1))
    assert changes_of(store, 4) == [("-D", row(1, "a", 3))]
    assert not tells_both_rows(store, 1, 2)


@pytest.mark.parametrize("options", [{"changelog-producer": "none"}, INPUT, QUIET])
def test_readers_that_need_both_rows_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    """`changes()` of a table whose changelog is not complete: TS1481."""
    store = make_table(tmp_path, options=options)
    put(store, row(1))
    with pytest.raises(FixRequest, match="TS1481"):
        plan_changes(store, None, only=True)


def test_producer_changes_where_each_snapshot_has_its_own(tmp_path: Path) -> None:
    """none, then lookup, then input: every snapshot is read by its own, and a range over several is not complete."""
    store = make_table(tmp_path, options={"changelog-producer": "none"})
    put(store, row(1))
    put(store, row(1, "b"))
    set_producer(store, "lookup")
    put(store, row(1, "c"))
    assert [changes_of(store, number) for number in (2, 3, 4)] == [
        [("+I", row(1, "b"))],
        [],
        [("-U", row(1, "b")), ("+U", row(1, "c"))],
    ]
    assert [tells_both_rows(store, first, 4) for first in (1, 2, 3)] == [False, True, True]
    set_producer(store, "input")
    put(store, row(1, "d"))
    assert changes_of(store, 6) == [("+I", row(1, "d"))]
    assert tells_both_rows(store, 2, 4)
    assert not tells_both_rows(store, 2, 6)


def test_producer_stays_while_rows_wait(tmp_path: Path) -> None:
    """Whether changes of level 0 were sent depends on the producer: TS1670 until a compaction took them in."""
    store = make_table(tmp_path, options={"changelog-producer": "none"})
    put(store, row(1))
    foreign_level_zero(store, [row(2)], [0])
    with pytest.raises(FixRequest, match="TS1670"):
        set_producer(store, "lookup")
    store.compact()
    set_producer(store, "lookup")
    assert store.schema.options["changelog-producer"] == "lookup"


@pytest.mark.parametrize(
    ("options", "producer", "code"),
    [
        ({"log.system": "kafka", "kafka.topic": "t"}, "input", "TS1022"),
        ({"deletion-vectors.enabled": "false"}, "none", "TS1022"),
        ({}, "full-compaction", "TS1127"),
        ({"merge-engine": "first-row", "deletion-vectors.enabled": "false"}, "input", "TS1658"),
        (QUIET, "input", "TS1658"),
    ],
)
def test_producer_change_is_refused_by_name(
    tmp_path: Path, options: dict[str, str], producer: str, code: str
) -> None:
    """With a log, without deletion vectors, to what Paimon refuses, and where another option would have no effect."""
    store = make_table(tmp_path, options=options)
    with pytest.raises(Exception, match=code):
        set_producer(store, producer)


@pytest.mark.parametrize(
    "options",
    [
        {"changelog-producer.row-deduplicate": "false"},
        {"changelog-producer.row-deduplicate-ignore-fields": "id"},
    ],
)
def test_ignored_columns_without_effect_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    """Nothing compares rows, or the column is a key: TS1658."""
    store = make_table(tmp_path)
    pairs: dict[str, str] = {**QUIET, **options}
    with pytest.raises(FixRequest, match="TS1658"):
        alter_schema(store.schema, SetProperties(tuple(pairs.items())), ())
