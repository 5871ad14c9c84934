"""Changelogs through the front door: what old snapshots changed, in the columns of today."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, OnSchemaChange, Table, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import FixRequest
from tablestore_engine.format import schema as table_schema
from tablestore_engine.format.schema_change import rename_column
from tablestore_engine.warehouse import net_ends
from tablestore_engine.warehouse.net_changes import ChangeCounts

KEYED = TableSpec(primary_key=("id",))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """`d.t` with keys 1 and 2, written in one snapshot each."""
    engine = Engine(str(tmp_path))
    for number in (1, 2):
        engine.write("d.t", pa.table({"id": [number], "v": ["a"]}), WriteSpec(table=KEYED))
    return engine.table("d.t")


def test_renamed_columns_keep_their_values(table: Table) -> None:
    """A rename must not turn older changes into NULL, and keys are still told apart."""
    for old, new in (("id", "number"), ("v", "text")):
        table.warehouse.catalog.alter_table(
            table.identifier, lambda schema, old=old, new=new: rename_column(schema, old, new)
        )
    assert table.changes(0).select(["number", "text"]).to_pylist() == [
        {"number": 1, "text": "a"},
        {"number": 2, "text": "a"},
    ]
    assert table.diff(0) == ChangeCounts(2, 0, 0)


def test_a_column_of_another_type_is_another_column(table: Table) -> None:
    """A full refresh that gives a name a new type: older changes have no value for the new column."""
    refresh = WriteSpec(mode=WriteMode.OVERWRITE_TABLE, on_schema_change=OnSchemaChange.REPLACE)
    table.write(pa.table({"id": [1, 2], "v": pa.array([True, False])}), refresh)
    assert table.changes(0, 2).column("v").to_pylist() == [None, None]
    assert table.diff(0) == ChangeCounts(2, 0, 0)


def test_zeros_of_both_signs_are_two_keys(tmp_path: Path) -> None:
    """Counts and samples group as keys do."""
    engine = Engine(str(tmp_path))
    engine.write("d.t", pa.table({"id": [0.0, -0.0]}), WriteSpec(table=KEYED))
    table = engine.table("d.t")
    assert table.diff(0) == ChangeCounts(2, 0, 0)
    assert len(table.compare(0).samples(5)) == 2


@pytest.mark.parametrize("turn_rows", [1_000, 3])
def test_counts_in_turns(table: Table, turn_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many keys are counted at once, each counts once; both ways, with more keys than a turn has."""
    monkeypatch.setattr(net_ends, "PASS_ROWS", turn_rows)
    table.write(pa.table({"id": list(range(2, 40)), "v": ["b"] * 38}))
    gone = pa.table({"id": [1, 7], "v": ["a", "b"], "_ROW_KIND": pa.array([3, 3], pa.int8())})
    table.write(gone)
    assert table.diff(2) == ChangeCounts(36, 1, 1)
    assert table.diff(4, 2) == ChangeCounts(1, 1, 36)
    samples = table.compare(2).samples(3)
    assert [(one.kind, (one.after or one.before or {})["id"]) for one in samples] == [
        ("inserted", 3), ("inserted", 4), ("inserted", 5), ("updated", 2), ("deleted", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["_row_kind", "_Snapshot_Id"])
def test_changes_with_a_column_of_their_names_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A table of another engine may have such a column; its changes can be read without it, or under another name."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        rows = [{"id": 1, name: "mine"}]
        with pytest.raises(FixRequest, match="TS1112"):
            engine.create_table("d.t", rows, primary_key="id")
        monkeypatch.setattr(table_schema, "CHANGE_COLUMNS", ())
        table = engine.create_table("d.t", rows, primary_key="id")
        monkeypatch.undo()
        table.upsert(rows)
        assert table.scan().to_arrow().to_pylist() == rows
        for read in (
            lambda: table.changes(0),
            lambda: table.changes(1),
            lambda: list(table.change_batches(0)),
            table.stream,
        ):
            with pytest.raises(FixRequest, match=f"'{name}'") as refused:
                read()
            assert refused.value.code == "TS1362"
        (batch,) = table.change_batches(0, columns=["id"])
        assert batch.to_pylist() == [{"id": 1, "_row_kind": "+I", "_snapshot_id": 1}]
        table.warehouse.catalog.alter_table(
            table.identifier, lambda schema: rename_column(schema, name, "kind")
        )
        assert table.changes(0).column("kind").to_pylist() == ["mine"]
