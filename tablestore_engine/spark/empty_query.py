"""When a query gives no rows, from one analysis of it; whether that still holds is asked without Spark.

INVARIANT  a proof counts while every name of the query means what it meant: the same columns of a table, the same text
           of a view or function. Rows are no part of it: they are looked up each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tablestore_engine.catalog.resolved_names import (
    Meaning,
    Overrides,
    ResolvedFunction,
    ResolvedTable,
    ResolvedView,
)
from tablestore_engine.format.data_type import DataField
from tablestore_engine.queryplan.empty_result import EmptyIf, find_empty_condition
from tablestore_engine.spark.incoming_frame import frame_fields
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.traced_plan import TracedPlan


@dataclass(frozen=True)
class EmptyQuery:
    """`fields`: columns of the query. `meanings`: what its names meant, in lower case."""

    condition: EmptyIf
    fields: tuple[DataField, ...]
    meanings: Mapping[tuple[str, str], Meaning]


def prove_empty(resolver: Resolver, sql: str, overrides: Overrides) -> EmptyQuery | None:
    """None when nothing is proven. Raises what Spark's analysis raises. REQUIRES Resolver.in_use()."""
    frame, names = resolver.whole_query(sql, overrides)
    try:
        plan = TracedPlan(PlanBuilderNodes.of(resolver.session), frame, names)
        condition = find_empty_condition(plan.root, plan.tables)
    except (PySparkException, Py4JError, LookupError, TypeError, RecursionError):
        check_connected()
        return None  # another Spark has other rules or another JSON
    if condition is None:
        return None
    return EmptyQuery(
        condition, frame_fields(frame), {key: one for key, one in names.items() if one is not None}
    )


def means_the_same(before: Meaning, now: Meaning | None) -> bool:
    """Whether a name has the same columns or the same text."""
    if isinstance(before, ResolvedTable):
        return isinstance(now, ResolvedTable) and before.schema.fields == now.schema.fields
    if isinstance(before, ResolvedView):
        return isinstance(now, ResolvedView) and before.sql == now.sql
    return isinstance(now, ResolvedFunction) and before.sql == now.sql
