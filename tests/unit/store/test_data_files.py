"""data_files: every type survives a file, metadata is exact, sizes are respected."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.format.data_file import SEQUENCE_NUMBER
from tablestore_engine.format.schema import new_schema
from tests.unit.format.stats_samples import decode_bounds
from tests.unit.store.bucket_world import TABLE_OPTIONS, Row, World, make_schema

EVERY_TYPE = {
    "id": "BIGINT",
    "b": "BOOLEAN",
    "i8": "TINYINT",
    "i16": "SMALLINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "n9": "DECIMAL(9, 2)",
    "n18": "DECIMAL(18, 2)",
    "n38": "DECIMAL(38, 10)",
    "c": "CHAR(3)",
    "x": "BYTES",
    "day": "DATE",
    "time": "TIME(3)",
    "ms": "TIMESTAMP(3)",
    "us": "TIMESTAMP(6)",
    "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}
ROW: Row = {
    "id": 1,
    "b": True,
    "i8": -128,
    "i16": 32767,
    "f": 0.5,
    "d": float("inf"),
    "n9": Decimal("-9999999.99"),
    "n18": Decimal("9999999999999999.99"),
    "n38": Decimal("1234567890123456789012345678.0123456789"),
    "c": "äöü",
    "x": b"\x00\xff",
    "day": dt.date(1, 1, 1),
    "time": dt.time(23, 59, 59, 999000),
    "ms": dt.datetime(1969, 12, 31, 23, 59, 59, 999000),  # noqa: DTZ001
    "us": dt.datetime(2026, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
    "z": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
}
EMPTY: Row = {**dict.fromkeys(EVERY_TYPE), "id": 2}


def test_every_type_survives(tmp_path: Path) -> None:
    """Values and nulls of all scalar types come back equal, also as the old rows of an update."""
    world = World(tmp_path, make_schema(EVERY_TYPE))
    world.upsert([ROW, EMPTY])
    assert world.rows() == sorted([ROW, EMPTY], key=repr)
    change = world.upsert([{**EMPTY, "id": 1}])
    assert world.changelog(change)[0] == (1, ROW)


def test_nested_types_survive(tmp_path: Path) -> None:
    """Lists, maps and rows come back equal and their statistics have no bounds."""
    nested = pa.schema(
        [
            pa.field("id", pa.int32()),
            pa.field("l", pa.list_(pa.int32())),
            pa.field("m", pa.map_(pa.string(), pa.int32())),
            pa.field("r", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ]
    )
    schema = new_schema(nested, primary_keys=("id",), options=TABLE_OPTIONS)
    world = World(tmp_path, schema)
    rows: list[Row] = [
        {"id": 1, "l": [1, None], "m": [("k", 1)], "r": {"a": 1, "b": None}},
        {"id": 2, "l": None, "m": None, "r": None},
    ]
    change = world.upsert(rows)
    assert world.rows() == rows
    bounds = decode_bounds(change.added[0].value_stats, [field.type for field in schema.fields])
    assert bounds == [(1, 2), (None, None), (None, None), (None, None)]
    replaced = world.upsert(rows, replace=True)
    assert (replaced.unchanged, replaced.is_empty) == (2, True)


def test_statistics_are_kept_as_each_column_asks(tmp_path: Path) -> None:
    """fields.<column>.stats-mode decides for its column, metadata.stats-mode for the others; keys keep theirs."""
    modes = {
        "metadata.stats-mode": "counts",
        "fields.whole.stats-mode": "full",
        "fields.cut.stats-mode": "truncate(2)",
        "fields.nothing.stats-mode": "none",
        "fields.id.stats-mode": "none",
    }
    columns = {"id": "INT", **dict.fromkeys(("plain", "whole", "cut", "nothing"), "STRING")}
    schema = make_schema(columns, options={**TABLE_OPTIONS, **modes})
    text = "x" * 200
    row = {"id": 7, "plain": text, "whole": text, "cut": text, "nothing": text}
    (meta,) = World(tmp_path, schema).upsert([row]).added
    bounds = decode_bounds(meta.value_stats, [field.type for field in schema.fields])
    assert bounds == [(None, None), (None, None), (text, text), ("xx", "xy"), (None, None)]
    assert meta.value_stats.null_counts == (None, 0, 0, 0, None)
    assert (decode_bounds(meta.key_stats, [schema.field("id").type]), meta.key_stats.null_counts) == (
        [(7, 7)],
        (0,),
    )
    assert meta.value_stats_cols is None


def test_physical_types_are_those_of_java(tmp_path: Path) -> None:
    """Decimals up to 18 digits are integers, timestamps are ms or us, zoned ones are UTC (format.md#data-files)."""
    world = World(tmp_path, make_schema(EVERY_TYPE))
    world.upsert([ROW])
    schema = pq.ParquetFile(world.state.files[0].path).schema
    found = {schema.column(i).name: schema.column(i) for i in range(len(schema.names))}
    assert [found[name].physical_type for name in ("n9", "n18", "n38")] == [
        "INT32",
        "INT64",
        "FIXED_LEN_BYTE_ARRAY",
    ]
    assert "milliseconds" in str(found["ms"].logical_type)
    assert "isAdjustedToUTC=false" in str(found["us"].logical_type)
    assert "isAdjustedToUTC=true" in str(found["z"].logical_type)
    assert "microseconds" in str(found["z"].logical_type)
    assert str(found["i8"].logical_type).startswith("Int(bitWidth=8")


def test_composite_keys_in_another_order_than_columns(tmp_path: Path) -> None:
    """Key columns are written and sorted in primary-key order, whatever the order of columns."""
    world = World(tmp_path, make_schema({"b": "INT", "v": "INT", "a": "STRING"}, keys=("a", "b")))
    world.upsert([{"a": "y", "b": 1, "v": 0}, {"a": "x", "b": 2, "v": 0}, {"a": "x", "b": 1, "v": 0}])
    change = world.upsert([{"a": "x", "b": 2, "v": 9}])
    assert change.updated == 1
    assert len(world.rows()) == 3
    physical = world.physical(world.state.files[0].meta)
    assert list(physical[0])[:2] == ["_KEY_a", "_KEY_b"]
    assert [(row["a"], row["b"]) for row in physical] == [("x", 1), ("x", 2), ("y", 1)]


def test_reading_some_columns_and_row_groups(tmp_path: Path) -> None:
    """Only wanted columns and row groups are read; system columns come first."""
    world = World(tmp_path, make_schema({"id": "INT", "v": "INT"}, options={"parquet.row-group-rows": "2"}))
    world.upsert([{"id": key, "v": -key} for key in range(5)])
    (file,) = world.state.files
    rows = world.files.reader.read(file, ("v",), keep=(SEQUENCE_NUMBER,), groups=[0, 2])
    assert rows.column_names == [SEQUENCE_NUMBER, "v"]
    assert rows.column("v").to_pylist() == [0, -1, -4]
    assert rows.schema.field("v").type == pa.int32()


def test_creation_time_is_local_wall_clock(tmp_path: Path) -> None:
    """The metadata's creation time is a plausible local time, as other engines write it (format.md#data-files)."""
    world = World(tmp_path, make_schema({"id": "INT", "v": "INT"}))
    change = world.upsert([{"id": 1, "v": 1}])
    local = dt.datetime.now().astimezone()  # tz-aware: its offset is what we add
    expected = (local.timestamp() + (local.utcoffset() or dt.timedelta()).total_seconds()) * 1000
    assert abs((change.added[0].creation_time or 0) - expected) < 60_000
