"""When a query gives no rows: the condition on the rows of its tables, proven from the analyzed plan.

PROOF   `rows` of a node: the condition implies that the node gives no row. `values` of a node and a column: it implies
        that no row of the node has a value of the column in the interval. Both by induction over the nodes:
        a filter on an interval gives no rows when its input has no such value; a value of a column that a node passes
        on is a value of that column of one of its inputs, also below outer joins, which add only NULL; an aggregate
        without GROUP BY gives a row for no rows, so nothing is proven of it.
INVARIANT  a node, a join type or an expression that is not listed here proves nothing. The condition names no literal
           but the bounds of intervals: the plan of the same text with other bounds has the same condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tablestore_engine.queryplan.known_columns import conjuncts
from tablestore_engine.queryplan.occurrences import TableColumns, output_ids
from tablestore_engine.queryplan.plan_nodes import Expression, PlanNode
from tablestore_engine.queryplan.plan_rules import GENERATORS, LIMITS, PASSED, rows_of_nothing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_BOUND = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00:00")
_YEAR_MIN = 1900  # calendars of older files differ
_PASSES_ON = PASSED | LIMITS.keys() | {"Window", "Generate", "Distinct"}
_ROW_BY_ROW = _PASSES_ON | {"Project", "Expand", "Aggregate"}


@dataclass(frozen=True)
class NoValues:
    """No row of the table has low <= column < high. `type`: of the column, as Spark names it."""

    table: str
    column: str
    type: str
    low: str
    high: str


@dataclass(frozen=True)
class AllEmpty:
    """Every part holds."""

    parts: tuple[EmptyIf, ...]


@dataclass(frozen=True)
class AnyEmpty:
    """A part holds; never without parts."""

    parts: tuple[EmptyIf, ...]


EmptyIf = NoValues | AllEmpty | AnyEmpty
_NEVER = AnyEmpty(())


def find_empty_condition(root: PlanNode, tables: Mapping[int, TableColumns]) -> EmptyIf | None:
    """When the plan gives no rows; None: nothing is proven. `tables`: by the ExprId of the first column of a leaf."""
    found = _EmptyProof(tables).rows(root)
    return None if found == _NEVER else found


def holds(condition: EmptyIf, has_no_values: Callable[[NoValues], bool]) -> bool:
    """Whether the condition holds, by what is known of each column."""
    match condition:
        case NoValues():
            return has_no_values(condition)
        case AllEmpty(parts):
            return all(holds(part, has_no_values) for part in parts)
        case AnyEmpty(parts):
            return any(holds(part, has_no_values) for part in parts)


def parse_bound(text: str, type_name: str) -> int | None:
    """What `cast('2026-01-01 00:00:00+00:00' as type)` gives, in days or microseconds; None for another form.

    Spark ignores the offset for a type without a zone, and the time for a DATE.
    """
    if not _BOUND.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.year < _YEAR_MIN:
        return None
    return (moment - _EPOCH).days if type_name == "date" else (moment - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True)
class _Bounds:
    """`identity`: ExprId of the column."""

    identity: int
    type: str
    low: str
    high: str


@dataclass(frozen=True)
class _EmptyProof:
    tables: Mapping[int, TableColumns]

    # ---- no rows -------------------------------------------------------------------------------------------

    def rows(self, node: PlanNode) -> EmptyIf:
        """When the node gives no rows."""
        if node.kind == "Join":
            return self._joined(node)
        if node.kind == "Union" and node.children:
            return _all(self.rows(child) for child in node.children)
        if len(node.children) != 1 or _is_temporary(node) or not _is_row_by_row(node):
            return _NEVER
        below = self.rows(node.children[0])
        if node.kind == "Filter":
            found = (self.values(node.children[0], one) for one in _intervals(node))
            return _any([below, *found])
        return below if node.kind in _ROW_BY_ROW and not rows_of_nothing(node) else _NEVER

    def _joined(self, node: PlanNode) -> EmptyIf:
        left, right = (self.rows(child) for child in node.children)
        match node.join_type:
            case "Inner" | "Cross" | "LeftSemi":
                return _any([left, right])
            case "LeftOuter" | "LeftSingle" | "LeftAnti" | "ExistenceJoin":
                return left
            case "RightOuter":
                return right
            case "FullOuter":
                return _all([left, right])
            case _:
                return _NEVER

    # ---- no values -----------------------------------------------------------------------------------------

    def values(self, node: PlanNode, wanted: _Bounds) -> EmptyIf:
        """When no row of the node has a value of the column in the interval."""
        if not node.children:
            return self._leaf(node, wanted)
        if _is_temporary(node) or not _is_row_by_row(node) or wanted.identity not in output_ids(node):
            return _NEVER
        if node.kind == "Union":
            at = output_ids(node).index(wanted.identity)
            return _all(self._renamed(child, wanted, output_ids(child)[at]) for child in node.children)
        if node.kind in ("Project", "Aggregate"):
            items = node.fields["projectList" if node.kind == "Project" else "aggregateExpressions"]
            source = next((_source(one) for one in items if one.identity == wanted.identity), None)
            return _NEVER if source is None else self._renamed(node.children[0], wanted, source)
        if node.kind == "Join" or node.kind in _PASSES_ON:
            side = next((one for one in node.children if wanted.identity in output_ids(one)), None)
            return _NEVER if side is None else self.values(side, wanted)
        return _NEVER

    def _renamed(self, node: PlanNode, wanted: _Bounds, identity: int) -> EmptyIf:
        return self.values(node, _Bounds(identity, wanted.type, wanted.low, wanted.high))

    def _leaf(self, node: PlanNode, wanted: _Bounds) -> EmptyIf:
        output = node.fields.get("output", ())
        table = self.tables.get(output[0].identity or 0) if output and node.kind == "LocalRelation" else None
        column = next((one for one in output if one.identity == wanted.identity), None)
        if table is None or table.is_fixed or column is None or column.type != wanted.type:
            return _NEVER
        return NoValues(table.table, column.name, wanted.type, wanted.low, wanted.high)


def _is_temporary(node: PlanNode) -> bool:
    """A temporary view may get another text between two batches."""
    return node.kind == "View" and node.facts.get("isTempView") is not False


def _is_row_by_row(node: PlanNode) -> bool:
    """Whether a generator gives nothing but rows of its input; a table function of a user may add rows at its end."""
    if node.kind != "Generate":
        return True
    return [one.kind in GENERATORS for one in node.fields.get("generator", ())] == [True]


def _source(item: Expression) -> int | None:
    """The column that an item of a SELECT passes on unchanged."""
    if item.is_attribute:
        return item.identity
    if item.kind != "Alias" or len(item.children) != 1:
        return None
    value = item.children[0]
    if value.kind == "Cast" and value.children[0].is_attribute:
        inner = value.children[0]
        return inner.identity if inner.type == value.type else None
    return value.identity if value.is_attribute else None


def _intervals(node: PlanNode) -> Iterator[_Bounds]:
    """Pairs of `column >= text` and `column < text` of a filter."""
    parts = conjuncts([one for part in conjuncts(node.fields["condition"]) for one in _unless_date(part)])
    bounds = [one for part in parts if (one := _bound(part)) is not None]
    for kind, column, low in bounds:
        for other, same, high in bounds:
            is_pair = (kind, other) == ("GreaterThanOrEqual", "LessThan")
            if is_pair and column.identity == same.identity and column.identity is not None:
                yield _Bounds(column.identity, str(column.type), low, high)


def _unless_date(part: Expression) -> tuple[Expression, ...]:
    """What `case when typeof(column) = 'date' then … else … end` is for a column of another type."""
    if part.kind != "CaseWhen" or len(part.children) != 3:
        return (part,)
    asked = part.children[0]
    if asked.kind != "EqualTo" or [one.kind for one in asked.children] != ["TypeOf", "Literal"]:
        return (part,)
    column, name = asked.children[0].children[0], asked.children[1].facts.get("value")
    return (
        (part.children[2],) if name == "date" and column.type in ("timestamp", "timestamp_ntz") else (part,)
    )


def _bound(part: Expression) -> tuple[str, Expression, str] | None:
    """A column compared with a text that Spark casts to the column's type: (comparison, column, text)."""
    if part.kind not in ("GreaterThanOrEqual", "LessThan"):
        return None
    column, cast = part.children
    if not column.is_attribute or column.type not in _MOMENTS or cast.kind != "Cast":
        return None
    literal = cast.children[0]
    if cast.type != column.type or literal.kind != "Literal" or literal.type != "string":
        return None
    value = literal.facts.get("value")
    return (part.kind, column, value) if isinstance(value, str) else None


def _all(parts: Iterable[EmptyIf]) -> EmptyIf:
    found = tuple(parts)
    return _NEVER if _NEVER in found else AllEmpty(found)


def _any(parts: Iterable[EmptyIf]) -> EmptyIf:
    return AnyEmpty(tuple(one for one in parts if one != _NEVER))
