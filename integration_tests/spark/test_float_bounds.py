"""Conditions on FLOAT and DOUBLE find NaN and both zeros in any file: Spark skips row groups by their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tests.doses import case_rows

NAN = float("nan")
COLUMNS = {
    "mixed": [1.0, NAN, -0.0, 0.5],
    "negative_zero": [-0.0, -0.0, -0.0, None],
    "zero": [0.0, 0.0, None, 0.0],
    "below": [-5.0, NAN, None, -7.0],
    "only_nan": [NAN, NAN, NAN, NAN],
}
CONDITIONS = (
    *("{} > {zero}", "{} >= {zero}", "{} < {zero}", "{} <= {minus}", "{} = {zero}", "{} = {minus}"),
    *("{} <=> {minus}", "{} in ({minus}, {high})", "{} in ({nan}, {high})", "{} <> {minus}", "{} > {high}"),
    *("{} = {nan}", "{} >= {nan}", "{} < {nan}", "{} <> {nan}", "not ({} <= {high})", "{} is null"),
)


def _rows() -> pa.Table:
    doubles = {name: pa.array(values, pa.float64()) for name, values in COLUMNS.items()}
    floats = {f"{name}_f": pa.array(values, pa.float32()) for name, values in COLUMNS.items()}
    nested = pa.array([{"x": value} for value in COLUMNS["mixed"]], pa.struct([("x", pa.float64())]))
    return pa.table({"id": pa.array(range(4), pa.int64()), **doubles, **floats, "nested": nested})


@pytest.fixture(scope="module")
def engine(spark: SparkSession, warehouse: str) -> Iterator[Engine]:
    """The rows with a key, without one, and as changes."""
    with Engine(warehouse) as engine:
        for name, key in (("keyed", ("id",)), ("plain", ())):
            mode = WriteMode.UPSERT if key else WriteMode.APPEND
            engine.write(f"floats.{name}", _rows(), WriteSpec(table=TableSpec(primary_key=key), mode=mode))
        spark.createDataFrame(_rows()).createOrReplaceTempView("float_rows")
        yield engine


@pytest.mark.parametrize(
    ("condition", "table"),
    case_rows(list(product(CONDITIONS, ["floats.keyed", "floats.plain", "floats__changes_0_to_1.keyed"])), 5),
)
def test_a_condition_finds_what_it_finds_in_memory(
    engine: Engine, spark: SparkSession, table: str, condition: str
) -> None:
    """Over each column, as Spark answers over rows that are in no file; each branch is a scan of its own."""
    columns = [name for name in _rows().column_names if name not in ("id", "nested")]
    branches = []
    for column in [*columns, "nested.x"]:
        kind = "float" if column.endswith("_f") else "double"
        words = {"zero": "0.0", "minus": "-0.0", "nan": "NaN", "high": "99"}
        values = {name: f"cast('{text}' as {kind})" for name, text in words.items()}
        found = f"where {condition.format(column, **values)}"
        branches.append(f"select '{column}' as name, id from {{0}} {found}")
    asked = " union all ".join(branches)
    expected = sorted(tuple(row) for row in spark.sql(asked.format("float_rows")).collect())
    assert sorted(tuple(row) for row in engine.sql(asked.format(table)).rows) == expected
