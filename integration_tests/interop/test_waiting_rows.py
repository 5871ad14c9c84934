"""Level 0 of other engines through Iceberg metadata: as for Paimon's readers (test_in_turns.py), decision 0105."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.test_iceberg import OursWithIceberg
from integration_tests.interop.test_iceberg_page import make_orders
from tablestore_engine.store.iceberg_metadata.iceberg_sync import sync_iceberg


def test_duckdb_shows_waiting_rows_after_the_compaction(
    java: JavaPaimon, duckdb: ProcessPeer, tmp_path: Path
) -> None:
    """The snapshot of Java has the rows of the one before in both; our compaction adds Java's."""
    ours = OursWithIceberg("3")
    location = make_orders(ours, tmp_path / "warehouse")
    before = sorted(ours.read(location))
    rows = pa.Table.from_pylist(
        [{"id": 2, "status": "paid"}, {"id": 9, "status": "new"}],
        schema=ours.store(location).schema.arrow_schema(),
    )
    java.write(location, rows, options={"metadata.iceberg.storage": "disabled"})
    sync_iceberg(ours.store(location).context)
    newest, _ = ours.snapshots(location)[-1]
    assert sorted(duckdb.read(location, newest)) == sorted(duckdb.read(location)) == before
    ours.compact(location)
    after = [(1, "paid"), (2, "paid"), (3, "new"), (9, "new")]
    assert sorted(duckdb.read(location)) == sorted(ours.read(location)) == after
