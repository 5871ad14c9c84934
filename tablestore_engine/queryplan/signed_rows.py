"""The rows that a change adds to a node and removes from it, for the kinds of nodes that are linear.

A node is linear in a child if its rows over the union of two inputs are the union of its rows over each. Then its rows
over the changed rows of a table alone, with their signs (+1 added, -1 removed), are its own changed rows.

CHANGE     for which nodes a `changed_keys` run follows signed rows instead of keys
PROOF   The occurrences change one after another, in the order of the plan. For each one: its leaf gives its signed
        changed rows, every occurrence before it its new rows, every one behind it its old rows: the new ones (+1) and
        its changed rows under the opposite sign. A join multiplies signs. The sum over all occurrences is the
        difference between the new and the old rows of the node; a row may come with both signs, which then cancel.
INVARIANT  what is not listed in LINEAR or as a join below raises NoDelta. No kind of node counts as linear by default.
INVARIANT  a part of the plan without a changed occurrence has the same rows before and after: it is reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore_engine.queryplan.known_columns import KnownColumns, side_of
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids
from tablestore_engine.queryplan.plan_nodes import Path, PlanNode
from tablestore_engine.queryplan.plan_rules import INNER, KEEPS_LEFT, LIMITS, PASSED
from tablestore_engine.queryplan.run_time import is_time, projection_path, values_of
from tablestore_engine.queryplan.trace_steps import (
    Column,
    Either,
    OnChildren,
    RowsOverTime,
    Select,
    Signed,
    SignedChanges,
    SignedExpand,
    Step,
    Stored,
)

LINEAR = PASSED | {"Project", "Generate", "Expand", "Union"}
# join type → the children in which it is linear, the other one being the same before and after
LINEAR_SIDES = {
    **dict.fromkeys(INNER, (0, 1)), **dict.fromkeys(KEEPS_LEFT, (0,)), "LeftOuter": (0,), "LeftSingle": (0,),
    "RightOuter": (1,),
}  # fmt: skip
CLAUSES = {
    **LIMITS, "Aggregate": "GROUP BY or DISTINCT below another operation", "Window": "a window function",
}  # fmt: skip


class NoDelta(Exception):
    """`clause`: why the changed rows of a query do not follow from those of its tables, in SQL's words."""

    def __init__(self, clause: str) -> None:
        super().__init__(clause)
        self.clause = clause


@dataclass(frozen=True)
class SignedPart:
    """Rows with these columns; the sign of a row is the product of the columns `signs`, +1 without any."""

    step: Step
    columns: frozenset[int]
    signs: tuple[int, ...] = ()


class SignedRows:
    """Of one plan. `known.changed`: the occurrences that changed."""

    def __init__(self, known: KnownColumns) -> None:
        self._known = known
        self._changed = sorted(known.changed, key=lambda one: one.path)
        self._fresh = 0
        for one in self._changed:
            if one.in_subquery:
                raise NoDelta(
                    "a subquery as a value (scalar, IN, EXISTS) that is not correlated by an equality"
                )
        self._check_steady(known.root)

    def _check_steady(self, node: PlanNode) -> None:
        if any(_is_within(one.path, node.path) for one in self._changed):
            for child in node.children:
                self._check_steady(child)
        elif not self._known.is_steady(node):
            raise NoDelta(
                "a part that can give other rows each time (LIMIT, a window, a sum of FLOAT or DOUBLE)"
            )

    def of(self, node: PlanNode) -> tuple[SignedPart, ...]:
        """One part for each changed occurrence in the node; together its rows after minus its rows before."""
        inside = [one for one in self._changed if _is_within(one.path, node.path)]
        return tuple(self._delta(node, one) for one in inside)

    def next_identity(self) -> int:
        """Of a new column; those of the plan are positive."""
        self._fresh -= 1
        return self._fresh

    # ---- the changed rows of one occurrence ----------------------------------------------------------------

    def _delta(self, node: PlanNode, occurrence: Occurrence) -> SignedPart:
        if node.path == occurrence.path:
            return self._changes(occurrence, is_opposite=False)
        side = side_of(node, occurrence)
        below = self._delta(side, occurrence)
        if node.kind == "Union":  # the other children differ in parts of their own
            return self._renamed(node, side, below)
        parts = [below if child is side else self._state(child, occurrence) for child in node.children]
        if node.path == occurrence.path[:-1] and is_time(occurrence):
            parts[0] = self._over_time(parts[0], occurrence)
        return self._through(node, parts)

    def _over_time(self, rows: SignedPart, occurrence: Occurrence) -> SignedPart:
        """Rows for which the time makes a difference; all others would cancel."""
        projection = self._known.at(projection_path(occurrence))
        values = tuple(one.place for one in values_of(projection))
        return SignedPart(RowsOverTime(rows.step, projection.path, values), rows.columns, rows.signs)

    def _changes(self, occurrence: Occurrence, *, is_opposite: bool) -> SignedPart:
        sign, columns = self.next_identity(), tuple(sorted(occurrence.columns))
        step = SignedChanges(occurrence.path, columns, sign, is_opposite)
        return SignedPart(step, frozenset(columns), (sign,))

    # ---- a side without that occurrence --------------------------------------------------------------------

    def _state(self, node: PlanNode, occurrence: Occurrence) -> SignedPart:
        """New rows of the occurrences before this one, old rows of those behind it."""
        later = [
            one for one in self._changed if one.path > occurrence.path and _is_within(one.path, node.path)
        ]
        if not later:
            return SignedPart(Stored(node.path), frozenset(output_ids(node)))
        if node.path == later[0].path:
            return self._before(later[0])
        parts = [self._state(child, occurrence) for child in node.children]
        if node.kind != "Union":
            return self._through(node, parts)
        sign, ids = self.next_identity(), output_ids(node)
        named = [self._renamed(node, child, part) for child, part in zip(node.children, parts, strict=True)]
        steps = tuple(Signed(one.step, _kept(ids), one.signs, sign) for one in named)
        return SignedPart(Either(steps), frozenset(ids), (sign,))

    def _before(self, occurrence: Occurrence) -> SignedPart:
        """Rows of now, and the changes taken back."""
        columns = tuple(sorted(occurrence.columns))
        taken, sign = self._changes(occurrence, is_opposite=True), self.next_identity()
        now = Signed(Stored(occurrence.path), _kept(columns), (), sign)
        back = Signed(taken.step, _kept(columns), taken.signs, sign)
        return SignedPart(Either((now, back)), frozenset(columns), (sign,))

    # ---- one node over its children ------------------------------------------------------------------------

    def _through(self, node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
        self._check_expressions(node)
        first = parts[0]
        match node.kind:
            case "Project":
                items = [one for one in node.fields["projectList"] if one.identity is not None]
                columns = tuple(
                    Column(one.identity or 0, one.identity if one.is_attribute else one.place)
                    for one in items
                )
                ids = frozenset(one.identity for one in columns)
                return SignedPart(Select(first.step, columns + _kept(first.signs)), ids, first.signs)
            case "Filter":
                return SignedPart(OnChildren(node.path, (first.step,)), first.columns, first.signs)
            case "Generate":
                made = frozenset(output_ids(node)) - frozenset(output_ids(node.children[0]))
                step = OnChildren(node.path, (first.step,))
                return SignedPart(step, first.columns | made, first.signs)
            case "Expand":
                wider = SignedExpand(first.step, node.path, first.signs)
                return SignedPart(wider, frozenset(output_ids(node)), first.signs)
            case "Join":
                return self._joined(node, parts)
            case kind if kind in PASSED:
                return first
            case kind:
                raise NoDelta(CLAUSES.get(kind, f"{kind} in Spark's plan"))

    def _joined(self, node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
        sides = LINEAR_SIDES.get(node.join_type, ())
        changed = {one.path[len(node.path)] for one in self._changed if _is_within(one.path, node.path)}
        if not changed <= set(sides):
            raise NoDelta(f"a change of the {_OPTIONAL.get(node.join_type, 'other')} side of a join")
        left, right = parts
        columns = left.columns | frozenset(output_ids(node)) - frozenset(output_ids(node.children[0]))
        if node.join_type not in KEEPS_LEFT:
            columns = left.columns | right.columns
        return SignedPart(OnChildren(node.path, (left.step, right.step)), columns, left.signs + right.signs)

    def _check_expressions(self, node: PlanNode) -> None:
        """An expression with a subquery is never usable here."""
        for one in node.expressions:
            if not self._known.is_usable(one):
                raise NoDelta(f"{one.name or one.kind}, whose value does not follow from one row")

    def _renamed(self, node: PlanNode, child: PlanNode, part: SignedPart) -> SignedPart:
        """Rows of a child of a UNION under the names of the union."""
        names = output_ids(node)
        columns = tuple(Column(one, below) for one, below in zip(names, output_ids(child), strict=True))
        return SignedPart(Select(part.step, columns + _kept(part.signs)), frozenset(names), part.signs)


_OPTIONAL = {
    "LeftOuter": "optional", "LeftSingle": "optional", "RightOuter": "optional", "FullOuter": "optional",
    "LeftSemi": "EXISTS or IN", "LeftAnti": "NOT EXISTS or NOT IN", "ExistenceJoin": "EXISTS or IN",
}  # fmt: skip


def _is_within(path: Path, above: Path) -> bool:
    return path[: len(above)] == above


def _kept(columns: Sequence[int]) -> tuple[Column, ...]:
    return tuple(Column(one, one) for one in columns)
