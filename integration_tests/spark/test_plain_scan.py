"""Queries that only pick columns of Parquet files: rows by Arrow are those of the Spark job, or the job runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from integration_tests.spark.session_settings import with_setting
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.spark import write
from tablestore_engine.spark.collected_rows import to_arrow
from tablestore_engine.spark.plain_scan import read_plain

_MAX = 1 << 30
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "tiny": pa.int8(),
    "short": pa.int16(),
    "number": pa.int32(),
    "flag": pa.bool_(),
    "ratio": pa.float32(),
    "score": pa.float64(),
    "price": pa.decimal128(18, 2),
    "wide": pa.decimal128(38, 6),
    "name": pa.string(),
    "long_name": pa.large_string(),
    "code": pa.binary(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "Europe/Berlin"),
    "wall": pa.timestamp("us"),
}


def _value(draw: random.Random, type_: pa.DataType) -> object:
    if draw.random() < 0.15:
        return None
    number = draw.choice((draw.randrange(-128, 128), draw.randrange(-3, 3)))
    if pa.types.is_boolean(type_):
        return number > 0
    if pa.types.is_floating(type_):
        return draw.choice((float(number), float("nan"), -0.0, float("-inf")))
    if pa.types.is_decimal(type_):
        return Decimal(number).scaleb(-type_.scale)
    if pa.types.is_date(type_):
        return date(draw.choice((1, 1500, 1969, 9999)), 1, abs(number) % 28 + 1)
    if pa.types.is_timestamp(type_):
        zone = None if type_.tz is None else UTC
        return datetime(draw.choice((1000, 1960, 2020)), 2, 3, 4, 5, 6, abs(number), tzinfo=zone)
    if pa.types.is_integer(type_):
        return number
    text = draw.choice(("", "ä€😀", "x" * 40)) + str(number)
    return text.encode() if pa.types.is_binary(type_) else text


def _rows(seed: int, count: int) -> pa.Table:
    draw = random.Random(seed)
    columns = {
        name: pa.array([_value(draw, type_) for _ in range(count)], type_) for name, type_ in _TYPES.items()
    }
    return pa.table({**columns, "id": pa.array(draw.sample(range(10**6), count), pa.int64())})


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Files of several sizes and row groups."""
    for number, count in enumerate((900, 40, 2_500, 0, 1)):
        pq.write_table(_rows(number, count), tmp_path / f"part {number}.parquet", row_group_size=170)
    return str(tmp_path)


def _assert_same(frame: DataFrame) -> None:
    rows, expected = read_plain(frame, _MAX), to_arrow(frame)
    assert rows is not None
    assert rows.schema == expected.schema
    assert repr(rows.to_pylist()) == repr(expected.to_pylist())  # NaN and -0.0 have their texts, too


@pytest.mark.parametrize("part_bytes", ["8000", "30000", "128m"])
def test_rows_and_their_order_are_those_of_the_job(spark: SparkSession, folder: str, part_bytes: str) -> None:
    """Tasks share files in parts, and take several files; columns in another order and under new names."""
    with with_setting(spark, "spark.sql.files.maxPartitionBytes", part_bytes):
        frame = spark.read.parquet(folder)
        _assert_same(frame)
        _assert_same(frame.selectExpr("score", "id as key", "wall as `a b`", "name"))
        _assert_same(spark.sql(f"select price, at from (select * from parquet.`{folder}`)"))


def test_row_groups_across_the_border_of_two_parts_come_with_their_middle(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The parts that end a file come last, so the order of rows shows to which part a row group belongs."""
    for number in range(2):
        rows = pa.table({"id": list(range(1_000 * number, 1_000 * number + 600))})
        pq.write_table(
            rows, tmp_path / f"{number}.parquet", row_group_size=200, compression="none", use_dictionary=False
        )
    for part_bytes in (2_300, 3_000, 3_400, 4_000):
        with with_setting(spark, "spark.sql.files.maxPartitionBytes", str(part_bytes)):
            _assert_same(spark.read.parquet(str(tmp_path)))


def test_rows_that_are_too_many_are_left_to_spark(spark: SparkSession, folder: str) -> None:
    """One byte less than they have is too few."""
    frame = spark.read.parquet(folder).select("id", "score")
    rows = read_plain(frame, _MAX)
    assert rows is not None
    assert read_plain(frame, rows.nbytes - 1) is None


_OTHER: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "filter": lambda spark, path: spark.read.parquet(path).where("id > 3"),
    "expression": lambda spark, path: spark.read.parquet(path).selectExpr("id + 1 as id"),
    "cast": lambda spark, path: spark.read.parquet(path).selectExpr("cast(id as int) as id"),
    "constant": lambda spark, path: spark.read.parquet(path).selectExpr("id", "1 as one"),
    "limit": lambda spark, path: spark.read.parquet(path).limit(7),
    "sample": lambda spark, path: spark.read.parquet(path).sample(0.5, 1),
    "order": lambda spark, path: spark.read.parquet(path).orderBy("id"),
    "distinct": lambda spark, path: spark.read.parquet(path).select("flag").distinct(),
    "union": lambda spark, path: spark.read.parquet(path).union(spark.read.parquet(path)),
    "option": lambda spark, path: spark.read.option("pathGlobFilter", "*0.parquet").parquet(path),
    "wider": lambda spark, path: spark.read.schema("tiny int").parquet(path),
    "no column": lambda spark, path: spark.read.schema("id bigint, other string").parquet(path),
    "other case": lambda spark, path: spark.read.schema("ID bigint").parquet(path),
    "no zone": lambda spark, path: spark.read.schema("at timestamp_ntz").parquet(path),
    "file name": lambda spark, path: spark.read.parquet(path).selectExpr("id", "_metadata.file_name"),
    "no columns": lambda spark, path: spark.read.parquet(path).select(),
    "range": lambda spark, _: spark.range(9),
}


@pytest.mark.parametrize("name", _OTHER)
def test_a_query_that_does_more_is_left_to_spark(spark: SparkSession, folder: str, name: str) -> None:
    """Also where the schema of the reader is not that of the files."""
    assert read_plain(_OTHER[name](spark, folder), _MAX) is None


def test_frames_that_are_cached_are_left_to_spark(spark: SparkSession, folder: str) -> None:
    """Their rows are those of the cache."""
    frame = spark.read.parquet(folder).cache()
    try:
        assert read_plain(frame, _MAX) is None
    finally:
        frame.unpersist()


def test_files_that_only_spark_reads_right_are_left_to_it(spark: SparkSession, tmp_path: Path) -> None:
    """Dates that Spark 2 wrote, INT96, nanoseconds, nested columns, columns of folders, two columns of one name."""
    day = pa.table({"id": [1], "day": pa.array([date(1000, 1, 1)])})
    julian = day.replace_schema_metadata(
        {"org.apache.spark.legacyDateTime": "", "org.apache.spark.version": "3.5.1"}
    )
    at = pa.table({"at": pa.array([0], pa.timestamp("us"))})
    for name, rows in {
        "day": day,
        "julian": julian,
        "spark2": day.replace_schema_metadata({"org.apache.spark.version": "2.4.8"}),
        "nested": pa.table({"pair": [{"a": 1}]}),
        "list": pa.table({"list": [[1]]}),
        "nanos": at.cast(pa.schema([("at", pa.timestamp("ns"))])),
        "int96": at,
        "twice": pa.table({"id": [1], "ID": [2]}),
        "folders/region=1": day,
    }.items():
        (tmp_path / name).mkdir(parents=True)
        written = {"version": "2.6", "use_deprecated_int96_timestamps": name == "int96"}
        pq.write_table(rows, tmp_path / name / "one.parquet", **written)
    for name in ("julian", "spark2", "nested", "list", "int96", "folders"):
        assert read_plain(spark.read.parquet(str(tmp_path / name)), _MAX) is None, name
    assert read_plain(spark.read.schema("id bigint").parquet(str(tmp_path / "twice")), _MAX) is None
    _assert_same(spark.read.parquet(str(tmp_path / "julian")).select("id"))
    frame = spark.read.parquet(str(tmp_path / "day"))
    _assert_same(frame)
    with with_setting(spark, "spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"):
        assert read_plain(frame, _MAX) is None


def test_a_file_that_cannot_be_read_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Damaged pages are an error of the query, a file that was replaced or removed is found by it."""
    rows, path = pa.table({"id": list(range(1_000))}), tmp_path / "one.parquet"
    pq.write_table(rows, path, write_page_checksum=True, compression="none", use_dictionary=False)
    frame, data = spark.read.parquet(str(path)), path.read_bytes()
    _assert_same(frame)
    path.write_bytes(data[:1_000] + bytes([data[1_000] ^ 1]) + data[1_001:])
    assert read_plain(frame, _MAX) is None
    pq.write_table(rows.slice(1), path)
    assert read_plain(frame, _MAX) is None
    path.unlink()
    assert read_plain(frame, _MAX) is None


@pytest.mark.parametrize("small", [True, False])
def test_a_write_of_files_runs_no_job_and_has_the_rows_of_one(
    folder: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, *, small: bool
) -> None:
    """Few rows, and those of a load; keyed tables and one without keys, whose large loads stay with the tasks."""
    if not small:
        monkeypatch.setattr(
            write, "plan_route", lambda *_, **__: write.Route(on_driver=False, limit=True, tasks=2)
        )
    read: list[pa.Table | None] = []
    monkeypatch.setattr(write, "read_plain", lambda *given: read.append(read_plain(*given)) or read[-1])
    with Engine(str(tmp_path_factory.mktemp("tables")), spark=SparkSettings("local[2]")) as engine:
        options = {"bucket": "2", "tablestore.duplicates": "last"}
        keyed = WriteSpec(table=TableSpec(primary_key=("id",), options=options))
        for name, spec in (("keyed", keyed), ("plain", WriteSpec())):
            frame = engine.spark.read.parquet(folder)
            engine.write(f"demo.{name}", frame, spec)
            with monkeypatch.context() as patch:
                patch.setattr(write, "read_plain", lambda *_: None)
                engine.write(f"demo.{name}_by_spark", frame, spec)
            rows, expected = (
                sorted(map(repr, engine.table(f"demo.{one}").scan().to_arrow().to_pylist()))
                for one in (name, f"{name}_by_spark")
            )
            assert rows == expected
        assert [one is not None for one in read] == ([True, True] if small else [True])
