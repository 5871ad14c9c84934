"""DESCRIBE HISTORY: how many rows a snapshot has, as a query of it returns them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.format.schema import encode_schema
from tablestore_engine.warehouse.statements.show_and_describe import describe_history
from tablestore_engine.warehouse.statements.table_actions import TableActions

SPEC = WriteSpec(table=TableSpec(("id",), options={"tablestore.compaction": "dedicated"}))


def metrics_of(engine: Engine, limit: int | None = None) -> list[Any]:
    """operationMetrics of `d.t`, newest first."""
    actions = TableActions(engine._warehouse)
    return [row[4] for row in describe_history(actions.history("d", "t", limit)).rows]


def test_history_counts_visible_rows(tmp_path: Path) -> None:
    """numRows is what a query returns; records that deletion vectors hide count as stored rows alone."""
    engine = Engine(str(tmp_path))
    for number in range(4):
        engine.write("d.t", pa.table({"id": [1, 2], "v": [number, number]}), SPEC)
    gone = pa.table({"id": [2], "v": [3], "_ROW_KIND": pa.array([3], pa.int8())})
    engine.write("d.t", gone, SPEC)
    found = metrics_of(engine, 4)
    assert [one["numRows"] for one in found] == ["1", "2", "2", "2"]
    assert [one["numStoredRows"] for one in found] == ["8", "8", "6", "4"]
    counted = [engine.table("d.t").scan(snapshot=number).to_arrow().num_rows for number in (5, 4, 3, 2)]
    assert counted == [int(one["numRows"]) for one in found]


def test_history_of_merged_files_has_no_count(tmp_path: Path) -> None:
    """Without deletion vectors only merging tells how many rows there are: NULL, not the records."""
    engine = Engine(str(tmp_path))
    engine.write("d.t", pa.table({"id": [1], "v": [1]}), SPEC)
    schema = engine.table("d.t").store.schema
    merged = replace(schema, options={**schema.options, "deletion-vectors.enabled": "false"})
    (tmp_path / "d.db" / "t" / "schema" / f"schema-{schema.id}").write_bytes(encode_schema(merged))
    (found,) = metrics_of(Engine(str(tmp_path)))
    assert (found["numRows"], found["numStoredRows"]) == (None, "1")
