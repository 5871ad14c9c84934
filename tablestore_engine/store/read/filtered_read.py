"""Reading the rows of a plan that fulfil conditions, without the files that cannot have any.

Steps      spelling and types → files (file_pruning) → columns that are asked for and those that decide → mask
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import prune
from tablestore_engine.store.read.predicate import (
    And,
    Comparable,
    Compare,
    Missing,
    OneOf,
    Operator,
    Predicate,
    comparable,
    is_comparable,
    matching,
)
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import result_schema

Condition = tuple[str, str, object]
_OPERATORS: dict[str, Operator] = {
    "=": "=", "==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip


def parse_conditions(where: Iterable[Condition], schema: TableSchema) -> Predicate:
    """All of them hold; `in` takes a collection, `=` and `!=` with None ask for NULL. Raises FixRequest TS1395."""
    return And(tuple(_condition(schema, *one) for one in where))


def read_matching(
    fileio: FileIO, plan: ScanPlan, wanted: Predicate, columns: Sequence[str] | None = None
) -> pa.Table:
    """The visible rows that `wanted` is TRUE of, in the order of the plan. Raises what scan_rows.read_plan raises."""
    schema, target = plan.schema, result_schema(plan.schema, columns)
    types = {field.name: field.type for field in schema.fields}
    needed = [name for name in schema.field_names if name in target.names or name in _columns(wanted)]
    reader, parts = FileReader(fileio, schema), [target.empty_table()]

    def read(file: StoredFile) -> pa.Table:
        rows = reader.read_visible(file, needed, parallel=True)
        return rows.filter(pa.array(matching(wanted, rows, types))).select(target.names)

    parts += fileio.run_together([partial(read, file) for file in prune(plan.files, wanted, schema)])
    return pa.concat_tables(parts)


def _condition(schema: TableSchema, name: str, operator: str, value: object) -> Predicate:
    column = next((field for field in schema.fields if field.name.lower() == name.lower()), None)
    if column is None:
        raise _refused(name, f"the columns are {', '.join(schema.field_names)}")
    if value is None and operator in ("=", "==", "!="):
        return Missing(column.name, negated=operator == "!=")
    if operator == "in" and isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return OneOf(column.name, frozenset(_value(column, one) for one in value if one is not None))
    if operator not in _OPERATORS:
        raise _refused(
            name, f"operator {operator!r} is none of {', '.join(_OPERATORS)}, in with a collection"
        )
    return Compare(column.name, _OPERATORS[operator], _value(column, value))


def _value(column: DataField, value: object) -> Comparable:
    if not is_comparable(column.type):
        raise _refused(column.name, f"values of {type_to_text(column.type)} are not compared here")
    known = comparable(value, column.type)
    if known is None:
        raise _refused(
            column.name, f"{value!r:.80} ({type(value).__name__}) is no value of {type_to_text(column.type)}"
        )
    return known


def _columns(wanted: Predicate) -> frozenset[str]:
    if isinstance(wanted, And):
        return frozenset(name for part in wanted.parts for name in _columns(part))
    return frozenset([wanted.column]) if isinstance(wanted, Compare | OneOf | Missing) else frozenset()


def _refused(column: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1395",
        f"rows cannot be chosen by column {column!r}",
        why=why,
        fix="name a column, one of the operators, and a value of the column's type",
    )
