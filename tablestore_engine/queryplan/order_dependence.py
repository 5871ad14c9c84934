"""Functions whose value depends on the order of rows, where a partial evaluation could mix two of their values.

first(), row_number() with ties, LIMIT and the like may give another value each time, and each is right. If rows of
several keys show the value of one group, and only some of these keys are evaluated again, the table mixes two values
that no single evaluation gives. A group that one key owns is always evaluated as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.queryplan.equal_values import is_exact
from tablestore_engine.queryplan.known_columns import GroupingTypes, KnownColumns, is_grouped
from tablestore_engine.queryplan.occurrences import Occurrence, TableColumns, output_ids
from tablestore_engine.queryplan.plan_nodes import Expression, PlanNode, is_within
from tablestore_engine.queryplan.plan_rules import LIMITS
from tablestore_engine.queryplan.run_time import is_time, time_joins
from tablestore_engine.queryplan.stable_values import order_dependent_name

_RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
_ROW_PRESERVING = frozenset({"Project", "Filter", "SubqueryAlias", "View", "LocalRelation", "Window", "Sort"})


def find_shared_order(
    root: PlanNode, occurrences: Sequence[Occurrence], key: Sequence[int], types: GroupingTypes
) -> str | None:
    """The clause; None: every value that depends on the order of rows belongs to one key."""
    for node in root.walk():
        for plan in node.subqueries:
            found = next((name for inner in plan.walk_all() if (name := _order_of(inner))), None)
            if found is not None:
                return f"{found} in a subquery"
        name = find_order(node, occurrences)
        if name is None:
            continue
        if not _owns_group(root, node, key, types):
            return f"{name}, whose value depends on the order of rows that several keys share"
    return None


def find_order(node: PlanNode, occurrences: Sequence[Occurrence]) -> str | None:
    """The function or clause of the node whose value depends on the order of equal rows. `occurrences`: those that
    changed are enough where one did.
    """
    name = _order_of(node)
    return None if node.kind == "Window" and _has_total_order(node, occurrences) else name


def _order_of(node: PlanNode) -> str | None:
    if node.kind in LIMITS:
        return LIMITS[node.kind]
    if node.kind not in ("Aggregate", "Window"):
        return None
    for expression in node.expressions:
        name = order_dependent_name(expression) or _rows_frame(expression)
        if name is not None:
            return name
    return None


def _rows_frame(expression: Expression) -> str | None:
    """A frame that counts rows, of a function for which rows with equal order are not equal."""
    for part in expression.walk():
        if part.kind == "WindowExpression" and part.children[0].kind not in _RANKS:
            for frame in part.walk():
                if frame.kind != "SpecifiedWindowFrame":
                    continue
                kind = str((frame.facts.get("frameType") or {}).get("object", ""))
                bounds = [bound.kind.removesuffix("$") for bound in frame.children]
                if not kind.endswith(".RangeFrame$") and bounds != [
                    "UnboundedPreceding",
                    "UnboundedFollowing",
                ]:
                    return "a window with a ROWS frame"
    return None


def _owns_group(root: PlanNode, node: PlanNode, key: Sequence[int], types: GroupingTypes) -> bool:
    """Whether the key of each row follows from the columns of the group."""
    if node.kind == "Aggregate":
        groups = node.fields["groupingExpressions"]
        items = node.fields["aggregateExpressions"]
        own = {one.identity: one.name for one in items if is_grouped(one, groups)}
    elif node.kind == "Window":
        partition = node.fields["partitionSpec"]
        own = {one.identity: one.name for one in partition if one.is_attribute and is_exact(one.type)}
    else:
        own = {}
    columns = {identity: name for identity, name in own.items() if identity is not None}
    group = Occurrence(node.path, TableColumns("", is_fixed=False), columns, in_subquery=False)
    known = KnownColumns(root, [group], types, is_alone=True).trace(root, group)
    return all(one in known and known[one] is None for one in key)


def _has_total_order(node: PlanNode, occurrences: Sequence[Occurrence]) -> bool:
    """Whether PARTITION BY and ORDER BY have a primary key of the only table below, so that no two rows are equal."""
    below = [one for one in occurrences if is_within(one.path, node.path) and not one.in_subquery]
    inside, joins = [one for one in below if not is_time(one)], time_joins(below)
    others = (one for one in node.children[0].walk() if one.path not in joins)
    if len(inside) != 1 or any(one.kind not in _ROW_PRESERVING for one in others):
        return False
    key = inside[0].key_ids
    if not key or len(key) != len(inside[0].source.primary_key):
        return False
    ordered = {one.children[0] for one in node.fields["orderSpec"]} | set(node.fields["partitionSpec"])
    columns = [one for one in ordered if one.is_attribute and is_exact(one.type)]
    ids = {one.identity for one in columns if one.identity is not None}
    return key <= _sources(node.children[0], ids)


def _sources(node: PlanNode, ids: set[int]) -> set[int]:
    """Columns of the leaf that these columns are, unchanged."""
    while node.children:
        if node.kind == "Project":
            below = set()
            for item in node.fields["projectList"]:
                inner = item if item.is_attribute else item.children[0]
                if item.identity in ids and inner.is_attribute and inner.identity is not None:
                    below.add(inner.identity)
            ids = below
        node = node.children[0]
    return ids & set(output_ids(node))
