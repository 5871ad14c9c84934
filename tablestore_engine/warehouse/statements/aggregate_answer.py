"""count(*), min and max over a whole table from metadata: no data file is opened and no Spark job runs.

CHANGE     for which columns and files an aggregate is answered by metadata
Steps      look the name up as a statement of Spark would → files of the state → visible rows, and bounds of files
           whose rows are all visible
INVARIANT  what is not proven to be Spark's answer is None, and the caller asks Spark: views, changes, tables that merge
           on read, rows with an age; for bounds files with deleted rows, columns of other types than whole numbers and
           dates, names in another letter case, files without exact statistics of the column in its type of today.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import Overrides, ResolvedTable
from tablestore_engine.format.data_type import INTEGER_ROOTS
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.sql.aggregate_query import COUNT, MIN, Aggregate, AggregateQuery
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import facts_of
from tablestore_engine.store.read.scan import ScanPlan, is_merged

_SPARK_NAMES = {
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "DATE": "date",
}
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_AGED = "record-level."  # options by which rows leave a table as time passes


def answer_aggregates(query: AggregateQuery, names: NameLookup, overrides: Overrides) -> Fetched | None:
    """One row; None: Spark has to answer. Raises what look-ups raise."""
    version = overrides.version(query.database, query.table)
    found = names.lookup(query.database, query.table, version, overrides.seen)
    if "$" in query.table or not isinstance(found, ResolvedTable):
        return None
    schema = found.schema
    if is_merged(schema) or any(key.startswith(_AGED) for key in schema.options):
        return None
    kinds = [_spark_type(one, schema) for one in query.aggregates]
    if None in kinds:
        return None
    plan = found.load_plan()
    if (
        not isinstance(plan, ScanPlan)
        or plan.unmerged
        or any(one.meta.delete_row_count for one in plan.files)
    ):
        return None
    values: list[object] = []
    for one in query.aggregates:
        if one.column is None:
            values.append(plan.visible_rows)
            continue
        bound = _bound(one, plan.files, schema)
        if bound is None:
            return None
        values.append(bound[0])
    overrides.note(query.database, query.table, found)
    columns = tuple((one.name, str(kind)) for one, kind in zip(query.aggregates, kinds, strict=True))
    return Fetched(columns, (tuple(values),))


def _spark_type(one: Aggregate, schema: TableSchema) -> str | None:
    """Of the result; None for a column of another type, or that is spelled otherwise than it is stored."""
    if one.function == COUNT:
        return "bigint"
    alike = [field for field in schema.fields if field.name.lower() == str(one.column).lower()]
    if len(alike) != 1 or alike[0].name != one.column:
        return None
    return _SPARK_NAMES.get(alike[0].type.root)


def _bound(one: Aggregate, files: Sequence[StoredFile], schema: TableSchema) -> tuple[object] | None:
    """The smallest or largest value, NULL without values; None: not known."""
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
    if not ends:
        return (None,)
    found = min(ends) if one.function == MIN else max(ends)
    if schema.field(column).type.root in INTEGER_ROOTS:
        return (found,)
    day = found + _EPOCH_DAY
    return (date.fromordinal(day),) if 1 <= day <= date.max.toordinal() else None
