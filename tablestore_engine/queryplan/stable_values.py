"""Which expressions give the same value whenever they are evaluated over the same rows.

Three classes, by Catalyst's class names:
volatile           depends on the time, the session or chance: current_timestamp(), rand(), uuid()
order-dependent    depends on the order or the partitions of its rows: first(), collect_list(), row_number() with ties,
                   sums of floating-point numbers
stable             everything else

CHANGE     which functions differ between runs
INVARIANT  a class that Spark itself calls non-deterministic is never stable: `has_other_chance` covers unknown ones.
Source: Catalyst's `Expression.deterministic` and the rule ComputeCurrentTime of Spark 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tablestore_engine.queryplan.plan_nodes import Expression, PlanNode

VOLATILE = {
    "CurrentTimestamp": "current_timestamp()", "CurrentDate": "current_date()", "Now": "now()",
    "LocalTimestamp": "localtimestamp()", "CurrentTime": "current_time()", "CurrentUser": "current_user()",
    "CurrentCatalog": "current_catalog()", "CurrentPath": "current_path()",
    "CurrentDatabase": "current_database()", "Rand": "rand()",
    "Randn": "randn()", "RandStr": "randstr()", "Uniform": "uniform()", "Uuid": "uuid()", "Shuffle": "shuffle()",
    "MonotonicallyIncreasingID": "monotonically_increasing_id()", "SparkPartitionID": "spark_partition_id()",
    "InputFileName": "input_file_name()", "InputFileBlockStart": "input_file_block_start()",
    "InputFileBlockLength": "input_file_block_length()", "AesEncrypt": "aes_encrypt()",
}  # fmt: skip
ORDER_DEPENDENT = {
    "First": "first()", "Last": "last()", "AnyValue": "any_value()", "CollectList": "collect_list()",
    "CollectSet": "collect_set()", "ListAgg": "listagg()", "MaxBy": "max_by()", "MinBy": "min_by()", "Mode": "mode()",
    "ApproximatePercentile": "percentile_approx()", "HistogramNumeric": "histogram_numeric()",
    "RowNumber": "row_number()", "NTile": "ntile()", "Lag": "lag()", "Lead": "lead()", "NthValue": "nth_value()",
    "PythonUDAF": "a Python aggregate function", "ScalaUDAF": "an aggregate function of a user",
    "TypedAggregateExpression": "an aggregate function of a user",
}  # fmt: skip
EXACT_AGGREGATES = frozenset({"Count", "Max", "Min", "CountIf", "BoolAnd", "BoolOr", "BitAndAgg", "BitOrAgg"})
_OF_TIMES = ("date", "timestamp", "timestamp_ntz", "string")
_UNORDERED = frozenset(
    {"GlobalLimit", "LocalLimit", "LimitAndOffset", "Offset", "Tail", "Sample", "Deduplicate"}
)


def find_volatile(plan: PlanNode, followed: Collection[str] = ()) -> str | None:
    """The function that makes the result of a query another one each time; times in texts: spark/moving_times.
    `followed`: classes of functions that may be there.
    """
    for expression in _all_expressions(plan):
        name = _volatile_name(expression)
        if name is not None and expression.kind not in followed:
            return name
    return next(("TABLESAMPLE" for node in plan.walk_all() if node.kind == "Sample"), None)


def has_known_chance(plan: PlanNode) -> bool:
    """Whether a function that Spark calls non-deterministic is one of the known ones."""
    return any(
        _volatile_name(one) is not None or one.kind in ORDER_DEPENDENT for one in _all_expressions(plan)
    )


def is_stable(expression: Expression, *, has_moving_time: bool, is_ordered: bool = False) -> bool:
    """Whether it gives the same value for the same row in every run. `has_moving_time`: each constant of a time or a
    text may be one that moves. `is_ordered`: functions that depend on the order of rows have one that is given.
    """
    return all(
        _volatile_name(one) is None
        and (is_ordered or one.kind not in ORDER_DEPENDENT)
        and not one.plans
        and not (has_moving_time and _may_be_time(one))
        for one in expression.walk()
    )


def order_dependent_name(expression: Expression) -> str | None:
    """The function in it whose value depends on the order of rows."""
    return next((ORDER_DEPENDENT[one.kind] for one in expression.walk() if one.kind in ORDER_DEPENDENT), None)


def is_reproducible(plan: PlanNode, *, has_moving_time: bool) -> bool:
    """Whether a plan over unchanged tables gives exactly the rows that it gave in an earlier run."""
    return all(is_reproducible_node(node, has_moving_time=has_moving_time) for node in plan.walk_all())


def is_reproducible_node(node: PlanNode, *, has_moving_time: bool) -> bool:
    """Of one node and its own expressions."""
    if node.kind in _UNORDERED or node.kind == "Window":
        return False
    for expression in node.expressions:
        for part in expression.walk():
            if _volatile_name(part) is not None or part.kind in ORDER_DEPENDENT:
                return False
            if has_moving_time and _may_be_time(part):
                return False
            if part.kind == "AggregateExpression" and not _is_exact(part):
                return False
    return True


def _is_exact(aggregate: Expression) -> bool:
    """Whether the value does not depend on the order in which rows are added up."""
    function = aggregate.children[0]
    if function.kind in EXACT_AGGREGATES:
        return True
    return function.kind == "Sum" and all(
        part.type not in ("float", "double")
        for part in function.walk()
        if part.is_attribute or part.kind == "Cast"
    )


def _may_be_time(expression: Expression) -> bool:
    return expression.type in _OF_TIMES and not expression.references


def _volatile_name(expression: Expression) -> str | None:
    if expression.kind in ("PythonUDF", "ScalaUDF") and expression.facts.get("udfDeterministic") is False:
        return f"{expression.name or 'a function of a user'}()"
    return VOLATILE.get(expression.kind)


def _all_expressions(plan: PlanNode) -> Iterator[Expression]:
    for node in plan.walk_all():
        for expression in node.expressions:
            yield from expression.walk()
