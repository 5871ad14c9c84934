"""The time of the run in a query, as a table of one row: a change of the time is a change of that table.

A node with `current_date()` and the like is split (split_nodes). Then nothing else in the plan depends on the time, and
proofs over changed tables hold for it as they are.

CHANGE     which functions of the time a `changed_keys` model may use
INVARIANT  a query with a node that is not split has no proof, with the clause.
"""

from __future__ import annotations

from collections.abc import Iterable

from tablestore_engine.queryplan.occurrences import Occurrence, output_ids, used_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Path, PlanNode

RUN_TIME = "the time of the run"  # as the name of a table among those that a query reads
FOLLOWED = {
    "CurrentTimestamp": "current_timestamp()", "Now": "now()", "CurrentDate": "current_date()",
    "LocalTimestamp": "localtimestamp()",
}  # fmt: skip


def moving_name(expression: Expression) -> str | None:
    """The function of the time in an expression."""
    return next((FOLLOWED[one.kind] for one in expression.walk() if one.kind in FOLLOWED), None)


def is_function(expression: Expression) -> bool:
    """Whether it is a function of the time itself."""
    return expression.kind in FOLLOWED


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


_PLACES = {
    "Window": "a window function", "Sort": "ORDER BY", "Expand": "ROLLUP, CUBE or GROUPING SETS",
    "Join": "the condition of an outer join over both sides", "LocalRelation": "VALUES",
    "ResolvedInlineTable": "VALUES", "Filter": "a condition with a subquery",
}  # fmt: skip
