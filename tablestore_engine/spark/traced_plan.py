"""The analyzed plan of a query in a normal form.

The normal form has joins for correlated subqueries, aggregates for DISTINCT, joins for INTERSECT and EXCEPT, and no
CTEs: Spark's own optimizer rules make it, each of which keeps the result. Totals as values are joins, too (split_plan).
Tables of the warehouse are leaves.

CHANGE     which nodes of Spark's plan a `changed_keys` proof reads
INVARIANT  the rules are named one by one. None of them depends on the rows that are there now: what is proven of this
           plan holds for the old and the new state of its tables.
INVARIANT  parts are used as Spark analyzed them; Spark analyzes what is built from them again, with all its checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from pyspark.sql import DataFrame

from tablestore_engine.catalog.resolved_names import Meaning, ResolvedTable
from tablestore_engine.queryplan.keyed_parts import SUMS, typed_expressions
from tablestore_engine.queryplan.known_columns import GroupingTypes, KnownColumns
from tablestore_engine.queryplan.occurrences import TableColumns
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode, read_plan
from tablestore_engine.queryplan.run_time import FOLLOWED, RUN_TIME
from tablestore_engine.queryplan.stable_values import find_volatile
from tablestore_engine.spark.collected_parts import Collect, CollectedParts
from tablestore_engine.spark.plan_builder import ChangesOf, PlanBuilder
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.plan_expressions import PlanParts, each, expr_id
from tablestore_engine.spark.plan_rows import PlanRows
from tablestore_engine.spark.run_time_plan import Elapsed, RunTimes
from tablestore_engine.spark.spark_internals import Jvm
from tablestore_engine.spark.split_plan import with_joined_scalars
from tablestore_engine.sql.table_version import TableVersion, split_database

Names = Mapping[tuple[str, str], Meaning | None]
_FIRST = (
    "ReplaceIntersectWithSemiJoin", "ReplaceExceptWithAntiJoin", "RewriteExceptAll", "RewriteIntersectAll",
    "ReplaceDistinctWithAggregate", "PullupCorrelatedPredicates",
)  # fmt: skip
_RULES = (
    *_FIRST, "RewritePredicateSubquery",
    "RewriteCorrelatedScalarSubquery", "RewriteLateralSubquery",
    "ReplaceDistinctWithAggregate",  # of subqueries, which are joins now
    # conditions of WHERE at the joins of a comma list, and each table beside one that a condition joins it with
    "PushPredicateThroughJoin", "ReorderJoin",
)  # fmt: skip


class TracedPlan:
    """Of one analyzed frame. `names`: what the (database, name) in lower case of the statement mean. `moment_ms`: of
    this run, if its time is followed.
    """

    def __init__(
        self, inner: PlanBuilderNodes, frame: DataFrame, names: Names, moment_ms: int | None = None
    ) -> None:
        self.inner = inner
        analyzed = frame._jdf.queryExecution().analyzed()
        plan = _normal_form(inner, inner.without_pipes(analyzed))
        self.is_deterministic = bool(plan.deterministic())
        self._views: list[tuple[Jvm, Jvm]] = []  # placeholder, what it stands for
        self.tables: dict[int, TableColumns] = {}
        self._leaves: dict[int, Jvm] = {}
        for view, source in _table_views(plan, names):
            first = expr_id(view.output().apply(0))
            if first not in self.tables:
                self.tables[first], self._leaves[first] = source, view
                self._views.append((inner.placeholder(view.output()), view))
        plan = inner.replaced(plan, [(view, leaf) for leaf, view in self._views])
        self.times = None if moment_ms is None else RunTimes(inner, plan, moment_ms)
        if self.times is not None:
            plan = self.times.plan
            for placeholder, row in self.times.views:
                self.tables[expr_id(placeholder.output().apply(0))] = TableColumns(RUN_TIME, is_fixed=False)
                self._views.append((placeholder, row))
        self.root: PlanNode = read_plan(str(plan.toJSON()))
        self.parts = PlanParts(plan)
        self.grouping_types: GroupingTypes = {
            one.place: self.type_of(one.place)
            for node in self.root.walk()
            for one in typed_expressions(node)
            if not one.is_attribute and not (one.kind in SUMS and self._is_try(one))
        }

    def find_volatile(self) -> str | None:
        """The function that makes its rows others each time; with a moment, those of the time only as a column."""
        if self.times is None:
            return find_volatile(self.root)
        return self.times.bare or find_volatile(self.root, FOLLOWED)

    def since(self, past: TableVersion | None) -> Elapsed | None:
        """The time from the moment of the last run to that of this one; None: the query does not use it."""
        past_ms = None if past is None else past.timestamp_ms
        return None if self.times is None or past_ms is None else self.times.since(past_ms)

    @cached_property
    def output_types(self) -> tuple[object, ...]:
        """Of the columns of the root, as Catalyst's JSON has them."""
        return tuple(json.loads(str(one.dataType().json())) for one in each(self.parts.node(()).output()))

    def _is_try(self, function: Expression) -> bool:
        """Whether it is NULL where an intermediate sum has no room, which depends on the order of rows."""
        return self.name_of(function.place).startswith("try_")

    def column_types(self, path: Path) -> Mapping[int, object]:
        """Of the columns of a node, by their ids."""
        output = each(self.parts.node(path).output())
        return {expr_id(one): json.loads(str(one.dataType().json())) for one in output}

    def type_of(self, place: Place) -> object:
        """The type of an expression, as Catalyst's JSON has it."""
        return json.loads(str(self.parts.expression(place).dataType().json()))

    def name_of(self, place: Place) -> str:
        """Of a function: `sum` and `try_sum` are one class."""
        return str(self.parts.expression(place).prettyName())

    def buffer_type_of(self, place: Place) -> object:
        """The type of the first buffer of an aggregate function: what Spark adds up."""
        first = self.parts.expression(place).aggBufferAttributes().apply(0)
        return json.loads(str(first.dataType().json()))

    def builder(
        self, known: KnownColumns, changes: ChangesOf, elapsed: Elapsed | None, collect: Collect
    ) -> PlanBuilder:
        """Makes frames of steps. `elapsed`: since the last run, if the query uses the time."""
        return PlanBuilder(
            self.inner, self.parts, self._views, known, changes, elapsed, CollectedParts(collect)
        )

    def over_rows(
        self, known: KnownColumns, given: Mapping[int, PlanRows], *, is_one_task: bool
    ) -> DataFrame | None:
        """The whole query over other rows of some leaves, by the ExprId of their first column; None: too many.

        `is_one_task`: without a shuffle of these rows.
        """
        builder, views = self.builder(known, _none, None, _none), list[tuple[Jvm, Jvm]]()
        for placeholder, view in self._views:
            rows = given.get(expr_id(placeholder.output().apply(0)))
            leaf = view if rows is None else builder.leaf(rows.columns, rows.count)
            if leaf is None:
                return None
            if rows is not None and rows.count and is_one_task:
                leaf = self.inner.in_one_task(leaf)
            views.append((placeholder, leaf))
        return self.inner.analyzed_frame(self.inner.replaced(self.parts.node(()), views))


def _none(*_: object) -> Any:  # noqa: ANN401 - of any type
    raise AssertionError("a plan without changed rows")


def _normal_form(inner: PlanBuilderNodes, plan: Jvm) -> Jvm:
    """Subqueries inside of subqueries as joins first, as Spark has it, and joins for totals as values."""
    if not plan.subqueriesAll().size():
        return inner.with_rules(plan, _RULES)
    plan = inner.with_rules(plan, _FIRST)
    deep = [one for one in each(plan.subqueriesAll()) if one.subqueriesAll().size()]
    if deep:
        plan = inner.replaced(plan, [(one, _normal_form(inner, one)) for one in deep])
    plan = inner.with_rules(plan, _RULES)
    if plan.subqueriesAll().size():
        plan = with_joined_scalars(inner, plan, partial(_normal_form, inner))
    return plan


def _table_views(plan: Jvm, names: Names) -> Iterator[tuple[Jvm, TableColumns]]:
    """Views that stand for tables of the warehouse, in subqueries too."""
    yield from _views_below(plan, names)
    for subquery in each(plan.subqueriesAll()):
        yield from _views_below(subquery, names)


def _views_below(node: Jvm, names: Names) -> Iterator[tuple[Jvm, TableColumns]]:
    if node.nodeName() == "View":
        source = _source_of(node, names)
        if source is not None:
            yield node, source
            return
    for child in each(node.children()):
        yield from _views_below(child, names)


def _source_of(view: Jvm, names: Names) -> TableColumns | None:
    identifier = view.desc().identifier()
    if identifier.database().isEmpty():
        return None
    database, name = str(identifier.database().get()), str(identifier.table())
    found = names.get((database.lower(), name.lower()))
    if not isinstance(found, ResolvedTable):
        return None
    base, version = split_database(database)
    is_fixed = version is not None or found.is_clause
    return TableColumns(f"{base}.{name}", is_fixed, tuple(found.schema.primary_keys))
