"""A query over few rows in one task, instead of a job for each of its shuffles and broadcasts.

CHANGE     up to how many bytes of files a query reads in one task
Steps      each leaf and each UNION in one partition: no node needs a shuffle → sorts instead of broadcasts, and no
           generated code, in a session of our own that has the settings of the caller's
INVARIANT  the rows are those of the same analyzed plan. Settings differ that change how a query runs, no others, and
           the caller's session keeps its own.
INVARIANT  no value depends on the order in which rows are read, which is another one here. Sums of floating-point
           numbers, averages of integers, first(), lists and texts with a collation keep the session's way: so
           `equals_full_refresh` holds to the bit.
INVARIANT  what may take long over few rows keeps its tasks: functions of users, and joins of many rows without an
           equality.
WHY        of a query over a thousand rows nine tenths are jobs, and code that Spark makes for it and compiles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.queryplan.keyed_parts import SUMS
from tablestore_engine.queryplan.stable_values import EXACT_AGGREGATES
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.plan_expressions import each
from tablestore_engine.spark.plan_outline import numbered_nodes
from tablestore_engine.spark.session import leave_session
from tablestore_engine.spark.spark_internals import Jvm

SMALL_BYTES = 1 << 20
FEW_ROWS = 100  # of one side of a join without an equality, known before it runs
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # a job for each stage
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a job for each side
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_PUSHED = (
    "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin"  # below the one partition of a leaf
)
_SLOW = re.compile(
    r"Python|Pandas|InArrow|Script|MapPartitions|MapElements|MapGroups|CoGroup|UDTF|TypedFilter"
    r"|Generate (?!explode\(array_repeat\(0, cast\(n#)"  # that of net_rows gives few rows
)
_SHUFFLED = re.compile(
    r"(?:Lateral)?Join|Aggregate|Window|Distinct|Deduplicate|Intersect|Except|Sort|.*\b(?:list|exists)#"
)
_EQUAL = re.compile(" = | <=> ")
_ORDER_FREE = EXACT_AGGREGATES | SUMS | {"AggregateExpression"}
_FUNCTION = re.compile(r'"class":"[\w.]*\.aggregate\.(\w+)"')
_FLOATS, _INTEGERS = re.compile('"(?:float|double)"'), re.compile('"(?:byte|short|integer|long)"')  # types
_FIRST_OF_EQUALS = re.compile(r"Deduplicate|.*\bcollate\b", re.IGNORECASE)
Numbered = tuple[int, int, str]  # number, depth and text of a node
_PASSED = frozenset({"Union", "Project", "Filter", "SubqueryAlias", "View"})


@dataclass(frozen=True)
class _OneTaskSession:
    """`settings`: of the caller's session, as they are at any time; `seen`: as they were when `session` was made."""

    settings: Jvm
    seen: Jvm
    session: SparkSession


def in_one_task(frame: DataFrame, *, has_ties: bool) -> DataFrame:
    """The same rows, for a frame that is collected at once; the very frame where it takes one job anyway, one task may
    take long, or a value may depend on the order of rows. `has_ties`: rows of a window may be equal in ORDER BY.
    """
    try:
        inner = PlanBuilderNodes.of(frame.sparkSession)
        plan = frame._jdf.queryExecution().analyzed()
        nodes = numbered_nodes(str(plan.numberedTreeString()))
        if any(text == "WithCTE" for _, _, text in nodes):
            plan = inner.inlined(plan, is_always=False)
            nodes = numbered_nodes(str(plan.numberedTreeString()))
        leaves = [plan.p(number) for number in _leaves(nodes)]
        if not any(_SHUFFLED.match(text) for _, _, text in nodes) or not _is_small(inner, plan, leaves):
            return frame
        if any(
            _is_slow(plan, number, text) or _is_ordered(plan, number, text, has_ties=has_ties)
            for number, _, text in nodes
        ):
            return frame
        for number in reversed(_unions(nodes)):
            plan = inner.in_one_partition(plan, [plan.p(number)])  # the numbers before it stay
        plan = inner.in_one_partition(plan, leaves)
        return PlanBuilderNodes.of(_own_session(frame.sparkSession)).frame(plan)
    except (PySparkException, Py4JError, LookupError, TypeError, AttributeError):
        check_connected()
        return frame


def _is_slow(plan: Jvm, number: int, text: str) -> bool:
    if not text.startswith(("Join ", "LateralJoin ")) or _EQUAL.search(text):
        return _SLOW.search(text) is not None
    sizes = [side.maxRows() for side in each(plan.p(number).children())]
    return not any(one.isDefined() and one.get() <= FEW_ROWS for one in sizes)


def _is_ordered(plan: Jvm, number: int, text: str, *, has_ties: bool) -> bool:
    """Whether values of a node may depend on the order of its rows."""
    if text.startswith("Aggregate "):
        values = plan.p(number).aggregateExpressions()
    elif text.startswith("Window "):
        if has_ties:
            return True
        values = plan.p(number).windowExpressions()
    else:
        return _FIRST_OF_EQUALS.match(text) is not None
    return not all(map(_is_order_free, (str(one.toJSON()) for one in each(values))))


def _is_order_free(value: str) -> bool:
    functions = set(_FUNCTION.findall(value))
    if not functions:
        return True
    is_exact = not _FLOATS.search(value) and not ("Average" in functions and _INTEGERS.search(value))
    return is_exact and functions <= _ORDER_FREE


def _is_small(inner: PlanBuilderNodes, plan: Jvm, leaves: Sequence[Jvm]) -> bool:
    if inner.has_user_functions(plan):
        return False
    return int(str(inner.union(leaves).stats().sizeInBytes())) <= SMALL_BYTES


def _leaves(nodes: Sequence[Numbered]) -> list[int]:
    """Numbers of leaves, in subqueries too; not of one row, which the optimizer puts in place of its query."""
    following = [*(depth for _, depth, _ in nodes[1:]), 0]
    return [
        number
        for (number, depth, text), after in zip(nodes, following, strict=True)
        if after <= depth and text != "OneRowRelation"
    ]


def _unions(nodes: Sequence[Numbered]) -> list[int]:
    """Numbers of those that are not children of others, which Spark makes one of."""
    found, above = list[int](), list[tuple[int, bool]]()
    for number, depth, text in nodes:
        while above and above[-1][0] >= depth:
            above.pop()
        kind, is_inside = text.partition(" ")[0], bool(above) and above[-1][1]
        if kind == "Union" and not is_inside:
            found.append(number)
        above.append((depth, kind in _PASSED and (is_inside or kind == "Union")))
    return found


def _own_session(session: SparkSession) -> SparkSession:
    """With the caller's settings as they are now."""
    known: _OneTaskSession | None = vars(session).get("_tablestore_single")
    if known is None or not known.settings.equals(known.seen):
        settings = session._jsparkSession.sessionState().conf().settings()
        if known is not None:
            leave_session(known.session._jsparkSession)
        seen = PlanBuilderNodes.of(session).copied_map(settings)
        own = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
        excluded = ",".join(filter(None, [own.conf.get(_EXCLUDED, ""), _PUSHED]))
        for name, value in {**_SETTINGS, _EXCLUDED: excluded}.items():
            own.conf.set(name, value)
        known = vars(session)["_tablestore_single"] = _OneTaskSession(settings, seen, own)
    return known.session
