"""One history from its first run to its last: dbt run after each round, then every model against its full query.

Steps      1 tables, project, first run (its rows are Spark's of the full query)  2 changes, dbt run  3 rows of
           each model against DuckDB and against the full query in Spark
INVARIANT  DuckDB and Spark both differ from a model's rows, or it is no finding: where they disagree with each other,
           the generator is wrong, and the model is counted and left out.
INVARIANT  an error of Spark's ends the attack, but for one known error of its optimizer that the full query has as
           well: such a model is counted and left out, and DuckDB alone judges its rows.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.adapters.factory import reset_adapters

from integration_tests.soak.query_attack.findings import ALL, UNKNOWN, Finding, Report
from integration_tests.soak.query_attack.history import History
from integration_tests.soak.query_attack.oracle import Oracle, Result, Unfit, normal
from integration_tests.soak.query_attack.project import SPARK, Project, redefined
from integration_tests.soak.query_attack.queries import Model
from integration_tests.soak.query_attack.relation import names_in
from integration_tests.soak.query_attack.world import SCHEMA, World
from tablestore_demo.dbt_session import NodeResult
from tablestore_engine.api import Engine, SparkSettings, TableVersion
from tablestore_engine.spi import MOMENT

WRONG, ERROR = "wrong rows", "error where the full query runs"
# Faults of Spark 4: two rules of its optimizer do not find an attribute of a correlated subquery below UNION or EXCEPT;
# its analyzer loses a column that USING hides in the filter of an aggregate with ROLLUP, CUBE or GROUPING SETS.
_FAULTS_OF_SPARK = (
    "java.util.NoSuchElementException: key not found",
    "RESOLVED_ATTRIBUTE_APPEAR_IN_OPERATION",
)
_CODE = re.compile(r"TS\d{4}")
_SHOWN = 6


@dataclass
class Play:
    """One history in one folder."""

    history: History
    engine: Engine
    folder: Path
    report: Report
    moved: int = field(default=0, init=False)  # by which the session's function adds
    spark_each: int = 1  # every n-th comparison is made in Spark as well
    stop_after: int = sys.maxsize  # findings: no round begins later
    alive: dict[str, Model] = field(init=False)

    def __post_init__(self) -> None:
        self.project = Project(self.folder, self.history)
        self.texts = {one.name: one.texts[0] for one in self.history.views}
        self.world = World(self.engine, self.history.tables, self._switch, self._redefine)
        self.alive = {one.name: one for one in self.history.models}
        self._last: dict[str, tuple[str, ...]] = {}
        self._compared = 0

    def run(self) -> None:
        """To the end, or until no model is left."""
        self.engine.create_database(SCHEMA)
        for table in self.history.tables:
            self.world.create(table.name, self.history.rows[table.name])
        self._round(0)
        for number, steps in enumerate(self.history.rounds, 1):
            if not self.alive or len(self.report.findings) >= self.stop_after:
                return
            for step in steps:
                self.world.apply(step)
            self._round(number)
            self.world.skipped = set()
        for kind, message in self.world.refused.items():
            self.report.counts[f"steps refused: {kind} {message[:6]}"] += 1

    @property
    def _moment_ms(self) -> int:
        return round(self.world.moment.timestamp() * 1000)

    def _switch(self, name: str, text: str) -> None:
        self.texts[name] = text
        view = next(one for one in self.history.views if one.name == name)
        self.project.write_view(view, text)

    def _redefine(self, number: int) -> None:
        self.moved = number
        self.project.redefine(number)

    def _round(self, number: int) -> None:
        started = time.monotonic()
        for model in self.alive.values():
            self.project.write_model(model, number)
        result = self.project.run(self.world.skipped & set(self.alive), self._moment_ms)
        seconds = time.monotonic() - started
        self.report.counts["seconds of dbt"] += round(seconds)
        nodes = {node.name: node for node in result.nodes}
        if not nodes:
            raise AssertionError(f"dbt did nothing: seed {self.history.seed}, round {number}: {result.error}")
        with Oracle() as oracle:
            self._fill(oracle)
            for model in list(self.alive.values()):
                if model.name not in self.world.skipped:
                    self._judge(oracle, model, nodes.get(model.name), number)
        whole, count = time.monotonic() - started, len(nodes)
        print(f"  round {number}: {count} nodes, dbt {seconds:.0f} s, all {whole:.0f} s", flush=True)

    def _fill(self, oracle: Oracle) -> None:
        oracle.redefine(self.moved)
        oracle.set_moment(self.world.moment)
        self.engine.sql(redefined(self.moved))
        for name in self.world.tables:
            oracle.put(name, self.world.read(name))
        for view in self.history.views:
            oracle.define(view.name, self.texts[view.name])
        read = frozenset().union(*(names_in(one.text) for one in self.history.models))
        for model in self.history.models:
            if model.name in read and model.name in self.alive:
                oracle.put(model.name, self.engine.table(f"{SCHEMA}.{model.name}").scan().to_arrow())

    def _judge(self, oracle: Oracle, model: Model, node: NodeResult | None, number: int) -> None:
        """One model after one run."""
        status = "skipped" if node is None else node.status
        if node is not None and status == "success":
            self._tell_way(model, node, number)
            self._compare(oracle, model, number)
        elif status == "skipped":
            if number == 0:
                self._leave(model)
                self.report.counts["models below a refused one"] += 1
        elif node is not None:
            self._failed(model, node, number)

    def _failed(self, model: Model, node: NodeResult, number: int) -> None:
        codes = _CODE.findall(node.message[:200])
        if not codes or codes[0].startswith("TS15"):
            fault = _fault_of_spark(node.message)
            assert not codes or fault, node.message
            full = self._in_spark(model)
            if isinstance(full, str) and (not codes or fault == _fault_of_spark(full)):
                self.report.counts["models that Spark cannot run"] += 1
            else:
                self.report.tell_finding(self._finding(model, number, ERROR, node.message[:1500]))
            self._leave(model)
            return
        self.report.counts["runs refused later" if number else "refused at first"] += 1
        if number == 0:
            self.report.tell_refused(model, codes[0])
            self._leave(model)
        else:
            first_line = node.message.splitlines()[0][:100]
            self.report.codes[model.local, f"{codes[0]} later: {first_line}"] += 1

    def _tell_way(self, model: Model, node: NodeResult, number: int) -> None:
        self.report.counts["runs"] += 1
        if number:
            way = node.facts.get("evaluated") or UNKNOWN
            self.report.tell_way(model, way, str(node.facts.get("fallback") or "") if way == ALL else "")
            self.report.tell_deltas(
                int(node.facts.get("keys_evaluated") or 0), str(node.facts.get("no_deltas") or "")
            )
        self._last[model.name] = (str(node.facts.get("evaluated") or UNKNOWN), node.message)

    def _compare(self, oracle: Oracle, model: Model, number: int) -> None:
        try:
            expected = oracle.rows(model.text)
        except Unfit as error:
            self.report.counts["queries that DuckDB cannot run any more"] += 1
            self._last[model.name] = ("", str(error))
            self._leave(model)
            return
        self._compared += 1
        found = self._stored(model, expected.columns)
        same = Counter(found) == Counter(expected.rows)
        self.report.counts["comparisons with DuckDB"] += 1
        self.report.counts["rows compared"] += len(found)
        if same and (number == 0 or self._compared % self.spark_each):
            return
        spark = self._in_spark(model)
        self.report.counts["comparisons with Spark"] += 1
        is_alone = isinstance(spark, str) and _fault_of_spark(spark) is not None
        rows = () if isinstance(spark, str) else spark
        if not is_alone and (isinstance(spark, str) or Counter(rows) != Counter(expected.rows)):
            self.report.counts["DuckDB and Spark disagree"] += 1
            self._disagreement(model, rows, expected, number)
        elif not same:
            detail = self._difference(model, found, expected)
            self.report.tell_finding(self._finding(model, number, WRONG, detail))
        elif is_alone:
            self.report.counts["models that Spark cannot run"] += 1
        else:
            return
        self._leave(model)

    def _disagreement(
        self, model: Model, spark: Sequence[tuple[Any, ...]], expected: Result, number: int
    ) -> None:
        print(
            f"DuckDB and Spark disagree: seed {self.history.seed}, {model.name}, round {number}", flush=True
        )
        ours, theirs = Counter(spark), Counter(expected.rows)
        print(f"  {model.text}\n  Spark only: {_some(ours - theirs)}\n  DuckDB only: {_some(theirs - ours)}")

    def _stored(self, model: Model, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        rows = self.engine.table(f"{SCHEMA}.{model.name}").scan().to_arrow()
        names = {one.lower(): one for one in rows.column_names}
        if missing := [one for one in columns if one.lower() not in names]:
            return [("no column", *missing)]
        lists = [rows.column(names[one.lower()]).to_pylist() for one in columns]
        return [tuple(normal(value) for value in row) for row in zip(*lists, strict=True)]

    def _in_spark(self, model: Model) -> list[tuple[Any, ...]] | str:
        """The rows of the full query, or the error when Spark cannot run it."""
        try:
            at = {MOMENT: TableVersion(timestamp_ms=self._moment_ms)}
            rows = self.engine.sql(self.project.compiled(model.name), versions=at).rows
        except Exception as error:  # noqa: BLE001 - any error of Spark's is the answer here
            self.report.counts["full queries that failed in Spark"] += 1
            named = f"seed {self.history.seed}, {model.name}"
            print(f"full query failed in Spark: {named}: {str(error)[:300]}\n  {model.text}", flush=True)
            return str(error)
        return [tuple(normal(value) for value in row) for row in rows]

    def _difference(self, model: Model, found: list[tuple[Any, ...]], expected: Result) -> str:
        stored, right = Counter(found), Counter(expected.rows)
        evaluated, message = self._last.get(model.name, ("", ""))
        return (
            f"  key {model.key} of {expected.columns}; run: {evaluated}, {message}\n"
            f"  {'local' if model.local else 'not local: ' + ', '.join(sorted(model.reasons))}\n"
            f"  only in the table: {_some(stored - right)}\n  missing: {_some(right - stored)}\n  {model.text}"
        )

    def _finding(self, model: Model, number: int, kind: str, detail: str) -> Finding:
        return Finding(self.history.seed, model, number, kind, detail)

    def _leave(self, model: Model) -> None:
        """Out of the project, with what reads it."""
        self.alive.pop(model.name, None)
        self.project.remove(model.name)
        for other in list(self.alive.values()):
            if model.name in names_in(other.text):
                self._leave(other)


def _fault_of_spark(message: str) -> str | None:
    return next((fault for fault in _FAULTS_OF_SPARK if fault in message), None)


def _some(rows: Counter[tuple[Any, ...]]) -> str:
    shown = [str(row) for row, _ in rows.most_common(_SHOWN)]
    return "; ".join(shown) + (f" … {rows.total()} in all" if rows.total() > _SHOWN else "")


@contextmanager
def warehouse(folder: Path) -> Iterator[Engine]:
    """The engine of a project's folder; dbt's own is of the same JVM."""
    with Engine(str(folder / "warehouse"), spark=SparkSettings("local[2]", conf=SPARK)) as engine:
        yield engine
    reset_adapters()  # type: ignore[no-untyped-call]


def play(
    history: History, folder: Path, report: Report, spark_each: int = 1, stop_after: int = sys.maxsize
) -> None:
    """All rounds of a history, or until it has so many findings."""
    with warehouse(folder) as engine:
        Play(history, engine, folder, report, spark_each=spark_each, stop_after=stop_after).run()
