"""Watermark travel and statistics of a table: what one engine writes, the other reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import arrow_rows, plain_rows
from integration_tests.interop.schemas import schema
from tablestore_engine.catalog.name_lookup import find_snapshot
from tablestore_engine.format.snapshot import encode_snapshot
from tablestore_engine.sql.table_version import TableVersion

MADE = schema({"id": "BIGINT", "v": "STRING"}, keys=("id",), options={"bucket": "1", "num-levels": "6"})


def test_java_reads_the_same_snapshot_for_a_watermark(java: JavaPaimon, tmp_path: Path) -> None:
    """Between, at and before watermarks, and where the first snapshots have none; each keeps that of the other."""
    us, location = Ours(), tmp_path / "ours.db" / "t"
    us.create(location, MADE)
    store = us.store(location)
    for number, watermark in enumerate((None, 1_000, 2_000, 3_000), start=1):
        us.write(location, arrow_rows(MADE, [{"id": 1, "v": f"v{number}"}]))
        snapshot = replace(store.snapshots.get(number), watermark=watermark)
        Path(store.context.layout.snapshot_path(number)).write_bytes(encode_snapshot(snapshot))
    java.write(location, arrow_rows(MADE, [{"id": 1, "v": "java"}]), options={"write-only": "false"})
    us.write(location, arrow_rows(MADE, [{"id": 1, "v": "ours"}]))
    newest = us.store(location).latest()
    assert newest is not None
    assert newest.watermark == 3_000
    for asked, expected in ((500, "v2"), (1_000, "v2"), (1_001, "v3"), (2_000, "v3"), (2_500, "v4")):
        ours = us.store(location)
        found = ours.read(ours.plan_scan(find_snapshot(ours, TableVersion(watermark=asked))))
        theirs = java.read(location, options={"scan.watermark": str(asked)})
        assert plain_rows(found) == theirs == [(1, expected)], asked
