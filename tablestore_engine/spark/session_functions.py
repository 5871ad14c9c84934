"""SQL functions of the warehouse in the session that calls them.

Steps      CREATE OR REPLACE FUNCTION in Spark's in-memory catalog → Spark analyses the body where it is called → the
           call is replaced by the body in the analysed plan (`expanded`)
INVARIANT  all sessions of an application share that catalog, and each caches the functions that it has called: a
           function counts as registered only for the session that created it last.
INVARIANT  after `expanded` no part of a plan is a function of a user: what is proven of the plan, is of the body.
"""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.session_names import Name, SessionNames
from tablestore_engine.spark.spark_internals import SparkInner
from tablestore_engine.sql.as_of_clause import called_names, plain_words
from tablestore_engine.sql.scanner import quote_name


def list_calls(text: str, registry: SessionNames) -> tuple[Name, ...]:
    """Functions that a text can call; a name that IDENTIFIER computes can be any that the session has."""
    is_computed = "identifier" in map(str.lower, plain_words(text))
    return tuple(dict.fromkeys([*called_names(text), *(registry.functions if is_computed else ())]))


def create_text(name: Name, sql: str) -> str:
    """The statement that Spark runs."""
    return f"create or replace function {quote_name(name[0])}.{quote_name(name[1])}{sql}"


def is_registered(registry: SessionNames, session: SparkSession, name: Name, version: str) -> bool:
    """Whether `session` has this version, and no other session has created another one since."""
    return registry.functions.get(name) == (_id_of(session), version)


def note_registered(registry: SessionNames, session: SparkSession, name: Name, version: str) -> None:
    """After CREATE OR REPLACE FUNCTION in `session`."""
    registry.functions[name] = (_id_of(session), version)


def forget_function(registry: SessionNames, session: SparkSession, name: Name) -> None:
    """Remove a function that is gone from the warehouse; one that is not ours stays."""
    if registry.functions.pop(name, None) is not None:
        try:
            session.sql(f"drop function if exists {quote_name(name[0])}.{quote_name(name[1])}")
        except PySparkException as error:
            raise spark_errors.translate(error) from None


def expanded(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The same rows, with the bodies of SQL functions in place of their calls."""
    inner = SparkInner.of(session)
    analyzed = frame._jdf.queryExecution().analyzed()
    made = inner.without_functions(analyzed)
    return frame if bool(made.fastEquals(analyzed)) else inner.frame(made)


def _id_of(session: SparkSession) -> str:
    return str(session._jsparkSession.sessionUUID())
