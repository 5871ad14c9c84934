"""Staged snapshots through the front door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, OnSchemaChange, TableSpec, WriteSpec
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import Staged, stage_properties

ROWS = pa.table({"id": [1]})
SPEC = TableSpec(primary_key=("id",))


def test_a_discarded_first_build_takes_its_table_with_it(tmp_path: Path) -> None:
    """The table existed for the staged rows only."""
    engine = Engine(str(tmp_path))
    engine.write("d.t", ROWS, WriteSpec(table=SPEC, stage="try"))
    engine.table("d.t").drop_staged("try")
    assert engine.find_table("d.t") is None


def test_discarding_what_is_not_staged_does_nothing(tmp_path: Path) -> None:
    """An empty table that somebody made survives a misspelt name."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    engine.create_table("d.t", ROWS.schema, primary_key=SPEC.primary_key, options=SPEC.options).drop_staged(
        "tyr"
    )
    assert engine.find_table("d.t") is not None


def batch(engine: Engine, *ids: int, user: str = "run", **more: Any) -> None:
    """One more write into the stage `s`."""
    stage = stage_properties(Staged("d.t", "s", "", gates=("t",), owner="m"))
    rows = more.pop("rows", pa.table({"id": [*ids]}))
    how = {"stage": "s", "builds_on_stage": True, "commit_user": user, "commit_identifier": ids[0], **more}
    engine.write("d.t", rows, WriteSpec(properties=stage, **how))


def test_rows_that_no_test_has_read_are_not_published(tmp_path: Path) -> None:
    """Another process adds a batch behind the tests: the gate refuses by name, and publishes after a new verdict."""
    engine = Engine(str(tmp_path))
    engine.write("d.t", ROWS, WriteSpec(table=SPEC))
    batch(engine, 2)
    (tested,) = engine.gate.read_book("d.t").staged
    batch(Engine(str(tmp_path)), 3, user="other")
    (refused,) = engine.gate.publish((tested,))
    assert refused.error is not None
    assert refused.error.code == "TS1085"
    (again,) = engine.gate.read_book("d.t").staged
    (done,) = engine.gate.publish((again,))
    assert done.state == "published"
    assert sorted(engine.table("d.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_stage_changes_the_columns_once(tmp_path: Path) -> None:
    """Its later writes find the column that the first one brought; another new one is refused, the stage stays."""
    engine = Engine(str(tmp_path))
    engine.write("d.t", ROWS, WriteSpec(table=SPEC))
    wider = OnSchemaChange.APPEND_NEW_COLUMNS
    for number in (2, 3):
        batch(engine, number, rows=pa.table({"id": [number], "v": ["a"]}), on_schema_change=wider)
    with pytest.raises(FixRequest, match="TS1086"):
        batch(engine, 4, rows=pa.table({"id": [4], "w": ["a"]}), on_schema_change=wider)
    (staged,) = engine.gate.read_book("d.t").staged
    (done,) = engine.gate.publish((staged,))
    assert done.state == "published"
    found = engine.table("d.t").scan().to_arrow().sort_by("id")
    assert found.to_pylist() == [{"id": 1, "v": None}, {"id": 2, "v": "a"}, {"id": 3, "v": "a"}]
    assert engine.table("d.t").verify() == ()


def test_a_write_builds_on_a_stage_only_when_it_is_staged(tmp_path: Path) -> None:
    """TS1025 before anything is written."""
    with pytest.raises(FixRequest, match="TS1025"):
        Engine(str(tmp_path)).write("d.t", ROWS, WriteSpec(table=SPEC, builds_on_stage=True))
