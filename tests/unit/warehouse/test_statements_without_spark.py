"""Statements that free room, or that dbt runs before its first model, start no JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec


def test_schemas_are_made_and_dropped_without_spark(tmp_path: Path) -> None:
    """While Spark starts, dbt cannot end before it has started: it makes its schemas outside of that."""
    engine = Engine(str(tmp_path))
    engine.sql("create schema if not exists shop")
    engine.write("shop.t", pa.table({"id": [1]}), WriteSpec(table=TableSpec(("id",))))
    engine.sql("drop table shop.t")
    engine.sql("drop schema shop")
    assert engine.databases() == ()
    assert not engine._warehouse.session.is_started
