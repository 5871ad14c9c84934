"""Rows of one key, or of some, as values of a query: no Spark job runs, and nothing is analyzed.

CHANGE     for which types a query by key is answered without Spark
Steps      look the name up as a statement of Spark would → rows with these keys (store.read.filtered_read) → values
INVARIANT  what is not proven to be Spark's answer is None, and the caller asks Spark: views, changes, tables that merge
           on read, rows with an age; keys that are known in part; names in another letter case; equality but of whole
           numbers and of texts; columns that are nested, or that the session's time zone is shown in.
WHY        there is no expression beside the key, so nothing is evaluated by a second rule (decision 0163).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import Overrides, ResolvedTable
from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, INTEGER_ROOTS, DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.fetch_rows import Fetched, value_rows
from tablestore_engine.spark.spark_types import arrow_type, as_spark_has_it, spark_type
from tablestore_engine.spark.type_ddl import has_spark_type
from tablestore_engine.sql.data_test_query import Value
from tablestore_engine.sql.key_query import KeyQuery
from tablestore_engine.store.files.comparable_values import stored_form
from tablestore_engine.store.read.filtered_read import read_matching
from tablestore_engine.store.read.predicate import And, OneOf
from tablestore_engine.store.read.scan import ScanPlan, is_merged
from tablestore_engine.store.read.text_condition import PredicateCondition

_AGED = "record-level."  # options by which rows leave a table as time passes
_SHOWN = (
    "BOOLEAN", *INTEGER_ROOTS, "FLOAT", "DOUBLE", "DECIMAL", *CHARACTER_ROOTS, *BINARY_ROOTS, "DATE", "TIMESTAMP",
)  # fmt: skip


def answer_by_key(query: KeyQuery, names: NameLookup, fileio: FileIO, overrides: Overrides) -> Fetched | None:
    """The rows; None: Spark has to answer. Raises what look-ups of names raise."""
    version = overrides.version(query.database, query.table)
    found = names.lookup(query.database, query.table, version, overrides.seen)
    if not isinstance(found, ResolvedTable) or not _is_by_key(query, found.schema):
        return None
    schema, plan = found.schema, found.load_plan()
    fields = _fields(query.columns or schema.field_names, schema)
    wanted = _condition(query, schema)
    if not fields or wanted is None or not isinstance(plan, ScanPlan) or plan.unmerged:
        return None
    try:
        rows = read_matching(fileio, plan, wanted, list(dict.fromkeys(f.name for f in fields)), found.cache)
    except TablestoreError:  # Spark reads the same files, and says so
        return None
    kinds = [spark_type(field.type) for field in fields]
    columns = [
        as_spark_has_it(rows.column(field.name), arrow_type(kind))
        for field, kind in zip(fields, kinds, strict=True)
    ]
    overrides.note(query.database, query.table, found)
    shown = tuple((field.name, kind.simpleString()) for field, kind in zip(fields, kinds, strict=True))
    return Fetched(shown, value_rows(columns))


def _is_by_key(query: KeyQuery, schema: TableSchema) -> bool:
    """Whether the whole key is given, of a table whose rows are in its files."""
    if not schema.is_keyed or is_merged(schema) or any(key.startswith(_AGED) for key in schema.options):
        return False
    return set(schema.trimmed_primary_keys) <= query.values.keys()


def _fields(names: Sequence[str], schema: TableSchema) -> list[DataField]:
    """The columns of these names; none, where one of them is Spark's to show."""
    found = [field for name in names if (field := _field(name, schema)) is not None]
    is_shown = all(field.type.root in _SHOWN and has_spark_type(field.type) for field in found)
    return found if is_shown and len(found) == len(names) else []


def _field(name: str, schema: TableSchema) -> DataField | None:
    """A column whose name is written as it is stored."""
    alike = [field for field in schema.fields if field.name.lower() == name.lower()]
    return alike[0] if len(alike) == 1 and alike[0].name == name else None


def _condition(query: KeyQuery, schema: TableSchema) -> PredicateCondition | None:
    """None for values that Spark would cast."""
    parts = []
    for name, values in query.values.items():
        field = _field(name, schema)
        if field is None or not all(_is_of(value, field) for value in values):
            return None
        parts.append(OneOf(name, frozenset(values)))
    return PredicateCondition(And(tuple(parts)), schema)


def _is_of(value: Value, field: DataField) -> bool:
    """Whether it is a value of just the column's type, or of another whole number's."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return field.type.root == "VARCHAR"
    if field.type.root not in INTEGER_ROOTS:
        return False
    try:
        stored_form([value], field.type)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True
