"""Random statements against the engine: accepted as Spark and the draw say, the rows those of DuckDB.

Reference  Spark's own analyzer: INSERT into tables of parquet; UPDATE, DELETE and MERGE over views of them, with
           Spark's alignment of assignments for repeated and nested targets. Nothing of it runs.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from integration_tests.soak.statement_attack.draws import COLUMNS, PARTITIONS, Draw, draw, type_text
from tablestore_engine.api import Engine, SparkSettings, TablestoreError

TABLES_NEW_AFTER = 150


@dataclass
class Report:
    """What was drawn, and each statement that is not as it should be."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def attack(
    seed: int, count: int, *, stop_after: int = 10, say: Callable[[str], None] = lambda _: None
) -> Report:
    """`count` statements over tables that are made again now and then."""
    rng, report = random.Random(seed), Report()
    with (
        tempfile.TemporaryDirectory(prefix="statements-") as folder,
        Engine(f"{folder}/warehouse", spark=SparkSettings("local[2]")) as engine,
    ):
        engine.create_database("demo")
        reference = _Reference(engine.spark, Path(folder))
        duck = duckdb.connect()
        duck.execute("create schema demo")
        for number in range(count):
            if number % TABLES_NEW_AFTER == 0:
                _make_tables(engine, duck)
                say(f"statements: {number} so far, {dict(report.counts)}")
            one = draw(rng)
            finding = _play(engine, duck, reference, one)
            report.counts[f"{'wrong' if one.fault else 'right'} {one.kind}"] += 1
            if finding is not None:
                report.findings.append(f"seed {seed}, statement {number}: {finding}\n  {one}")
                _make_tables(engine, duck)
            if len(report.findings) >= stop_after:
                break
        reference.close()
    return report


def _play(engine: Engine, duck: duckdb.DuckDBPyConnection, reference: _Reference, one: Draw) -> str | None:
    """One statement; what is wrong with the answer."""
    refusal = reference.refusal(one)
    if (refusal is None) != (one.fault is None):
        return f"the draw says {one.fault or 'right'}, Spark says {refusal or 'right'}"
    try:
        engine.sql(one.text)
        answer: TablestoreError | None = None
    except TablestoreError as error:
        answer = error
    if (answer is None) != (one.fault is None):
        return f"the engine says {answer or 'right'}, Spark says {refusal or 'right'}"
    if one.fault is None:
        for text in one.duck:
            duck.execute(text)
    for table in COLUMNS:
        ours = sorted(map(repr, engine.table(f"demo.{table}").scan().to_arrow().to_pylist()))
        theirs = sorted(map(repr, duck.sql(f"from demo.{table}").to_arrow_table().to_pylist()))
        if ours != theirs:
            return f"{table} has {ours}, DuckDB has {theirs}"
    return None


def _ddl(columns: dict[str, object]) -> str:
    return ", ".join(f"{name} {type_text(type_)}" for name, type_ in columns.items())


def _duck_type(type_: object) -> str:
    if isinstance(type_, dict):
        return f"struct({', '.join(f'{name} {_duck_type(inside)}' for name, inside in type_.items())})"
    return {"int": "integer", "string": "varchar"}[str(type_)]


def _make_tables(engine: Engine, duck: duckdb.DuckDBPyConnection) -> None:
    """The same rows in both."""
    for table, columns in COLUMNS.items():
        engine.sql(f"drop table if exists demo.{table}")
        layout = (
            "tblproperties ('primary-key' = 'id')"
            if table == "t"
            else f"partitioned by ({', '.join(PARTITIONS)})"
        )
        engine.sql(f"create table demo.{table} ({_ddl(columns)}) {layout}")
        types = ", ".join(f"{name} {_duck_type(type_)}" for name, type_ in columns.items())
        duck.execute(f"create or replace table demo.{table} ({types})")
    struct = "named_struct('v', {0}, 'y', {0}0)"
    rows = ", ".join(
        f"({n}, {n}{n}, 'w{n}', {struct.format(n)}, named_struct('w', 'd', 'n', {struct.format(n + 1)}))"
        for n in range(1, 6)
    )
    engine.sql(f"insert into demo.t values {rows}, (6, null, null, null, null), (7, 1, null, null, "
               "named_struct('w', 'e', 'n', null))")  # fmt: skip
    engine.sql("insert into demo.p values (1, 1, 'a', 0), (2, 2, 'b', 1), (3, 3, null, null)")
    for table in COLUMNS:
        start = engine.table(f"demo.{table}").scan().to_arrow()
        duck.register("start", start)
        duck.execute(f"insert into demo.{table} from start")


class _Reference:
    """Spark's catalog with tables of the same columns, and views over them."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        for database in ("tab", "ref"):
            session.sql(f"create database {database} location '{folder / database}'")
        for table, columns in COLUMNS.items():
            parts = f" partitioned by ({', '.join(PARTITIONS)})" if table == "p" else ""
            session.sql(f"create table tab.{table} ({_ddl(columns)}) using parquet{parts}")
            session.sql(f"create view ref.{table} as select * from tab.{table}")
        align = session._jvm.org.apache.spark.sql.catalyst.analysis  # type: ignore[union-attr]
        self._align: Any = align.AssignmentUtils

    def close(self) -> None:
        """Nothing of it stays in the session."""
        for database in ("ref", "tab"):
            self._session.sql(f"drop database {database} cascade")

    def refusal(self, one: Draw) -> str | None:
        """What Spark finds wrong; None: nothing."""
        state: Any = self._session._jsparkSession.sessionState()
        is_insert = one.text.startswith("insert")
        text = one.text.replace("demo.", "tab." if is_insert else "ref.")
        try:
            plan = state.sqlParser().parsePlan(text)
            if is_insert:
                state.analyzer().checkAnalysis(state.analyzer().execute(plan))
                return None
            analyzed = state.analyzer().execute(plan)
            if not analyzed.resolved():
                return "a name is not resolved"
            self._check_assignments(analyzed)
        except (PySparkException, Py4JJavaError) as error:
            return str(error)[:200]
        return None

    def _check_assignments(self, analyzed: Any) -> None:
        kind = str(analyzed.getClass().getSimpleName())
        if kind == "UpdateTable":
            self._aligned("alignUpdateAssignments", analyzed.table(), analyzed)
        if kind != "MergeIntoTable":
            return
        for name in ("matchedActions", "notMatchedActions", "notMatchedBySourceActions"):
            actions = getattr(analyzed, name)()
            for action in map(actions.apply, range(actions.size())):
                if "Delete" not in str(action.getClass().getSimpleName()):
                    way = (
                        "alignInsertAssignments" if name == "notMatchedActions" else "alignUpdateAssignments"
                    )
                    self._aligned(way, analyzed.targetTable(), action)

    def _aligned(self, way: str, target: Any, action: Any) -> None:
        call, words = getattr(self._align, way), (target.output(), action.assignments())
        for more in ((False, False), (False,), ()):
            if self._has(call, (*words, *more)):
                return
        raise AssertionError(f"this Spark has no {way}")

    def _has(self, call: Any, words: tuple[Any, ...]) -> bool:
        try:
            call(*words)
        except Py4JJavaError:
            raise
        except Py4JError as error:  # py4j says it in its text alone
            if "does not exist" in str(error):
                return False
            raise
        return True
