"""Bloom filters and bitmaps of columns: Java reads ours, we read Java's, and bytes are the same where order is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import arrow_rows, assert_same, plain_rows
from integration_tests.interop.sample_data import ALL_TYPES, make_rows
from integration_tests.interop.schemas import Schema, schema
from integration_tests.interop.test_filters import _text
from tablestore_engine.format.bitmap_index import BITMAP
from tablestore_engine.format.bloom_filter import BLOOM_FILTER
from tablestore_engine.format.file_index_columns import IndexedColumn
from tablestore_engine.store.files.file_index_output import index_builder
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.read.index_pruning import held_values, read_index

BITMAPS = (
    *("c_bool", "c_tiny", "c_small", "c_int", "c_big", "c_text", "c_varchar", "c_date"),
    *("c_ts0", "c_ts3", "c_ts6", "c_ltz3", "c_ltz6"),
)
COLUMNS = {"id": "BIGINT", **{name: ALL_TYPES[name] for name in BITMAPS}}
OPTIONS = {
    "metadata.stats-mode": "none",
    "file-index.bitmap.columns": ",".join(BITMAPS),
    "file-index.bloom-filter.columns": ",".join(BITMAPS[1:]),
    **{f"file-index.bloom-filter.{name}.items": "100" for name in BITMAPS[1:]},
    "file-index.bloom-filter.c_text.fpp": "0.01",
}


def _rows(made: Schema, number: int) -> pa.Table:
    rows = make_rows(COLUMNS, range(number * 20, number * 20 + 20), seed=number, required=("id",))
    for row in rows:
        row["c_text"] = f"text {number}" if row["id"] % 2 else "é" * 40
    return arrow_rows(made, rows)


@pytest.mark.parametrize("threshold", ["500 b", "1 mb"])
def test_java_finds_rows_by_our_indexes_and_reads_them(
    java: JavaPaimon, tmp_path: Path, threshold: str
) -> None:
    """Filters lose no row; with the index of another file in its place Java leaves the file out."""
    location = tmp_path / "ours.db" / "t"
    options = {"bucket": "1", "file-index.in-manifest-threshold": threshold, **OPTIONS}
    made = schema(COLUMNS, keys=("id",), options=options)
    Ours().create(location, made)
    rows = [_rows(made, number) for number in range(3)]
    for one in rows:
        Ours().write(location, one)
    every = [row for one in rows for row in plain_rows(one)]
    for column in BITMAPS:
        at = made.names.index(column)
        value = next(row[at] for row in reversed(every) if row[at] is not None)
        expected = [row for row in every if row[at] == value]
        assert_same(expected, java.filter(location, column, "equal", _text(value)), column)
    found = sorted(location.glob("bucket-0/*.index"))
    assert len(found) == (3 if threshold == "500 b" else 0)
    if found:
        planted = found[0].read_bytes()
        for one in found[1:]:
            one.write_bytes(planted)
        texts = [java.filter(location, "c_text", "equal", f"text {number}") for number in range(3)]
        assert sorted(map(len, texts)) == [0, 0, 10]


def test_our_reader_has_every_value_of_java_s_indexes(java: JavaPaimon, tmp_path: Path) -> None:
    """Java's indexes hold what the file holds and bitmaps nothing else; ours of the same rows has its bytes."""
    location = tmp_path / "java.db" / "t"
    made = schema(COLUMNS, options={"bucket": "-1", **OPTIONS})
    java.create(location, made)
    rows = [_rows(made, number) for number in range(2)]
    for one in rows:
        java.write(location, one)
    store = Ours().store(location)
    plan = store.plan_scan()
    others = dict(zip(plan.files, reversed(plan.files), strict=True))
    reader = FileReader(store.context.fileio, plan.schema)
    compared = 0
    for file in plan.files:
        index = read_index(store.context.fileio, file)
        assert index is not None
        stored, strange = reader.read(file), reader.read(others[file])
        for column in BITMAPS:
            field, values = plan.schema.field(column), stored[column].drop_null()
            assert held_values(index, field, values.combine_chunks()).all()
            absent = (
                strange[column].drop_null().filter(pc.invert(pc.is_in(strange[column].drop_null(), values)))
            )
            assert not held_values(index, field, absent.combine_chunks()).any()
            if column == "c_bool":
                continue
            kind: dict[str, Any] = {"items": 100, "fpp": 0.01 if column == "c_text" else 0.1}
            mine = index_builder(IndexedColumn(field, BLOOM_FILTER, **kind))
            mine.add(stored[column])
            assert mine.encode() == index.find(column, BLOOM_FILTER), column
            bitmaps = index_builder(IndexedColumn(field, BITMAP))
            bitmaps.add(stored[column])
            assert len(bitmaps.encode() or b"") == len(index.find(column, BITMAP) or b""), column
            compared += 1
    assert compared == 2 * (len(BITMAPS) - 1)
