"""The time of the run in a query, as a table of one row: a change of the time is a change of that table.

A node with `current_date()` and the like is split: a join with the table of the time below it, and a projection that
computes the expressions which use the time, as columns. Then nothing else in the plan depends on the time, and proofs
over changed tables hold for it as they are.

CHANGE     which functions of the time a `changed_keys` model may use
INVARIANT  a node, or a place in a node, that is not listed here is not split: its query has no proof, with the clause.
PROOF      the table has one row in each state, so that a join with it keeps each row of the other side once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tablestore_engine.queryplan.known_columns import conjuncts
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids, used_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode
from tablestore_engine.queryplan.plan_rules import INNER

RUN_TIME = "the time of the run"  # as the name of a table among those that a query reads
FOLLOWED = {
    "CurrentTimestamp": "current_timestamp()", "Now": "now()", "CurrentDate": "current_date()",
    "LocalTimestamp": "localtimestamp()",
}  # fmt: skip


@dataclass(frozen=True)
class Split:
    """The next step for one node. `values`: expressions that are computed below it, in its child `side`; else `above`:
    conditions of an inner join that become a filter above it; else items of an Aggregate that use the time outside of
    its functions are computed above it (`is_pulled`).
    """

    values: tuple[Place, ...] = ()
    side: int = 0
    above: tuple[Place, ...] = ()
    is_pulled: bool = False


def moving_name(expression: Expression) -> str | None:
    """The function of the time in an expression."""
    return next((FOLLOWED[one.kind] for one in expression.walk() if one.kind in FOLLOWED), None)


def find_moving(root: PlanNode) -> tuple[PlanNode, ...]:
    """Nodes with a function of the time in their own expressions; those in subqueries are `find_unsplit`'s."""
    return tuple(node for node in root.walk() if any(map(moving_name, node.expressions)))


def time_functions(root: PlanNode) -> frozenset[tuple[str, str | None]]:
    """(class of Catalyst, its time zone) of each function of the time, in subqueries too."""
    return frozenset(
        (part.kind, part.facts.get("timeZoneId"))
        for node in root.walk_all()
        for one in node.expressions
        for part in one.walk()
        if part.kind in FOLLOWED
    )


def find_unsplit(root: PlanNode) -> str | None:
    """The clause for a function of the time that is left in a plan whose nodes were split."""
    for node in root.walk_all():
        for one in node.expressions:
            if (name := moving_name(one)) is not None:
                return f"{name} in {_PLACES.get(node.kind, 'this part of a query')}"
    return None


def find_bare(root: PlanNode) -> str | None:
    """A column of the result, or below, that is the time itself: its value is another in each run."""
    used = used_ids(root)
    for node in root.walk():
        for one in node.fields.get("projectList", ()) if node.kind == "Project" else ():
            name = moving_name(one)
            if name is not None and not one.references and one.identity in used:
                return name
    return None


def is_time(occurrence: Occurrence) -> bool:
    """Whether it is the table of the time."""
    return occurrence.table == RUN_TIME


def projection_path(occurrence: Occurrence) -> Path:
    """Of the projection over the join with the table of the time that an occurrence is."""
    return occurrence.path[:-2]


def values_of(projection: PlanNode) -> tuple[Expression, ...]:
    """Its columns that use the time; all others are those of the rows below."""
    time = set(output_ids(projection.children[0].children[1]))
    return tuple(one for one in projection.fields["projectList"] if one.references & time)


def row_references(projection: PlanNode) -> frozenset[int]:
    """Columns of the rows below that these use."""
    time = frozenset(output_ids(projection.children[0].children[1]))
    return frozenset[int]().union(*(one.references for one in values_of(projection))) - time


def time_joins(occurrences: Iterable[Occurrence]) -> frozenset[Path]:
    """The joins with the table of the time."""
    return frozenset(one.path[:-1] for one in occurrences if is_time(one) and not one.in_subquery)


# ---- what is computed below a node -------------------------------------------------------------------------


def split_node(node: PlanNode) -> Split | None:
    """None: it is not known how. REQUIRES that it is one of `find_moving`."""
    if any(part.plans for one in node.expressions if moving_name(one) for part in one.walk()):
        return None
    match node.kind:
        case "Filter":
            return Split(_places(one for one in conjuncts(node.fields["condition"]) if moving_name(one)))
        case "Project":
            items = (one.children[0] for one in node.fields["projectList"] if moving_name(one))
            return Split(_places(items))
        case "Generate":
            inner = (child for one in node.fields["generator"] for child in one.children)
            return Split(_places(one for one in inner if moving_name(one)))
        case "Aggregate":
            return _split_aggregate(node)
        case "Join":
            return _split_join(node)
        case _:
            return None


def _split_join(node: PlanNode) -> Split | None:
    """One side at a time."""
    moving = [one for one in conjuncts(node.fields.get("condition", ())) if moving_name(one)]
    for side, child in enumerate(node.children):
        own = set(output_ids(child))
        found = [one for one in moving if one.references <= own]
        if found:
            return Split(_places(found), side)
    return Split(above=_places(moving)) if node.join_type in INNER else None


def _split_aggregate(node: PlanNode) -> Split:
    groups = node.fields["groupingExpressions"]
    values = [one for one in groups if moving_name(one)]
    for item in node.fields["aggregateExpressions"]:
        found = list(_arguments(item, groups))
        if None in found:
            return Split(is_pulled=True)
        values += [one for one in found if one is not None and one not in values]
    return Split(_places(values))


def _arguments(expression: Expression, groups: Iterable[Expression]) -> Iterator[Expression | None]:
    """What of an item uses the time in each row; None: it does so outside of the functions."""
    if not moving_name(expression) or any(expression.is_same(group) for group in groups):
        return
    if expression.kind in FOLLOWED:
        yield None
    elif expression.kind == "AggregateExpression":
        function, *conditions = expression.children
        yield from (one for one in (*function.children, *conditions) if moving_name(one))
    else:
        for child in expression.children:
            yield from _arguments(child, groups)


def pulled_parts(item: Expression, groups: Iterable[Expression]) -> Iterator[Expression]:
    """What an item of an Aggregate is computed from above it: aggregate functions, grouping expressions, columns."""
    if item.kind == "AggregateExpression" or item.is_attribute or any(item.is_same(one) for one in groups):
        yield item
    else:
        for child in item.children:
            yield from pulled_parts(child, groups)


def _places(expressions: Iterable[Expression]) -> tuple[Place, ...]:
    return tuple(one.place for one in expressions)


_PLACES = {
    "Window": "a window function", "Sort": "ORDER BY", "Expand": "ROLLUP, CUBE or GROUPING SETS",
    "Join": "the condition of an outer join over both sides", "LocalRelation": "VALUES",
    "ResolvedInlineTable": "VALUES", "Filter": "a condition with a subquery",
}  # fmt: skip
