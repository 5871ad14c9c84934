"""Whatever Python users have becomes the Incoming of a write.

CHANGE     which kinds of rows a write accepts
INVARIANT  names match without case, as in SQL; a value is never changed here, only columns are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.error_values import sql_literal
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import VOID, DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.type_arrow import field_to_arrow, type_from_arrow
from tablestore_engine.spark.incoming_frame import (
    VIOLATION_COLUMN,
    frame_fields,
    helper_columns,
    with_helpers,
)
from tablestore_engine.warehouse.write.arrow_rows import ArrowRows
from tablestore_engine.warehouse.write.frame_rows import FrameRows
from tablestore_engine.warehouse.write.incoming import Incoming, check_names
from tablestore_engine.warehouse.write.write_spec import WriteSpec


@dataclass(frozen=True)
class NoRows:
    """What a query gives that is known to have no rows: its columns."""

    fields: tuple[DataField, ...]


@dataclass(frozen=True)
class KnownRows:
    """What a query gives that was computed already: its columns, and its rows, which may have row kinds."""

    fields: tuple[DataField, ...]
    table: pa.Table


def to_incoming(rows: object, spec: WriteSpec, session: Callable[[], SparkSession]) -> Incoming:
    """Rows of any kind but SQL text. Conditions over Arrow rows are Spark's to evaluate: `session` starts it."""
    if isinstance(rows, DataFrame):
        return from_frame(rows, spec.delete_when, spec.checks)
    if isinstance(rows, NoRows):
        return _from_no_rows(rows.fields, spec)
    incoming = _from_known_rows(rows) if isinstance(rows, KnownRows) else from_arrow(to_arrow(rows))
    if spec.delete_when or spec.checks:
        return _with_conditions(incoming, spec, session)
    return incoming


def _from_known_rows(rows: KnownRows) -> ArrowRows:
    return ArrowRows(rows.fields, rows.table)


def _from_no_rows(fields: tuple[DataField, ...], spec: WriteSpec) -> ArrowRows:
    """The columns that from_frame makes, without a session: no condition has a row to be evaluated for."""
    columns = [
        pa.field(field.name, pa.null()) if field.type is VOID else field_to_arrow(field) for field in fields
    ]
    if spec.delete_when:
        columns.append(pa.field(ROW_KIND_COLUMN, pa.int8()))
    if spec.checks:
        columns.append(pa.field(VIOLATION_COLUMN, pa.string()))
    return ArrowRows(fields, pa.schema(columns).empty_table())


def _with_conditions(incoming: ArrowRows, spec: WriteSpec, session: Callable[[], SparkSession]) -> ArrowRows:
    """Arrow rows with the helper columns that Spark computed of the conditions."""
    rows = incoming.table
    found = helper_columns(rows, incoming.fields, session, spec.delete_when, spec.checks)
    for name in found.column_names:
        rows = rows.append_column(name, found.column(name))
    return ArrowRows(incoming.fields, rows)


def from_arrow(rows: pa.Table) -> ArrowRows:
    """Arrow rows; times finer than ours become microseconds (TIME: milliseconds) when that loses nothing.

    Raises FixRequest TS1024, TS1104, FixData TS1607 for a TIME that would lose digits.
    """
    check_names(rows.column_names)
    exact = pa.table(
        [_coarser(rows.column(name), name) for name in rows.column_names], names=rows.column_names
    )
    fields = tuple(
        DataField(0, field.name, type_from_arrow(field.type, may_be_void=True))
        for field in exact.schema
        if field.name != ROW_KIND_COLUMN
    )
    return ArrowRows(fields, exact)


def _coarser(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """In the unit that the format stores, when all values have one; a TIMESTAMP else as it is: its type has a place."""
    if pa.types.is_time64(column.type):
        return _milliseconds(column, name)
    if not pa.types.is_timestamp(column.type) or column.type.unit != "ns":
        return column
    try:
        return column.cast(pa.timestamp("us", column.type.tz))
    except pa.ArrowInvalid:
        return column


def _milliseconds(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    try:
        return column.cast(pa.time32("ms"))
    except pa.ArrowInvalid as wrong:
        kept = column.cast(pa.time32("ms"), safe=False).cast(column.type)
        lost = column.filter(pc.not_equal(column, kept))
        raise FixData(
            "TS1607",
            f"column {name!r} of the rows has times that are finer than a millisecond",
            why=f"the type TIME stores milliseconds; the first such time is {sql_literal(lost[0].as_py())}",
            fix="round the times to milliseconds first, or write them as microseconds in a BIGINT",
            column=name,
        ) from wrong


def from_frame(frame: DataFrame, delete_when: str | None, checks: Mapping[str, str]) -> FrameRows:
    """A DataFrame with its row kinds from `delete_when` and the names of violated checks as helper columns."""
    return FrameRows(frame_fields(frame), with_helpers(frame, delete_when, checks))


def to_arrow(rows: object, *, are_keys: bool = False) -> pa.Table:
    """Arrow from what Python users have; `are_keys`: of rows to delete, for the text of an error.

    Raises FixRequest TS1023, FixData TS1607 for rows that Arrow cannot take.
    """
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pl.DataFrame):
        return rows.to_arrow()
    if isinstance(rows, pl.LazyFrame):
        return rows.collect().to_arrow()
    if isinstance(rows, list):
        return _read(
            _from_dicts, rows, "the list of dicts", "give each row the same keys, and a key one type"
        )
    if (
        type(rows).__module__.partition(".")[0] == "pandas"
    ):  # by name: importing pandas costs every start 0.4 s
        return _read(
            _from_pandas, rows, "the pandas frame", "give each column one name and values of one type"
        )
    if hasattr(rows, "__arrow_c_stream__"):
        return _read(_from_stream, rows, "the Arrow stream", "give an object whose stream has columns")
    raise FixRequest(
        "TS1023",
        f"{'keys of rows to delete' if are_keys else 'rows'} cannot be taken from {type(rows).__name__}",
        why=f"expected {'columns of the primary key' if are_keys else 'named columns'}, got one {type(rows).__name__}",
        fix="give the keys as a list of dicts, an Arrow table or stream, a pandas or polars frame; or a filter as SQL "
        "text or pyarrow expression"
        if are_keys
        else "give SQL text, a Spark DataFrame, an Arrow table or stream, a pandas or polars frame, a list of dicts",
    )


def _read(read: Callable[[Any], pa.Table], rows: object, what: str, fix: str) -> pa.Table:
    try:
        return read(rows)
    except (
        pa.ArrowException,
        TypeError,
        ValueError,
    ) as wrong:  # ArrowInvalid is a ValueError, duplicate names too
        why = "; ".join(str(part) for part in wrong.args)
        raise FixData("TS1607", f"{what} cannot be read", why=why, fix=fix) from wrong


def _from_pandas(rows: object) -> pa.Table:
    return pa.Table.from_pandas(rows, preserve_index=False)


def _from_stream(rows: object) -> pa.Table:
    """What arrives is read before the write begins: a lost claim plans the write again."""
    return pa.RecordBatchReader.from_stream(rows).read_all()


def _from_dicts(rows: list[Any]) -> pa.Table:
    """Arrow itself would take the keys of the first row, and drop others."""
    names = list(rows[0]) if rows and isinstance(rows[0], Mapping) else []
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"item {number} is {type(row).__name__}, not dict")
        if row.keys() != rows[0].keys():
            differs = sorted(map(str, row.keys() ^ rows[0].keys()))
            raise ValueError(f"row 0 and row {number} differ in the keys {', '.join(differs)}")
    columns = {name: [row[name] for row in rows] for name in names}
    made = pa.table(columns)
    for field in made.schema:
        if _has_struct(field.type):
            _check_same_keys(columns[field.name], field.name)
    return made


def _has_struct(arrow: pa.DataType) -> bool:
    inside = (arrow.field(at).type for at in range(arrow.num_fields))
    return bool(pa.types.is_struct(arrow)) or any(_has_struct(part) for part in inside)


def _check_same_keys(column: list[Any], name: str) -> None:
    """Arrow would fill the keys that one dict of a column has, and another one lacks, with NULL."""
    firsts: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for number, value in enumerate(column):
        for path, found in _dicts_inside(value, name):
            first, other = firsts.setdefault(path, (number, found))
            if found.keys() != other.keys():
                differs = sorted(f"{path}.{key}" for key in found.keys() ^ other.keys())
                raise ValueError(f"row {first} and row {number} differ in the keys {', '.join(differs)}")


def _dicts_inside(value: object, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        yield path, value
        for key, part in value.items():
            yield from _dicts_inside(part, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _dicts_inside(part, f"{path}[]")
