"""Frames of a session as other libraries have them, and the way back: Spark, pandas, polars, Arrow.

CHANGE     the kinds of frames that a Python model may return
INVARIANT  a value that leaves is exact: integers with NULL in pandas are of its nullable types, never floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any

import polars as pl
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import VOID, DataField
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.collected_rows import to_arrow
from tablestore_engine.spark.spark_types import spark_type
from tablestore_engine.spark.type_ddl import has_spark_type


class FrameKind(StrEnum):
    """What Python code gets for a table."""

    SPARK = "spark"
    PANDAS = "pandas"
    POLARS = "polars"
    ARROW = "arrow"


def convert(frame: DataFrame, kind: FrameKind) -> Any:  # noqa: ANN401 - frames of four libraries
    """The rows in the driver, but for Spark. Raises TablestoreError."""
    if kind is FrameKind.SPARK:
        return frame
    try:
        table = to_arrow(frame)
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None
    match kind:
        case FrameKind.PANDAS:
            return to_pandas(table)
        case FrameKind.POLARS:
            return pl.from_arrow(table)
        case _:
            return table


def to_pandas(table: pa.Table) -> Any:  # noqa: ANN401 - importing pandas costs every start 0.4 s
    """A pandas frame. pandas itself makes floats of integers with NULL, which rounds large ones."""
    frame = table.to_pandas(integer_object_nulls=True)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = frame[name].astype(f"Int{column.type.bit_width}")
    return frame


def find_spark_frame(rows: object) -> DataFrame | None:
    """A frame of Spark, or what a pandas-on-Spark frame stands for; None for any other object."""
    if isinstance(rows, DataFrame):
        return rows
    if type(rows).__module__.startswith("pyspark.pandas.") and hasattr(rows, "to_spark"):
        made: DataFrame = rows.to_spark()
        return made
    return None


def frame_of_arrow(session: SparkSession, table: pa.Table, fields: Sequence[DataField]) -> DataFrame:
    """`fields`: of the table. Raises Unsupported TS1578 for a column that Spark has no type for."""
    struct = st.StructType()
    for field in fields:
        if field.type is not VOID and not has_spark_type(field.type):
            raise Unsupported(
                "TS1578",
                f"column {field.name!r} cannot be read by Spark",
                why=f"Spark has no type for {type_to_text(field.type)}",
                fix="cast the column, for example to string, or leave it out",
            )
        struct = struct.add(field.name, st.NullType() if field.type is VOID else spark_type(field.type))
    try:
        return frame_of_rows(session, table, struct)
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None


def name_frame(frame: DataFrame, name: str) -> None:
    """A temporary view of the session."""
    try:
        frame.createOrReplaceTempView(name)
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None


def drop_name(session: SparkSession, name: str) -> None:
    """A missing one is fine, and so is a session that has ended."""
    with suppress(PySparkException, Py4JError):
        session.catalog.dropTempView(name)
