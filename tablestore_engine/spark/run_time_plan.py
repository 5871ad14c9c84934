"""The time of the run in Spark's plans: as literals of one moment, and as a table of one row (queryplan.run_time).

CHANGE     how the time of a run is fixed in a query
INVARIANT  a date or a TIMESTAMP_NTZ is that of the moment in the time zone that Spark's analyzer noted in the function.
INVARIANT  what Spark's rule ComputeCurrentTime would replace besides is not known here, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode, read_plan
from tablestore_engine.queryplan.run_time import (
    Split,
    find_bare,
    find_moving,
    pulled_parts,
    split_node,
    time_functions,
)
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.spark_internals import Jvm

_SPLITS_MAX = 200  # of one plan; each one reads the plan again
_INLINE = (
    "FoldablePropagation",
    "ColumnPruning",
)  # `with t as (select current_date() as today)` where it is used


def at_moment(inner: PlanBuilderNodes, plan: Jvm, moment_ms: int) -> Jvm:
    """The analyzed plan with the moment (epoch milliseconds) for functions of the time, in subqueries too."""
    if not inner.has_moving_like(plan):
        return plan
    functions = sorted(time_functions(read_plan(str(plan.toJSON()))), key=str)
    if not functions:
        return plan
    leaves = [inner.time_function(*one) for one in functions]
    return inner.with_expressions(plan, [(one, inner.moment(one, moment_ms)) for one in leaves])


def frame_at_moment(frame: DataFrame, moment_ms: int) -> DataFrame:
    """The same for a frame; the very frame without such functions."""
    inner, analyzed = PlanBuilderNodes(frame.sparkSession), frame._jdf.queryExecution().analyzed()
    fixed = at_moment(inner, analyzed, moment_ms)
    return frame if fixed is analyzed else inner.frame(fixed)


@dataclass(frozen=True)
class Elapsed:
    """The moments of the last run and of this one, as literals of each function of the time."""

    inner: PlanBuilderNodes
    past: Sequence[Jvm]
    now: Sequence[Jvm]

    @property
    def moved(self) -> frozenset[int]:
        """Numbers of the functions with another value than before."""
        pairs = zip(self.past, self.now, strict=True)
        return frozenset(at for at, (old, new) in enumerate(pairs) if not bool(old.fastEquals(new)))

    def changed(self, names: Sequence[str], kind: ChangedKind) -> Jvm:
        """Rows of the table of the time, as those of the changes of any table."""
        numbers = [number_of(name) for name in names]
        old, new = ([rows[at] for at in numbers] for rows in (self.past, self.now))
        match kind:
            case ChangedKind.PAST:
                return self._row(names, old, None)
            case ChangedKind.BOTH:
                return self.inner.union([self._row(names, old, None), self._row(names, new, None)])
            case _:
                sign = -1 if kind is ChangedKind.OPPOSITE else 1
                return self.inner.union([self._row(names, old, -sign), self._row(names, new, sign)])

    def _row(self, names: Sequence[str], values: Sequence[Jvm], sign: int | None) -> Jvm:
        items = [self.inner.new_alias(value, name) for name, value in zip(names, values, strict=True)]
        if sign is not None:
            items.append(self.inner.new_alias(self.inner.number(sign), "sign"))
        return self.inner.project(items, self.inner.one_row())

    def differs(self, output: Jvm, values: Sequence[tuple[Jvm, Expression]], rows: Jvm) -> Jvm:
        """Those of `rows` for which a value is another than before. `output`: columns of the table of the time."""
        columns = [output.apply(at) for at in range(output.size())]
        numbers = [number_of(str(one.name())) for one in columns]
        old = [(one, self.past[at]) for one, at in zip(columns, numbers, strict=True)]
        new = [(one, self.now[at]) for one, at in zip(columns, numbers, strict=True)]
        own = frozenset(int(one.exprId().id()) for one in columns)
        conditions = []
        for value, known in values:
            if not bool(self.inner.is_orderable(value)):
                return rows  # a map: equal or not, each row counts
            before, after = self.inner.with_parts(value, old), self.inner.with_parts(value, new)
            differs = self.inner.negated(self.inner.same_value(before, after))
            between = _Between(self.inner, own, old, new).of(value, known)
            conditions.append(differs if between is None else self.inner.all_of([between, differs]))
        return self.inner.filter(self.inner.any_of(conditions), rows)


@dataclass(frozen=True)
class _Between:
    """What follows for a column if a comparison with a function of the time gives another result than before: its value
    lies between the two values of the function. Files are left out by that.
    """

    inner: PlanBuilderNodes
    time: frozenset[int]
    old: Sequence[tuple[Jvm, Jvm]]
    new: Sequence[tuple[Jvm, Jvm]]

    def of(self, value: Jvm, known: Expression) -> Jvm | None:
        """None: nothing follows."""
        if not known.references & self.time:
            return self.inner.false()
        if known.kind in ("And", "Or", "Not"):
            children = [self.of(value.children().apply(at), child) for at, child in enumerate(known.children)]
            return None if None in children else self.inner.any_of(children)
        if known.kind not in _COMPARISONS:
            return None
        one, other = (value.children().apply(at) for at in (0, 1))
        left, right = known.children
        if not left.references & self.time and right.references <= self.time:
            return self._between(one, other)
        if not right.references & self.time and left.references <= self.time:
            return self._between(other, one)
        return None

    def _between(self, row: Jvm, function: Jvm) -> Jvm:
        before, after = self.inner.with_parts(function, self.old), self.inner.with_parts(function, self.new)
        return self.inner.between(row, before, after)


_COMPARISONS = frozenset({
    "EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual",
})  # fmt: skip


def number_of(column: str) -> int:
    """Of a column of the table of the time: which function it is."""
    return int(column.removeprefix("time"))


class RunTimes:
    """The functions of the time of one plan, and the plan without them."""

    def __init__(self, inner: PlanBuilderNodes, plan: Jvm, now_ms: int) -> None:
        self._inner, self._now_ms = inner, now_ms
        root = read_plan(str(plan.toJSON()))
        self.functions = tuple(sorted(time_functions(root), key=str))
        self._leaves = [inner.time_function(*one) for one in self.functions]
        self._now = self._at(now_ms)
        self.views: list[tuple[Jvm, Jvm]] = []  # placeholder of the table of the time, its row now
        if self.functions and find_bare(root) is not None:
            plan = inner.with_rules(plan, _INLINE)
            root = read_plan(str(plan.toJSON()))
        self.bare = find_bare(root)
        self.plan = self._split_all(plan, root)

    def since(self, past_ms: int) -> Elapsed:
        """From the moment of the last run to that of this one."""
        return Elapsed(self._inner, self._at(past_ms), self._now)

    def _at(self, moment_ms: int) -> list[Jvm]:
        return [self._inner.moment(one, moment_ms) for one in self._leaves]

    # ---- split nodes ---------------------------------------------------------------------------------------

    def _split_all(self, plan: Jvm, root: PlanNode) -> Jvm:
        for _ in range(_SPLITS_MAX):
            found = next(
                ((node, split) for node in find_moving(root) if (split := split_node(node)) is not None), None
            )
            if found is None:
                break
            plan = _with_node(plan, found[0].path, partial(self._split, *found), self._inner)
            root = read_plan(str(plan.toJSON()))
        return plan

    def _split(self, node: PlanNode, split: Split, at: Jvm) -> Jvm:
        if split.is_pulled:
            return self._pulled(at, node)
        if split.above:
            return self._filtered(at, split.above)
        inner = self._inner
        child = at.children().apply(split.side)
        table = self._table()
        columns = [(leaf, table.output().apply(number)) for number, leaf in enumerate(self._leaves)]
        values = [_expression(at, place) for place in split.values]
        made = [
            inner.new_alias(inner.with_parts(one, columns), f"value{number}")
            for number, one in enumerate(values)
        ]
        below = inner.project([*_each(child.output()), *made], inner.join(child, table, None))
        pairs = [(old, new.toAttribute()) for old, new in zip(values, made, strict=True)]
        children = [below if side == split.side else one for side, one in enumerate(_each(at.children()))]
        above = inner.on_children(inner.with_own_expressions(at, pairs), children)
        return above if node.kind in ("Project", "Aggregate") else inner.project(_each(at.output()), above)

    def _table(self) -> Jvm:
        """The placeholder of a table of the time of its own."""
        items = [self._inner.new_alias(value, f"time{at}") for at, value in enumerate(self._now)]
        row = self._inner.project(items, self._inner.one_row())
        placeholder = self._inner.placeholder(row.output())
        self.views.append((placeholder, row))
        return placeholder

    def _filtered(self, at: Jvm, places: Sequence[Place]) -> Jvm:
        """An inner join with some of its conditions above it."""
        inner, moved = self._inner, [_expression(at, place) for place in places]
        kept = [one for one in inner.conjuncts(at.condition().get()) if not _is_among(one, moved)]
        left, right = _each(at.children())
        return inner.filter(
            inner.all_of(moved), inner.join(left, right, inner.all_of(kept) if kept else None)
        )

    def _pulled(self, at: Jvm, node: PlanNode) -> Jvm:
        """An Aggregate with its functions alone, and a projection for the items that are computed from them."""
        inner, groups = self._inner, node.fields["groupingExpressions"]
        parts: list[tuple[Jvm, Jvm]] = []
        for item in node.fields["aggregateExpressions"]:
            for part in pulled_parts(item, groups):
                value = _expression(at, part.place)
                if not any(_is_among(value, [known]) for known, _ in parts):
                    parts.append((value, inner.new_alias(value, f"part{len(parts)}")))
        pairs = [(value, made.toAttribute()) for value, made in parts]
        items = []
        for one in _each(at.aggregateExpressions()):
            value = inner.with_parts(one.child() if one.nodeName() == "Alias" else one, pairs)
            items.append(inner.alias(value, one.name(), one.exprId()))
        return inner.project(items, inner.aggregate(at, [made for _, made in parts]))


def _with_node(plan: Jvm, path: Path, make: Callable[[Jvm], Jvm], inner: PlanBuilderNodes) -> Jvm:
    """The plan with another node at a path."""
    if not path:
        return make(plan)
    children = _each(plan.children())
    children[path[0]] = _with_node(children[path[0]], path[1:], make, inner)
    return inner.on_children(plan, children)


def _expression(node: Jvm, place: Place) -> Jvm:
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


def _each(items: Jvm) -> list[Jvm]:
    return [items.apply(number) for number in range(items.size())]
