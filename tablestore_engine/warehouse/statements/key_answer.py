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
from tablestore_engine.sql.key_query import KeyQuery
from tablestore_engine.sql.query_words import Value
from tablestore_engine.store.files.comparable_values import stored_form
from tablestore_engine.store.read.filtered_read import read_matching
from tablestore_engine.store.read.predicate import And, OneOf
from tablestore_engine.store.read.text_condition import PredicateCondition
from tablestore_engine.warehouse.statements.plain_table import find_field, find_plan

_SHOWN = (
    "BOOLEAN", *INTEGER_ROOTS, "FLOAT", "DOUBLE", "DECIMAL", *CHARACTER_ROOTS, *BINARY_ROOTS, "DATE", "TIMESTAMP",
)  # fmt: skip


def answer_by_key(query: KeyQuery, names: NameLookup, fileio: FileIO, overrides: Overrides) -> Fetched | None:
    """The rows; None: Spark has to answer. Raises what look-ups of names raise."""
    version = overrides.version(query.database, query.table)
    found = names.lookup(query.database, query.table, version, overrides.seen)
    if not isinstance(found, ResolvedTable) or not _is_by_key(query, found.schema):
        return None
    schema, plan = found.schema, find_plan(found)
    fields = _fields(query.columns or schema.field_names, schema)
    wanted = _condition(query, schema)
    if not fields or wanted is None or plan is None:
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
    """Whether the whole key is given."""
    return schema.is_keyed and set(schema.trimmed_primary_keys) <= query.values.keys()


def _fields(names: Sequence[str], schema: TableSchema) -> list[DataField]:
    """The columns of these names; none, where one of them is Spark's to show."""
    found = [field for name in names if (field := find_field(schema, name)) is not None]
    is_shown = all(field.type.root in _SHOWN and has_spark_type(field.type) for field in found)
    return found if is_shown and len(found) == len(names) else []


def _condition(query: KeyQuery, schema: TableSchema) -> PredicateCondition | None:
    """None for values that Spark would cast."""
    parts = []
    for name, values in query.values.items():
        field = find_field(schema, name)
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
