"""Staged snapshots through the front door."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec

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
    engine.create_table("d.t", ROWS.schema, SPEC).drop_staged("tyr")
    assert engine.find_table("d.t") is not None
