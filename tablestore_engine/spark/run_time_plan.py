"""The time of the run in Spark's plans: as literals of one moment, and as a table of one row (queryplan.run_time).

CHANGE     how the time of a run is fixed in a query
INVARIANT  a date or a TIMESTAMP_NTZ is that of the moment in the time zone that Spark's analyzer noted in the function.
INVARIANT  what Spark's rule ComputeCurrentTime would replace besides is not known here, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from tablestore_engine.queryplan.plan_nodes import Expression, PlanNode, read_plan
from tablestore_engine.queryplan.run_time import (
    find_bare,
    find_moving,
    is_function,
    moving_name,
    time_functions,
)
from tablestore_engine.queryplan.split_nodes import split_node
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.spark_internals import Jvm
from tablestore_engine.spark.split_plan import SPLITS_MAX, Splitter

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

    def differs(self, columns: Sequence[Jvm], values: Sequence[tuple[Jvm, Expression]], rows: Jvm) -> Jvm:
        """Those of `rows` for which a value is another than before. `columns`: of the table of the time."""
        numbers = [number_of(str(one.name())) for one in columns]
        old = [(one, self.past[at]) for one, at in zip(columns, numbers, strict=True)]
        new = [(one, self.now[at]) for one, at in zip(columns, numbers, strict=True)]
        return differing_rows(self.inner, old, new, values, rows)


def differing_rows(
    inner: PlanBuilderNodes,
    old: Sequence[tuple[Jvm, Jvm]],
    new: Sequence[tuple[Jvm, Jvm]],
    values: Sequence[tuple[Jvm, Expression]],
    rows: Jvm,
) -> Jvm:
    """Those of `rows` for which a value is another over the old than over the new values of columns of a table of one
    row.
    """
    own = frozenset(int(column.exprId().id()) for column, _ in new)
    conditions = []
    for value, known in values:
        if not bool(inner.is_orderable(value)):
            return rows  # a map: equal or not, each row counts
        before, after = inner.with_parts(value, old), inner.with_parts(value, new)
        differs = inner.negated(inner.same_value(before, after))
        between = _Between(inner, own, old, new).of(value, known)
        conditions.append(differs if between is None else inner.all_of([between, differs]))
    return inner.filter(inner.any_of(conditions), rows) if conditions else inner.placeholder(rows.output())


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
        splitter = Splitter(self._inner, self._leaves, self._table)
        for _ in range(SPLITS_MAX):
            splits = (
                (node, split_node(node, is_function)) for node in find_moving(root) if not _has_plan(node)
            )
            node, split = next((one for one in splits if one[1] is not None), (root, None))
            if split is None:
                break
            plan = splitter.split(plan, node, split)
            root = read_plan(str(plan.toJSON()))
        return plan

    def _table(self) -> Jvm:
        """The placeholder of a table of the time of its own."""
        items = [self._inner.new_alias(value, f"time{at}") for at, value in enumerate(self._now)]
        row = self._inner.project(items, self._inner.one_row())
        placeholder = self._inner.placeholder(row.output())
        self.views.append((placeholder, row))
        return placeholder


def _has_plan(node: PlanNode) -> bool:
    """Whether a subquery is in an expression that uses the time."""
    return any(part.plans for one in node.expressions if moving_name(one) for part in one.walk())
