"""The answer of a built-in data test from one column of a table, without Spark (decision 0084).

CHANGE     for which types and row counts a data test is answered without Spark
Steps      look the names up as a statement of Spark would → check that Arrow's rules are Spark's for these types →
           read the columns → count
INVARIANT  what is not proven to be Spark's answer is None, and the caller asks Spark: views, changes between two
           states, names in another letter case, types with rules of their own, tables of many rows.
INVARIANT  what was read is noted only with an answer: nobody notes a test's tables in two states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import Overrides, ResolvedTable
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.sql.aggregate_query import AggregateQuery, read_aggregates
from tablestore_engine.sql.data_test_query import DataTest, DataTestQuery, read_data_test
from tablestore_engine.sql.key_query import KeyQuery, read_key_query
from tablestore_engine.sql.query_words import Value
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import read_plan
from tablestore_engine.warehouse.statements.aggregate_answer import answer_aggregates
from tablestore_engine.warehouse.statements.key_answer import answer_by_key
from tablestore_engine.warehouse.statements.plain_table import find_field
from tablestore_engine.warehouse.warehouse import Warehouse

ROWS_MAX = 2_000_000
_SPARK_PRECISION = 6  # digits of a second that Spark keeps
_OTHER_RULES = re.compile(
    "collation|reservedKeywords", re.IGNORECASE
)  # settings: of equality, of what is a name
_COLUMNS = (("failures", "bigint"), ("should_warn", "boolean"), ("should_error", "boolean"))


def answer_without_spark(warehouse: Warehouse, text: str, overrides: Overrides) -> Fetched | None:
    """The rows of a query that is a built-in data test, asks for aggregates or for a key; None: Spark has to run it.

    Raises what reads raise.
    """
    query = read_aggregates(text) or read_data_test(text) or read_key_query(text)
    if query is None or any(_OTHER_RULES.search(key) for key in warehouse.session.settings.conf):
        return None
    names, fileio = warehouse.relations.names, warehouse.catalog.fileio
    with warehouse.running(needs_spark=False):
        if isinstance(query, AggregateQuery):
            return answer_aggregates(query, names, fileio, overrides)
        if isinstance(query, KeyQuery):
            return answer_by_key(query, names, fileio, overrides)
        return answer_data_test(query, names, fileio, overrides)


def answer_data_test(
    query: DataTestQuery, names: NameLookup, fileio: FileIO, overrides: Overrides
) -> Fetched | None:
    """failures, should_warn, should_error; None: Spark has to answer. Raises what look-ups and reads raise."""
    asked = [one for one in (query.column, query.parent) if one is not None]
    tables: dict[tuple[str, str], ResolvedTable] = {}
    for one in asked:
        found = tables.get((one.database, one.table)) or names.lookup(
            one.database, one.table, overrides.version(one.database, one.table)
        )
        if not isinstance(found, ResolvedTable):
            return None
        tables[one.database, one.table] = found
    plans = {name: table.load_plan() for name, table in tables.items()}
    fields = [find_field(tables[one.database, one.table].schema, one.column) for one in asked]
    types = [None if one is None else one.type for one in fields]
    if not _is_spark_like(query, types) or not all(map(_is_small, plans.values())):
        return None
    columns = [_read(fileio, plans[one.database, one.table], one.column) for one in asked]
    failures = _COUNTS[query.test](query, *columns)
    for (database, table), found in tables.items():
        overrides.note(database, table, found)
    failures = failures if query.limit is None else min(failures, query.limit)
    row = (failures, query.warn_if.holds(failures), query.error_if.holds(failures))
    return Fetched(_COLUMNS, (row,))


def _is_small(plan: object) -> bool:
    return isinstance(plan, ScanPlan) and plan.visible_rows <= ROWS_MAX


def _is_spark_like(query: DataTestQuery, types: list[DataType | None]) -> bool:
    """Whether equality of these values is the same in Arrow and in Spark, and nothing would be cast."""
    first, *others = types
    if first is None or query.test is DataTest.NOT_NULL:
        return first is not None
    kind = _equality(first)
    if query.test is DataTest.ACCEPTED_VALUES:
        return all(_literal_kind(value) == kind for value in query.values)
    return kind is not None and all(one is not None and _equality(one) == kind for one in others)


def _equality(type_: DataType) -> str | None:
    """Types with one name are compared exactly, and with nothing else; None: with rules that are not Arrow's."""
    if type_.root in INTEGER_ROOTS:
        return "integer"
    if type_.root in TIMESTAMP_ROOTS:
        return type_.root if (type_.precision or 0) <= _SPARK_PRECISION else None
    if type_.root == "DECIMAL":
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return {"VARCHAR": "text", "BOOLEAN": "boolean", "DATE": "DATE"}.get(type_.root)


def _literal_kind(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) else "text"


def _read(fileio: FileIO, plan: object, column: str) -> pa.ChunkedArray:
    assert isinstance(plan, ScanPlan)  # checked
    return read_plan(fileio, plan, [column])[column]


def _not_null(_: DataTestQuery, column: pa.ChunkedArray) -> int:
    return int(column.null_count)


def _unique(_: DataTestQuery, column: pa.ChunkedArray) -> int:
    counts = pc.value_counts(column.drop_null()).field("counts")
    return int(pc.sum(pc.greater(counts, 1)).as_py() or 0)


def _accepted_values(query: DataTestQuery, column: pa.ChunkedArray) -> int:
    found = pc.unique(column.drop_null())
    accepted = {*query.values}
    return sum(value not in accepted for value in found.to_pylist())


def _relationships(_: DataTestQuery, child: pa.ChunkedArray, parent: pa.ChunkedArray) -> int:
    values = child.drop_null()
    if pa.types.is_integer(values.type):
        values, parent = values.cast(pa.int64()), parent.cast(pa.int64())
    return len(values) - int(pc.sum(pc.is_in(values, pc.unique(parent))).as_py() or 0)


_COUNTS: Mapping[DataTest, Callable[..., int]] = {
    DataTest.NOT_NULL: _not_null,
    DataTest.UNIQUE: _unique,
    DataTest.ACCEPTED_VALUES: _accepted_values,
    DataTest.RELATIONSHIPS: _relationships,
}
