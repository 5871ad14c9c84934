"""The rows of a grouped query from the state of its groups: Spark's own expressions over stored partial aggregates.

INVARIANT  every expression is the query's, as Spark analyzed it, with columns in place of aggregate functions. An
           average is Spark's own final expression over its buffers: no arithmetic of Spark is written a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tablestore_engine.queryplan.delta_root import COUNT, SUM
from tablestore_engine.queryplan.equal_values import is_float
from tablestore_engine.queryplan.group_state import AVERAGE, KeptAggregate, StateRoot
from tablestore_engine.queryplan.plan_nodes import Expression
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.delta_query import digits_of, scale_of
from tablestore_engine.spark.merged_groups import Mask, fits_in
from tablestore_engine.spark.spark_internals import Jvm
from tablestore_engine.spark.traced_plan import TracedPlan

_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_MESSAGE_BYTES = 8 << 20  # of groups whose rows are values of a plan
_EXACT_DOUBLE = 1 << 53  # sums of integers are exact in DOUBLE as long as no partial sum is larger


@dataclass(frozen=True)
class StateResults:
    """Of one query."""

    plan: TracedPlan
    root: StateRoot

    def frame(self, session: SparkSession, states: pa.Table) -> DataFrame:
        """Rows of the query for these groups, whose values have room (`unknown`)."""
        columns = self._states(session, states)
        output = columns._jdf.queryExecution().analyzed().output()
        attributes = {str((one := output.apply(at)).name()): one for at in range(output.size())}
        inner, replaced = self.plan.inner, _Replaced(self.plan, self.root, attributes)
        items = [replaced.item(one) for one in self.root.aggregate.fields["aggregateExpressions"]]
        made = inner.project(items, columns._jdf.queryExecution().analyzed())
        for path in self.root.above:
            made = inner.on_children(self.plan.parts.node(path), [made])
        return inner.analyzed_frame(made)

    def unknown(self, states: pa.Table) -> Mask:
        """Groups with a sum that has no room, or an average that Spark's order of adding may change."""
        found = np.zeros(states.num_rows, dtype=bool)
        for one in self.root.kept.values():
            if one.how not in (SUM, AVERAGE):
                continue
            total = states.column(f"v{one.slot}").combine_chunks()
            if one.negatives is None:
                found |= ~fits_in(total.cast(_wide(total)), _arrow_type(one.type))
                continue
            below = states.column(f"v{one.negatives}").combine_chunks().cast(_wide(total))
            magnitude = pc.subtract(total.cast(_wide(total)), pc.add(below, below))
            limit = pa.scalar(_EXACT_DOUBLE, pa.int64()).cast(pa.decimal128(38, 0)).cast(magnitude.type)
            found |= ~_true(pc.less_equal(magnitude, limit))
        return found

    def _states(self, session: SparkSession, states: pa.Table) -> DataFrame:
        """Columns `k<slot>` of the key, `a<n>` and `b<n>` of each aggregate of the query."""
        columns: list[Any] = []
        fields: list[dict[str, Any]] = []
        items: list[str] = []

        def add(name: str, type_: object, values: Any, shown: str) -> None:  # noqa: ANN401 - Arrow's arrays
            fields.append({"name": name, "type": type_, "nullable": True, "metadata": {}})
            columns.append(values)
            items.append(shown)

        for at in range(self.root.width):
            add(f"k{at}", self.root.slots[at].type, states.column(f"g{at}"), f"k{at}")
        for number, one in enumerate(self.root.kept.values()):
            self._add_kept(states, number, one, add)
        if not fields:
            return session.range(states.num_rows).selectExpr("1 as k")
        schema = StructType.fromJson({"type": "struct", "fields": fields})
        table = pa.table(columns, names=schema.names)
        return frame_of_rows(session, table, schema, _MESSAGE_BYTES).selectExpr(*items)

    def _add_kept(self, states: pa.Table, number: int, one: KeptAggregate, add: Callable[..., None]) -> None:
        slot, value = self.root.slots[one.slot], states.column(f"v{one.slot}")
        name = f"a{number}"
        if one.how in (SUM, AVERAGE):
            count = states.column(f"m{one.slot}")
            nothing = None if one.how == SUM else 0
            value = pc.if_else(pc.equal(count, 0), pa.scalar(nothing, pa.int64()).cast(value.type), value)
            wide = f"decimal(38,{scale_of(slot.type)})"
            add(name, wide, value, f"cast({name} as {_sql_name(one.type)}) as {name}")
            if one.how == AVERAGE:
                add(f"b{number}", "long", count, f"b{number}")
        else:
            add(name, "long" if one.how == COUNT else slot.type, value, name)


class _Replaced:
    """Expressions of the Aggregate over the columns of its state."""

    def __init__(self, plan: TracedPlan, root: StateRoot, attributes: dict[str, Jvm]) -> None:
        self._plan, self._root, self._attributes = plan, root, attributes
        self._numbers = {place: number for number, place in enumerate(root.kept)}

    def item(self, item: Expression) -> Jvm:
        """Under its own name and ExprId."""
        known = self._plan.parts.expression(item.place)
        if not item.is_attribute:
            return self._over(item)
        return self._plan.inner.alias(self._over(item), known.name(), known.exprId())

    def _over(self, part: Expression) -> Jvm:
        if part.kind == "AggregateExpression":
            return self._value(part)
        for group, slot in self._root.groups:
            if part.is_same(group):
                return self._attributes[f"k{slot}"]
        known = self._plan.parts.expression(part.place)
        if not part.children:
            return known
        return self._plan.inner.over(known, [self._over(child) for child in part.children])

    def _value(self, aggregate: Expression) -> Jvm:
        number = self._numbers[aggregate.place]
        value = self._attributes[f"a{number}"]
        if self._root.kept[aggregate.place].how != AVERAGE:
            return value
        function = self._plan.parts.expression(aggregate.children[0].place)
        return self._plan.inner.evaluated(function, [value, self._attributes[f"b{number}"]])


def _sql_name(type_: object) -> str:
    return _SQL_NAMES.get(str(type_), str(type_))


def _arrow_type(type_: object) -> pa.DataType:
    digits = digits_of(type_)
    if digits is not None:
        return pa.decimal128(digits, scale_of(type_))
    assert not is_float(type_)
    return pa.int64()


def _wide(values: pa.Array) -> pa.DataType:
    return pa.decimal256(60, values.type.scale)


def _true(values: Any) -> Mask:  # noqa: ANN401 - an array or a chunked one
    return np.asarray(pc.fill_null(values, False), dtype=bool)
