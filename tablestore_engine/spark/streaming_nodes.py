"""Which operators over a stream Spark's streaming is asked to run: a list, not what its checker happens to let through.

find_unstreamable   a streaming frame → the clause that is refused, or None
Rule    Spark's UnsupportedOperationChecker accepts EXCEPT with a table, LIMIT, recursive CTEs and joins of streams
        without an equality. The first depends on rows of the table that change, the second on the order in which rows
        came, and the last two fail when the query starts.
INVARIANT  an operator that is not in the list is refused: those of a new Spark too.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tablestore_engine.spark.plan_expressions import Jvm, each
from tablestore_engine.spark.stream_outline import CLAUSES

_STREAMED = frozenset({
    "Project", "Filter", "SubqueryAlias", "View", "WithCTE", "CTERelationDef", "CTERelationRef", "PipeOperator",
    "Union", "Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Join", "LateralJoin", "Generate",
    "Expand", "EventTimeWatermark", "UpdateEventTimeWatermarkColumn", "Repartition", "RepartitionByExpression",
    "RebalancePartitions", "ResolvedHint", "UnresolvedHint",
})  # fmt: skip
_GROUPING_ID = "spark_grouping_id"
_JOIN_KEYS = "org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$"


def find_unstreamable(frame: DataFrame) -> str | None:
    """REQUIRES that Spark's checker accepts the plan."""
    plan = frame._jdf.queryExecution().analyzed()
    return _look(plan) or _find_unequal_join(frame, plan)


def _look(plan: Jvm) -> str | None:
    if not plan.isStreaming():
        return None
    kind = plan.nodeName()
    children = each(plan.children())
    if kind not in _STREAMED and children:  # a leaf that streams is the source
        return CLAUSES.get(kind, f"{kind} in Spark's plan")
    if kind == "Aggregate" and any(one.sql() == _GROUPING_ID for one in each(plan.groupingExpressions())):
        return "GROUPING SETS, ROLLUP or CUBE (a NULL group is no key)"
    return next(filter(None, map(_look, children)), None)


def _find_unequal_join(frame: DataFrame, plan: Jvm) -> str | None:
    """A condition may come from WHERE: the optimizer moves it into the join."""
    jvm: Any = frame.sparkSession._jvm
    keys = getattr(getattr(jvm, _JOIN_KEYS), "MODULE$")
    try:
        optimized = frame.sparkSession._jsparkSession.sessionState().optimizer().execute(plan)
    except (PySparkException, Py4JError):
        return "a join or an expression that Spark cannot plan over a stream"
    return "a join of two streams without an equality" if _has_unequal_join(optimized, keys) else None


def _has_unequal_join(plan: Jvm, keys: Jvm) -> bool:
    children = each(plan.children())
    if (
        plan.nodeName() == "Join"
        and all(one.isStreaming() for one in children)
        and keys.unapply(plan).isEmpty()
    ):
        return True
    return any(_has_unequal_join(one, keys) for one in children)
