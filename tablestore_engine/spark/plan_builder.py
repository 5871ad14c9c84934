"""DataFrames that are built from parts of an analyzed plan, by steps (queryplan.trace_steps).

CHANGE     what Spark plan a step of a `changed_keys` run is
INVARIANT  parts are used as Spark analyzed them; Spark analyzes what is built from them again, with all its checks.
CRASH      nothing is written. Steps of nodes with a key run jobs while a frame is made (collected_parts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place
from tablestore_engine.queryplan.run_time import RUN_TIME
from tablestore_engine.queryplan.trace_steps import (
    ChangedRows,
    Column,
    Either,
    Expanded,
    InParts,
    Matched,
    NetChanges,
    OnChildren,
    OneRow,
    RealRows,
    RowsOverTime,
    RowsOverValue,
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
from tablestore_engine.spark.arrow_frame import frame_of_rows, known_rows
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.collected_parts import CollectedParts, FindNet, NetColumns, NetTable
from tablestore_engine.spark.net_rows import net_rows, repeated_rows
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.plan_expressions import PlanParts, each, expr_id
from tablestore_engine.spark.plan_rows import PlanRows, TypedValues
from tablestore_engine.spark.run_time_plan import Elapsed, differing_rows
from tablestore_engine.spark.spark_internals import Jvm

LOCAL_BYTES = 32 << 20  # of rows over which the optimizer evaluates expressions
# table, names of columns, which changed rows → the analyzed plan of its changes
ChangesOf = Callable[[str, Sequence[str], ChangedKind], Jvm]


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
        collected: CollectedParts,
    ) -> None:
        self._inner, self._parts, self._views = inner, parts, views
        self._known, self._changes, self._elapsed = known, changes, elapsed
        self._collected = collected
        self._made: dict[int, Jvm] = {}  # negative ids are those of steps
        self._plans: dict[int, tuple[Step, Jvm]] = {}  # by id(), as long as the step is there
        self.find_net: FindNet = lambda _: None

    def frame(self, step: Step) -> DataFrame:
        """Not run yet. Raises AnalysisException, Py4JError."""
        return self._inner.analyzed_frame(self._plan(step))

    def net(self, signed: Step) -> NetTable:
        """Signed rows in which those with both signs cancel, evaluated once. Raises NoDelta."""
        return self._collected.rows(signed, self.find_net, self.frame)

    def values(self, rows: PlanRows, expressions: Sequence[Expression]) -> list[TypedValues] | None:
        """Of expressions over rows that the driver has, by the optimizer; None: it takes a job. Raises what it raises.

        REQUIRES that the rows have all columns that the expressions name.
        """
        used = frozenset[int]().union(*(one.references for one in expressions))
        below = self.leaf({one: rows.columns[one] for one in used or list(rows.columns)[:1]}, rows.count)
        if below is None:
            return None
        items = [
            self._inner.new_alias(self._parts.expression(one.place), f"v{at}")
            for at, one in enumerate(expressions)
        ]
        frame = self._inner.analyzed_frame(self._inner.project(items, below))
        fields = frame.schema.fields
        found = known_rows(frame)
        if found is None or found.num_rows != rows.count:
            return None
        return [
            TypedValues(values, one.dataType.jsonValue())
            for values, one in zip(found.columns, fields, strict=True)
        ]

    def leaf(self, columns: Mapping[int, TypedValues], count: int) -> Jvm | None:
        """A leaf with these rows; None: they are too many."""
        attributes = self._inner.sequence([self._attribute(one) for one in columns])
        if not count:
            return self._inner.placeholder(attributes)
        names = [f"c{at}" for at in range(len(columns))]
        rows = pa.table([one.values for one in columns.values()], names=names)
        if not columns or rows.nbytes > LOCAL_BYTES:
            return None
        fields = [
            {"name": name, "type": one.type, "nullable": True, "metadata": {}}
            for name, one in zip(names, columns.values(), strict=True)
        ]
        schema = StructType.fromJson({"type": "struct", "fields": fields})
        made = frame_of_rows(self._inner.session, rows, schema, LOCAL_BYTES)._jdf.queryExecution().analyzed()
        return self._inner.local(attributes, made.data()) if made.nodeName() == "LocalRelation" else None

    def ties(self, window: Path, rows: Step) -> DataFrame:
        """A row, if two rows of the window are equal in PARTITION BY and ORDER BY."""
        node = self._parts.node(window)
        values = [*each(node.partitionSpec()), *(one.child() for one in each(node.orderSpec()))]
        items = [self._inner.new_alias(one, f"v{at}") for at, one in enumerate(values)]
        frame = self._inner.analyzed_frame(self._inner.project(items, self._plan(rows)))
        return frame.groupBy(*frame.columns).count().where("count > 1").select("count").limit(1)

    def _plan(self, step: Step) -> Jvm:
        """Of each step once: many are parts of several others."""
        if id(step) not in self._plans:
            self._plans[id(step)] = (step, self._new_plan(step))
        return self._plans[id(step)][1]

    def _new_plan(self, step: Step) -> Jvm:
        match step:
            case Stored(node):
                return self._inner.replaced(self._parts.node(node), self._views)
            case OneRow():
                return self._inner.one_row()
            case ChangedRows(node, columns):
                return self._changed(node, columns, ChangedKind.BOTH)
            case RowsWithPast(node):
                whole = tuple(expr_id(one) for one in each(self._parts.node(node).output()))
                now = self._inner.replaced(self._parts.node(node), self._views)
                return self._inner.union([now, self._changed(node, whole, ChangedKind.PAST)])
            case Select(child, columns):
                below = self._plan(child)
                return self._inner.project([self._column(one) for one in columns], below)
            case RowsWhere(child, conditions):
                return self._inner.filter(self._all(conditions), self._plan(child))
            case RowsOverTime(child, node, places):
                return self._over_time(self._plan(child), node, places)
            case RowsOverValue(child, node, places, changes):
                return self._over_value(self._plan(child), node, places, changes)
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
            case Signed(child, columns, factors, sign, is_opposite):
                below = self._plan(child)
                signs = [self._attribute(one) for one in factors]
                value = self._inner.product_of_signs(signs, is_opposite=is_opposite)
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
        return self._plan_of_parts(step)

    def _plan_of_parts(self, step: Step) -> Jvm:
        """Of steps of nodes with a key. Some run jobs. Raises NoDelta."""
        match step:
            case NetChanges(child, columns, _, sign, is_opposite):
                frame = self.net(child).frame(self._inner.session, -1 if is_opposite else 1)
                return self._named(frame, columns, sign)
            case RealRows(child, columns):
                rows = self.frame(child).toDF(*(f"c{at}" for at in range(len(columns) + 1)))
                return self._named(repeated_rows(net_rows(rows)), columns)
            case InParts(child, values, parts):
                return self._in_parts(
                    self._plan(child), [self._parts.expression(one) for one in values], parts
                )
        raise AssertionError(step)

    def _over_time(self, rows: Jvm, projection: Path, places: Sequence[Place]) -> Jvm:
        assert self._elapsed is not None
        columns = each(self._parts.node((*projection, 0, 1)).output())
        return self._elapsed.differs(columns, self._values(projection, places), rows)

    def _over_value(self, rows: Jvm, projection: Path, places: Sequence[Place], changes: NetChanges) -> Jvm:
        found = self.net(changes.child)
        if not found.rows.num_rows:
            return self._inner.placeholder(rows.output())
        states = found.states()
        if states is None:
            return rows
        values = self._values(projection, places)
        columns = {  # as they stand in the values
            part.place: (self._parts.expression(part.place), changes.columns.index(part.identity))
            for _, value in values
            for part in value.walk()
            if part.is_attribute and part.identity in changes.columns
        }
        old, new = (
            [(one, self._inner.constant(texts[at], one)) for one, at in columns.values()] for texts in states
        )
        return differing_rows(self._inner, old, new, values, rows)

    def _values(self, projection: Path, places: Sequence[Place]) -> list[tuple[Jvm, Expression]]:
        """Without their names."""
        known = self._known.at(projection).fields["projectList"]
        found = []
        for one in places:
            item, value = known[one.item or 0], self._parts.expression(one)
            is_column = item.is_attribute
            found.append((value if is_column else value.child(), item if is_column else item.children[0]))
        return found

    def _named(self, frame: DataFrame, columns: Sequence[int], sign: int = 0) -> Jvm:
        """Columns of a frame under these ids, and its last one under that of the sign."""
        plan = frame._jdf.queryExecution().analyzed()
        found = each(plan.output())
        items = []
        for given, one in zip(found, columns, strict=not sign):
            attribute = self._attribute(one)
            items.append(self._inner.alias(given, attribute.name(), attribute.exprId()))
        if sign:
            items.append(self._new(found[-1], sign))
        return self._inner.project(items, plan)

    def _in_parts(self, plan: Jvm, values: Sequence[Jvm], parts: Step) -> Jvm:
        """Few keys are literals, by which files are pruned; several columns are joined besides."""
        if not values:
            changed = any(one.net.rows.num_rows for one in self._columns_of(parts))
            return plan if changed else self._inner.placeholder(plan.output())
        keys = self._collected.keys(parts, lambda: self._columns_of(parts) or self.frame(parts))
        if not keys.rows.num_rows:
            return self._inner.placeholder(plan.output())
        conditions, is_joined = [], len(values) > 1
        for at, value in enumerate(values):
            texts = keys.texts(at)
            if texts is None:
                is_joined = True
            else:
                conditions.append(self._inner.is_one_of(value, texts, or_null=keys.has_null(at)))
        if conditions:
            plan = self._inner.filter(self._inner.all_of(conditions), plan)
        if not is_joined:
            return plan
        chosen = keys.frame(self._inner.session)._jdf.queryExecution().analyzed()
        same = [
            self._inner.same_value(value, key)
            for value, key in zip(values, each(chosen.output()), strict=True)
        ]
        return self._inner.semi_join(plan, chosen, self._inner.all_of(same))

    def _columns_of(self, parts: Step) -> list[NetColumns]:
        """Keys that are columns of changed rows; none: some are expressions."""
        found = []
        for child in parts.children if isinstance(parts, Either) else ():
            match child:
                case Select(NetChanges(rows, columns), values) if all(
                    isinstance(one.source, int) for one in values
                ):
                    found.append(
                        NetColumns(self.net(rows), tuple(columns.index(one.source) for one in values))
                    )
                case _:
                    return []
        return found

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
        own = {expr_id(one): one for one in each(leaf.output())}
        table = next(one.table for one in self._known.changed if one.path == path)
        names = [str(own[one].name()) for one in columns]
        if table == RUN_TIME:
            assert self._elapsed is not None
            changes = self._elapsed.changed(names, kind)
        else:
            changes = self._changes(table, names, kind)
        found = each(changes.output())
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
        if source is not None and column.identity < 0:
            return self._new(self._attribute(source), column.identity)
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
