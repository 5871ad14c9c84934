"""Rows on their way in: whatever the caller has becomes Arrow or a DataFrame (spark/incoming_frame.py has its part).

Names      Incoming        one write's rows: Arrow in the driver, a DataFrame, or files that tasks of Spark left;
                           columns as fields; its kind column
           to_incoming     makes one of what Python users have; from_frame, from_arrow, to_arrow are its parts
           shape_arrow     the table's columns, in order, by name; what is missing is NULL
           split_kinds     rows and their row kinds
           check_rules     rows that break a check constraint -> FixData TS1605; violation is that error
INVARIANT  names match without case, as in SQL; a value is never changed here, only columns are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.error_values import count_of, sql_row
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import VOID, DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import field_to_arrow, type_from_arrow
from tablestore_engine.spark.incoming_frame import (
    VIOLATION_COLUMN,
    frame_fields,
    helper_columns,
    with_helpers,
)
from tablestore_engine.warehouse.write.staged_rows import StagedRows
from tablestore_engine.warehouse.write.write_spec import WriteSpec

_SAMPLES = 5


@dataclass(frozen=True)
class Incoming:
    """Exactly one of `table`, `frame` and `staged`; `has_kinds` when a column _ROW_KIND comes along.

    A field of type VOID has no values: it takes the type of the table's column. Raises FixRequest TS1024 (names).
    """

    fields: tuple[DataField, ...]
    has_kinds: bool
    table: pa.Table | None = None
    frame: DataFrame | None = None
    staged: StagedRows | None = None

    def __post_init__(self) -> None:
        _check_names([field.name for field in self.fields])

    @property
    def only_deletes(self) -> bool:
        """Whether it is known, without running anything, that every row takes its key away."""
        if self.table is None or not self.has_kinds:
            return False
        kinds = _checked_kinds(self.table.column(ROW_KIND_COLUMN))
        return bool(pc.all(pc.equal(kinds, int(RowKind.DELETE))).as_py())


def to_incoming(rows: object, spec: WriteSpec, session: Callable[[], SparkSession]) -> Incoming:
    """Rows of any kind but SQL text. Conditions over Arrow rows are Spark's to evaluate: `session` starts it."""
    if isinstance(rows, DataFrame):
        return from_frame(rows, spec.delete_when, spec.checks)
    incoming = from_arrow(to_arrow(rows))
    if spec.delete_when or spec.checks:
        return _with_conditions(incoming, spec, session)
    return incoming


def _with_conditions(incoming: Incoming, spec: WriteSpec, session: Callable[[], SparkSession]) -> Incoming:
    """Arrow rows with the helper columns that Spark computed of the conditions."""
    rows = incoming.table
    assert rows is not None
    found = helper_columns(rows, incoming.fields, session, spec.delete_when, spec.checks)
    for name in found.column_names:
        rows = rows.append_column(name, found.column(name))
    return Incoming(incoming.fields, ROW_KIND_COLUMN in rows.column_names, table=rows)


def from_arrow(rows: pa.Table) -> Incoming:
    """Arrow rows; times finer than ours become microseconds (TIME: milliseconds) when that loses nothing."""
    _check_names(rows.column_names)
    exact = pa.table([_coarser(column) for column in rows.columns], names=rows.column_names)
    fields = tuple(
        DataField(0, field.name, VOID if pa.types.is_null(field.type) else type_from_arrow(field.type))
        for field in exact.schema
        if field.name != ROW_KIND_COLUMN
    )
    return Incoming(fields, ROW_KIND_COLUMN in exact.column_names, table=exact)


def _coarser(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """In the unit that the format stores, when all values have one; else as it is, and refused by its type later."""
    target = None
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        target = pa.timestamp("us", column.type.tz)
    elif pa.types.is_time64(column.type):
        target = pa.time32("ms")
    if target is None:
        return column
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        return column


def _check_names(names: Sequence[str]) -> None:
    repeated = [name for name, times in Counter(name.lower() for name in names).items() if times > 1]
    if repeated:
        raise FixRequest(
            "TS1024",
            f"several columns of the rows are named {repeated[0]!r}",
            why=f"names have no case in SQL; the columns are {', '.join(names)}",
            fix="rename or leave out one of them",
        )


def from_frame(frame: DataFrame, delete_when: str | None, checks: Mapping[str, str]) -> Incoming:
    """A DataFrame with its row kinds from `delete_when` and the names of violated checks as helper columns."""
    fields = frame_fields(frame)
    frame = with_helpers(frame, delete_when, checks)
    return Incoming(fields, ROW_KIND_COLUMN in frame.columns, frame=frame)


def from_staged(fields: tuple[DataField, ...], staged: StagedRows, *, has_kinds: bool) -> Incoming:
    """Rows that lie in files."""
    return Incoming(fields, has_kinds, staged=staged)


def shape_arrow(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """The same for Arrow rows; helper columns stay at the end."""
    have = {name.lower(): name for name in rows.column_names}
    columns, names = [], []
    for field in schema.fields:
        name = have.get(field.name.lower())
        found = pa.nulls(rows.num_rows, field_to_arrow(field).type) if name is None else rows.column(name)
        columns.append(pa.nulls(rows.num_rows, field_to_arrow(field).type) if _is_void(found) else found)
        names.append(field.name)
    for name in (ROW_KIND_COLUMN, VIOLATION_COLUMN):
        if name in rows.column_names:
            columns.append(rows.column(name))
            names.append(name)
    return pa.table(columns, names=names)


def _is_void(column: pa.ChunkedArray | pa.Array) -> bool:
    return bool(pa.types.is_null(column.type))


def split_kinds(rows: pa.Table) -> tuple[pa.Table, pa.Array | None]:
    """Rows without the helper columns, and their kinds (int8) when there are any."""
    kinds = None
    if ROW_KIND_COLUMN in rows.column_names:
        kinds = _checked_kinds(rows.column(ROW_KIND_COLUMN))
        rows = rows.drop_columns([ROW_KIND_COLUMN])
    return rows, kinds


def _checked_kinds(column: pa.ChunkedArray) -> pa.Array:
    """Kinds as int8, NULL as +I. Raises FixData TS1606: a kind that is not known must never count as an insert."""
    known = pa.array([int(kind) for kind in RowKind], pa.int64())
    try:
        numbers = pc.fill_null(column.cast(pa.int64()), int(RowKind.INSERT)).combine_chunks()
        wrong = numbers.filter(pc.invert(pc.is_in(numbers, known)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wrong = column.drop_null()
    if len(wrong):
        raise FixData(
            "TS1606",
            f"column {ROW_KIND_COLUMN} has a value that is no row kind",
            why=f"expected 0 (+I), 1 (-U), 2 (+U) or 3 (-D), got {wrong[0].as_py()!r}",
            fix="write one of these numbers, or leave the column out to put all rows",
        )
    return numbers.cast(pa.int8())


def check_rules(rows: pa.Table, table: str) -> pa.Table:
    """Rows without the violation column. Raises FixData TS1605 with the rules and sample rows."""
    if VIOLATION_COLUMN not in rows.column_names:
        return rows
    violated = rows.column(VIOLATION_COLUMN)
    bad = rows.filter(pc.is_valid(violated))
    rows = rows.drop_columns([VIOLATION_COLUMN])
    if bad.num_rows:
        raise violation(table, bad.num_rows, bad.slice(0, _SAMPLES).to_pylist())
    return rows


def violation(table: str, count: int, samples: Sequence[Mapping[str, object]]) -> FixData:
    """The error for broken check constraints."""
    rules = sorted({str(row[VIOLATION_COLUMN]) for row in samples})
    hidden = {VIOLATION_COLUMN, ROW_KIND_COLUMN}
    shown = "; ".join(sql_row({k: v for k, v in row.items() if k not in hidden}) for row in samples)
    rows_break = count_of(count, "row breaks", "rows break")
    return FixData(
        "TS1605",
        f"{rows_break} a check constraint of {table}",
        why=f"constraint {', '.join(rules)}; first rows: {shown}",
        fix="correct the rows or the constraint; the table is as it was",
    )


def to_arrow(rows: object) -> pa.Table:
    """Arrow from what Python users have. Raises FixRequest TS1023, FixData TS1607 for a frame Arrow cannot take."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pl.DataFrame):
        return rows.to_arrow()
    if (
        type(rows).__module__.partition(".")[0] != "pandas"
    ):  # by name: importing pandas costs every start 0.4 s
        raise FixRequest(
            "TS1023",
            "rows of this kind cannot be written",
            why=f"got {type(rows).__name__}",
            fix="give SQL text, a Spark DataFrame, an Arrow table, a pandas or polars frame",
        )
    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except (
        pa.ArrowException,
        TypeError,
        ValueError,
    ) as wrong:  # ArrowInvalid is a ValueError, duplicate names too
        raise FixData(
            "TS1607",
            "the pandas frame cannot be read",
            why="; ".join(str(part) for part in wrong.args),
            fix="give each column one name and values of one type",
        ) from wrong
