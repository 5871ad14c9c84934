"""count, min, max and sum over a whole table: from metadata, or from the columns that are asked; no Spark job runs.

CHANGE     for which columns and row counts an aggregate is answered without Spark
Steps      look the name up as a statement of Spark would → files of the state → visible rows, and bounds of files
           whose rows are all visible → totals of the other columns, which are read
INVARIANT  what is not proven to be Spark's answer is None, and the caller asks Spark: views, changes, tables that merge
           on read, rows with an age; min, max and sum of other types than whole numbers and dates, sums that may leave
           64 bits, names in another letter case, tables of many rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import Overrides, ResolvedTable
from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_type import ATOMIC_ROOTS, INTEGER_ROOTS
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.spark.type_ddl import has_spark_type
from tablestore_engine.sql.aggregate_query import COUNT, MAX, MIN, SUM, Aggregate, AggregateQuery
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import facts_of
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.warehouse.statements.plain_table import find_field, find_plan

ROWS_MAX = 50_000_000  # of a table whose columns are read; a cluster reads more of them sooner
_SPARK_NAMES = {
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "DATE": "date",
}
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_Value = tuple[int | None]  # of one aggregate; NULL without values, dates as days


def answer_aggregates(
    query: AggregateQuery, names: NameLookup, fileio: FileIO, overrides: Overrides
) -> Fetched | None:
    """One row; None: Spark has to answer. Raises what look-ups raise."""
    version = overrides.version(query.database, query.table)
    found = names.lookup(query.database, query.table, version, overrides.seen)
    if not isinstance(found, ResolvedTable):
        return None
    schema = found.schema
    kinds = [_spark_type(one, schema) for one in query.aggregates]
    if None in kinds:
        return None
    plan = find_plan(found)
    if plan is None or any(one.meta.delete_row_count for one in plan.files):
        return None
    known = [_known(one, plan, schema) for one in query.aggregates]
    try:
        values = _with_totals(query.aggregates, known, fileio, plan, found)
    except TablestoreError:  # Spark reads the same files, and says so
        return None
    shown = [_shown(value, str(kind)) for value, kind in zip(values, kinds, strict=True)]
    if not all(shown):
        return None
    overrides.note(query.database, query.table, found)
    columns = tuple((one.name, str(kind)) for one, kind in zip(query.aggregates, kinds, strict=True))
    return Fetched(columns, (tuple(one[0] for one in shown if one),))


def _spark_type(one: Aggregate, schema: TableSchema) -> str | None:
    """Of the result; None for a column of another type, or that is spelled otherwise than it is stored."""
    if one.column is None:
        return "bigint"
    field = find_field(schema, one.column)
    if field is None:
        return None
    if one.function == COUNT:
        return "bigint" if field.type.root in ATOMIC_ROOTS and has_spark_type(field.type) else None
    if one.function == SUM:
        return "bigint" if field.type.root in INTEGER_ROOTS else None
    return _SPARK_NAMES.get(field.type.root)


def _known(one: Aggregate, plan: ScanPlan, schema: TableSchema) -> _Value | None:
    """From metadata; None: not known."""
    if one.column is None:
        return (plan.visible_rows,)
    if one.function in (MIN, MAX):
        return _bound(one, plan.files, schema)
    return None


def _bound(one: Aggregate, files: Sequence[StoredFile], schema: TableSchema) -> _Value | None:
    """The smallest or largest value; None: not known."""
    column, ends = str(one.column), []
    shown = [file for file in files if file.visible_rows]
    for file, facts in zip(shown, facts_of(shown, column, schema), strict=True):
        if facts is None or facts.nulls is None or file.visible_rows != file.meta.row_count:
            return None
        if facts.is_all_null:
            continue
        end = facts.low if one.function == MIN else facts.high
        if not facts.exact or not isinstance(end, int) or isinstance(end, bool):
            return None
        ends.append(end)
    return (min(ends, default=None) if one.function == MIN else max(ends, default=None),)


def _with_totals(
    asked: Sequence[Aggregate],
    known: Sequence[_Value | None],
    fileio: FileIO,
    plan: ScanPlan,
    table: ResolvedTable,
) -> list[_Value | None]:
    """The known values, and those of columns that are read where one is missing."""
    missing = {str(one.column) for one, value in zip(asked, known, strict=True) if value is None}
    if not missing or plan.visible_rows > ROWS_MAX:
        return [*known]
    # a statement that metadata answers loads nothing for reading
    from tablestore_engine.store.read.column_totals import ColumnTotals, read_totals  # noqa: PLC0415

    def value_of(one: Aggregate, totals: ColumnTotals) -> _Value | None:
        if one.function == SUM:
            found = totals.sum if totals.count else None
            return None if totals.count and found is None else (found,)
        values: Mapping[str, int | None] = {COUNT: totals.count, MIN: totals.low, MAX: totals.high}
        return (values[one.function],)

    found = read_totals(fileio, plan, sorted(missing), table.cache)
    return [
        value_of(one, found[str(one.column)]) if value is None else value
        for one, value in zip(asked, known, strict=True)
    ]


def _shown(value: _Value | None, kind: str) -> tuple[object] | None:
    """As Spark gives it; None: it has to."""
    if value is None or value[0] is None or kind != "date":
        return value
    day = value[0] + _EPOCH_DAY
    return (date.fromordinal(day),) if 1 <= day <= date.max.toordinal() else None
