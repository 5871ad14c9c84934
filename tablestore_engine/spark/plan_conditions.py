"""What an optimized plan asks of each of our hidden tables: Catalyst's filters as predicates.

Names      ReadCondition     one place in a plan where a hidden table is read, and what is asked of its rows there
           read_conditions   all places of a plan, those in subqueries too
           find_hidden       the hidden table that a node of a plan reads
Steps      walk the plan, keep the filters that lie directly over a relation → their expressions: comparisons of a
           column with a literal of the same Spark type, IN, prefixes, IS NULL, AND, OR, NOT; everything else → ANYTHING
INVARIANT  an expression is taken only when all of it is known, down to the types; else any row may fulfil it: casts,
           functions, UDFs, subqueries, collated texts, what is not deterministic.
WHY        the optimizer has pushed filters down through joins, unions, views and projections by its own rules: what
           lies over a relation there holds for every row of it that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.predicate import (
    ANYTHING,
    NOTHING,
    And,
    Comparable,
    Compare,
    Missing,
    OneOf,
    Operator,
    Or,
    Predicate,
    Prefix,
    negate,
)

HIDDEN_DATABASE = "tablestore_hidden"
Jvm = Any  # an object of the JVM
_VALUES_MAX = 200  # of one IN: each is fetched from the JVM by a call of its own
_BROKEN_TEXT = "\ufffd"  # bytes that are no UTF-8 arrive as this
_OPERATORS: Mapping[str, Operator] = {
    "EqualTo": "=", "EqualNullSafe": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}  # fmt: skip
_FLIPPED: Mapping[Operator, Operator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _float32(value: Jvm) -> float:
    return float(np.float32(value))  # it came as the shortest text of a float


def _text(value: Jvm) -> str | None:
    text = str(value.toString())
    return None if _BROKEN_TEXT in text else text


def _number(value: Jvm) -> float | None:
    return None if np.isnan(value) else float(value)


# Spark type → a literal's inner value as a Comparable, None where it is none
_READERS: Mapping[str, Callable[[Jvm], Comparable | None]] = {
    "tinyint": int, "smallint": int, "int": int, "bigint": int, "boolean": int, "date": int, "timestamp": int,
    "timestamp_ntz": int, "string": _text, "double": _number,
    "float": lambda value: None if np.isnan(value) else _float32(value),
}  # fmt: skip


@dataclass(frozen=True)
class ReadCondition:
    """`table`: the hidden table's name; `instance`: the id of its first column, another one where it is read again."""

    table: str
    instance: int
    wanted: Predicate


def find_hidden(node: Jvm) -> str | None:
    """The name of the hidden table, None for any other node."""
    if node.nodeName() != "LogicalRelation":
        return None
    entry = node.catalogTable()
    if entry.isEmpty():
        return None
    name = entry.get().identifier()
    database = name.database()
    return str(name.table()) if database.isDefined() and database.get() == HIDDEN_DATABASE else None


def instance_of(relation: Jvm) -> int:
    """Which reading of a table this is."""
    return int(relation.output().head().exprId().id())


def read_conditions(optimized: Jvm, schemas: Mapping[str, TableSchema]) -> Iterator[ReadCondition]:
    """Every place that reads one of the tables of `schemas` (hidden table → its columns)."""
    yield from _conditions(optimized, [], schemas)
    for subquery in _items(optimized.subqueriesAll()):
        yield from _conditions(subquery, [], schemas)


def _conditions(node: Jvm, filters: list[Jvm], schemas: Mapping[str, TableSchema]) -> Iterator[ReadCondition]:
    if node.nodeName() == "Filter":
        yield from _conditions(node.child(), [*filters, node.condition()], schemas)
        return
    name = find_hidden(node)
    if name is not None:
        if name in schemas:
            columns = _Columns(schemas[name])
            wanted = And(tuple(columns.predicate(one) for one in filters))
            yield ReadCondition(name, instance_of(node), wanted)
        return
    for child in _items(node.children()):
        yield from _conditions(child, [], schemas)


class _Columns:
    """Expressions over the columns of one hidden table."""

    def __init__(self, schema: TableSchema) -> None:
        names: dict[str, list[str]] = {}
        for name in schema.field_names:
            names.setdefault(name.lower(), []).append(name)
        self._names = {lower: found[0] for lower, found in names.items() if len(found) == 1}

    def predicate(self, node: Jvm) -> Predicate:
        """The condition; ANYTHING for what is not known whole."""
        kind = str(node.nodeName())
        if kind in ("And", "Or"):
            parts = (self.predicate(node.left()), self.predicate(node.right()))
            return And(parts) if kind == "And" else Or(parts)
        if kind == "Not":
            return negate(self.predicate(node.child()))
        if kind in ("IsNull", "IsNotNull"):
            column = self._column(node.child())
            return ANYTHING if column is None else Missing(column, negated=kind == "IsNotNull")
        if kind in _OPERATORS:
            return self._comparison(node, kind)
        if kind in ("In", "InSet"):
            return self._membership(node, kind)
        if kind == "StartsWith":
            column, text = self._column(node.left()), _literal(node.right(), node.left())
            return Prefix(column, text) if column is not None and isinstance(text, str) else ANYTHING
        if kind == "Literal" and node.value() is not True:
            return NOTHING  # FALSE, and NULL, which is no more than that in a filter
        return ANYTHING

    def _comparison(self, node: Jvm, kind: str) -> Predicate:
        left, right, operator = node.left(), node.right(), _OPERATORS[kind]
        if left.nodeName() == "Literal":
            left, right, operator = right, left, _FLIPPED[operator]
        column = self._column(left)
        value = None if column is None else _literal(right, left)
        if column is None or value is None:
            return ANYTHING
        found = Compare(column, operator, value)
        # NULL <=> 5 is FALSE, not NULL: its negation holds there
        return And((Missing(column, negated=True), found)) if kind == "EqualNullSafe" else found

    def _membership(self, node: Jvm, kind: str) -> Predicate:
        asked = node.value() if kind == "In" else node.child()
        column = self._column(asked)
        listed = node.list() if kind == "In" else node.hset().toSeq()
        if column is None or listed.size() > _VALUES_MAX:
            return ANYTHING
        values: set[Comparable] = set()
        for one in _items(listed):
            if kind == "In":
                if one.nodeName() == "Literal" and one.value() is None:
                    continue  # equals nothing
                value = _literal(one, asked)
            elif one is None:
                continue
            else:
                value = _inner(one, str(asked.dataType().catalogString()))
            if value is None:
                return ANYTHING
            values.add(value)
        return OneOf(column, frozenset(values))

    def _column(self, node: Jvm) -> str | None:
        return self._names.get(str(node.name()).lower()) if node.nodeName() == "AttributeReference" else None


def _literal(node: Jvm, column: Jvm) -> Comparable | None:
    """A literal of just the column's type; None for anything else, NULL and NaN."""
    if node.nodeName() != "Literal" or not node.dataType().equals(column.dataType()):
        return None
    value = node.value()
    return None if value is None else _inner(value, str(node.dataType().catalogString()))


def _inner(value: Jvm, type_text: str) -> Comparable | None:
    if type_text.startswith("decimal("):
        return Decimal(str(value.toJavaBigDecimal()))
    reader = _READERS.get(type_text)
    return None if reader is None else reader(value)


def _items(sequence: Jvm) -> list[Jvm]:
    return [sequence.apply(at) for at in range(sequence.size())]
