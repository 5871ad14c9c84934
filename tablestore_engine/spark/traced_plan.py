"""The analyzed plan of a query in a normal form, and DataFrames that are built from parts of it.

The normal form has joins for correlated subqueries, aggregates for DISTINCT, joins for INTERSECT and EXCEPT, and no
CTEs: Spark's own optimizer rules make it, each of which keeps the result. Tables of the warehouse are leaves.

CHANGE     which nodes of Spark's plan a `changed_keys` proof reads
INVARIANT  the rules are named one by one. None of them depends on the rows that are there now: what is proven of this
           plan holds for the old and the new state of its tables.
INVARIANT  parts are used as Spark analyzed them; Spark analyzes what is built from them again, with all its checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from pyspark.sql import DataFrame

from tablestore_engine.catalog.resolved_names import Meaning, ResolvedTable
from tablestore_engine.queryplan.known_columns import GroupingTypes, KnownColumns
from tablestore_engine.queryplan.occurrences import TableColumns
from tablestore_engine.queryplan.plan_nodes import Path, Place, PlanNode, read_plan
from tablestore_engine.queryplan.run_time import FOLLOWED, RUN_TIME
from tablestore_engine.queryplan.stable_values import find_volatile
from tablestore_engine.queryplan.trace_steps import (
    ChangedRows,
    Column,
    Either,
    Expanded,
    Matched,
    OnChildren,
    OneRow,
    RowsOverTime,
    RowsWhere,
    RowsWithPast,
    SameValue,
    Select,
    Signed,
    SignedChanges,
    SignedExpand,
    Step,
    Stored,
)
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.run_time_plan import Elapsed, RunTimes
from tablestore_engine.spark.spark_internals import Jvm
from tablestore_engine.sql.table_version import TableVersion, split_database

Names = Mapping[tuple[str, str], Meaning | None]
# table, names of columns, which changed rows → the analyzed plan of its changes
ChangesOf = Callable[[str, Sequence[str], ChangedKind], Jvm]
_RULES = (
    "ReplaceIntersectWithSemiJoin", "ReplaceExceptWithAntiJoin", "RewriteExceptAll", "RewriteIntersectAll",
    "ReplaceDistinctWithAggregate", "PullupCorrelatedPredicates", "RewritePredicateSubquery",
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
        plan = inner.with_rules(inner.without_pipes(analyzed), _RULES)
        self.is_deterministic = bool(plan.deterministic())
        self._views: list[tuple[Jvm, Jvm]] = []  # placeholder, what it stands for
        self.tables: dict[int, TableColumns] = {}
        self._leaves: dict[int, Jvm] = {}
        for view, source in _table_views(plan, names):
            first = _id(view.output().apply(0))
            if first not in self.tables:
                self.tables[first], self._leaves[first] = source, view
                self._views.append((inner.placeholder(view.output()), view))
        plan = inner.replaced(plan, [(view, leaf) for leaf, view in self._views])
        self.times = None if moment_ms is None else RunTimes(inner, plan, moment_ms)
        if self.times is not None:
            plan = self.times.plan
            for placeholder, row in self.times.views:
                self.tables[_id(placeholder.output().apply(0))] = TableColumns(RUN_TIME, is_fixed=False)
                self._views.append((placeholder, row))
        self.root: PlanNode = read_plan(str(plan.toJSON()))
        self.parts = PlanParts(plan)
        self.grouping_types: GroupingTypes = {
            one.place: self.type_of(one.place)
            for node in self.root.walk()
            for one in node.fields.get("groupingExpressions", ())
            if not one.is_attribute
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
        return tuple(json.loads(str(one.dataType().json())) for one in _each(self.parts.node(()).output()))

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

    def builder(self, known: KnownColumns, changes: ChangesOf, elapsed: Elapsed | None) -> PlanBuilder:
        """Makes frames of steps. `elapsed`: since the last run, if the query uses the time."""
        return PlanBuilder(self.inner, self.parts, self._views, known, changes, elapsed)


class PlanParts:
    """Nodes and expressions of a plan, each looked up once: a call to the JVM costs 0.1 ms."""

    def __init__(self, plan: Jvm) -> None:
        self._nodes: dict[Path, Jvm] = {(): plan}
        self._expressions: dict[Place, Jvm] = {}

    def node(self, path: Path) -> Jvm:
        """By the indexes of children."""
        if path not in self._nodes:
            above = self.node(path[:-1])
            self._nodes[path] = above.children().apply(path[-1])
        return self._nodes[path]

    def expression(self, place: Place) -> Jvm:
        """By its node, field, item and the indexes of children."""
        if place not in self._expressions:
            self._expressions[place] = self._fetched(place)
        return self._expressions[place]

    def _fetched(self, place: Place) -> Jvm:
        node = self.node(place.node)
        found = getattr(node, place.field)()
        if place.field == "projections":
            row, column = divmod(place.item or 0, node.output().size())
            found = found.apply(row).apply(column)
        elif place.item is not None:
            found = found.apply(place.item)
        elif place.field == "condition" and node.nodeName() == "Join":
            found = found.get()
        for number in place.below:
            found = found.children().apply(number)
        return found


class PlanBuilder:
    """Steps (queryplan.trace_steps) → plans of Spark."""

    def __init__(
        self,
        inner: PlanBuilderNodes,
        parts: PlanParts,
        views: Sequence[tuple[Jvm, Jvm]],
        known: KnownColumns,
        changes: ChangesOf,
        elapsed: Elapsed | None,
    ) -> None:
        self._inner, self._parts, self._views = inner, parts, views
        self._known, self._changes, self._elapsed = known, changes, elapsed
        self._made: dict[int, Jvm] = {}  # negative ids are those of steps

    def frame(self, step: Step) -> DataFrame:
        """Not run yet. Raises AnalysisException, Py4JError."""
        return self._inner.analyzed_frame(self._plan(step))

    def _plan(self, step: Step) -> Jvm:
        match step:
            case Stored(node):
                return self._inner.replaced(self._parts.node(node), self._views)
            case OneRow():
                return self._inner.one_row()
            case ChangedRows(node, columns):
                return self._changed(node, columns, ChangedKind.BOTH)
            case RowsWithPast(node):
                whole = tuple(_id(one) for one in _each(self._parts.node(node).output()))
                now = self._inner.replaced(self._parts.node(node), self._views)
                return self._inner.union([now, self._changed(node, whole, ChangedKind.PAST)])
            case Select(child, columns):
                below = self._plan(child)
                return self._inner.project([self._column(one) for one in columns], below)
            case RowsWhere(child, conditions):
                return self._inner.filter(self._all(conditions), self._plan(child))
            case RowsOverTime(child, node, places):
                return self._over_time(self._plan(child), node, places)
            case Matched(left, right, conditions):
                sides = self._plan(left), self._plan(right)
                return self._inner.join(*sides, self._all(conditions) if conditions else None)
            case Either(children):
                return self._inner.union([self._plan(child) for child in children])
            case Expanded(child, node, numbers):
                return self._inner.expand(self._parts.node(node), numbers, self._plan(child))
            case _:
                return self._signed_plan(step)

    def _signed_plan(self, step: Step) -> Jvm:
        match step:
            case SignedChanges(node, columns, sign, is_opposite):
                kind = ChangedKind.OPPOSITE if is_opposite else ChangedKind.SIGNED
                return self._changed(node, columns, kind, sign)
            case Signed(child, columns, factors, sign):
                below = self._plan(child)
                value = self._inner.product_of_signs([self._attribute(one) for one in factors])
                return self._inner.project(
                    [*(self._column(one) for one in columns), self._new(value, sign)], below
                )
            case SignedExpand(child, node, signs):
                below = self._plan(child)
                kept = [self._attribute(one) for one in signs]
                return self._inner.expand_with(self._parts.node(node), kept, below)
            case OnChildren(node, children):
                return self._inner.on_children(
                    self._parts.node(node), [self._plan(child) for child in children]
                )
        raise AssertionError(step)

    def _over_time(self, rows: Jvm, projection: Path, places: Sequence[Place]) -> Jvm:
        assert self._elapsed is not None
        output = self._parts.node((*projection, 0, 1)).output()
        known = self._known.at(projection).fields["projectList"]
        values = [(self._parts.expression(one).child(), known[one.item or 0].children[0]) for one in places]
        return self._elapsed.differs(output, values, rows)

    def _new(self, value: Jvm, identity: int) -> Jvm:
        """A column that a step makes. Columns of one identity, as in the children of a union, are one attribute."""
        known = self._made.get(identity)
        if known is not None:
            return self._inner.alias(value, known.name(), known.exprId())
        made = self._inner.new_alias(value, f"c{-identity}")
        self._made[identity] = made.toAttribute()
        return made

    def _changed(self, path: Path, columns: Sequence[int], kind: ChangedKind, sign: int = 0) -> Jvm:
        """Changes of the table of a leaf, under the ids of the leaf; `sign`: of the column of signs."""
        leaf = self._parts.node(path)
        own = {_id(one): one for one in _each(leaf.output())}
        table = next(one.table for one in self._known.changed if one.path == path)
        names = [str(own[one].name()) for one in columns]
        if table == RUN_TIME:
            assert self._elapsed is not None
            changes = self._elapsed.changed(names, kind)
        else:
            changes = self._changes(table, names, kind)
        found = _each(changes.output())
        items = [
            self._inner.alias(given, name, own[one].exprId())
            for given, name, one in zip(found, names, columns, strict=False)
        ]
        if sign:
            items.append(self._new(found[-1], sign))
        return self._inner.project(items, changes)

    # ---- expressions ---------------------------------------------------------------------------------------

    def _column(self, column: Column) -> Jvm:
        source = column.source
        if column.is_normalized:
            return self._normalized(column)
        if source == column.identity:
            return self._attribute(column.identity)
        if isinstance(source, Place):
            expression = self._parts.expression(source)
            if column.identity > 0:
                return expression  # an alias that has this id
            return self._new(expression, column.identity)
        attribute = self._attribute(column.identity)
        value = self._inner.null_of(attribute) if source is None else self._attribute(source)
        return self._inner.alias(value, attribute.name(), attribute.exprId())

    def _normalized(self, column: Column) -> Jvm:
        """Of a grouping column, which is an attribute or an alias."""
        attribute = self._attribute(column.identity)
        value = attribute
        if isinstance(column.source, Place):
            value = self._parts.expression(column.source).child()
        return self._inner.alias(self._inner.normalized(value), attribute.name(), attribute.exprId())

    def _attribute(self, identity: int) -> Jvm:
        if identity not in self._made:
            found = self._known.attributes[identity]
            expression = self._parts.expression(found.place)
            self._made[identity] = expression if found.is_attribute else expression.toAttribute()
        return self._made[identity]

    def _all(self, conditions: Sequence[Place | SameValue]) -> Jvm:
        parts = [
            self._inner.same_value(self._parts.expression(one.expression), self._attribute(one.identity))
            if isinstance(one, SameValue)
            else self._parts.expression(one)
            for one in conditions
        ]
        return self._inner.all_of(parts)


def _table_views(plan: Jvm, names: Names) -> Iterator[tuple[Jvm, TableColumns]]:
    """Views that stand for tables of the warehouse, in subqueries too."""
    yield from _views_below(plan, names)
    for subquery in _each(plan.subqueriesAll()):
        yield from _views_below(subquery, names)


def _views_below(node: Jvm, names: Names) -> Iterator[tuple[Jvm, TableColumns]]:
    if node.nodeName() == "View":
        source = _source_of(node, names)
        if source is not None:
            yield node, source
            return
    for child in _each(node.children()):
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


def _id(attribute: Jvm) -> int:
    return int(attribute.exprId().id())


def _each(items: Jvm) -> list[Jvm]:
    return [items.apply(number) for number in range(items.size())]
