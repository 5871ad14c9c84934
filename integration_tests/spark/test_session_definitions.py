"""What a query means by names of the session is a part of its digest by content, or all rows are compared."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest

from integration_tests.spark.traced_world import KEYED, traced_world
from tablestore_engine.api import Engine
from tablestore_engine.spark.session_definitions import USER_CODE
from tests.doses import cases

P = "demo.people"
VIEW = "create or replace temporary view v as"
TEMPORARY = "create or replace temporary function"
# what is defined → (statements that define it, with {0} for its content; a query that uses it)
DEFINED = {
    "scalar function": (
        [f"{TEMPORARY} f(x bigint) returns bigint return x + {{0}}"],
        f"select id, f(id) as n from {P}",
    ),
    "scalar function with a query": (
        [f"{TEMPORARY} f(x bigint) returns bigint return (select max(id) + {{0}} from demo.people)"],
        f"select id, f(id) as n from {P}",
    ),
    "table function": (
        [f"{TEMPORARY} t() returns table(n int) return select {{0}}"],
        f"select id, n from {P} join t() on n = id",
    ),
    "function through a function": (
        [
            f"{TEMPORARY} g(x bigint) returns bigint return x + {{0}}",
            f"{TEMPORARY} f(x bigint) returns bigint return g(x)",
        ],
        f"select id, f(id) as n from {P}",
    ),
    "variable": (["declare or replace variable c int default {0}"], f"select id, c as n from {P}"),
    "variable set later": (
        ["declare or replace variable c int", "set variable c = {0}"],
        f"select id, session.c as n from {P}",
    ),
    "view": ([f"{VIEW} select {{0}} as n"], f"select id, n from {P}, v"),
    "view in a subquery": (
        [f"{VIEW} select {{0}} as n"],
        f"select id from {P} where id in (select n from v)",
    ),
    "global view": (
        ["create or replace global temporary view g as select {0} as n"],
        f"select id, n from {P}, global_temp.g",
    ),
    "view over a view": (
        [f"{VIEW} select {{0}} as n", "create or replace temporary view w as select * from v"],
        f"select id, n from {P}, w",
    ),
    "variable in a view": (
        ["declare or replace variable c int default {0}", f"{VIEW} select c as n"],
        f"select id, n from {P}, v",
    ),
    "function in a view": (
        [f"{TEMPORARY} f(x int) returns int return x + {{0}}", f"{VIEW} select f(1) as n"],
        f"select id, n from {P}, v",
    ),
    "setting of a view": (
        ["set spark.sql.ansi.enabled = {0}", f"{VIEW} select cast('1' as int) as n"],
        f"select id, n from {P}, v",
    ),
}
SETTINGS = {"setting of a view": ("false", "true")}
# statements of Spark's grammar that define something → what of the above they are; None: nothing that a query can name
STATEMENTS = {
    "CreateUserDefinedFunction": "scalar function", "CreateFunction": "a function of a user",
    "CreateVariable": "variable", "SetVariable": "variable set later", "CreateView": "view",
    "CreateTempViewUsing": "rows from outside", "CacheTable": None, "ManageResource": None, "Use": None,
    "UseNamespace": None, "SetCatalog": None, "SetPath": None, "CreateMetricView": None,
    "SetConfiguration": "setting", "SetQuotedConfiguration": "setting", "SetTimeZone": "setting",
    "ResetConfiguration": "setting", "ResetQuotedConfiguration": "setting", "SetVariableInsideSqlScript": None,
}  # fmt: skip
_OF_TABLES = re.compile(
    r"Create(Flow|Pipeline|Table|Namespace|Index|File)|Set(Table|Namespace|Clause|Operation|Quant)"
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One session for all queries."""
    with traced_world(tmp_path_factory.mktemp("defined")) as engine:
        yield engine


def context(engine: Engine, query: str) -> tuple[str, str | None]:
    """The digest, and why no run can be restricted."""
    with engine.changed_keys.trace(query, versions={}) as traced:
        return traced.context(), traced.general_clause(["id"])


def define(engine: Engine, name: str, content: object) -> None:
    """What a hook does before each run."""
    ansi = str(engine.spark.conf.get("spark.sql.ansi.enabled"))
    for statement in DEFINED[name][0]:
        engine.spark.sql(statement.format(content))
    engine.spark.conf.set("spark.sql.ansi.enabled", ansi)


@pytest.mark.parametrize("name", cases(DEFINED, 5))
def test_digest_of_a_session_definition_follows_its_content(engine: Engine, name: str) -> None:
    """Defining the same again changes nothing; another content is another digest; runs stay restricted."""
    query, (one, two) = DEFINED[name][1], SETTINGS.get(name, (1, 2))
    define(engine, name, one)
    before = context(engine, query)
    define(engine, name, one)
    assert context(engine, query) == before
    define(engine, name, two)
    assert context(engine, query)[0] != before[0]
    if "subquery" not in name and "query" not in name:
        assert before[1] is None


def test_definitions_without_text_compare_all_rows(engine: Engine) -> None:
    """Code of users, rows of DataFrames, files, and names that IDENTIFIER computes from variables are no digest."""
    spark = engine.spark
    spark.udf.register("coded", lambda x: x, "bigint")
    spark.createDataFrame(pa.table({"n": [1]})).createOrReplaceTempView("framed")
    spark.sql("declare or replace variable c string default 'name'")
    for query, clause in (
        (f"select id, coded(id) as n from {P}", "a function of a user (PythonUDF)"),
        (f"select id, n from {P}, framed", "rows of a DataFrame (framed)"),
        (f"select id, identifier(c) as n from {P}", "IDENTIFIER()"),
        (f"select id from {P} where exists (select 1 from framed)", "rows of a DataFrame (framed)"),
    ):
        assert clause in str(context(engine, query)[1]), query


def test_past_state_by_number_is_known_by_its_identity(engine: Engine) -> None:
    """Snapshot 2 after a rollback and a new commit, and after DROP and CREATE, is another state."""

    def put(*ids: int) -> None:
        engine.write("demo.past", pa.table({"id": list(ids)}), KEYED)

    query, contexts = "select id from demo.past version as of 2", []
    put(1)
    put(2)
    contexts.append(context(engine, query))
    engine.table("demo.past").rollback(1)
    put(3)
    contexts.append(context(engine, query))
    engine.drop_table("demo.past")
    put(1)
    put(3)
    contexts.append(context(engine, query))
    assert len({digest for digest, _ in contexts}) == 3
    with engine.changed_keys.trace(query, versions={}) as traced:
        assert traced.tables == ()


def test_every_statement_that_defines_something_has_an_entry(engine: Engine) -> None:
    """A new statement of Spark's grammar that defines something fails here until it is decided."""
    jvm: Any = engine.spark._jvm
    visitor = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.parser.SqlBaseParserVisitor")
    names = {str(one.getName()).removeprefix("visit") for one in visitor.getMethods()}
    defining = {
        one
        for one in names
        if re.match("Create|Declare(?!Con|Cur|Han)|Define|Set|Reset|Cache|Use|Manage", one)
        and not _OF_TABLES.match(one)
    }
    assert defining <= set(STATEMENTS), defining - set(STATEMENTS)


def test_every_class_of_user_code_is_recognized(engine: Engine) -> None:
    """All expressions of Spark's jars that run code of users match the pattern; SQL functions have text."""
    jvm: Any = engine.spark._jvm
    load = jvm.java.lang.Class.forName
    bases = [
        load(f"org.apache.spark.sql.catalyst.expressions.{one}")
        for one in ("UserDefinedExpression", "PythonFuncExpression")
    ]
    expression = load("org.apache.spark.sql.catalyst.expressions.Expression")
    found = set()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"):
        if not re.match("spark-(catalyst|sql|hive)_", jar.name):
            continue
        with zipfile.ZipFile(jar) as archive:
            for path in archive.namelist():
                if (
                    path.endswith(".class")
                    and "$" not in path
                    and "/expressions/" in path + "/expressions/"
                    and (
                        b"UserDefinedExpression" in (code := archive.read(path))
                        or b"PythonFuncExpression" in code
                    )
                ):
                    kind = load(path.removesuffix(".class").replace("/", "."))
                    if any(base.isAssignableFrom(kind) for base in bases) and expression.isAssignableFrom(
                        kind
                    ):
                        found.add(str(kind.getSimpleName()))
    assert {"ScalaUDF", "PythonUDF", "PythonUDAF", "PythonUDTF", "ScalaAggregator"} <= found
    with_text = {
        "SQLFunctionExpression",
        "SQLScalarFunction",
        "PythonFuncExpression",
        "UserDefinedExpression",
    }
    assert {one for one in found if not USER_CODE.search(one)} <= with_text
