"""What an optimized plan asks of each of our hidden tables: Catalyst's filters as predicates.

CHANGE     the conditions of a Spark plan
Steps      the plan as Spark's JSON, by one call → trees → walk them, keep the filters that lie directly over a relation
           → their expressions: comparisons of a column with a literal of the same Spark type, IN, prefixes, IS NULL,
           AND, OR, NOT; everything else → ANYTHING
INVARIANT  an expression is taken only when all of it is known, down to the types; else any row may fulfil it: casts,
           functions, UDFs, subqueries, collated texts, what is not deterministic.
WHY        the optimizer has pushed filters down through joins, unions, views and projections by its own rules: what
           lies over a relation there holds for every row of it that counts.
           JSON leaves out what a long IN lists and rounds timestamps: these alone are fetched from the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from tablestore_engine.format.scalar import days_from_date
from tablestore_engine.spark.spark_internals import Jvm
from tablestore_engine.store.files.comparable_values import Comparable
from tablestore_engine.store.read.predicate import (
    ANYTHING,
    NOTHING,
    And,
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
Json = Any  # what json gives
_VALUES_MAX = 200  # of one IN
_BETWEEN = "\ue000,\ue000"  # between the values of a long IN
_BROKEN_TEXT = "\ufffd"  # bytes that are no UTF-8 arrive as this
_COLLATED = "__COLLATIONS"  # a key that JSON has where texts are not compared by their bytes
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"
_OPERATORS: Mapping[str, Operator] = {
    "EqualTo": "=", "EqualNullSafe": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}  # fmt: skip
_FLIPPED: Mapping[Operator, Operator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _float32(text: str) -> float | None:
    return _number(float(np.float32(text)))  # it came as the shortest text of a float


def _text(text: str) -> str | None:
    return None if _BROKEN_TEXT in text else text


def _number(text: str | float) -> float | None:
    value = float(text)
    return None if np.isnan(value) else value


def _truth(text: str) -> int:
    return ("false", "true").index(text)


# Spark type as JSON has it → the text of an inner value as a Comparable, None where it is none
_READERS: Mapping[str, Callable[[str], Comparable | None]] = {
    "byte": int, "short": int, "integer": int, "long": int, "boolean": _truth, "date": int, "timestamp": int,
    "timestamp_ntz": int, "string": _text, "double": _number, "float": _float32,
}  # fmt: skip


@dataclass(frozen=True)
class ReadCondition:
    """`table`: the hidden table's name; `instance`: the id of its first column, another one where it is read again.
    `columns`: those that are asked for; None: all.
    """

    table: str
    instance: int
    wanted: Predicate
    columns: frozenset[str] | None = None


def read_conditions(optimized: Jvm, tables: Mapping[str, Sequence[str]]) -> Iterator[ReadCondition]:
    """Every place that reads one of the tables (hidden table → names of its columns)."""
    text = str(optimized.toJSON())
    known = {name: () if _COLLATED in text else names for name, names in tables.items()}
    yield from _conditions(_tree(json.loads(text), lambda: optimized), (), known, None)


def condition_over(condition: Jvm, columns: Sequence[str]) -> Predicate:
    """What an expression over one relation with these columns asks of its rows."""
    text = str(condition.toJSON())
    if _COLLATED in text:
        return ANYTHING
    return _Columns(columns).predicate(_tree(json.loads(text), lambda: condition))


class _Node:
    """A node of a plan or of an expression. `fetch`: the same node in the JVM; None inside a subquery."""

    def __init__(self, fields: Json, fetch: Callable[[], Jvm] | None) -> None:
        self.fields = fields
        self.fetch = fetch
        self.children: list[_Node] = []

    @property
    def kind(self) -> str:
        """The name of its class."""
        return str(self.fields["class"]).rpartition(".")[2]

    def child_fetch(self, at: int) -> Callable[[], Jvm] | None:
        """How the JVM's child is reached."""
        fetch = self.fetch
        return None if fetch is None else lambda: fetch().children().apply(at)


def _tree(nodes: Sequence[Json], fetch: Callable[[], Jvm] | None) -> _Node:
    """From its nodes, parents before children."""
    root = _Node(nodes[0], fetch)
    path = [root]
    for fields in nodes[1:]:
        while len(path[-1].children) == path[-1].fields["num-children"]:
            path.pop()
        above = path[-1]
        node = _Node(fields, above.child_fetch(len(above.children)))
        above.children.append(node)
        path.append(node)
    return root


def _conditions(
    node: _Node,
    filters: tuple[_Node, ...],
    tables: Mapping[str, Sequence[str]],
    asked: frozenset[int] | None,
) -> Iterator[ReadCondition]:
    """`asked`: ids of the columns of `node` that the plan above it uses; None: all of them."""
    found = _hidden(node)
    if found is not None:
        name, instance = found
        if name in tables:
            columns = _Columns(tables[name])
            wanted = And(tuple(columns.predicate(one) for one in filters))
            yield ReadCondition(name, instance, wanted, _names_of(node, asked))
        return
    for inner in _inside(list(node.fields.values())):
        yield from _conditions(_tree(inner, None), (), tables, None)
    kept: tuple[_Node, ...] = ()
    if node.fields["class"] == f"{_LOGICAL}Filter":
        fetch = node.fetch
        condition = None if fetch is None else lambda: fetch().condition()
        kept = (*filters, _tree(node.fields["condition"], condition))
    below = _asked_below(node, asked)
    for child in node.children:
        yield from _conditions(child, kept, tables, below)


def _asked_below(node: _Node, asked: frozenset[int] | None) -> frozenset[int] | None:
    """Spark's ColumnPruning leaves a projection over what is read in part: only these nodes are looked into."""
    if node.fields["class"] in (f"{_LOGICAL}Project", f"{_LOGICAL}Aggregate"):
        return frozenset(_references(node.fields))
    if node.fields["class"] == f"{_LOGICAL}Filter" and asked is not None:
        return asked.union(_references(node.fields))
    return None


def _references(value: Json) -> Iterator[int]:
    """Ids of all columns in expressions, those of subqueries too."""
    if isinstance(value, dict):
        if str(value.get("class", "")).endswith(".AttributeReference"):
            yield int(value["exprId"]["id"])
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _names_of(node: _Node, asked: frozenset[int] | None) -> frozenset[str] | None:
    if asked is None:
        return None
    output = [one[0] for one in node.fields["output"]]
    return frozenset(str(one["name"]) for one in output if int(one["exprId"]["id"]) in asked)


def _hidden(node: _Node) -> tuple[str, int] | None:
    """The hidden table that a node reads, and which reading of it."""
    if node.fields["class"] != _RELATION or not node.fields["catalogTable"]:
        return None
    name = node.fields["catalogTable"]["identifier"]
    if name.get("database") != HIDDEN_DATABASE:
        return None
    return str(name["table"]), int(node.fields["output"][0][0]["exprId"]["id"])


def _inside(values: Sequence[Json]) -> Iterator[Sequence[Json]]:
    """Trees in the fields of a node: expressions, and plans of subqueries in them."""
    for value in values:
        if isinstance(value, dict):
            yield from _inside(list(value.values()))
        elif isinstance(value, list) and value:
            is_tree = isinstance(value[0], dict) and "num-children" in value[0]
            if is_tree:
                yield value
            else:
                yield from _inside(value)


class _Columns:
    """Expressions over the columns of one hidden table."""

    def __init__(self, names: Sequence[str]) -> None:
        known: dict[str, list[str]] = {}
        for name in names:
            known.setdefault(name.lower(), []).append(name)
        self._names = {lower: found[0] for lower, found in known.items() if len(found) == 1}

    def predicate(self, node: _Node) -> Predicate:
        """The condition; ANYTHING for what is not known whole."""
        kind, children = node.kind, node.children
        if kind in ("And", "Or"):
            parts = tuple(self.predicate(one) for one in children)
            return And(parts) if kind == "And" else Or(parts)
        if kind == "Not":
            return negate(self.predicate(children[0]))
        if kind in ("IsNull", "IsNotNull"):
            column = self._column(children[0])
            return ANYTHING if column is None else Missing(column, negated=kind == "IsNotNull")
        if kind in _OPERATORS:
            return self._comparison(node, kind)
        if kind == "In":
            return self._membership(children[0], [_literal(one, children[0]) for one in _listed(children)])
        if kind == "InSet":
            return self._membership(children[0], _set_values(node))
        if kind == "StartsWith":
            column, text = self._column(children[0]), _literal(children[1], children[0])
            return Prefix(column, text) if column is not None and isinstance(text, str) else ANYTHING
        if kind == "Literal" and node.fields["value"] != "true":
            return NOTHING  # FALSE, and NULL, which is no more than that in a filter
        return ANYTHING

    def _comparison(self, node: _Node, kind: str) -> Predicate:
        (left, right), operator = node.children, _OPERATORS[kind]
        if left.kind == "Literal":
            left, right, operator = right, left, _FLIPPED[operator]
        column = self._column(left)
        value = None if column is None else _literal(right, left)
        if column is None or value is None:
            return ANYTHING
        found = Compare(column, operator, value)
        # NULL <=> 5 is FALSE, not NULL: its negation holds there
        return And((Missing(column, negated=True), found)) if kind == "EqualNullSafe" else found

    def _membership(self, asked: _Node, values: Sequence[Comparable | None]) -> Predicate:
        column = self._column(asked)
        known = frozenset(value for value in values if value is not None)
        if column is None or None in values or len(values) > _VALUES_MAX:
            return ANYTHING
        return OneOf(column, known)

    def _column(self, node: _Node) -> str | None:
        return (
            self._names.get(str(node.fields["name"]).lower()) if node.kind == "AttributeReference" else None
        )


def _listed(children: Sequence[_Node]) -> Iterator[_Node]:
    """What IN lists, without NULL, which equals nothing."""
    return (one for one in children[1:] if one.kind != "Literal" or one.fields["value"] is not None)


def _set_values(node: _Node) -> list[Comparable | None]:
    """The values of a long IN."""
    type_text = node.children[0].fields.get("dataType")
    if node.fetch is None or not isinstance(type_text, str):
        return [None]
    listed = node.fetch().hset()
    texts = str(listed.mkString(_BETWEEN)).split(_BETWEEN)
    if len(texts) != listed.size():
        return [None]
    # the text 'null' may stand for NULL: one value more finds one file more
    return [_inner(text, type_text) for text in texts if text != "null" or type_text == "string"]


def _literal(node: _Node, column: _Node) -> Comparable | None:
    """A literal of just the column's type; None for anything else, NULL and NaN."""
    if node.kind != "Literal" or node.fields["dataType"] != column.fields.get("dataType"):
        return None
    value, type_text = node.fields["value"], node.fields["dataType"]
    if value is None or not isinstance(type_text, str):
        return None
    if type_text == "date":
        return _days(value)
    if type_text == "timestamp":
        return None if node.fetch is None else int(node.fetch().value())
    return _inner(value, type_text)


def _days(text: str) -> int | None:
    try:
        return days_from_date(date.fromisoformat(text))
    except ValueError:
        return None  # a year beyond 9999


def _inner(text: str, type_text: str) -> Comparable | None:
    """From the text of Spark's inner value."""
    try:
        if type_text.startswith("decimal("):
            return Decimal(text)
        reader = _READERS.get(type_text)
        return None if reader is None else reader(text)
    except (ValueError, InvalidOperation):
        return None
