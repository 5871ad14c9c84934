"""Spark's plans with nodes that are split at a value which all rows share (queryplan.split_nodes).

CHANGE     what a query with an uncorrelated scalar subquery is proven over
INVARIANT  the plan gives the same rows: the table of the values has one row in each state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from tablestore_engine.queryplan.plan_nodes import Path, Place, PlanNode, read_plan
from tablestore_engine.queryplan.split_nodes import Split, find_scalar, pulled_parts, split_node
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.plan_expressions import each, expr_id
from tablestore_engine.spark.spark_internals import Jvm

SPLITS_MAX = 200  # of one plan; each one reads the plan again


@dataclass(frozen=True)
class Splitter:
    """`leaves`: the values as they stand in expressions; `table`: makes a table with a column for each of them."""

    inner: PlanBuilderNodes
    leaves: Sequence[Jvm]
    table: Callable[[], Jvm]

    def split(self, plan: Jvm, node: PlanNode, split: Split) -> Jvm:
        """The plan with one node split."""
        return _with_node(plan, node.path, partial(self._split, node, split), self.inner)

    def _split(self, node: PlanNode, split: Split, at: Jvm) -> Jvm:
        if split.is_pulled:
            return self._pulled(at, node)
        if split.above:
            return self._filtered(at, split.above)
        inner = self.inner
        child = at.children().apply(split.side)
        table = self.table()
        columns = [(leaf, table.output().apply(number)) for number, leaf in enumerate(self.leaves)]
        values = [expression_at(at, place) for place in split.values]
        made = [
            inner.new_alias(inner.with_parts(one, columns), f"value{number}")
            for number, one in enumerate(values)
        ]
        below = inner.project([*each(child.output()), *made], inner.join(child, table, None))
        pairs = [(old, new.toAttribute()) for old, new in zip(values, made, strict=True)]
        children = [below if side == split.side else one for side, one in enumerate(each(at.children()))]
        above = inner.on_children(inner.with_own_expressions(at, pairs), children)
        return above if node.kind in ("Project", "Aggregate") else inner.project(each(at.output()), above)

    def _filtered(self, at: Jvm, places: Sequence[Place]) -> Jvm:
        """An inner join with some of its conditions above it."""
        inner, moved = self.inner, [expression_at(at, place) for place in places]
        kept = [one for one in inner.conjuncts(at.condition().get()) if not _is_among(one, moved)]
        left, right = each(at.children())
        return inner.filter(
            inner.all_of(moved), inner.join(left, right, inner.all_of(kept) if kept else None)
        )

    def _pulled(self, at: Jvm, node: PlanNode) -> Jvm:
        """An Aggregate with its functions alone, and a projection for the items that are computed from them."""
        inner, groups = self.inner, node.fields["groupingExpressions"]
        parts: list[tuple[Jvm, Jvm]] = []
        for item in node.fields["aggregateExpressions"]:
            for part in pulled_parts(item, groups):
                value = expression_at(at, part.place)
                if not any(_is_among(value, [known]) for known, _ in parts):
                    parts.append((value, inner.new_alias(value, f"part{len(parts)}")))
        pairs = [(value, made.toAttribute()) for value, made in parts]
        items = []
        for one in each(at.aggregateExpressions()):
            value = inner.with_parts(one.child() if one.nodeName() == "Alias" else one, pairs)
            items.append(inner.alias(value, one.name(), one.exprId()))
        return inner.project(items, inner.aggregate(at, [made for _, made in parts]))


def with_joined_scalars(inner: PlanBuilderNodes, plan: Jvm, normal: Callable[[Jvm], Jvm]) -> Jvm:
    """The plan with joins for uncorrelated scalar subqueries that have one row; the very plan without such.

    `normal`: the normal form of the plan of a subquery.
    """
    left, joined = set[Place](), set[int]()
    for _ in range(SPLITS_MAX):
        root = read_plan(str(plan.toJSON()))
        found = find_scalar(root, left)
        if found is None:
            break
        node, subquery = found
        split = split_node(node, lambda one, at=subquery.place: one.place == at)  # type: ignore[misc]
        leaf = expression_at(_node_at(plan, node.path), subquery.place)
        value = expr_id(leaf.plan().output().apply(0))
        if split is None or (value in joined and not (split.is_pulled or split.above)):
            left.add(subquery.place)  # a column may have one place in the plan
            continue
        left.clear()  # the plan is another
        if not (split.is_pulled or split.above):
            joined.add(value)
        plan = Splitter(inner, [leaf], lambda one=leaf: normal(one.plan())).split(plan, node, split)  # type: ignore[misc]
    return plan


def _node_at(plan: Jvm, path: Path) -> Jvm:
    for number in path:
        plan = plan.children().apply(number)
    return plan


def _with_node(plan: Jvm, path: Path, make: Callable[[Jvm], Jvm], inner: PlanBuilderNodes) -> Jvm:
    """The plan with another node at a path."""
    if not path:
        return make(plan)
    children = each(plan.children())
    children[path[0]] = _with_node(children[path[0]], path[1:], make, inner)
    return inner.on_children(plan, children)


def expression_at(node: Jvm, place: Place) -> Jvm:
    """Of the node itself."""
    found = getattr(node, place.field)()
    if place.item is not None:
        found = found.apply(place.item)
    elif place.field == "condition" and node.nodeName() == "Join":
        found = found.get()
    for number in place.below:
        found = found.children().apply(number)
    return found


def _is_among(one: Jvm, others: Iterable[Jvm]) -> bool:
    return any(bool(one.fastEquals(other)) for other in others)
