"""Times of the run that a query names by a text: `timestamp 'now'`, `cast(lower('TODAY') as date)`, `to_date('now')`.

Spark puts the time in their place twice, and both of its ways are asked here:
typed literals    its parser does; Spark's lexer finds them in the texts of the query, its views and functions
casts             its optimizer's rule SpecialDatetimeValues does, for texts that it can compute without rows

INVARIANT  the rule alone says which texts are times: a typed literal is asked as a cast of the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.plan_expressions import Jvm, each
from tablestore_engine.spark.run_time_plan import at_moment
from tablestore_engine.spark.session_definitions import read_functions
from tablestore_engine.spark.spark_internals import SparkInner

_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")  # tokens of Spark's lexer
_TEXTS = ("STRING_LITERAL", "DOUBLEQUOTED_STRING")
_VIEW_LINE = re.compile(r"[\s:+-]*View\b")
_HAS_TYPE = re.compile(r"\b(?:date|timestamp)", re.IGNORECASE)  # of all texts that have such a token


def find_moving_time(session: SparkSession, analyzed: Jvm, texts: Iterable[str]) -> str | None:
    """The first, as SQL. `texts`: of the query, and of the views and functions of the warehouse that it uses."""
    plans = [analyzed, *each(analyzed.subqueriesAll())]
    known = [*texts, *(one for plan in plans for one in _view_texts(plan))]
    functions = (line for lines in read_functions(session, known) for line in lines)
    for text in dict.fromkeys([*known, *functions]):  # each line has its own quotes
        if "${" in text:
            return "a text with ${…}, which settings of the session replace"
        for kind, literal in _typed_literals(session, text):
            if _is_moving(session, kind, literal):
                return f"{kind} {literal}"
    return next(filter(None, (_moving_cast(session, plan) for plan in plans)), None)


def _view_texts(plan: Jvm) -> Iterator[str]:
    """Nodes are found by the numbers of their lines, which one call gives. A text in the plan may have lines of its
    own, and a long plan may be cut: then node by node.
    """
    lines = str(plan.treeString()).split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    if plan.apply(len(lines) - 1) is None or plan.apply(len(lines)) is not None:
        yield from _views_below(plan)
        return
    for view in (plan.apply(at) for at, line in enumerate(lines) if _VIEW_LINE.match(line)):
        if view.nodeName() == "View" and view.desc().viewText().isDefined():
            yield str(view.desc().viewText().get())


def _views_below(plan: Jvm) -> Iterator[str]:
    if plan.nodeName() == "View" and plan.desc().viewText().isDefined():
        yield str(plan.desc().viewText().get())
    for child in each(plan.children()):
        yield from _views_below(child)


# ---- typed literals ----------------------------------------------------------------------------------------


def _typed_literals(session: SparkSession, text: str) -> Iterator[tuple[str, str]]:
    """(type, literal or literals side by side), as they are written."""
    if _HAS_TYPE.search(text) is None:
        return
    jvm: Any = session._jvm
    parser, antlr = jvm.org.apache.spark.sql.catalyst.parser, jvm.org.antlr.v4.runtime
    lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(antlr.CharStreams.fromString(text)))
    lexer.removeErrorListeners()  # they print what is no token
    tokens = antlr.CommonTokenStream(lexer)
    tokens.fill()
    wanted = jvm.java.util.HashSet()
    for name in _TYPES:
        wanted.add(getattr(parser.SqlBaseLexer, name))
    literals = {int(getattr(parser.SqlBaseLexer, name)) for name in _TEXTS}
    for found in tokens.getTokens(0, tokens.size() - 1, wanted) or ():
        following, index = [], int(found.getTokenIndex()) + 1
        while (token := tokens.get(index)).getChannel() != 0 or int(token.getType()) in literals:
            following += [str(token.getText())] if token.getChannel() == 0 else []
            index += 1
        if following:
            yield str(found.getText()).lower(), " ".join(following)


def _is_moving(session: SparkSession, kind: str, literal: str) -> bool:
    try:
        cast = session.sql(f"select cast({literal} as {kind})")
    except PySparkException:
        return True  # not a literal of this session: nothing is known of it
    return _moving_cast(session, cast._jdf.queryExecution().analyzed()) is not None


# ---- casts -------------------------------------------------------------------------------------------------


def find_unknown_time(inner: PlanBuilderNodes, analyzed: Jvm) -> str | None:
    """SQL of what Spark's rule ComputeCurrentTime replaces besides the functions of the time that are known, such as a
    cast of a TIME to a timestamp, which takes the date of today.
    """
    fixed = inner.with_session_zone(at_moment(inner, analyzed, 0))
    after = inner.without_time(fixed)
    if bool(after.fastEquals(fixed)):
        return None
    return _first_difference([fixed], [after]) or "a function of the time"


def _moving_cast(session: SparkSession, plan: Jvm) -> str | None:
    """Without the plans of its subqueries."""
    inner = SparkInner.of(session)
    before = inner.rule("ReplaceExpressions").apply(plan)  # to_date() is a cast
    after = inner.rule("SpecialDatetimeValues").apply(before)
    return None if bool(after.fastEquals(before)) else _first_difference([before], [after])


def _first_difference(before: Sequence[Jvm], after: Sequence[Jvm]) -> str | None:
    """SQL of the first expression that the rule replaced, in nodes side by side."""
    for one, other in zip(before, after, strict=True):
        if bool(one.fastEquals(other)):
            continue
        for old, new in zip(each(one.expressions()), each(other.expressions()), strict=True):
            if not bool(old.fastEquals(new)):
                return _replaced(old, new)
        return _first_difference(each(one.children()), each(other.children()))
    return None


def _replaced(old: Jvm, new: Jvm) -> str:
    parts, others = each(old.children()), each(new.children())
    pairs = zip(parts, others, strict=True) if len(parts) == len(others) else ()
    deeper = next(((one, other) for one, other in pairs if not bool(one.fastEquals(other))), None)
    return str(old.sql()) if deeper is None else _replaced(*deeper)
