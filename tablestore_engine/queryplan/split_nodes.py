"""Nodes with a value that all their rows share, such as the time of the run, split: the value becomes a column.

Below the node comes a join with a table of one row, and a projection that computes the expressions which use the value.
Then nothing else in the plan depends on it, and proofs over changed tables hold for the table of one row as they are.

CHANGE     in which places of a query the time of the run and uncorrelated scalar subqueries are followed
INVARIANT  a node, or a place in a node, that is not listed here is not split: a query with it has no proof.
PROOF      the table has one row in each state, so that a join with it keeps each row of the other side once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from tablestore_engine.queryplan.known_columns import conjuncts
from tablestore_engine.queryplan.occurrences import output_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode
from tablestore_engine.queryplan.plan_rules import INNER, PASSED, rows_of_nothing

IsShared = Callable[[Expression], bool]  # whether an expression itself is a value that all rows share
_KEEPS_ROWS = PASSED - {"Filter"} | {"Project"}


@dataclass(frozen=True)
class Split:
    """The next step for one node. `values`: expressions that are computed below it, in its child `side`; else `above`:
    conditions of an inner join that become a filter above it; else items of an Aggregate that use the value outside of
    its functions are computed above it (`is_pulled`).
    """

    values: tuple[Place, ...] = ()
    side: int = 0
    above: tuple[Place, ...] = ()
    is_pulled: bool = False


def split_node(node: PlanNode, is_shared: IsShared) -> Split | None:
    """None: it is not known how. REQUIRES that an expression of the node has such a value."""
    has = _Has(is_shared)
    match node.kind:
        case "Filter":
            return Split(_places(filter(has, conjuncts(node.fields["condition"]))))
        case "Project":
            return Split(_places(one.children[0] for one in node.fields["projectList"] if has(one)))
        case "Generate":
            inner = (child for one in node.fields["generator"] for child in one.children)
            return Split(_places(filter(has, inner)))
        case "Aggregate":
            return _split_aggregate(node, has)
        case "Join":
            return _split_join(node, has)
        case _:
            return None


@dataclass(frozen=True)
class _Has:
    is_shared: IsShared

    def __call__(self, expression: Expression) -> bool:
        return any(map(self.is_shared, expression.walk()))


def _split_join(node: PlanNode, has: _Has) -> Split | None:
    """One side at a time."""
    moving = list(filter(has, conjuncts(node.fields.get("condition", ()))))
    for side, child in enumerate(node.children):
        own = set(output_ids(child))
        found = [one for one in moving if one.references <= own]
        if found:
            return Split(_places(found), side)
    return Split(above=_places(moving)) if moving and node.join_type in INNER else None


def _split_aggregate(node: PlanNode, has: _Has) -> Split:
    groups = node.fields["groupingExpressions"]
    values = list(filter(has, groups))
    for item in node.fields["aggregateExpressions"]:
        found = list(_arguments(item, groups, has))
        if None in found:
            return Split(is_pulled=True)
        values += [one for one in found if one is not None and one not in values]
    return Split(_places(values))


def _arguments(
    expression: Expression, groups: Iterable[Expression], has: _Has
) -> Iterator[Expression | None]:
    """What of an item uses the value in each row; None: it does so outside of the functions."""
    if not has(expression) or any(expression.is_same(group) for group in groups):
        return
    if has.is_shared(expression):
        yield None
    elif expression.kind == "AggregateExpression":
        function, *conditions = expression.children
        yield from filter(has, (*function.children, *conditions))
    else:
        for child in expression.children:
            yield from _arguments(child, groups, has)


def pulled_parts(item: Expression, groups: Iterable[Expression]) -> Iterator[Expression]:
    """What an item of an Aggregate is computed from above it: aggregate functions, grouping expressions, columns."""
    if item.kind == "AggregateExpression" or item.is_attribute or any(item.is_same(one) for one in groups):
        yield item
    else:
        for child in item.children:
            yield from pulled_parts(child, groups)


def _places(expressions: Iterable[Expression]) -> tuple[Place, ...]:
    return tuple(one.place for one in expressions)


# ---- scalar subqueries ---------------------------------------------------------------------------------------


def find_scalar(root: PlanNode, left: Collection[Place]) -> tuple[PlanNode, Expression] | None:
    """A node with an uncorrelated scalar subquery that always has one row, and the subquery. `left`: places of those
    that stay as they are. GROUP BY and SELECT have the same subquery twice, as two that Spark calls different.
    """
    for node in root.walk():
        if any(part.plans for one in node.fields.get("groupingExpressions", ()) for part in one.walk()):
            continue
        for one in node.expressions:
            for part in one.walk():
                if part.kind == "ScalarSubquery" and part.place not in left and _has_one_value(part):
                    return node, part
    return None


def _has_one_value(subquery: Expression) -> bool:
    return not subquery.children and len(subquery.plans) == 1 and has_one_row(subquery.plans[0])


def has_one_row(node: PlanNode) -> bool:
    """Whether a node has exactly one row, whatever its tables have: a total, and projections of it."""
    while node.kind in _KEEPS_ROWS and len(node.children) == 1:
        node = node.children[0]
    return rows_of_nothing(node) == 1


# ---- rows for which the value makes a difference -------------------------------------------------------------


def find_projection(root: PlanNode, path: Path) -> PlanNode | None:
    """The projection over the join of other rows with a table of one row, or a part of the plan that has one row, at
    `path`; None: that is in another place.
    """
    if len(path) < 2 or path[-1] != 1:
        return None
    above = root
    for number in path[:-2]:
        above = above.children[number]
    join = above.children[path[-2]]
    is_product = join.kind == "Join" and join.join_type in INNER and not join.fields.get("condition")
    return above if above.kind == "Project" and is_product else None
