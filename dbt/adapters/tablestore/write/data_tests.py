"""A model's data tests: what their statements read, what they say, and what goes out behind them.

CHANGE     when the rows of a failed test are kept
CHANGE     the outcome of a dbt data test for a staged snapshot
CHANGE     the test of a Python model by `changed_keys`
INVARIANT  equals_full_refresh of a Python model runs the code that has made the rows, over all rows of the very states
           of its inputs: dbt's compiled text is known by its digest, and the test's pins say which states.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.tablestore.adapter_response import PublishingResponse
from dbt.adapters.tablestore.gate.publish_coordinator import PublishCoordinator
from dbt.adapters.tablestore.inputs.full_refresh_query import difference, find_query
from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.model_graph import nested
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.python_models.keyed_inputs import inputs_of, keyed_inputs
from dbt.adapters.tablestore.python_models.model_code import ModelCode
from dbt.adapters.tablestore.python_models.python_config import read_python_config
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.node_versions import NodeVersions
from dbt.adapters.tablestore.write.python_models import PythonModels
from tablestore_engine.api import Engine, TablestoreError
from tablestore_engine.spi import (
    ROWS_MAX,
    FailingRows,
    OrderedLock,
    Outcome,
    Rank,
    ReadLog,
    TableRead,
    Verdict,
    pick_failing_rows,
    short_name,
)

KEEP_FAILING_ROWS = "keep_failing_rows"
_BUILT = frozenset({"model", "seed", "snapshot"})


@dataclass(frozen=True)
class TestOutcome:
    """`statement` renders the one query that dbt judges the test by; `judge` turns its rows into a verdict.

    `failing_sql` renders the query of the first failing rows.
    """

    __test__ = False  # pytest: not a class of tests

    test: str
    verdict: Verdict
    statement: Callable[[], str]
    judge: Callable[[Sequence[Sequence[object]]], Verdict]
    failing_sql: Callable[[], str] = str


def read_outcome(context: Mapping[str, Any]) -> TestOutcome | None:
    """dbt gives models' config objects here too, and unit tests' contexts: both have no gating outcome."""
    if not isinstance(context, Mapping) or "load_result" not in context:
        return None
    model = context["model"]
    if model.get("resource_type") != "test":
        return None
    config = model.get("config") or {}
    severity = str(config.get("severity") or "error")
    flags = context.get("flags")
    warn_is_error = bool(getattr(flags, "WARN_ERROR", False))

    def judge(rows: Sequence[Sequence[object]] | None) -> Verdict:
        row = None if rows is None or len(rows) != 1 else rows[0]
        return combine_verdict(row, severity, warn_is_error=warn_is_error)

    result = context["load_result"]("main")
    verdict = judge(None if result is None else result["table"].rows)
    return TestOutcome(
        model["unique_id"],
        verdict,
        lambda: _statement(context, model, config),
        judge,
        lambda: str(context["get_limit_subquery_sql"](_of_whole_rows(model), ROWS_MAX)),
    )


def _of_whole_rows(model: Mapping[str, Any]) -> str:
    """The query of a data test. dbt's not_null selects its column alone, which is NULL in all rows that fail: for a
    reader it selects all columns, as with store_failures.
    """
    of_test, code = model.get("test_metadata") or {}, str(model["compiled_code"])
    column = f"select {(of_test.get('kwargs') or {}).get('column_name')}\n"
    is_not_null = (of_test.get("name"), of_test.get("namespace")) == ("not_null", None)
    head, found, rest = code.partition(column)
    return f"select *\n{rest}" if is_not_null and found and not head.strip() else code


def _statement(context: Mapping[str, Any], model: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """As dbt's materialization of tests makes it; failing rows are not stored a second time."""
    sql = context["get_limit_subquery_sql"](model["compiled_code"], config.get("limit"))
    wanted = (config.get(key) for key in ("fail_calc", "warn_if", "error_if"))
    return str(context["get_test_sql"](sql, *wanted, limit=None))


def _truth(value: object) -> bool:
    """Booleans arrive as such, or as text from some fetches."""
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)


def combine_verdict(row: Sequence[object] | None, severity: str, *, warn_is_error: bool) -> Verdict:
    """The outcome of a data test from its row (failures, should_warn, should_error); None means it raised."""
    if row is None:
        return Verdict.ERROR
    _, should_warn, should_error = row
    is_red = severity.lower() == "error" and _truth(should_error)
    return Verdict.RED if is_red or (warn_is_error and _truth(should_warn)) else Verdict.GREEN


def project_tables(nodes: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """`schema.alias` of models, seeds and snapshots; sources change at any time, with or without dbt."""
    return frozenset(
        f"{node.get('schema')}.{node.get('alias') or node.get('name')}"
        for node in nodes.values()
        if node.get("resource_type") in _BUILT
    )


def keeps_failing_rows(test: str, nodes: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether no model, seed or snapshot that the test reads has `keep_failing_rows: false`."""
    above = ((nodes.get(test) or {}).get("depends_on") or {}).get("nodes") or ()
    return all(_allows_rows((nodes.get(name) or {}).get("config") or {}) for name in above)


def _allows_rows(config: Mapping[str, Any]) -> bool:
    """At the top level, or below meta.tablestore."""
    said_of_it = [one.get(KEEP_FAILING_ROWS) for one in (config, nested(config))]
    return all(one is None or _truth(one) for one in said_of_it)


def said(
    test: str, verdict: Verdict, log: ReadLog, built: Collection[str], failing: FailingRows | None = None
) -> Outcome:
    """What a test said and has read of `built`, what dbt builds."""
    return Outcome(test, verdict, _within(log.reads(), built), _within(log.constants(), built), failing)


def _within(reads: Iterable[TableRead], tables: Collection[str]) -> tuple[TableRead, ...]:
    return tuple(read for read in reads if read.table in tables)


class DataTests:
    """Of one invocation; `target` is dbt's folder of compiled files, `settings_of` reads those of a model's node."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        target: Path,
        coordinator: PublishCoordinator,
        pinned: NodeVersions,
        databases: Callable[[], tuple[str, ...]],
        python: PythonModels,
        settings_of: Callable[[Mapping[str, Any]], ModelSettings],
    ) -> None:
        self._python, self._settings_of = python, settings_of
        self._engine, self._target, self._databases = engine, target, databases
        self._coordinator, self._pinned, self._inputs = coordinator, pinned, pinned.inputs
        self._reads: dict[str, ReadLog] = {}
        self._lock = OrderedLock("tests of this run", Rank.PROCESS)

    def start(self, test: str) -> ReadLog:
        """What its statements read goes here."""
        with self._lock:
            return self._reads.setdefault(test, ReadLog())

    def conclude(self, context: Any) -> tuple[str, ...]:  # noqa: ANN401 - dbt's context of a node, or a config
        """After a node: the outcome of a data test is kept, and what is free is published. Lines for the log.

        Raises RetryError TS1876.
        """
        outcome = read_outcome(context)
        if outcome is None:
            return ()
        graph, gate = context["graph"], self._engine().gate
        began = gate.now_ms()
        lines = self.record(outcome, {**graph["nodes"], **(graph.get("functions") or {})})
        if not lines:
            return ()
        took, test = (gate.now_ms() - began) / 1000, short_name(outcome.test)
        result = context["load_result"]("main")
        if result is not None:  # else the test ended in an error, and dbt has no response of it
            result["response"] = PublishingResponse.of(result["response"], took)
        return (*lines, f"publishing took {took:.2f} s, which dbt counts in the time of test {test}")

    def record(self, outcome: TestOutcome, nodes: Mapping[str, Any]) -> tuple[str, ...]:
        """Outcome of a data test; lines for the log. Raises RetryError TS1876."""
        built = project_tables(nodes)
        with self._lock:
            log = self._reads.pop(outcome.test, None) or ReadLog()

        def recheck() -> Outcome:
            fresh = ReadLog()
            versions = self._pinned.of(outcome.test)
            rows = self._engine().sql(outcome.statement(), versions=versions, reads=fresh).rows
            verdict = outcome.judge(rows)
            return said(
                outcome.test, verdict, fresh, built, self._failing_rows(outcome, verdict, fresh, nodes)
            )

        failing = self._failing_rows(outcome, outcome.verdict, log, nodes)
        return self._coordinator.record(
            said(outcome.test, outcome.verdict, log, built, failing),
            self._databases(),
            elsewhere=frozenset(self._pinned.as_of),
            recheck=recheck,
            nodes=nodes,
        )

    def _failing_rows(
        self, outcome: TestOutcome, verdict: Verdict, log: ReadLog, nodes: Mapping[str, Any]
    ) -> FailingRows | None:
        """Of a red test of staged rows, by one more query over the versions that it read; None when not asked for.

        What this query cannot do is no failure of the test.
        """
        has_read_staged = any(read.stage for read in log.reads())
        if verdict != Verdict.RED or not has_read_staged or not keeps_failing_rows(outcome.test, nodes):
            return None
        try:
            found = self._engine().sql(outcome.failing_sql(), versions=self._pinned.of(outcome.test))
        except TablestoreError as error:
            logger.debug(f"failing rows of {outcome.test} are not kept: {error}")
            return None
        return pick_failing_rows([name for name, _ in found.columns], found.rows)

    def full_refresh_difference(self, manifest: Any, relation: TablestoreRelation, test: str) -> str:  # noqa: ANN401
        """SQL of the rows that a model's table and its query do not share. Raises FixRequest TS1840."""
        table, target, version = (
            relation.table_name,
            self._target,
            self._pinned.as_of.get(relation.table_name),
        )
        model, text = find_query(manifest, target, table, self._inputs.digest(table, version))
        is_code, node, query = str(model.language) == "python", model.to_dict(), text
        if is_code:
            affected = self._settings_of(node).table.affected
            assert affected is not None  # its digest is that of a changed_keys model
            query = keyed_inputs(inputs_of(text), affected).query
        self._inputs.pin_test(test, str(model.unique_id), table, query, version)
        self._inputs.check_context(table, query, self._inputs.test_pins(test), version)
        if is_code:
            code = ModelCode.of(node, text, relation.database)
            query = self._python.run(test, relation, code, read_python_config(node), is_test=True)
        columns = self._pinned.query_columns(test, f"select * from {table}")  # staged rows may have others
        return difference(query, table, [one.name for one in columns])
