"""Which columns of a node are known of the rows that a change adds, removes or replaces.

Two views of a node:
changed   rows of the node that differ when one occurrence of a table changes ("trace" of the occurrence)
rows      all rows that the node had or has, whatever changed meanwhile: a superset of the old and the new state

CHANGE     the rules for the keys that a change of an input affects
INVARIANT  a column is known only if its value follows from known columns by a stable function of the same row, or by a
           grouping or partitioning column whose equal values are the same value (equal_values). Results of aggregate
           and window functions are never known: they may differ between the old and the new state. Everything not
           listed here is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from tablestore_engine.queryplan.equal_values import is_exact, is_float
from tablestore_engine.queryplan.occurrences import (
    Occurrence,
    attributes_of,
    output_ids,
)
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode
from tablestore_engine.queryplan.plan_rules import INNER, JOINS, KEEPS_LEFT, LIMITS, PASSED
from tablestore_engine.queryplan.stable_values import is_reproducible, is_reproducible_node, is_stable

Known = Mapping[int, str | None]  # ExprId → None, or the clause for which it is not known
GroupingTypes = Mapping[Place, object]  # of expressions that are no columns, as Catalyst's JSON has them


class KnownColumns:
    """Of one plan. `changed`: occurrences whose tables changed since the last run. `types`: of expressions that are not
    columns, and that rows are grouped, partitioned, joined or added up by.

    `is_alone`: columns of the other sides of joins and windows are not looked up, so that all known columns of a row
    come from the same row of the occurrence.
    """

    def __init__(
        self,
        root: PlanNode,
        changed: Iterable[Occurrence],
        types: GroupingTypes,
        *,
        is_alone: bool = False,
        has_moving_time: bool = False,
    ) -> None:
        self.root, self._types, self._is_alone = root, types, is_alone
        self._has_moving_time = has_moving_time
        self.changed = tuple(changed)
        self._paths = {one.path: one for one in self.changed if not one.in_subquery}
        self._subquery_ids = frozenset(
            identity for one in self.changed if one.in_subquery for identity in one.columns
        )
        self._rows: dict[Path, Known] = {}
        self._traces: dict[tuple[Path, Path], Known] = {}
        self._steady: dict[Path, bool] = {}

    @cached_property
    def attributes(self) -> Mapping[int, Expression]:
        """ExprId → an expression that has it."""
        return attributes_of(self.root)

    def at(self, path: Path) -> PlanNode:
        """The node at a path."""
        node = self.root
        for number in path:
            node = node.children[number]
        return node

    def with_changed(self, changed: Iterable[Occurrence]) -> KnownColumns:
        """The same, if these occurrences changed."""
        return KnownColumns(self.root, changed, self._types, has_moving_time=self._has_moving_time)

    def clause(self, occurrence: Occurrence, key: Iterable[int]) -> str | None:
        """Why the key of rows that differ is not known; None: it is."""
        if occurrence.in_subquery:
            return "a subquery as a value (scalar, IN, EXISTS) that is not correlated by an equality"
        columns = self.trace(self.root, occurrence)
        clauses = (columns.get(one, "a column that the query does not use") for one in key)
        return next((one for one in clauses if one is not None), None)

    # ---- what changed --------------------------------------------------------------------------------------

    def is_steady(self, node: PlanNode) -> bool:
        """Whether the node gives exactly the rows that it gave in the last run."""
        if node.path not in self._steady:
            self._steady[node.path] = not self._has_change(node) and is_reproducible(
                node, has_moving_time=self._has_moving_time
            )
        return self._steady[node.path]

    def _has_change(self, node: PlanNode) -> bool:
        depth = len(node.path)
        if any(path[:depth] == node.path for path in self._paths):
            return True
        return any(map(self.reads_change, node.walk()))

    def reads_change(self, node: PlanNode) -> bool:
        """Whether a subquery in the node's own expressions reads a table that changed."""
        return any(
            one.identity in self._subquery_ids
            for plan in node.subqueries
            for inner in plan.walk_all()
            if not inner.children
            for one in inner.fields.get("output", ())
        )

    def is_usable(self, expression: Expression, *, is_ordered: bool = False) -> bool:
        """Whether it has the same value for a row in the last run and in this one; `is_ordered`: of a window in which
        no two rows have the same order.
        """
        return is_stable(expression, has_moving_time=self._has_moving_time, is_ordered=is_ordered)

    def is_reproducible(self, node: PlanNode) -> bool:
        """Whether the node alone gives the same rows over the same rows of its inputs; False of windows."""
        return not self.reads_change(node) and is_reproducible_node(
            node, has_moving_time=self._has_moving_time
        )

    # ---- rows: old and new state ---------------------------------------------------------------------------

    def rows(self, node: PlanNode) -> Known:
        """Of all rows that the node had or has."""
        if node.path not in self._rows:
            is_whole = node.path in self._paths or self.is_steady(node)
            self._rows[node.path] = dict.fromkeys(output_ids(node)) if is_whole else self._inner_rows(node)
        return self._rows[node.path]

    def _inner_rows(self, node: PlanNode) -> Known:
        if node.kind in LIMITS and node.kind != "Sample":
            return self.rows(node.children[0])
        if node.kind == "Window":
            below = self.rows(node.children[0])
            return {**below, **_unknown(node.fields["windowExpressions"], "the result of a window function")}
        if node.kind == "Union":
            return _by_position(node, [self.rows(child) for child in node.children])
        if node.kind == "Join":
            return self._joined_rows(node)
        if not node.children:
            return dict.fromkeys(output_ids(node), f"{node.kind} in Spark's plan")
        return self._row_by_row(node, self.rows(node.children[0]))

    def _joined_rows(self, node: PlanNode) -> Known:
        left, right = (self.rows(child) for child in node.children)
        if node.join_type not in JOINS:
            return dict.fromkeys(output_ids(node), f"{node.join_type} in Spark's plan")
        if node.join_type in KEEPS_LEFT:
            return self._with_exists(node, left)
        if not self.is_joinable(node, left, right):
            return {**left, **dict.fromkeys(right, self._join_clause(node))}
        return {**left, **right}

    # ---- the trace of one occurrence -----------------------------------------------------------------------

    def trace(self, node: PlanNode, occurrence: Occurrence) -> Known:
        """Of rows of the node that differ since the occurrence changed. REQUIRES that it lies in the node."""
        key = (node.path, occurrence.path)
        if key not in self._traces:
            is_leaf = node.path == occurrence.path
            known = dict.fromkeys(occurrence.columns) if is_leaf else self._inner_trace(node, occurrence)
            self._traces[key] = known
        return self._traces[key]

    def _inner_trace(self, node: PlanNode, occurrence: Occurrence) -> Known:
        side = side_of(node, occurrence)
        below = self.trace(side, occurrence)
        if node.kind in LIMITS:
            return dict.fromkeys(below, LIMITS[node.kind])
        if node.kind == "Window":
            return self._window_trace(node, below)
        if node.kind == "Union":
            return _by_position(node, [below if child is side else None for child in node.children])
        if node.kind == "Join":
            return self._joined_trace(node, side, below)
        return self._row_by_row(node, below)

    def _window_trace(self, node: PlanNode, below: Known) -> Known:
        partition = node.fields["partitionSpec"]
        results = _unknown(node.fields["windowExpressions"], "the result of a window function")
        if not partition:
            return {**dict.fromkeys(below, "a window function without PARTITION BY"), **results}
        clause = self._clause_of(partition, below)
        if clause is not None:
            return {**dict.fromkeys(below, clause), **results}
        rows = self.rows(node.children[0])
        if not self._is_alone and self._clause_of(partition, rows) is None:
            return {**rows, **results}  # all rows of the partition, found by its columns
        own = self.partition_columns(node) if self.is_exact(partition) else {}
        clause = "a window whose PARTITION BY does not determine the key"
        return {**{one: None if one in own else clause for one in below}, **results}

    def partition_columns(self, node: PlanNode) -> dict[int, int]:
        """Columns below a window that are a column of its PARTITION BY, also under another name → that column."""
        found = {one.identity: one.identity for one in node.fields["partitionSpec"] if one.is_attribute}
        child = node.children[0]
        for item in child.fields["projectList"] if child.kind == "Project" else ():
            source = item.children[0] if item.kind == "Alias" else item
            if source.is_attribute and source.identity in found:
                found[item.identity] = source.identity
        return {one: source for one, source in found.items() if one is not None and source is not None}

    def is_exact(self, expressions: Iterable[Expression]) -> bool:
        """Whether equal values of grouping or partitioning expressions are the same value."""
        return all(is_exact(self.type_of(one)) for one in expressions)

    def is_normalized(self, node: PlanNode, item: Expression) -> bool:
        """Whether an item of an Aggregate is a grouping expression that Spark groups by its normal form."""
        inner = item.children[0] if item.kind == "Alias" else item
        groups = node.fields["groupingExpressions"]
        return any(is_float(self.type_of(group)) and inner.is_same(group) for group in groups)

    def type_of(self, expression: Expression) -> object:
        """As Catalyst's JSON has it; None of an expression whose type nobody asked Spark for."""
        return expression.type if expression.is_attribute else self._types.get(expression.place)

    def _joined_trace(self, node: PlanNode, side: PlanNode, below: Known) -> Known:
        left, right = node.children
        other = self.rows(right if side is left else left)
        if node.join_type in KEEPS_LEFT and side is left:
            return self._with_exists(node, below)
        if node.join_type not in JOINS:
            return dict.fromkeys(output_ids(node), f"{node.join_type} in Spark's plan")
        sides = (below, other) if side is left else (other, below)
        is_joinable = self.is_joinable(node, *sides)
        known = dict(other) if is_joinable else dict.fromkeys(other, self._join_clause(node))
        known |= dict.fromkeys(self.partners(node, below))
        if node.join_type in KEEPS_LEFT:
            return self._with_exists(node, {one: known[one] for one in output_ids(left) if one in known})
        return {**known, **below}

    # ---- joins ---------------------------------------------------------------------------------------------

    def conditions(self, node: PlanNode, left: Known, right: Known) -> tuple[Expression, ...]:
        """Parts of a join's condition that can be asked of the known columns."""
        return tuple(
            part
            for part in conjuncts(node.fields.get("condition", ()))
            if self.is_usable(part) and all(_is_known(one, left, right) for one in part.references)
        )

    def is_joinable(self, node: PlanNode, left: Known, right: Known) -> bool:
        """Whether rows of both sides find each other: by a condition on both, or where the join has none."""
        if self._is_alone:
            return False
        if not node.fields.get("condition"):
            return node.join_type in INNER
        return any(
            part.references & left.keys() and part.references & right.keys()
            for part in self.conditions(node, left, right)
        )

    def partners(self, node: PlanNode, known: Known) -> dict[int, int]:
        """Columns of the other side that an equality makes the same as a known column: other → known."""
        found: dict[int, int] = {}
        for part in conjuncts(node.fields.get("condition", ())):
            if part.kind not in ("EqualTo", "EqualNullSafe"):
                continue
            one, other = part.children
            if not (one.is_attribute and other.is_attribute) or not _is_same_exact(one, other):
                continue
            for mine, theirs in ((one.identity, other.identity), (other.identity, one.identity)):
                is_mine = mine is not None and mine in known and known[mine] is None
                if is_mine and mine is not None and theirs is not None and theirs not in known:
                    found.setdefault(theirs, mine)
        return found

    def _join_clause(self, node: PlanNode) -> str:
        parts = conjuncts(node.fields.get("condition", ()))
        if node.join_type == "LeftAnti" and any(
            part.kind == "Or" and part.children[1].kind == "IsNull" for part in parts
        ):
            return "NOT IN over columns that may be NULL (write NOT EXISTS)"
        if any(part.references for part in parts):
            return "a join on the result of an aggregate or window function"
        return "a join without a condition on both sides"

    def _with_exists(self, node: PlanNode, known: Known) -> Known:
        own = {one: known[one] for one in output_ids(node.children[0]) if one in known}
        clause = "the result of EXISTS or IN as a value"
        return {**own, **_unknown(node.fields.get("joinType.exists", ()), clause)}

    # ---- nodes that work on one row or one group -----------------------------------------------------------

    def _row_by_row(self, node: PlanNode, below: Known) -> Known:
        match node.kind:
            case kind if kind in PASSED:
                return below
            case "Project":
                return {
                    one.identity: self._clause_of([one], below)
                    for one in node.fields["projectList"]
                    if one.identity is not None
                }
            case "Aggregate":
                return dict(self._grouped(node, below))
            case "Generate":
                made = node.fields["generatorOutput"]
                clause = self._clause_of(node.fields["generator"], below)
                ids = [one.identity for one in made if one.identity is not None]
                return {**dict.fromkeys(ids, clause), **below}
            case "Expand":
                output = node.fields["output"]
                columns = [expand_column(node, number) for number in range(len(output))]
                clauses = (self._clause_of(column, below) for column in columns)
                return {
                    one.identity: clause
                    for one, clause in zip(output, clauses, strict=True)
                    if one.identity is not None
                }
            case kind:
                return dict.fromkeys(output_ids(node), f"{kind} in Spark's plan")

    def _grouped(self, node: PlanNode, below: Known) -> Iterator[tuple[int, str | None]]:
        groups = node.fields["groupingExpressions"]
        exact = [group for group in groups if self.is_exact([group])]
        for one in node.fields["aggregateExpressions"]:
            if one.identity is None:
                continue
            if is_grouped(one, exact) or self.is_normalized(node, one):
                yield one.identity, self._clause_of([one], below)
            elif is_grouped(one, groups):
                yield one.identity, f"a grouping column whose equal values can differ ({one.name})"
            else:
                yield one.identity, f"the result of an aggregate function ({one.name})"

    def _clause_of(self, expressions: Iterable[Expression], below: Known) -> str | None:
        """None: all of them are known."""
        for expression in expressions:
            if any(part.plans for part in expression.walk()):
                return "a subquery as a value"
            if not self.is_usable(expression):
                return f"{expression.name or expression.kind}, whose value differs between runs"
            for one in sorted(expression.references):
                if below.get(one, "a column of another side") is not None:
                    return below.get(one, "a column of another side")
        return None


def side_of(node: PlanNode, occurrence: Occurrence) -> PlanNode:
    """The child in which the occurrence lies."""
    return node.children[occurrence.path[len(node.path)]]


def conjuncts(condition: Iterable[Expression]) -> tuple[Expression, ...]:
    """Parts of a condition that are joined by AND."""
    found: list[Expression] = []
    for one in condition:
        found += conjuncts(one.children) if one.kind == "And" else [one]
    return tuple(found)


def is_grouped(item: Expression, groups: Iterable[Expression]) -> bool:
    """Whether the value of an item of SELECT is a function of the grouping expressions alone."""
    if any(item.is_same(group) for group in groups):
        return True
    if item.is_attribute or item.kind in ("AggregateExpression", "OuterReference") or item.plans:
        return False
    return all(is_grouped(child, groups) for child in item.children)


def expand_column(node: PlanNode, number: int) -> tuple[Expression, ...]:
    """What the rows of an Expand have in one column."""
    width = len(node.fields["output"])
    return node.fields["projections"][number::width]


def _by_position(node: PlanNode, children: Iterable[Known | None]) -> Known:
    """Columns of a UNION; a child that is None gives no rows."""
    output = output_ids(node)
    known: dict[int, str | None] = dict.fromkeys(output)
    for child, columns in zip(node.children, children, strict=True):
        if columns is None:
            continue
        for one, inner in zip(output, output_ids(child), strict=True):
            known[one] = known[one] or columns.get(inner, "a column that the query does not use")
    return known


def _unknown(expressions: Iterable[Expression], clause: str) -> dict[int, str | None]:
    return {one.identity: clause for one in expressions if one.identity is not None}


def _is_known(identity: int, *sides: Known) -> bool:
    return any(identity in side and side[identity] is None for side in sides)


def _is_same_exact(one: Expression, other: Expression) -> bool:
    return one.type == other.type and is_exact(one.type)
