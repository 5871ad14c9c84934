"""Which expressions give the same value whenever they are evaluated over the same rows.

Three classes, by Catalyst's class names:
volatile           depends on the time, the session or chance: current_timestamp(), rand(), uuid()
order-dependent    depends on the order or the partitions of its rows: first(), collect_list(), row_number() with ties,
                   sums of floating-point numbers
stable             everything else

INVARIANT  a class that Spark itself calls non-deterministic is never stable: `has_other_chance` covers unknown ones.
Source: Catalyst's `Expression.deterministic` and the rule ComputeCurrentTime of Spark 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tablestore_engine.queryplan.plan_nodes import Expression, PlanNode

VOLATILE = {
    "CurrentTimestamp": "current_timestamp()", "CurrentDate": "current_date()", "Now": "now()",
    "LocalTimestamp": "localtimestamp()", "CurrentTime": "current_time()", "CurrentUser": "current_user()",
    "CurrentCatalog": "current_catalog()", "CurrentDatabase": "current_database()", "Rand": "rand()",
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
_EXACT_AGGREGATES = frozenset(
    {"Count", "Max", "Min", "CountIf", "BoolAnd", "BoolOr", "BitAndAgg", "BitOrAgg"}
)
_MOVING_TEXT = re.compile(r"\s*(?:now|today|yesterday|tomorrow)\b", re.IGNORECASE)
# Spark's parser replaces these literals by the time of the run. A text that does not begin as a date does counts: it
# may be escaped or joined from parts. As in Spark, \r or \n ends a line comment, and \ before \n continues it.
_MOVING_LITERAL = re.compile(
    r"\b(?:date|timestamp(?:_ltz|_ntz)?)(?:\s|/\*.*?\*/|--(?:\\\n|[^\r\n])*[\r\n])*"
    r"r?(['\"])(?!\s*[-+]?\d|\s*epoch\b)[^'\"]*\1",
    re.IGNORECASE | re.DOTALL,
)
_DATES = ("date", "timestamp", "timestamp_ntz")
_UNORDERED = frozenset(
    {"GlobalLimit", "LocalLimit", "LimitAndOffset", "Offset", "Tail", "Sample", "Deduplicate"}
)


def find_volatile(plan: PlanNode, texts: Iterable[str]) -> str | None:
    """The function that makes the result of a query another one each time. `texts`: of the query and of all views and
    functions in it, for literals like `timestamp 'now'`, which the parser replaces.
    """
    for text in texts:
        literal = _MOVING_LITERAL.search(text)
        if literal is not None:
            return literal[0]
    for expression in _all_expressions(plan):
        name = _volatile_name(expression)
        if name is not None:
            return name
    return next(("TABLESAMPLE" for node in plan.walk_all() if node.kind == "Sample"), None)


def has_known_chance(plan: PlanNode) -> bool:
    """Whether a function that Spark calls non-deterministic is one of the known ones."""
    return any(
        _volatile_name(one) is not None or one.kind in ORDER_DEPENDENT for one in _all_expressions(plan)
    )


def is_stable(expression: Expression) -> bool:
    """Whether it gives the same value for the same row in every run."""
    return all(
        _volatile_name(one) is None and one.kind not in ORDER_DEPENDENT and not one.plans
        for one in expression.walk()
    )


def order_dependent_name(expression: Expression) -> str | None:
    """The function in it whose value depends on the order of rows."""
    return next((ORDER_DEPENDENT[one.kind] for one in expression.walk() if one.kind in ORDER_DEPENDENT), None)


def is_reproducible(plan: PlanNode) -> bool:
    """Whether a plan over unchanged tables gives exactly the rows that it gave in an earlier run."""
    for node in plan.walk_all():
        if node.kind in _UNORDERED or node.kind == "Window":
            return False
        for expression in node.expressions:
            for part in expression.walk():
                if _volatile_name(part) is not None or part.kind in ORDER_DEPENDENT:
                    return False
                if part.kind == "AggregateExpression" and not _is_exact(part):
                    return False
    return True


def _is_exact(aggregate: Expression) -> bool:
    """Whether the value does not depend on the order in which rows are added up."""
    function = aggregate.children[0]
    if function.kind in _EXACT_AGGREGATES:
        return True
    return function.kind == "Sum" and all(
        part.type not in ("float", "double")
        for part in function.walk()
        if part.is_attribute or part.kind == "Cast"
    )


def _volatile_name(expression: Expression) -> str | None:
    read_as = _time_type(expression)
    if read_as is not None:
        text = expression.children[0]
        if text.kind == "Literal" and _MOVING_TEXT.match(str(text.facts.get("value", ""))):
            return f"cast('{text.facts['value']}' as {read_as})"
        if _is_computed_text(text):
            return f"a computed text that is read as {read_as}"
    if expression.kind in ("PythonUDF", "ScalaUDF") and expression.facts.get("udfDeterministic") is False:
        return f"{expression.name or 'a function of a user'}()"
    return VOLATILE.get(expression.kind)


def _time_type(expression: Expression) -> str | None:
    """The type as which it reads its first child."""
    if expression.kind == "ParseToDate":
        return "date"
    is_read = expression.kind == "ParseToTimestamp" or (
        expression.kind == "Cast" and expression.type in _DATES
    )
    return str(expression.type) if is_read else None


def _is_computed_text(expression: Expression) -> bool:
    """Whether it may be a text without a column: Spark reads `now` in it as the time of the run."""
    if expression.kind == "Literal" or (expression.kind == "Cast" and expression.type != "string"):
        return False
    is_of_rows = any(one.plans or one.kind == "NamedLambdaVariable" for one in expression.walk())
    return not expression.references and not is_of_rows


def _all_expressions(plan: PlanNode) -> Iterator[Expression]:
    for node in plan.walk_all():
        for expression in node.expressions:
            yield from expression.walk()
