"""A DataFrame on its way into a table: its helper columns, its shape, and what is asked of it before it is written.

Names      frame_fields      columns as fields of the format
           with_helpers      row kinds from `delete_when`, and the name of the check that a row breaks
           shape_frame       the table's columns, in order, by name, then the helper columns
           find_violations   rows that break a check, counted and sampled
           distinct_keys     values of some columns, once each
INVARIANT  names match without case, as in SQL; a value is never changed here, only columns are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.spark_types import from_spark_type
from tablestore_engine.sql.scanner import quote_name

VIOLATION_COLUMN = "_TS_VIOLATED"
_SAMPLES = 5


def frame_fields(frame: DataFrame) -> tuple[DataField, ...]:
    """Without the column of row kinds. Raises FixRequest TS1509 for a type that the format does not have."""
    return tuple(
        DataField(0, field.name, from_spark_type(field.dataType, column=field.name))
        for field in frame.schema.fields
        if field.name != ROW_KIND_COLUMN
    )


def with_helpers(frame: DataFrame, delete_when: str | None, checks: Mapping[str, str]) -> DataFrame:
    """The rows with `_ROW_KIND` and VIOLATION_COLUMN as asked for. Raises FixRequest TS1017, TS1505."""
    try:
        return _with_helpers(frame, delete_when, checks)
    except PySparkException as error:
        raise spark_errors.translate(error) from None


def _with_helpers(frame: DataFrame, delete_when: str | None, checks: Mapping[str, str]) -> DataFrame:
    has_kinds = ROW_KIND_COLUMN in frame.columns
    if delete_when is not None:
        if has_kinds:
            raise FixRequest(
                "TS1017",
                "a write says twice which rows mean delete",
                why=f"it has delete_when and a column {ROW_KIND_COLUMN}",
                fix="use one of them",
            )
        kind = f"cast(case when {delete_when} then 3 else 0 end as tinyint)"
        frame, has_kinds = frame.withColumn(ROW_KIND_COLUMN, sf.expr(kind)), True
    if checks:
        cases = " ".join(f"when not ({rule}) then '{_quoted(name)}'" for name, rule in checks.items())
        alive = f"{ROW_KIND_COLUMN} <> 3 and " if has_kinds else ""
        frame = frame.withColumn(
            VIOLATION_COLUMN, sf.expr(f"case when not ({alive}true) then cast(null as string) {cases} end")
        )
    return frame


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


def shape_frame(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """The table's columns in order, then the helper columns."""
    have = {name.lower(): name for name in frame.columns}
    columns = [
        sf.col(quote_name(have[field.name.lower()])).alias(field.name)
        if field.name.lower() in have
        else sf.lit(None).alias(field.name)
        for field in schema.fields
    ]
    helpers = [sf.col(name) for name in (ROW_KIND_COLUMN, VIOLATION_COLUMN) if name in frame.columns]
    return frame.select(*columns, *helpers)


def find_violations(frame: DataFrame) -> tuple[int, list[dict[str, object]]] | None:
    """How many rows break a check, and the first of them; None when none does, or nothing is checked."""
    if VIOLATION_COLUMN not in frame.columns:
        return None
    bad = frame.where(sf.col(VIOLATION_COLUMN).isNotNull())
    samples = [row.asDict() for row in bad.limit(_SAMPLES).collect()]
    return (bad.count(), samples) if samples else None


def distinct_keys(frame: DataFrame, columns: Sequence[str]) -> pa.Table:
    """The keys of a large input, once each."""
    try:
        return frame.select(*(sf.col(quote_name(name)) for name in columns)).distinct().toArrow()
    except PySparkException as error:
        raise spark_errors.translate(error) from None
