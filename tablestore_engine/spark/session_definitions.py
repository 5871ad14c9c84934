"""What a query means by names that live in the session alone: temporary views and functions, variables, code of users.

INVARIANT  each such name is in `texts` by its content, or `clause` says what cannot be written down: nothing is taken
           for known by its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tablestore_engine.queryplan.plan_nodes import PlanNode
from tablestore_engine.sql.scanner import quote_name

# Spark's classes of functions whose code Spark does not show: Python, Scala, Java, Hive, functions of other catalogs
USER_CODE = re.compile(
    r"UD[AT]?F|TypedAggregate|ScalaAggregator|ApplyFunctionExpression|V2Aggregator|PythonFunc"
)
_UNSTABLE_LINES = ("Create Time:", "Owner:")  # of DESCRIBE FUNCTION: another one after each CREATE OR REPLACE
Name = tuple[str, str]


@dataclass(frozen=True)
class SessionDefinitions:
    """`clause`: what the query uses that has no text, in the words of a message; None: nothing."""

    texts: tuple[str, ...] = ()
    clause: str | None = None


def read_definitions(
    session: SparkSession, plan: PlanNode, texts: Sequence[str], known: Collection[Name]
) -> SessionDefinitions:
    """`texts`: of the query and of the stored views and functions that it uses. `known`: names of the warehouse that
    the query names, in lower case.
    """
    views = list(_views(plan, known))
    found = [
        f"view {name}: {text} {_view_properties(session, desc) if is_temporary else ''}"
        for name, text, desc, is_temporary in views
    ]
    variables = sorted(set(_variables(plan)))
    searched = [*texts, *(text for _, text, _, _ in views if text)]
    is_computed = any("identifier" in text.lower() for text in searched)
    found += [f"variable {one}" for one in variables]
    found += ["\n".join(lines) for lines in read_functions(session, searched)]
    return SessionDefinitions(
        tuple(sorted(set(found))), _clause(session, plan, views, is_computed=is_computed)
    )


View = tuple[str, str | None, Any, bool]  # name, text, Spark's description as JSON, whether it is temporary


def _clause(session: SparkSession, plan: PlanNode, views: Sequence[View], *, is_computed: bool) -> str | None:
    for name, text, _, _ in views:
        if text is None:
            return f"rows of a DataFrame ({name}), whose changes are not recorded"
    for node in plan.walk_all():
        kinds = [node.kind, *(part.kind for one in node.expressions for part in one.walk())]
        code = next((kind for kind in kinds if USER_CODE.search(kind)), None)
        if code is not None:
            return f"a function of a user ({code}), whose code is not recorded"
    if is_computed and not _catalog(session, "catalogManager").tempVariableManager().isEmpty():
        return "IDENTIFIER(), which session variables can change"
    return None


def _views(plan: PlanNode, known: Collection[Name]) -> Iterator[View]:
    """Those that are not the warehouse's."""
    for node in plan.walk_all():
        if node.kind != "View":
            continue
        desc = node.facts["desc"]
        named = desc["identifier"]
        database, table = str(named.get("database", "")), str(named["table"])
        if (database.lower(), table.lower()) not in known:
            shown = f"{database}.{table}" if database else table
            yield shown, desc.get("viewText"), named, bool(node.facts.get("isTempView"))


def _view_properties(session: SparkSession, named: Any) -> str:  # noqa: ANN401 - JSON
    """Settings that the view was made with: they go before the session's when its text is read."""
    jvm: Any = session._jvm
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(
        named["table"], jvm.scala.Option.apply(named.get("database"))
    )
    described = _catalog(session, "catalog").getTempViewOrPermanentTableMetadata(identifier)
    properties = described.properties().toSeq()
    return "; ".join(sorted(str(properties.apply(number)) for number in range(properties.size())))


def _variables(plan: PlanNode) -> Iterator[str]:
    for node in plan.walk_all():
        for expression in node.expressions:
            for part in expression.walk():
                if part.kind == "VariableReference":
                    facts = {key: part.facts.get(key) for key in ("originalNameParts", "varDef")}
                    yield json.dumps(facts, sort_keys=True, default=str)


def read_path(session: SparkSession) -> tuple[str, ...]:
    """What SET PATH has set in the session: where names of one part are looked for; empty by default."""
    manager = _catalog(session, "catalogManager")
    if "storedSessionPathEntries" not in dir(manager) or manager.storedSessionPathEntries().isEmpty():
        return ()  # Spark 4.1 has no paths
    return (f"path {manager.storedSessionPathEntries().get()}",)


def read_functions(session: SparkSession, texts: Sequence[str]) -> list[list[str]]:
    """Definitions, line by line, of the temporary functions that the texts can call, also through each other."""
    all_of_them = any("identifier" in text.lower() for text in texts)
    listed = _catalog(session, "catalog").listTemporaryFunctions()
    left = {str(listed.apply(number).funcName()) for number in range(listed.size())}
    todo, found = [text.lower() for text in texts], list[list[str]]()
    while todo:
        text = todo.pop()
        words = set(re.findall(r"\w+", text))
        for name in sorted(
            one for one in left if all_of_them or set(re.findall(r"\w+", one.lower())) <= words
        ):
            left.discard(name)
            rows = session.sql(f"describe function extended {quote_name(name)}").collect()
            found.append([str(row[0]) for row in rows if not str(row[0]).startswith(_UNSTABLE_LINES)])
            todo.append("\n".join(found[-1]).lower())
    return found


def _catalog(session: SparkSession, part: str) -> Any:  # noqa: ANN401 - py4j's
    return getattr(session._jsparkSession.sessionState(), part)()
