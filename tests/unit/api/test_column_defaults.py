"""Defaults of columns in writes from Python: where NULL becomes the default, and where it stays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixRequest, Table, TableSpec, WriteSpec

SCHEMA = pa.schema({"id": pa.int64(), "v": pa.string(), "n": pa.int32()})
DEFAULTS = {"fields.v.default-value": "new", "fields.n.default-value": "7"}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A new warehouse."""
    return Engine(str(tmp_path))


def _rows(table: Table) -> list[tuple[object, ...]]:
    return sorted(tuple(one.values()) for one in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("keys", [["id"], []])
def test_null_becomes_the_default_in_each_write(engine: Engine, keys: list[str]) -> None:
    """Given and missing NULL alike, with and without a key, also in an overwrite; values stay."""
    table = engine.create_table("demo.t", SCHEMA, primary_key=keys, options=DEFAULTS)
    assert "fields.v.default-value" not in table.schema.options
    put = table.upsert if keys else table.append
    put([{"id": 1, "v": None, "n": None}, {"id": 2, "v": "", "n": 0}])
    put([{"id": 3}])
    rows = [(1, "new", 7), (2, "", 0), (3, "new", 7)]
    assert _rows(table) == rows
    table.overwrite([{"id": 1, "n": None}])
    assert _rows(table) == [(1, "new", 7)]


def test_a_column_without_default_is_still_missing(engine: Engine) -> None:
    """An upsert may leave out columns with a default, and no others."""
    table = engine.create_table("demo.t", SCHEMA, primary_key=["id"], options={"fields.n.default-value": "7"})
    with pytest.raises(FixRequest, match=r"TS1063.*lack v"):
        table.upsert([{"id": 1}])
    table.upsert([{"id": 1, "v": "x"}])
    assert _rows(table) == [(1, "x", 7)]


def test_a_write_changes_the_default_for_rows_to_come(engine: Engine) -> None:
    """The spec of a write, as dbt gives it each time: stored rows stay, equal defaults make no schema."""
    spec = WriteSpec(TableSpec(primary_key=("id",), options={"fields.n.default-value": "7"}))
    rows = pa.table({"id": [1], "n": pa.array([None], pa.int32())})
    engine.write("demo.t", rows, WriteSpec(TableSpec(primary_key=("id",))))
    table = engine.table("demo.t")
    engine.write("demo.t", [{"id": 2, "n": None}], spec)
    before = table.schema.id
    engine.write("demo.t", [{"id": 3, "n": None}], spec)
    assert table.schema.id == before
    assert _rows(table) == [(1, None), (2, 7), (3, 7)]


@pytest.mark.parametrize(
    "option",
    [("fields.n.default-value", "x"), ("fields.id.default-value", "1"), ("fields.w.default-value", "1")],
)
def test_a_default_that_does_not_fit_makes_no_table(engine: Engine, option: tuple[str, str]) -> None:
    """TS1153 before anything is changed."""
    with pytest.raises(FixRequest, match="TS1153"):
        engine.create_table("demo.t", SCHEMA, primary_key=["id"], options=dict([option]))
    assert not engine.list_tables("demo")
