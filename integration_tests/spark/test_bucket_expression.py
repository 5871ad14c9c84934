"""The native bucket expression against Paimon's own vectors and against format.bucket."""
# ruff: noqa: DTZ001 - TIMESTAMP values have no time zone

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.format.bucket import bucket_of, hash_rows
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.spark.bucket_expression import bucket_query, is_native
from tests.doses import examples
from tests.unit.format.bucket_vectors import BUCKET_VECTORS, BucketVector

_BY_TYPES: dict[tuple[str, ...], list[BucketVector]] = {}
for _one in BUCKET_VECTORS:
    if _one.types and is_native([parse_type(text) for text in _one.types]):
        _BY_TYPES.setdefault(tuple(_one.types), []).append(_one)


def _buckets(spark: SparkSession, table: pa.Table, types: list[DataType], count: int) -> list[int]:
    spark.createDataFrame(table).createOrReplaceTempView("bucket_rows")
    keys = list(zip(table.column_names, types, strict=True))
    rows = spark.sql(bucket_query("bucket_rows", keys, count, bucket="the bucket"))
    assert rows.columns == [*table.column_names, "the bucket"], "helper columns must not stay"
    return [row["the bucket"] for row in rows.collect()]


@pytest.mark.parametrize(
    ("zone", "ansi"),
    [
        ("America/New_York", "true"),
        *(
            pytest.param(zone, ansi, marks=pytest.mark.nightly)
            for zone, ansi in (("UTC", "true"), ("UTC", "false"), ("America/New_York", "false"))
        ),
    ],
)
def test_vectors(spark: SparkSession, ansi: str, zone: str) -> None:
    """Every vector with a native form gives Paimon's bucket, in ANSI mode and not, in any time zone."""
    before = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for texts, vectors in list(_BY_TYPES.items())[:: examples(2, 1)]:
            types = [parse_type(text) for text in texts]
            rows = pa.concat_tables([_one_row(vector, types) for vector in vectors])
            of_4, of_7 = (_buckets(spark, rows, types, count) for count in (4, 7))
            for vector, *got in zip(vectors, of_4, of_7, strict=True):
                assert got == [vector.bucket_of_4, vector.bucket_of_7], vector
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))


def _one_row(vector: BucketVector, types: list[DataType]) -> pa.Table:
    columns = [pa.array([v], type_to_arrow(t)) for v, t in zip(vector.row, types, strict=True)]
    return pa.table(columns, names=[f"k{i}" for i in range(len(columns))])


_CASES: dict[str, tuple[list[str], list[list[object]]]] = {
    "nullable mix": (
        ["BIGINT", "STRING", "TIMESTAMP(6)", "DECIMAL(9,3)", "BYTES", "BOOLEAN"],
        [
            [1, None, -7, 2**62],
            ["", "1234567", "12345678", None],
            [
                dt.datetime(1960, 1, 1, 0, 0, 0, 1),
                None,
                dt.datetime(2024, 3, 10, 2, 30),
                dt.datetime(9999, 1, 1),
            ],
            [Decimal("-1.001"), Decimal("999999.999"), None, Decimal(0)],
            [b"\x00" * 9, b"", None, b"\xff" * 7],
            [True, False, None, True],
        ],
    ),
    "two fine timestamps": (
        ["TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "TIMESTAMP_LTZ(3)", "SMALLINT"],
        [
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None],
            [None, dt.datetime(2024, 11, 3, 6, 30, 0, 5, tzinfo=dt.UTC)],
            [dt.datetime(1901, 1, 1, 0, 0, 0, 7000, tzinfo=dt.UTC), None],
            [-300, None],
        ],
    ),
    "three texts": (
        ["STRING", "STRING", "STRING"],
        [["a" * 8, "é"], ["b" * 17, None], ["c" * 9, "日本語" * 9]],
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_composite_and_null_keys(spark: SparkSession, case: str) -> None:
    """Composite keys with nulls, dates before 1970 and long texts give the buckets of format.bucket."""
    texts, values = _CASES[case]
    types = [parse_type(text) for text in texts]
    arrays = [pa.array(column, type_to_arrow(t)) for column, t in zip(values, types, strict=True)]
    table = pa.table(arrays, names=[f"k{i}" for i in range(len(arrays))])
    assert _buckets(spark, table, types, 97) == bucket_of(hash_rows(arrays, types), 97).tolist()


def test_many_random_keys(spark: SparkSession) -> None:
    """Ten thousand random BIGINT and INT keys give the buckets of format.bucket, all 5 buckets are used."""
    random = np.random.default_rng(7)
    arrays = [
        pa.array(random.integers(-(2**63), 2**63, 10_000)),
        pa.array(random.integers(-(2**31), 2**31, 10_000), pa.int32()),
    ]
    types = [DataType("BIGINT", nullable=False), DataType("INT")]
    got = _buckets(spark, pa.table(arrays, names=["a b", "c`d"]), types, 5)
    assert got == bucket_of(hash_rows(arrays, types), 5).tolist()
    assert set(got) == set(range(5))


def test_what_is_not_native() -> None:
    """Floats, times and long decimals are the only key types that need the Arrow function."""
    every = [
        *(
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(18,2)",
            "DECIMAL(19,2)",
        ),
        *("CHAR(3)", "VARCHAR(3)", "STRING", "BINARY(3)", "BYTES", "DATE", "TIME(3)"),
        *("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(6)"),
    ]
    missing = [text for text in every if not is_native([parse_type(text)])]
    assert missing == ["FLOAT", "DOUBLE", "DECIMAL(19,2)", "TIME(3)", "TIMESTAMP(9)"]
