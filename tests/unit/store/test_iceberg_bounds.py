"""Bounds, NULL counts and partition summaries in Iceberg manifests: right by type, left out where they are unknown."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.format.avro_file import AvroCodec, encode_avro_long
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.schema_change import retype_column
from tablestore_engine.iceberg.column_bounds import encode_bound, summarize_partitions
from tablestore_engine.store.table_store import TableStore
from tests.unit.store.iceberg_world import ICEBERG, avro, manifests, metadata

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the column has no zone
DECODED: Mapping[str, Callable[[bytes], Any]] = {
    "flag": lambda data: struct.unpack("<?", data)[0],
    "tiny": lambda data: struct.unpack("<i", data)[0],
    "number": lambda data: struct.unpack("<q", data)[0],
    "real": lambda data: struct.unpack("<f", data)[0],
    "double": lambda data: struct.unpack("<d", data)[0],
    "price": lambda data: Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-2),
    "text": bytes.decode,
    "day": lambda data: dt.date(1970, 1, 1) + dt.timedelta(days=struct.unpack("<i", data)[0]),
    "at": lambda data: EPOCH + dt.timedelta(microseconds=struct.unpack("<q", data)[0]),
}
ROWS = pa.table(
    {
        "part": ["a", "a", "b", "b", None],
        "flag": [True, False, None, True, True],
        "tiny": pa.array([-128, 127, 1, 2, None], pa.int8()),
        "number": [-(2**63), 2**63 - 1, 0, 1, None],
        "real": pa.array([0.0, -0.0, 1.5, float("nan"), None], pa.float32()),
        "double": pa.array([0.0, 5e-324, -math.inf, math.inf, 2.0], pa.float64()),
        "price": pa.array([*map(Decimal, ("-1.29", "1.28", "0.00", "327.68")), None], pa.decimal128(9, 2)),
        "text": ["short", "x" * 16 + "y", "é" * 20, chr(0x10FFFF) * 17, None],
        "bytes": [b"a", b"b", b"", None, None],
        "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1969, 12, 31), None],
        "at": pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999, -1, 0, None], pa.timestamp("us")),
        "list": [[1], None, [], [2], None],
    }
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    """ROWS in three partitions, a file each."""
    engine = Engine(str(tmp_path))
    spec = WriteSpec(table=TableSpec(partition_by=("part",), options=ICEBERG), mode=WriteMode.APPEND)
    engine.write("demo.t", ROWS, spec)
    return engine.table("demo.t").store


def listed_files(store: TableStore) -> list[dict[str, Any]]:
    """Data files of the newest snapshot, maps as dictionaries."""
    found = []
    for manifest in manifests(store, metadata(store)["snapshots"][-1]):
        for entry in avro(store.fileio, manifest["manifest_path"]):
            file = entry["data_file"]
            for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
                file[name] = {one["key"]: one["value"] for one in file[name] or ()}
            found.append(file)
    return found


def test_bounds_enclose_the_values_of_each_file(store: TableStore) -> None:
    """By type; with NaN, beyond the last text, and of bytes and lists there are none."""
    ids = {one.name: one.id for one in store.schema.fields}
    files = listed_files(store)
    assert len(files) == 3
    for file in files:
        rows = pq.read_table(file["file_path"])
        for name, decode in DECODED.items():
            values = [one for one in rows[name].to_pylist() if one is not None]
            assert file["null_value_counts"][ids[name]] == len(rows) - len(values)
            assert file["value_counts"].get(ids[name], len(rows)) == len(rows)
            low, high = (file[end].get(ids[name]) for end in ("lower_bounds", "upper_bounds"))
            is_unknown = not values or any(one != one for one in values) or "\\U0010ffff" in str(values)
            assert (low is None, high is None) == (is_unknown, is_unknown), (name, values)
            if low is not None and high is not None:
                assert decode(low) <= min(values), name
                assert max(values) <= decode(high), name
                if name != "text":
                    assert (decode(low), decode(high)) == (min(values), max(values))
        assert ids["list"] not in file["null_value_counts"]
        assert ids["bytes"] not in file["lower_bounds"]
    first = next(one for one in files if one["partition"]["p0"] == "a")
    assert first["upper_bounds"][ids["text"]] == b"x" * 15 + b"y"
    assert math.copysign(1, DECODED["real"](first["lower_bounds"][ids["real"]])) == -1


def test_partitions_are_summarized(store: TableStore) -> None:
    """In the manifest list: whether there is NULL, and the ends."""
    [manifest] = manifests(store, metadata(store)["snapshots"][-1])
    assert manifest["partitions"] == [
        {"contains_null": True, "contains_nan": False, "lower_bound": b"a", "upper_bound": b"b"}
    ]


def test_a_promoted_column_keeps_the_bounds_of_its_files(store: TableStore) -> None:
    """Four bytes for the file that was written as an int, eight for the next."""
    engine = Engine(store.location.rpartition("/demo.db")[0])
    spec = WriteSpec(table=TableSpec(options=ICEBERG), mode=WriteMode.APPEND)
    engine.write("demo.p", pa.table({"n": pa.array([1, 2], pa.int32())}), spec)
    engine.table("demo.p").store.alter(lambda one: retype_column(one, "n", DataType("BIGINT")))
    engine.write("demo.p", pa.table({"n": pa.array([2**40], pa.int64())}), spec)
    bounds = [one["lower_bounds"][0] for one in listed_files(engine.table("demo.p").store)]
    assert sorted(bounds) == sorted([struct.pack("<i", 1), struct.pack("<q", 2**40)])


def test_a_table_without_statistics_has_no_bounds(tmp_path: Path) -> None:
    """What is unknown is left out."""
    options = {**ICEBERG, "metadata.stats-mode": "none"}
    spec = WriteSpec(table=TableSpec(options=options), mode=WriteMode.APPEND)
    engine = Engine(str(tmp_path))
    engine.write("demo.t", pa.table({"n": [1, None]}), spec)
    [file] = listed_files(engine.table("demo.t").store)
    assert not file["lower_bounds"]
    assert not file["null_value_counts"]


def test_partition_ends_are_those_of_the_order_of_iceberg() -> None:
    """NaN and NULL are flags, -0.0 is below 0.0."""
    double = DataType("DOUBLE")
    partitions = [{"p0": value} for value in (0.0, -0.0, None, math.nan)]
    [found] = summarize_partitions(partitions, [double])
    assert (found.has_null, found.has_nan) == (True, True)
    assert (found.low, found.high) == (encode_bound(-0.0, double), encode_bound(0.0, double))
    [empty] = summarize_partitions([{"p0": None}], [double])
    assert (empty.has_null, empty.has_nan, empty.low, empty.high) == (True, False, None, None)


@pytest.mark.parametrize("number", [0, -1, 1, 63, 64, -64, -65, 2**31, 2**63 - 1, -(2**63)])
def test_longs_are_those_of_avro(number: int) -> None:
    """As fastavro writes them."""
    codec = AvroCodec.of("test", [{"name": "n", "type": "long"}])
    assert codec.encode({"n": number}) == encode_avro_long(number)


@pytest.mark.parametrize(
    ("unscaled", "size"),
    [
        (0, 1),
        (127, 1),
        (128, 2),
        (-128, 1),
        (-129, 2),
        (10**38 - 1, 16),
        (-(10**38) + 1, 16),
        (10**30 + 1, 13),
    ],
)
def test_decimals_take_the_fewest_bytes(unscaled: int, size: int) -> None:
    """Big-endian two's complement of the unscaled number, with all 38 digits."""
    value = Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -2))
    data = encode_bound(value, DataType("DECIMAL", precision=38, scale=2))
    assert len(data) == size
    assert int.from_bytes(data, "big", signed=True) == unscaled
