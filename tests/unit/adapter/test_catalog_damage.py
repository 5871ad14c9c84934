"""dbt's catalog of a schema in which one table is damaged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.tablestore import catalog_rows
from tablestore_engine.api import Engine, WriteSpec


def test_a_damaged_table_is_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tables' rows come, and a warning names the one that cannot be read, with its code."""
    engine = Engine(str(tmp_path))
    for name in ("demo.bad", "demo.good"):
        engine.write(name, pa.table({"id": [1]}), WriteSpec(mode="append"))
    (tmp_path / "demo.db/bad/schema/schema-0").write_bytes(b"{")
    told: list[str] = []
    monkeypatch.setattr(catalog_rows.logger, "warning", told.append)
    infos = Engine(str(tmp_path)).relations("demo")
    assert [info.identifier.name for info in infos] == ["bad", "good"]
    rows = [row for info in infos for row in catalog_rows.read_catalog_rows(engine, info, None)]
    assert {row[2] for row in rows} == {"good"}
    (warning,) = told
    assert warning.startswith("demo.bad is not in the catalog: TS11")
