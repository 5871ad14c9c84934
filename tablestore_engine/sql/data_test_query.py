"""dbt's four built-in data tests, as dbt writes them: SQL text -> what is counted, or None for every other text.

CHANGE     which texts of data tests are answered without Spark
Steps      without comments, token by token: the frame of `get_test_sql`, in it one of the four queries
INVARIANT  a text that differs in anything but letter case, spaces and comments is None, and so is one with a hint:
           a macro that a project overrides, a `where`, another `fail_calc` are Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tablestore_engine.sql.query_words import QueryWords, Threshold, Value


class DataTest(Enum):
    """Which test; `failures` is a number of rows of its query."""

    NOT_NULL = "not_null"  # rows with NULL
    UNIQUE = "unique"  # values that are there twice or more
    ACCEPTED_VALUES = "accepted_values"  # values outside of the list
    RELATIONSHIPS = "relationships"  # rows whose value the parent lacks


@dataclass(frozen=True)
class ColumnName:
    """A column of `database.table`, as it is written."""

    database: str
    table: str
    column: str


@dataclass(frozen=True)
class DataTestQuery:
    """`values`: of accepted_values; `parent`: of relationships; `limit`: of the rows that are counted."""

    test: DataTest
    column: ColumnName
    warn_if: Threshold
    error_if: Threshold
    values: tuple[Value, ...] = ()
    parent: ColumnName | None = None
    limit: int | None = None


_LAST_WORD = "dbt_internal_test"
_HEAD = "select count ( * ) as failures , count ( * ) $warn as should_warn , count ( * ) $error as should_error from ("
_QUERIES: Mapping[DataTest, str] = {
    DataTest.NOT_NULL: "select $column from $table where $column is null",
    DataTest.UNIQUE: (
        "select $column as unique_field , count ( * ) as n_records from $table where $column is not null"
        " group by $column having count ( * ) > 1"
    ),
    DataTest.ACCEPTED_VALUES: (
        "with all_values as ( select $column as value_field , count ( * ) as n_records from $table"
        " group by $column ) select * from all_values where value_field not in ( $values )"
    ),
    DataTest.RELATIONSHIPS: (
        "with child as ( select $column as from_field from $table where $column is not null ) ,"
        " parent as ( select $field as to_field from $parent ) select from_field from child left join parent"
        " on child . from_field = parent . to_field where parent . to_field is null"
    ),
}


def read_data_test(text: str) -> DataTestQuery | None:
    """The test that a query is; None: it is something else."""
    if not text.rstrip().lower().endswith(_LAST_WORD):
        return None
    words = QueryWords.of(text)
    head = None if words is None else words.match(_HEAD)
    if words is None or head is None:
        return None
    after_head = words.at
    for test, template in _QUERIES.items():
        words.at = after_head
        found = words.match(template)
        if found is not None:
            return _test_of(test, {**head, **found}, words)
    return None


def _test_of(test: DataTest, found: Mapping[str, Any], words: QueryWords) -> DataTestQuery | None:
    """The whole, once its query was matched: what is left is a limit and the end."""
    limit = words.match("limit $number")
    if words.match(f") {_LAST_WORD}") is None or not words.is_at_end:
        return None
    return DataTestQuery(
        test,
        _column(found["$table"], found["$column"]),
        found["$warn"],
        found["$error"],
        found.get("$values", ()),
        _column(found["$parent"], found["$field"]) if "$parent" in found else None,
        None if limit is None else limit["$number"],
    )


def _column(table: tuple[str, str], name: str) -> ColumnName:
    return ColumnName(table[0], table[1], name)
