"""Partitions that we expire, as Java Paimon sees them: times, rows, stream, and what comes after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Row, arrow_rows, assert_same
from integration_tests.interop.schemas import Schema, Type, schema
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.options import DEFAULT_FORMAT, parse_time_format
from tablestore_engine.store.expiry.partition_time import partition_time
from tablestore_engine.store.retention import PartitionRule

COLUMNS: dict[str, Type] = {"dt": "STRING", "id": "BIGINT", "v": "STRING"}
OLD, FUTURE = ("2020-01-01", "2020-02-30"), ("2999-01-01", "not a day")
TEXTS = (
    "2026-01-31", "2026-1-3", "2026-02-31", "2026-13-01", "2026-01-31 01:02:03", "2026-01-31 25:00:00",
    "2026-1-3 1:2:3",
    "2026-01-31 01:02:03.5", "2026-01-31 01:02", "2026-01-31T01:02", "20260131", "20260231", "20240231", "20261301",
    "20260132", "120260131", "2026131", "2026013107", "2026013124", "2026013125", "31.01.2026", "", " ", "x",
    "0000-01-01x", "10000-01-01",
)  # fmt: skip
FORMATTERS = (
    None, "yyyyMMdd", "uuuuMMdd", "yyyyMMddHH", "yyyy-MM-dd", "yyyy-M-d", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm",
    "dd.MM.yyyy",
)  # fmt: skip


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_java_sees_the_same_times(java: JavaPaimon, formatter: str | None) -> None:
    """Paimon's own extractor reads every text as we do: the same moment, or none."""
    extractor = java.jvm.paimon.partition.PartitionTimeExtractor("$dt", formatter)
    form = DEFAULT_FORMAT if formatter is None else parse_time_format(formatter)
    spec, rule = PartitionSpec(("dt",), (parse_type("STRING"),)), PartitionRule(1, "$dt", form)
    zone = java.jvm.java.time.ZoneOffset.UTC
    read = 0
    for text in TEXTS:
        try:
            theirs = extractor.extract(["dt"], [text])
        except Py4JJavaError as no_time:
            if "DateTimeParseException" not in str(no_time.java_exception):
                raise
            expected = None
        else:
            expected = theirs.toEpochSecond(zone) * 10**9 + theirs.getNano()
        assert partition_time(spec, (text,), rule) == expected, (formatter, text)
        read += expected is not None
    assert read


def _rows(*days: str) -> list[dict[str, Any]]:
    return [{"dt": day, "id": number, "v": f"{day} {number}"} for day in days for number in range(3)]


def _plain(*days: str) -> list[Row]:
    return [tuple(row.values()) for row in _rows(*days)]


@pytest.mark.parametrize("keys", [("dt", "id"), ()])
def test_java_reads_a_table_whose_partitions_expired(
    java: JavaPaimon, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    """Rows, count and old snapshots are right for Java; a keyed table's stream tells the deletes; Java writes into the
    partition that went, and we expire it again.
    """
    us, location = Ours(), tmp_path / "ours.db" / "t"
    options = {"partition.expiration-time": "7 d", **({"bucket": "2"} if keys else {})}
    made: Schema = schema(COLUMNS, keys=keys, partitions=("dt",), options=options)
    us.create(location, made)
    us.write(location, arrow_rows(made, _rows(*OLD, *FUTURE)))
    stream = java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="1")
    assert len(stream.poll()) == 1
    done = us.store(location).expire_partitions()
    assert (done.partitions, done.rows, done.timeless) == (tuple(f"dt={day}" for day in OLD), 6, 1)
    assert_same(_plain(*FUTURE), java.read(location), "java, newest")
    assert java.count(location) == 6
    assert_same(_plain(*OLD, *FUTURE), java.read(location, 1), "java, snapshot 1")
    if keys:
        told = [change for _, batch in stream.poll() for change in batch]
        assert_same([("-D", row) for row in _plain(*OLD)], told, "java's stream")
    java.write(location, arrow_rows(made, _rows(OLD[0])))
    again = us.store(location).expire_partitions()
    assert again.partitions == (f"dt={OLD[0]}",)
    assert_same(_plain(*FUTURE), java.read(location), "java, after its own rows expired")
    assert us.store(location).verify() == ()
