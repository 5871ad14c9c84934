"""What a data test of dbt said, for the engine's gate (its rule: tablestore_engine/warehouse/gate/gate_rule.py).

CHANGE     the outcome of a dbt data test for a staged snapshot
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore_engine.spi import ROWS_MAX, FailingRows, Outcome, ReadLog, TableRead, Verdict

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
        row = None if rows is None or len(rows) != 1 else _read_row(rows[0])
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


def _read_row(row: Sequence[object]) -> tuple[int, bool, bool]:
    """(failures, should_warn, should_error)."""
    failures, should_warn, should_error = row
    return int(str(failures or 0)), _truth(should_warn), _truth(should_error)


def _truth(value: object) -> bool:
    """Booleans arrive as such, or as text from some fetches."""
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)


def combine_verdict(row: tuple[int, bool, bool] | None, severity: str, *, warn_is_error: bool) -> Verdict:
    """The outcome of a data test from its row (failures, should_warn, should_error); None means it raised."""
    if row is None:
        return Verdict.ERROR
    _, should_warn, should_error = row
    if severity.lower() == "error" and should_error:
        return Verdict.RED
    return Verdict.RED if should_warn and warn_is_error else Verdict.GREEN


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
    nested = (config.get("meta") or {}).get("tablestore") or {}
    said_of_it = [one.get(KEEP_FAILING_ROWS) for one in (config, nested) if isinstance(one, Mapping)]
    return all(one is None or _truth(one) for one in said_of_it)


def said(
    test: str, verdict: Verdict, log: ReadLog, built: Collection[str], failing: FailingRows | None = None
) -> Outcome:
    """What a test said and has read of `built`, what dbt builds."""
    return Outcome(test, verdict, _within(log.reads(), built), _within(log.constants(), built), failing)


def _within(reads: Iterable[TableRead], tables: Collection[str]) -> tuple[TableRead, ...]:
    return tuple(read for read in reads if read.table in tables)
