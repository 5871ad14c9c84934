"""A model's data tests: what their statements read, what they say, and what goes out behind them.

CHANGE     when the rows of a failed test are kept
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.tablestore.adapter_response import PublishingResponse
from dbt.adapters.tablestore.gate.publish_coordinator import PublishCoordinator
from dbt.adapters.tablestore.gate.verdicts import (
    TestOutcome,
    keeps_failing_rows,
    project_tables,
    read_outcome,
    said,
)
from dbt.adapters.tablestore.inputs.full_refresh_query import difference, find_query
from dbt.adapters.tablestore.messages import TerminalMessages
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.node_versions import NodeVersions
from tablestore_engine.api import Engine, TablestoreError
from tablestore_engine.spi import (
    FailingRows,
    OrderedLock,
    Outcome,
    Rank,
    ReadLog,
    Verdict,
    pick_failing_rows,
    short_name,
)

logger = TerminalMessages("Tablestore")


class DataTests:
    """Of one invocation; `target` is dbt's folder of compiled files."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        target: Path,
        coordinator: PublishCoordinator,
        pinned: NodeVersions,
        databases: Callable[[], tuple[str, ...]],
    ) -> None:
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
        node, query = find_query(manifest, target, table, self._inputs.digest(table, version))
        self._inputs.pin_test(test, node, table, query, version)
        self._inputs.check_context(table, query, self._inputs.test_pins(test), version)
        return difference(query, table, [one.name for one in self._engine().columns(table)])
