"""Flipped bits in data files, seen through Spark's own Parquet reader."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import FixData, TablestoreError

QUERY = "select * from demo.t order by id"
_OPTIONS = {"parquet.row-group-rows": "100"}
_KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options=_OPTIONS))
_PLAIN = WriteSpec(table=TableSpec(primary_key=("id",), options={**_OPTIONS, "file.compression": "none"}))


def _table(root: Path, spec: WriteSpec = _KEYED) -> Path:
    """A keyed table with NULLs in it; its data file."""
    rows = pa.table(
        {
            "id": pa.array(range(300), pa.int64()),
            "name": [None if n % 3 == 0 else f"name {n}" for n in range(300)],
            "flag": [None if n % 5 == 0 else n % 2 == 0 for n in range(300)],
            "ratio": [None if n % 7 == 0 else n / 3 for n in range(300)],
        }
    )
    with Engine(str(root)) as engine:
        engine.create_database("demo")
        engine.write("demo.t", rows, spec)
    return next((root / "demo.db/t/bucket-0").glob("data-*"))


def _rows(root: Path) -> list[tuple[object, ...]]:
    with Engine(str(root)) as engine:
        return list(engine.sql(QUERY).rows)


def _flip(path: Path, at: int, bit: int) -> bytes:
    before = path.read_bytes()
    path.write_bytes(before[:at] + bytes([before[at] ^ 1 << bit]) + before[at + 1 :])
    return before


def test_a_flipped_page_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """A bit of a page that nothing else would notice, since it is not compressed: Spark's reader compares the page's
    checksum, and the error names the data file of the table.
    """
    path = _table(tmp_path, _PLAIN)
    chunk = pq.read_metadata(path).row_group(1).column(4)
    assert (chunk.path_in_schema, chunk.compression) == ("name", "UNCOMPRESSED")
    _flip(path, path.read_bytes().index(b"name 110") + 7, 0)  # name 111
    with pytest.raises(FixData) as refused:
        _rows(tmp_path)
    assert refused.value.code == "TS1560"
    assert "CRC checksum verification failed" in refused.value.why
    assert str(path) in refused.value.what


def test_a_flipped_footer_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """A bit of a statistic would make Spark skip row groups: the footer is checked before Spark sees the file."""
    path = _table(tmp_path)
    before = path.read_bytes()
    _flip(path, before.rindex((199).to_bytes(8, "little")), 0)
    with pytest.raises(FixData) as refused:
        _rows(tmp_path)
    assert refused.value.code == "TS1160"
    assert str(path) in refused.value.what


@pytest.mark.nightly  # by day tests/unit/store/test_damage.py; other damage here
def test_flipped_page_headers_change_no_row(spark: SparkSession, tmp_path: Path) -> None:
    """Bits of page headers, which have no checksum that Spark knows: an error, or the rows that were written."""
    path = _table(tmp_path)
    truth = _rows(tmp_path)
    metadata, rng = pq.read_metadata(path), random.Random(3)
    chunks = [metadata.row_group(g).column(c) for g in range(3) for c in range(metadata.num_columns)]
    refused = 0
    for _ in range(30):
        chunk = rng.choice(chunks)
        before = _flip(path, chunk.data_page_offset + rng.randrange(24), rng.randrange(8))
        try:
            assert _rows(tmp_path) == truth
        except TablestoreError:
            refused += 1
        path.write_bytes(before)
    assert refused > 5
