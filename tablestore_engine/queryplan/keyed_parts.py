"""Nodes whose rows fall into parts by key columns, so that changed rows of their inputs change some parts alone.

A part is all rows with the same values of the key: a group, the partition of a window, the rows of both sides of an
outer join that could be partners. The node over the rows of some parts gives the rows that it has of these parts.

CHANGE     which nodes that are not linear have deltas
INVARIANT  equal values of the key are the same value, and the node gives the same rows whenever it is evaluated over
           the same rows. What is not known to be so raises NoDelta.
WHY        NULL of a key is a part of its own, also in a join, where it finds no partner: its rows are then evaluated
           without need, and rows without a partner are kept right.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from tablestore_engine.queryplan.equal_values import is_carried, is_exact
from tablestore_engine.queryplan.known_columns import KnownColumns, conjuncts
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids
from tablestore_engine.queryplan.order_dependence import find_order
from tablestore_engine.queryplan.plan_nodes import Expression, Path, PlanNode
from tablestore_engine.queryplan.plan_rules import INNER, KEEPS_LEFT, LEAVES, PASSED
from tablestore_engine.queryplan.split_nodes import has_one_row
from tablestore_engine.queryplan.stable_values import EXACT_AGGREGATES

Key = tuple[Expression, ...]
_RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
_ORDERED = frozenset({"RowNumber", "NTile", "Lag", "Lead", "NthValue"})
_ORDERED_AGGREGATES = frozenset({"First", "Last"})
SUMS = frozenset({"Sum", "Average"})
_EXTREMES = frozenset({"Max", "Min"})
_KEEPS_VALUES = PASSED | LEAVES | {"Project", "Join"}
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_PERCENTILES = frozenset({"Percentile", "PercentileCont", "PercentileDisc", "Median"})
_SAFE_DIGITS = 28  # of a decimal: a sum of ten billion values has room, so no order of adding overflows


class KeyedParts:
    """Of one plan. `occurrences`: of its tables, those that changed at least. `has_whole`: all rows may be one part,
    and the rows of windows are looked at (`unordered`). `has_percentiles`: those of exact numbers count as exact.
    """

    def __init__(
        self,
        known: KnownColumns,
        occurrences: Sequence[Occurrence],
        *,
        has_whole: bool = False,
        has_percentiles: bool = False,
    ) -> None:
        self._known, self._occurrences, self._has_whole = known, occurrences, has_whole
        self._has_percentiles = has_percentiles
        self.unordered = set[Path]()  # windows whose rows must not be equal in ORDER BY, which nothing proves

    def find_key(self, node: PlanNode) -> tuple[Key, ...]:
        """For each child its expressions for the same key; none: all rows are one part. Raises NoDelta."""
        if any(
            map(_is_product, node.walk())
        ):  # its conditions may stand above the node, which is evaluated alone
            raise NoDelta("a join without a condition below an operation that is not linear")
        if node.kind == "Join":
            return self._join_key(node)
        if node.kind == "Window":
            self.check_window(node)
            return (self._own_key(node.fields["partitionSpec"], "a window function without PARTITION BY"),)
        assert node.kind == "Aggregate", node.kind
        self.check_group(node)
        clause = "a total without GROUP BY below another operation"
        return (self._own_key(node.fields["groupingExpressions"], clause),)

    def check_group(self, node: PlanNode) -> None:
        """That equal rows give equal rows. Raises NoDelta."""
        self._check_usable(node)
        for one in _aggregates(node):
            self._check_aggregate(one)

    def check_window(self, node: PlanNode) -> None:
        """That equal rows give equal rows. Raises NoDelta."""
        found = find_order(node, self._occurrences)
        if found is not None and not self._has_whole:
            raise NoDelta(f"{found}, whose value depends on the order of equal rows")
        if found is not None:
            self.unordered.add(node.path)
        for one in node.expressions:
            if not self._known.is_usable(one, is_ordered=True):
                raise NoDelta(f"{one.name or one.kind}, whose value does not follow from one partition")
            for part in one.walk():
                if part.kind == "WindowExpression":
                    self._check_window_function(part.children[0])

    def _check_window_function(self, function: Expression) -> None:
        if function.kind == "AggregateExpression":
            if function.children[0].kind not in _ORDERED_AGGREGATES:
                self._check_aggregate(function)
        elif function.kind not in _RANKS | _ORDERED:
            raise NoDelta(f"{function.kind} as a window function")

    def _check_aggregate(self, aggregate: Expression) -> None:
        """That its value does not depend on the order in which rows are added up."""
        function = aggregate.children[0]
        type_ = self._known.type_of(function.children[0]) if function.children else None
        if function.kind in _EXTREMES and not is_exact(type_):
            raise NoDelta(f"an extreme of {type_} below another operation, whose equal values can differ")
        if function.kind in EXACT_AGGREGATES:
            return
        if self._has_percentiles and function.kind in _PERCENTILES and _is_number(type_):
            return
        is_sum = function.kind == "Sum" and (type_ in _INTEGERS or _has_room(type_))
        if not is_sum and not (function.kind == "Average" and _has_room(type_)):
            what = f"{function.kind} of {type_}" if type_ else function.kind
            raise NoDelta(f"{what} below another operation, whose value can depend on the order of rows")
        if self._known.type_of(function) is None:
            raise NoDelta("try_sum or try_avg below another operation")

    def _own_key(self, expressions: Sequence[Expression], clause: str) -> Key:
        found = tuple(one for one in expressions if one.references)
        if not found and not self._has_whole:
            raise NoDelta(clause)
        for one in found:
            if not _is_key(self._known.type_of(one)):
                raise NoDelta("GROUP BY or PARTITION BY of a type whose equal values can differ")
        return found

    def _join_key(self, node: PlanNode) -> tuple[Key, ...]:
        self._check_usable(node)
        sides = [frozenset(output_ids(child)) for child in node.children]
        pairs = []
        never_null = self._never_null(node)
        for part in conjuncts(node.fields.get("condition", ())):
            for one, other in _equal_values(part, never_null):
                if one.references and other.references and self._is_same_key(one, other):
                    if one.references <= sides[0] and other.references <= sides[1]:
                        pairs.append((one, other))
                    elif one.references <= sides[1] and other.references <= sides[0]:
                        pairs.append((other, one))
        if not pairs:
            raise NoDelta("a change of the optional side of a join without an equality of both sides")
        return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)

    def _is_same_key(self, one: Expression, other: Expression) -> bool:
        types = self._known.type_of(one), self._known.type_of(other)
        return types[0] == types[1] and _is_key(types[0])

    def _never_null(self, node: PlanNode) -> frozenset[int]:
        """Columns of primary keys below the node, where nothing puts NULL or other rows in their place."""
        found = set[int]()
        for child in node.children:
            inside = list(child.walk())
            if all(
                one.kind in _KEEPS_VALUES and (one.kind != "Join" or one.join_type in INNER | KEEPS_LEFT)
                for one in inside
            ):
                leaves = {one.path for one in inside if not one.children}
                found |= {key for one in self._occurrences if one.path in leaves for key in one.key_ids}
        return frozenset(found)

    def _check_usable(self, node: PlanNode) -> None:
        """An expression with a subquery is never usable."""
        for one in node.expressions:
            if not self._known.is_usable(one):
                raise NoDelta(f"{one.name or one.kind}, whose value does not follow from one row")


def _is_product(node: PlanNode) -> bool:
    is_product = node.kind == "Join" and node.join_type in INNER and not node.fields.get("condition")
    return is_product and not has_one_row(node.children[1])


def typed_expressions(node: PlanNode) -> Iterator[Expression]:
    """Those of whose types it depends whether the node has a key."""
    for name in ("groupingExpressions", "partitionSpec"):
        yield from node.fields.get(name, ())
    if node.kind in ("Aggregate", "Window"):
        for one in _aggregates(node):
            if one.children[0].kind in _EXTREMES | SUMS:
                yield from (one.children[0], one.children[0].children[0])
    if node.kind == "Join":
        for part in conjuncts(node.fields.get("condition", ())):
            for pair in _equal_values(part, ()):
                yield from pair


def _is_key(type_: object) -> bool:
    return is_exact(type_) and is_carried(type_)


def _is_number(type_: object) -> bool:
    return isinstance(type_, str) and (type_ in _INTEGERS or type_.startswith("decimal("))


def _has_room(type_: object) -> bool:
    is_decimal = isinstance(type_, str) and type_.startswith("decimal(")
    return is_decimal and int(str(type_)[8:].split(",")[0]) <= _SAFE_DIGITS


def _aggregates(node: PlanNode) -> Iterator[Expression]:
    for one in node.expressions:
        yield from (part for part in one.walk() if part.kind == "AggregateExpression")


def _equal_values(
    part: Expression, never_null: Container[int | None]
) -> Iterator[tuple[Expression, Expression]]:
    """Two expressions that partners have the same values of: `a = b`, `a <=> b`, and NOT IN without NULL."""
    if (
        part.kind == "Or" and part.children[1].kind == "IsNull"
    ):  # NOT IN: also partners if one of them is NULL
        equal = part.children[0]
        if equal.kind == "EqualTo" and equal.is_same(part.children[1].children[0]):
            one, other = equal.children
            if all(each.is_attribute and each.identity in never_null for each in (one, other)):
                yield one, other
    elif part.kind in ("EqualTo", "EqualNullSafe"):
        one, other = part.children
        yield one, other
