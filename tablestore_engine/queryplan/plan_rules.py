"""What is known of each kind of node, join and generator in Spark's plan. A kind that is not listed here has no proof.

INVARIANT  `find_unknown` looks at the whole plan before anything is proven of a part of it: a node that makes rows in a
           way of its own never counts as one that passes rows on.
WHY        tests/laws/test_node_trace_laws.py has a case of each traced kind and compares it with a brute-force oracle.
"""

from __future__ import annotations

from tablestore_engine.queryplan.plan_nodes import PlanNode

PASSED = frozenset({
    "SubqueryAlias", "View", "Filter", "Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions",
    "ResolvedHint",
})  # fmt: skip
LIMITS = {
    "GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "LimitAndOffset": "LIMIT", "Offset": "OFFSET", "Tail": "LIMIT",
    "Sample": "TABLESAMPLE",
}  # fmt: skip
# join type → whether it keeps rows of the left and of the right side that have no partner
PRESERVING = {
    "LeftOuter": (True, False), "LeftSingle": (True, False), "RightOuter": (False, True), "FullOuter": (True, True),
}  # fmt: skip
KEEPS_LEFT = frozenset({"LeftSemi", "LeftAnti", "ExistenceJoin"})
INNER = frozenset({"Inner", "Cross"})
JOINS = INNER | KEEPS_LEFT | PRESERVING.keys()
GENERATORS = frozenset({"Explode", "PosExplode", "Inline", "Stack", "JsonTuple", "ReplicateRows"})
LEAVES = frozenset({"LocalRelation", "OneRowRelation", "Range"})
TRACED = PASSED | LIMITS.keys() | {"Project", "Aggregate", "Window", "Generate", "Expand", "Union", "Join"}
# Parts without a change are read as they are; a change below them has no proof.
_UNTRACED = frozenset({"UnionLoop", "UnionLoopRef"})
# The normal form has none of them outside of subqueries that are values, which have no proof either.
_IN_SUBQUERIES = _UNTRACED | {"Distinct", "Intersect", "Except", "LateralJoin", "Deduplicate"}


def rows_of_nothing(node: PlanNode) -> int:
    """How many rows a traced node gives when its inputs have none."""
    return 1 if node.kind == "Aggregate" and not node.fields.get("groupingExpressions") else 0


def find_unknown(root: PlanNode) -> str | None:
    """The first kind of node, join or generator that is not known; leaves are those of `find_untracked`."""
    for node in root.walk():
        if (found := _unknown(node, _UNTRACED)) is not None:
            return found
        for subquery in node.subqueries:
            for inner in subquery.walk_all():
                if (found := _unknown(inner, _IN_SUBQUERIES)) is not None:
                    return found
    return None


def _unknown(node: PlanNode, others: frozenset[str]) -> str | None:
    if not node.children or node.kind in others:
        return None
    if node.kind not in TRACED:
        return node.kind
    if node.kind == "Join" and node.join_type not in JOINS:
        return f"a join of type {node.join_type}"
    if node.kind == "Generate":
        return next((one.kind for one in node.fields["generator"] if one.kind not in GENERATORS), None)
    return None
