"""A handle of Engine.seen_table: all its answers are of the state that the table had then."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.errors import NotFound

ROWS = pa.table({"id": [1]})


def test_an_empty_table_is_seen_as_one_with_rows(tmp_path: Path) -> None:
    """Rows that come later are not in it."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        table = engine.create_table("d.t", ROWS.schema, primary_key="id")
        seen = engine.seen_table("d.t")
        table.upsert(ROWS)
        assert (seen.latest_snapshot_id(), seen.facts().rows) == (None, 0)
        assert (engine.seen_table("d.t").latest_snapshot_id(), table.count()) == (1, 1)


def test_a_table_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """As of any handle."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        assert engine.find_seen_table("d.t") is None
        with pytest.raises(NotFound, match="TS1414"):
            engine.seen_table("d.t")
