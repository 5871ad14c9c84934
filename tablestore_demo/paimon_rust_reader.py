"""The demo's table in another reader: Apache Paimon's own Rust core, from PyPI."""

from __future__ import annotations

import importlib
from pathlib import Path


def count_with_paimon_rust(warehouse: Path, table: str) -> int:
    """count(*) of `database.table` in a warehouse folder."""
    reader = importlib.import_module("pypaimon_rust.datafusion")  # an extra: the command must load without it
    context = reader.SQLContext()
    context.register_catalog("paimon", {"warehouse": str(warehouse)})
    batches = context.sql(f"select count(*) from paimon.{table}")
    return int(batches[0].column(0)[0].as_py())
