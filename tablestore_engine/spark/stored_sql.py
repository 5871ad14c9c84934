"""SQL text in a warehouse is input, not code: what a view, a function or a column default of others may do.

Steps      text -> Spark's own parser -> every part of the unresolved plan -> rules by the kind of node
INVARIANT  what is checked is the statement that Spark will run, as Spark parses it: no pattern decides over its text
           but the one for ${…}, which Spark replaces before it parses.
INVARIANT  refused: processes (TRANSFORM), functions in RUNS_OR_READS, functions that Spark does not bring along,
           relations that are files, names that are computed (IDENTIFIER), ${…} of the environment or the settings.
WHY        a deny list for Spark's own functions: they are reviewed when pyspark moves (a test holds their names).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tablestore_engine.errors import Unsupported
from tablestore_engine.spark import spark_errors

OPTION = "trusted_sql"
# Spark's functions that call any Java method, or open a file that an argument or an option names.
RUNS_OR_READS = frozenset(
    {
        "reflect", "java_method", "try_reflect",  # any static method: processes, environment, system properties
        "from_avro", "schema_of_avro",  # option avroSchemaUrl
        "from_protobuf", "to_protobuf",  # descriptor file
        "from_xml", "schema_of_xml",  # option rowValidationXSDPath
        "python_worker_logs",
    }
)  # fmt: skip
_CALLS = ("UnresolvedFunction", "UnresolvedTableValuedFunction", "UnresolvedGenerator")
_PROCESS, _RELATION = "ScriptTransformation", "UnresolvedRelation"
_COMPUTED_NAMES = ("ExpressionWithUnresolvedIdentifier", "PlanWithUnresolvedIdentifier")
# Parts that hold no expression and no plan: not worth the calls into the JVM.
_LEAVES = frozenset(
    {
        "Nil", "None", "Literal", "UnresolvedAttribute", "AliasIdentifier", "ExprId", "JoinHint", "Inner",
        "LeftOuter", "RightOuter", "FullOuter", "StringType", "IntegerType", "LongType", "BooleanType",
        "DoubleType", "DecimalType", "DateType", "TimestampType", "OneRowRelation", "WindowSpecReference",
    }
)  # fmt: skip
_SUBSTITUTED = re.compile(r"\$\{\S+?\}")

IsOurs = Callable[[str, str], bool]
_SQL_FUNCTION = "CreateUserDefinedFunction"


@dataclass
class StoredSql:
    """The rules in one session; `is_trusted` is the option. A text is parsed once."""

    session: SparkSession
    is_trusted: bool = False
    _fine: set[str] = field(default_factory=set)

    def check_view(self, name: str, statement: str, is_ours: IsOurs, is_function: IsOurs) -> None:
        """`statement` is the CREATE VIEW that Spark will run. Raises Unsupported TS1529, FixRequest TS1505."""
        self._check(f"view {name}", statement, "parsePlan", is_ours, is_function)

    def check_function(self, name: str, statement: str, is_ours: IsOurs, is_function: IsOurs) -> None:
        """`statement` is the CREATE FUNCTION that Spark will run, whose body and defaults Spark keeps as texts.

        Raises Unsupported TS1529, FixRequest TS1505.
        """
        what = f"function {name}"
        if self.is_trusted or statement in self._fine:
            return
        plan = self._parsed("parsePlan", statement)
        if plan.nodeName() != _SQL_FUNCTION:
            raise _refused(what, "is no SQL function")
        for parse, text in self._texts_of(plan):
            self._check(what, text, parse, is_ours, is_function)
        self._fine.add(statement)

    def _texts_of(self, plan: JavaObject) -> Iterator[tuple[str, str]]:
        """Which method of the parser reads a text of CREATE FUNCTION, and the text."""
        if plan.queryText().isDefined():
            yield "parsePlan", str(plan.queryText().get())
        if plan.exprText().isDefined():
            yield "parseExpression", str(plan.exprText().get())
        if plan.inputParamText().isDefined():
            for field in self._parsed("parseRoutineParam", str(plan.inputParamText().get())).fields():
                if (default := json.loads(str(field.metadata().json())).get("default")) is not None:
                    yield "parseExpression", str(default)

    def _check(
        self, what: str, text: str, parse: str, is_ours: IsOurs, is_function: IsOurs = lambda *_: False
    ) -> None:
        if self.is_trusted or text in self._fine:
            return
        if (found := _SUBSTITUTED.search(text)) is not None and self._substitutes():
            raise _refused(what, f"has {found[0]}, which Spark replaces by its settings and the environment")
        danger = find_danger(
            self._parsed(parse, text),
            is_ours=is_ours,
            is_builtin=self._is_builtin,
            is_source=self._is_source,
            is_function=is_function,
        )
        if danger is not None:
            raise _refused(what, danger)
        self._fine.add(text)

    def _parsed(self, parse: str, text: str) -> JavaObject:
        java = self.session._jsparkSession.sessionState().sqlParser()
        try:
            return getattr(java, parse)(text)
        except (PySparkException, Py4JError) as error:
            raise spark_errors.translate(error) from None

    def _substitutes(self) -> bool:
        return str(self.session.conf.get("spark.sql.variable.substitute", "true")).lower() == "true"

    def _is_builtin(self, name: str) -> bool:
        """Whether a function comes with Spark; what else the session has was brought there by a jar or a user."""
        analysis = self.session._jvm.org.apache.spark.sql.catalyst.analysis  # type: ignore[union-attr]
        identifier = self.session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)  # type: ignore[union-attr]
        registries = (analysis.FunctionRegistry.builtin(), analysis.TableFunctionRegistry.builtin())
        return any(registry.functionExists(identifier) for registry in registries)

    def _is_source(self, name: str) -> bool:
        """Whether Spark would take `name`.`path` for a file: a class is never loaded to find out."""
        if "." in name:
            return True
        sources = self.session._jvm.org.apache.spark.sql.execution.datasources.DataSource  # type: ignore[union-attr]
        try:
            sources.lookupDataSource(name, self.session._jsparkSession.sessionState().conf())
        except (PySparkException, Py4JJavaError):
            return False  # no such source: the name is a table that is not there, as Spark will say
        return True


def find_danger(
    plan: JavaObject,
    *,
    is_ours: IsOurs,
    is_builtin: Callable[[str], bool],
    is_source: Callable[[str], bool],
    is_function: IsOurs,
) -> str | None:
    """What the plan does that stored text may not, as the end of a sentence; None when there is nothing."""
    for kind, node in _walk(plan):
        if kind == _PROCESS:
            return "starts a process (TRANSFORM … USING)"
        if kind in _COMPUTED_NAMES:
            return "has a name that is known only when it runs (IDENTIFIER)"
        if kind in _CALLS:
            parts = _called(node)
            name = parts[-1].lower()
            if len(parts) == 2 and is_function(*parts):
                continue  # its own text obeys the same rules
            if name in RUNS_OR_READS:
                return f"calls {name}(), which can run code or read files"
            if not is_builtin(name):
                return f"calls {'.'.join(parts)}(), which comes neither with Spark nor with the warehouse"
        if kind == _RELATION:
            parts = _strings(node.multipartIdentifier())
            if len(parts) == 2 and not is_ours(*parts) and is_source(parts[0]):
                return f"reads {parts[0]}.`{parts[1]}`, which is a path and no table"
    return None


def _walk(root: JavaObject) -> Iterator[tuple[str, JavaObject]]:
    """Every case class below `root` with its name, through collections, options, tuples and maps."""
    todo: list[Any] = [root]
    while todo:
        node = todo.pop()
        if not isinstance(node, JavaObject):
            continue  # text, numbers and null arrive as Python's
        try:
            kind = str(node.productPrefix())
        except Py4JError:
            todo += _items(node)
            continue
        if kind in _LEAVES:
            continue
        yield kind, node
        if kind == "::":
            todo += [node.apply(at) for at in range(node.size())]
        else:
            todo += [node.productElement(at) for at in range(node.productArity())]


def _items(node: JavaObject) -> list[Any]:
    """What a Scala collection holds; nothing of other objects, which are values (decimals, UUIDs)."""
    if not str(node.getClass().getName()).startswith("scala.collection."):
        return []
    found, items = [], node.iterator()
    while items.hasNext():
        found.append(items.next())
    return found


def _called(node: JavaObject) -> list[str]:
    """The parts of the name: Spark's own answer to system.builtin.f, too."""
    name = node.productElement(0)
    if not isinstance(name, JavaObject):
        return [str(name)]
    try:
        function, database = str(name.funcName()), name.database()  # of a generator
    except Py4JError:
        return _strings(name)
    return [str(database.get()), function] if database.isDefined() else [function]


def _strings(sequence: JavaObject) -> list[str]:
    return [str(sequence.apply(at)) for at in range(sequence.size())]


def _refused(what: str, danger: str) -> Unsupported:
    return Unsupported(
        "TS1529",
        f"{what} is not used: it {danger}",
        why="its text was found in the warehouse, and what others wrote there may only read the warehouse's tables",
        fix=f"build it again in this run, or, when you trust all who write this warehouse, set {OPTION}: true "
        f"in the profile (Engine(…, {OPTION}=True), tablestore sql --trusted-sql)",
    )
