"""A DataFrame on its way into a table: its helper columns, its shape, and what is asked of it before it is written.

CHANGE     a frame as incoming rows, and check constraints
INVARIANT  names match without case, as in SQL; a value is never changed here, only columns are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import VOID, DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.spark_types import from_spark_type, spark_type
from tablestore_engine.spark.type_ddl import has_spark_type
from tablestore_engine.sql.as_of_clause import called_names, plain_words
from tablestore_engine.sql.scanner import quote_name

VIOLATION_COLUMN = "_TS_VIOLATED"
_NUMBER_COLUMN = "_TS_ROW_NUMBER"
_SAMPLES = 5


def frame_fields(frame: DataFrame) -> tuple[DataField, ...]:
    """Without the column of row kinds; parts of a column are nullable as it is: Spark infers NOT NULL from literals,
    which later rows need not be. Raises FixRequest TS1509 for a type that the format does not have.
    """
    return struct_fields(frame.schema)


def struct_fields(struct: st.StructType) -> tuple[DataField, ...]:
    """The same of a schema."""
    return tuple(
        DataField(0, field.name, from_spark_type(field.dataType, column=field.name).all_nullable())
        for field in struct.fields
        if field.name != ROW_KIND_COLUMN
    )


def with_helpers(frame: DataFrame, delete_when: str | None, checks: Mapping[str, str]) -> DataFrame:
    """The rows with `_ROW_KIND` and VIOLATION_COLUMN as asked for. Raises FixRequest TS1017, TS1505."""
    try:
        return _with_helpers(frame, delete_when, checks)
    except PySparkException as error:
        raise spark_errors.translate(error) from None


def helper_columns(
    rows: pa.Table,
    fields: Sequence[DataField],
    session: Callable[[], SparkSession],
    delete_when: str | None,
    checks: Mapping[str, str],
) -> pa.Table:
    """`_ROW_KIND` and VIOLATION_COLUMN of Arrow rows, as asked for, in the order of the rows.

    Spark only evaluates the conditions; the rows do not travel through it, so no value changes its type.
    `fields`: of the rows. Raises FixRequest TS1017, TS1505, Unsupported TS1571.
    """
    struct = _condition_struct(fields, [*([delete_when] if delete_when else []), *checks.values()])
    if ROW_KIND_COLUMN in rows.column_names:
        struct = struct.add(ROW_KIND_COLUMN, st.IntegerType())
    numbered = rows.select(struct.names).append_column(
        _NUMBER_COLUMN, pa.array(range(rows.num_rows), pa.int64())
    )
    try:
        frame = frame_of_rows(session(), numbered, struct.add(_NUMBER_COLUMN, st.LongType()))
        frame = _with_helpers(frame, delete_when, checks)
        asked = [ROW_KIND_COLUMN] * bool(delete_when) + [VIOLATION_COLUMN] * bool(checks)
        found = collect_arrow(frame.select(_NUMBER_COLUMN, *asked))
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None
    return found.sort_by(_NUMBER_COLUMN).drop_columns([_NUMBER_COLUMN])


def _condition_struct(fields: Sequence[DataField], conditions: Sequence[str]) -> st.StructType:
    """The columns that Spark has a type for. Raises Unsupported TS1571 when a condition names another one."""
    named = {word.lower() for condition in conditions for word in plain_words(condition)}
    struct = st.StructType()
    for field in fields:
        if field.type is VOID:
            struct = struct.add(field.name, st.NullType())
        elif has_spark_type(field.type):
            struct = struct.add(field.name, spark_type(field.type))
        elif field.name.lower() in named:
            raise Unsupported(
                "TS1571",
                f"a condition of the write names column {field.name!r}, which Spark cannot evaluate",
                why=f"Spark SQL has no type for {type_to_text(field.type)}; the condition is "
                + next(
                    text for text in conditions if field.name.lower() in map(str.lower, plain_words(text))
                ),
                fix="use another column in delete_when and in checks, or cast this one before the write",
            )
    return struct


def _with_helpers(frame: DataFrame, delete_when: str | None, checks: Mapping[str, str]) -> DataFrame:
    _refuse_functions([*([delete_when] if delete_when else []), *checks.values()])
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


def _refuse_functions(conditions: Sequence[str]) -> None:
    """Nothing looks up the names in a condition, so a function would be the one that the session has by chance."""
    called = [(one, text) for text in conditions for one in called_names(text)]
    if called:
        (name, text), *_ = called
        raise Unsupported(
            "TS1536",
            f"a condition of the write calls {'.'.join(name)}()",
            why=f"functions of the warehouse can be called in queries, not in delete_when and in checks: {text}",
            fix="call it in the query, as a column, and name that column in the condition",
        )


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


def shape_frame(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """The table's columns in order, then the helper columns."""
    names = [field.name for field in schema.fields]
    if frame.columns in (names, [*names, ROW_KIND_COLUMN]):
        return frame  # a column costs several calls to the JVM
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
    samples = row_dicts(collect_arrow(bad.limit(_SAMPLES)))
    return (bad.count(), samples) if samples else None


def distinct_keys(frame: DataFrame, columns: Sequence[str]) -> pa.Table:
    """The keys of a large input, once each."""
    try:
        return collect_arrow(frame.select(*(sf.col(quote_name(name)) for name in columns)).distinct())
    except PySparkException as error:
        raise spark_errors.translate(error) from None
