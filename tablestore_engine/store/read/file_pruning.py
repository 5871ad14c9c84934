"""Which files can hold a row that a condition is true of: from the manifest alone, nothing is opened.

CHANGE     which files can match a condition
Steps      partition value → bounds and null count of the statistics → bucket by the hash of the values that the
           condition leaves to the bucket key
REQUIRES   files of a ScanPlan, whose dead positions are known already: merging looked at all versions before, so
           leaving a file out brings no older version of a key back.
INVARIANT  never skips a file with a row that matches (tests/laws/test_pruning_laws.py): what is unknown may match.
WHY        types must be equal: a condition holds for the column as its reader sees it, statistics for what was written.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from tablestore_engine.format.binary_row import decode_field, row_arity
from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.column_facts import ColumnFacts, FindFacts, StoredColumns, constant_facts
from tablestore_engine.store.files.comparable_values import comparable, stored_form
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.predicate import (
    Always,
    And,
    Compare,
    Like,
    Missing,
    OneOf,
    Or,
    Predicate,
    Prefix,
    pinned,
)
from tablestore_engine.store.table_traits import TableTraits

_KEYS_MAX = 256  # combinations of key values that are hashed to find buckets
_HASHED_AS_COMPARED = (*INTEGER_ROOTS, "BOOLEAN", "DECIMAL", "VARCHAR", "DATE", *TIMESTAMP_ROOTS)


FactFinder = Callable[[StoredFile], FindFacts]


def may_match(wanted: Predicate, find: FindFacts) -> bool:
    """Whether the condition can be true of a row of the file; `find` gives None for a column without facts."""
    match wanted:
        case Always(holds):
            return holds
        case And(parts):
            return all(may_match(part, find) for part in parts)
        case Or(parts):
            return any(may_match(part, find) for part in parts)
        case Missing(column, negated):
            facts = find(column)
            if facts is None or facts.nulls is None:
                return True
            return not facts.is_all_null if negated else facts.nulls > 0
        case Like(column, _, negated):
            facts = find(column)
            if facts is None or negated:
                return facts is None or not facts.is_all_null
            return _may_have(Prefix(column, wanted.prefix), facts)
        case Compare(column) | OneOf(column) | Prefix(column):
            facts = find(column)
            return facts is None or _may_have(wanted, facts)


def _may_have(wanted: Compare | OneOf | Prefix, facts: ColumnFacts) -> bool:
    if facts.is_all_null:
        return False
    low, high = facts.low, facts.high
    if low is None or high is None:
        return True
    match wanted:
        case Compare(_, operator, value):
            return _may_compare(operator, value, low, high, exact=facts.exact)
        case OneOf():
            values = wanted.ordered
            return _has_nan(low, high) or bisect_left(values, low) < bisect_right(values, high)
        case Prefix(_, text):
            return not isinstance(low, str) or not isinstance(high, str) or low[: len(text)] <= text <= high


def _may_compare(operator: str, value: Any, low: Any, high: Any, *, exact: bool) -> bool:  # noqa: ANN401 - see ColumnFacts
    """REQUIRES value and bounds of one column: they are of one type."""
    if _has_nan(value, low, high):
        return True
    if isinstance(low, float) and operator in (">", ">=", "!="):
        return True  # bounds tell nothing of a NaN, which is above every number
    possible = {
        "=": low <= value <= high,
        "<": low < value,
        "<=": low <= value,
        ">": high > value,
        ">=": high >= value,
        "!=": not (exact and low == value == high),
    }
    return bool(possible[operator])


def _has_nan(*values: object) -> bool:
    return any(isinstance(one, float) and math.isnan(one) for one in values)


# ---- files -------------------------------------------------------------------------------------------------


def prune(files: Iterable[StoredFile], wanted: Predicate, schema: TableSchema) -> tuple[StoredFile, ...]:
    """The files that may hold a row that `wanted`, in names and types of `schema`, is true of; in the same order."""
    columns = StoredColumns(schema)
    buckets = _Buckets(wanted, schema, columns)
    return tuple(
        file
        for file in files
        if file.visible_rows and buckets.may_hold(file) and may_match(wanted, _FileFacts(file, columns).find)
    )


def fact_finder(schema: TableSchema) -> FactFinder:
    """For each file its facts about columns of `schema`, in their types."""
    columns = StoredColumns(schema)
    return lambda file: _FileFacts(file, columns).find


def facts_of(files: Iterable[StoredFile], name: str, schema: TableSchema) -> tuple[ColumnFacts | None, ...]:
    """What the manifest says of a column of `schema` in each file; None: nothing."""
    find = fact_finder(schema)
    return tuple(find(file)(name) for file in files)


class _FileFacts:
    """Facts of one file; its statistics are decoded when a column that is no partition column is asked for."""

    def __init__(self, file: StoredFile, columns: StoredColumns) -> None:
        self._file = file
        self._columns = columns

    def find(self, name: str) -> ColumnFacts | None:
        rows, column = self._file.meta.row_count, self._columns.by_name.get(name)
        if column is None:
            return None
        at = self._columns.partition.get(name)
        if at is not None:
            return constant_facts(self._file.partition[at], column, rows)
        stored, is_alike = self._columns.stored_as(self._file.schema, column)
        if stored is None:
            return ColumnFacts(rows, nulls=rows)  # added later: NULL in every row
        return self._from_statistics(stored) if is_alike else None

    def _from_statistics(self, stored: DataField) -> ColumnFacts | None:
        at = next((i for i, one in enumerate(self._listed) if one.id == stored.id), None)
        counts = self._file.meta.value_stats.null_counts
        if at is None or at >= len(counts):
            return None
        facts = ColumnFacts(self._file.meta.row_count, counts[at])
        stats, arity = self._file.meta.value_stats, len(self._listed)
        if {row_arity(stats.min_values), row_arity(stats.max_values)} != {arity}:
            return facts  # they do not list the columns that they should
        type_ = stored.type.with_nullable(True)
        bounds = [decode_field(row, arity, at, type_) for row in (stats.min_values, stats.max_values)]
        low, high = (None if one is None else comparable(one, stored.type) for one in bounds)
        is_cut = stored.type.root == "VARCHAR"
        return replace(facts, low=low, high=high, exact=not is_cut)

    @cached_property
    def _listed(self) -> Sequence[DataField]:
        names = self._file.meta.value_stats_cols
        return self._file.schema.fields if names is None else self._file.schema.fields_of(names)


# ---- buckets -----------------------------------------------------------------------------------------------


class _Buckets:
    """Which buckets the condition leaves, for each number of buckets that a partition was written with."""

    def __init__(self, wanted: Predicate, schema: TableSchema, columns: StoredColumns) -> None:
        self._schema = schema
        self._columns = columns
        self._fields = schema.fields_of(schema.bucket_keys)
        self._keys = _key_columns(wanted, self._fields)
        self._found: dict[int, frozenset[int]] = {}

    def may_hold(self, file: StoredFile) -> bool:
        if self._keys is None or file.total_buckets <= 1 or file.bucket < 0:
            return True
        stored = self._columns.stored(file.schema)
        if any(one.id not in stored or stored[one.id].type.root != one.type.root for one in self._fields):
            return True  # hashed as another type
        if file.total_buckets not in self._found:
            types = [field.type for field in self._fields]
            function = TableTraits(self._schema).bucket_function
            numbers = assign_buckets(self._keys, types, file.total_buckets, function)
            self._found[file.total_buckets] = frozenset(numbers.tolist())
        return file.bucket in self._found[file.total_buckets]


def _key_columns(wanted: Predicate, fields: Sequence[DataField]) -> list[pa.Array] | None:
    """All keys that the condition leaves, as columns; None when they are too many or not known."""
    values = [pinned(wanted, field.name) for field in fields]
    known = [sorted(one, key=repr) for one in values if one]
    if not fields or len(known) < len(fields) or math.prod(map(len, known)) > _KEYS_MAX:
        return None
    if any(field.type.root not in _HASHED_AS_COMPARED for field in fields):
        return None  # 0.0 equals -0.0, and they have two hashes
    columns = zip(*itertools.product(*known), strict=True)
    try:
        return [stored_form(column, field.type) for column, field in zip(columns, fields, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None  # a value that no row of the type has: bounds will tell
