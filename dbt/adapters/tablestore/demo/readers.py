"""The demo's table in another reader: Apache Paimon's own Rust core, from PyPI.

Names      count_with_paimon_rust   rows of a table as that reader sees them
"""

from __future__ import annotations

from pathlib import Path

from pypaimon_rust.datafusion import SQLContext


def count_with_paimon_rust(warehouse: Path, table: str) -> int:
    """count(*) of `database.table` in a warehouse folder."""
    context = SQLContext()
    context.register_catalog("paimon", {"warehouse": str(warehouse)})
    batches = context.sql(f"select count(*) from paimon.{table}")
    return int(batches[0].column(0)[0].as_py())
