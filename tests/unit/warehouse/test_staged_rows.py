"""Rows that lie in files: few come to memory, many are dealt out to buckets; each way gives the same table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_type import STRING, DataField, DataType
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write import staged_rows
from tablestore_engine.warehouse.write.staged_rows import StagedRows, stage_rows
from tests.doses import cases

SCHEMA = pa.schema([("v", pa.string()), ("id", pa.int64()), ("_ROW_KIND", pa.int8())])
FIELDS = (DataField(0, "v", STRING), DataField(0, "id", DataType("BIGINT")))
NAME = Identifier("demo", "t")
SHAPES = {
    "keyed": TableSpec(primary_key=("id",), options={"bucket": "5"}),
    "keyed, partitioned": TableSpec(primary_key=("id", "v"), partition_by=("v",), options={"bucket": "2"}),
    "no key": TableSpec(),
    "keyed, dynamic": TableSpec(
        primary_key=("id", "v"),
        partition_by=("v",),
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "4"},
    ),
    "keyed, across partitions": TableSpec(primary_key=("id",), partition_by=("v",), options={"bucket": "2"}),
    "keyed, across partitions, dynamic": TableSpec(
        primary_key=("id",),
        partition_by=("v",),
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "4"},
    ),
    "no key, buckets": TableSpec(options={"bucket": "3", "bucket-key": "id"}),
}


def staged(root: Path, *files: list[tuple[str, int | None, int]]) -> StagedRows:
    """Files as tasks leave them."""
    fileio, folder = LocalFileIO(str(root)), f"{root}/.tablestore/staged/q/0"
    made = []
    for number, rows in enumerate(files):
        batches = [
            pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, one, strict=True))], SCHEMA) for one in rows
        ]
        made.append(stage_rows(fileio, f"{folder}/{number}.arrow", batches, SCHEMA))
    names = iter(range(100))
    return StagedRows(FIELDS, fileio, folder, tuple(made), SCHEMA, lambda: f"group-{next(names)}.arrow")


def write(engine: Engine, rows: StagedRows, spec: WriteSpec) -> None:
    """As a sink commits."""
    warehouse: Warehouse = engine.table("demo.t").warehouse
    warehouse.write_incoming(NAME, rows, spec)


@pytest.mark.parametrize("shape", cases(SHAPES, 3))
@pytest.mark.parametrize("mode", [WriteMode.UPSERT, WriteMode.OVERWRITE_TABLE])
def test_many_rows_give_the_same_table_as_few(
    tmp_path: Path, shape: str, mode: WriteMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one commit each; files of groups are gone afterwards."""
    found = []
    for name, small in (("few", 100), ("many", 0)):
        monkeypatch.setattr(staged_rows, "SMALL_ROWS", small)
        monkeypatch.setattr(staged_rows, "STEP_ROWS", 3)
        root = tmp_path / name
        engine = Engine(str(root))
        spec = WriteSpec(SHAPES[shape], mode=mode, missing_columns="null")
        engine.write("demo.t", pa.table({"id": [1, 2, 50], "v": ["x", "x", "y"]}), spec)
        kind = 3 if "keyed" in shape else 0
        last = ("x" if "across" in shape else "y", 50, kind)
        files = [[("x", n, 0) for n in range(2, 12)], [("y", n, 0) for n in (1, *range(12, 20))], [last]]
        write(engine, staged(root, *files), spec)
        table = engine.table("demo.t")
        assert table.latest_snapshot_id() == 2
        assert table.verify() == ()
        assert not list(root.rglob("group-*"))
        changes = table.changes(1).drop_columns(["_snapshot_id"]).to_pylist()
        rows = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
        found.append((sorted(map(repr, rows)), sorted(map(repr, changes))))
    assert found[0] == found[1]


def test_rows_of_a_key_keep_the_order_of_their_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With duplicates='last' the last task's row is the row, whichever way it is written."""
    for small in (100, 0):
        monkeypatch.setattr(staged_rows, "SMALL_ROWS", small)
        root = tmp_path / str(small)
        engine = Engine(str(root))
        engine.create_database("demo")
        spec = SHAPES["keyed"]
        engine.create_table("demo.t", SCHEMA.remove(2), primary_key=spec.primary_key, options=spec.options)
        rows = staged(
            root, [("a", 1, 0), ("b", 1, 0)], [("c", 1, 3)], [("d", 1, 0), ("e", 2, 0), ("f", 2, 3)]
        )
        write(engine, rows, WriteSpec(duplicates="last"))
        assert engine.table("demo.t").scan(columns=["id", "v"]).to_arrow().to_pylist() == [
            {"id": 1, "v": "d"}
        ]


def test_rows_that_are_there_are_no_changes_of_a_write_that_skips_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three rows have the values of before: the changelog has the third alone, whichever way it is written."""
    for small in (100, 0):
        monkeypatch.setattr(staged_rows, "SMALL_ROWS", small)
        root = tmp_path / str(small)
        engine = Engine(str(root))
        spec = SHAPES["keyed"]
        engine.create_database("demo")
        engine.create_table("demo.t", SCHEMA.remove(2), primary_key=spec.primary_key, options=spec.options)
        first = [("a", 1, 0), ("b", 2, 0), ("c", 3, 0)]
        write(engine, staged(root, first), WriteSpec())
        write(engine, staged(root, first[:2], [("d", 3, 0)]), WriteSpec(skip_unchanged=True))
        table = engine.table("demo.t")
        assert [(one["_row_kind"], one["v"]) for one in table.changes(1).to_pylist()] == [
            ("-U", "c"),
            ("+U", "d"),
        ]
        write(engine, staged(root, first[:2]), WriteSpec())
        assert len(table.changes(2).to_pylist()) == 4  # each write chooses for itself


@pytest.mark.parametrize("small", [100, 0])
def test_a_bad_row_leaves_nothing(tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No snapshot, no data file, whichever way it is written."""
    monkeypatch.setattr(staged_rows, "SMALL_ROWS", small)
    monkeypatch.setattr(staged_rows, "STEP_ROWS", 1)
    engine = Engine(str(tmp_path))
    engine.create_database("demo")
    spec = SHAPES["keyed"]
    engine.create_table("demo.t", SCHEMA.remove(2), primary_key=spec.primary_key, options=spec.options)
    rows = staged(tmp_path, [("a", 1, 0), ("b", 2, 0)], [("c", None, 0)])
    with pytest.raises(FixData):
        write(engine, rows, WriteSpec())
    assert engine.table("demo.t").latest_snapshot_id() is None
    assert not list((tmp_path / "demo.db").rglob("*.parquet"))
