"""What a model's plan reads of the table that is there: one look (decision 0065)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.plan.layout_changes import ModelLayout
from dbt.adapters.tablestore.plan.run_context import PlanContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_job import read_situation
from tablestore_engine.api import Engine
from tablestore_engine.fileio.object_cache import CachedFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.doubles.memory_store import MemoryFileIO
from tests.doubles.request_counts import CountingFileIO


def test_situation_of_a_table_looks_it_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns, key, partitions and options are of one schema: one hint, one listing, and no manifest is read."""
    counter = CountingFileIO(MemoryFileIO(str(tmp_path), SYSTEM.now_ms))
    opened = (str(tmp_path), CachedFileIO(counter))
    monkeypatch.setattr("tablestore_engine.warehouse.warehouse.open_root", lambda *_: opened)
    engine = Engine(str(tmp_path))
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = engine.create_table("demo.t", schema, primary_key=["id", "day"], partition_by=["day"])
    table.upsert(pa.table({"id": [1], "day": [0]}, schema))
    relation = TablestoreRelation.create(schema="demo", identifier="t", type="table")
    counter.restart()
    found = read_situation(engine, relation, "select 1", (), PlanContext(existing=relation))
    names = [one.path.rpartition("/")[2] for one in counter.requests]
    assert found.table_exists
    assert found.table_columns == (("id", "bigint"), ("day", "date"))
    assert found.table_layout == ModelLayout(("id", "day"), ("day",), dict(table.schema.options))
    assert names.count("LATEST") == 1, counter.steps()
    assert not [name for name in names if name.startswith("manifest")]
