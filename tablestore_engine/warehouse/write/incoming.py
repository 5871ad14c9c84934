"""The rows of one write, wherever they are: what TableWriter asks of them, and what all of them have in common.

Arrow rows in the driver (arrow_rows.py), a DataFrame (frame_rows.py) and files that Spark tasks left (staged_rows.py)
implement it.

CHANGE     the protocol of incoming rows
INVARIANT  names match without case, as in SQL; a value is never changed here, only columns are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.error_values import count_of, sql_row
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import field_to_arrow
from tablestore_engine.spark.incoming_frame import VIOLATION_COLUMN
from tablestore_engine.spark.write_job import WriteJob
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.rows.row_filter import RowFilter

_SAMPLES = 5


class Incoming(Protocol):
    """Each implementation checks the names of its columns when it is made: FixRequest TS1024."""

    @property
    def fields(self) -> tuple[DataField, ...]:
        """Columns, without that of the row kinds. A field of type VOID has no values: it takes the type of the table's
        column.
        """

    @property
    def has_kinds(self) -> bool:
        """Whether a column _ROW_KIND comes along."""

    @property
    def only_deletes(self) -> bool:
        """Whether it is known, without running anything, that every row deletes its key."""

    def size_bytes(self) -> int:
        """About how many bytes the rows have in memory; of a query those of its inputs, where these are fewer."""

    def count_groups(self, columns: Sequence[str]) -> int:
        """How many different values these columns have, NULL among them; a query is run for it."""

    def read(self, schema: TableSchema) -> pa.Table | LargeRows:
        """The rows with the columns of `schema`, then the helper columns; or those that are too many for the driver."""


class LargeRows(Protocol):
    """Rows of an Incoming that are not in the memory of the driver."""

    def find_violations(self) -> tuple[int, Sequence[Mapping[str, object]]] | None:
        """How many rows break a check constraint, and the first of them; None: none."""

    def narrowed(self, replaces: RowFilter | None) -> RowFilter | None:
        """The filter of a write with the keys of these rows, where it needs them."""

    def count_rows(self, columns: Sequence[str]) -> pa.Table:
        """These columns of the table, each combination once, and as the last column the number of its rows."""

    def write(self, job: WriteJob, scratch: Callable[[], Path], /) -> Sequence[BucketChange]:
        """Their changes, which are not committed. `scratch`: folder of the session."""


def group_count(parts: Iterable[pa.Table], columns: Sequence[str]) -> int:
    """How many different values the columns (names without case) have in all parts together."""
    wanted = {name.lower() for name in columns}
    seen = []
    for part in parts:
        names = [name for name in part.column_names if name.lower() in wanted]
        seen.append(part.select(names).group_by(names).aggregate([]))
    if not seen:
        return 0
    rows = pa.concat_tables(seen, promote_options="permissive")
    return int(rows.group_by(rows.column_names).aggregate([]).num_rows)


def check_names(names: Sequence[str]) -> None:
    """Raises FixRequest TS1024 for a name that occurs twice."""
    repeated = [name for name, times in Counter(name.lower() for name in names).items() if times > 1]
    if repeated:
        raise FixRequest(
            "TS1024",
            f"several columns of the rows are named {repeated[0]!r}",
            why=f"names have no case in SQL; the columns are {', '.join(names)}",
            fix="rename or leave out one of them",
        )


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
        kinds = checked_kinds(rows.column(ROW_KIND_COLUMN))
        rows = rows.drop_columns([ROW_KIND_COLUMN])
    return rows, kinds


def checked_kinds(column: pa.ChunkedArray) -> pa.Array:
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
        raise violation(table, bad.num_rows, row_dicts(bad.slice(0, _SAMPLES)))
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
