"""Watermark travel and statistics of a table: what one engine writes, the other reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import arrow_rows, plain_rows
from integration_tests.interop.schemas import schema
from tablestore_engine.catalog.name_lookup import find_snapshot
from tablestore_engine.format.snapshot import encode_snapshot
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.analyze import analyze

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


def test_java_reads_our_statistics_and_keeps_them(java: JavaPaimon, tmp_path: Path) -> None:
    """Each number and bound of every type, by Java's own classes; its next commit keeps them, and rows are whole."""
    shape = schema(
        {
            "id": "BIGINT", "t": "STRING", "n": "INT", "d": "DECIMAL(20, 3)", "f": "DOUBLE", "day": "DATE",
            "at": "TIMESTAMP(3)", "local": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "b": "BYTES", "yes": "BOOLEAN",
        },
        keys=("id",), options={"bucket": "1", "num-levels": "6"},
    )  # fmt: skip
    us, location = Ours(), tmp_path / "ours.db" / "t"
    us.create(location, shape)
    moment = datetime(2026, 3, 1, 10, 0, 0, 120_000, tzinfo=UTC)
    rows = [
        {
            "id": number, "t": "grün" * number, "n": -number, "d": Decimal("1.250") * number, "f": number / 4,
            "day": date(1969, 12, 30 + number), "at": moment.replace(tzinfo=None), "local": moment,
            "b": b"ab", "yes": True,
        }
        for number in (0, 1)
    ]  # fmt: skip
    us.write(location, arrow_rows(shape, [*rows, {**dict.fromkeys(rows[0]), "id": 2}]))
    found, _ = analyze(us.store(location), None)
    assert found is not None
    read = java.table(location).statistics().get()
    assert (read.mergedRecordCount().getAsLong(), read.snapshotId()) == (3, 1)
    for name, column in found.columns.items():
        theirs = read.colStats().get(name)
        assert theirs.distinctCount().getAsLong() == column.distinct_count
        assert theirs.nullCount().getAsLong() == column.null_count
        assert (theirs.avgLen().getAsLong(), theirs.maxLen().getAsLong()) == (column.avg_len, column.max_len)
        assert theirs.min().isPresent() is (column.min is not None)
    assert str(read.colStats().get("at").min().get()) == "2026-03-01T10:00:00.120"
    assert str(read.colStats().get("local").max().get()) == "2026-03-01T10:00:00.120"
    assert str(read.colStats().get("d").max().get()) == "1.250"
    assert int(read.colStats().get("day").min().get()) == -2
    java.write(location, arrow_rows(shape, [{**rows[0], "id": 9}]), options={"write-only": "false"})
    assert us.store(location).latest().statistics is not None
    assert len(java.read(location)) == us.store(location).read().num_rows == 4
    assert java.system_table(location, "statistics").num_rows == 1
