"""Read a data test's outcome from the context that dbt hands to post_model_hook.

Names      TestOutcome      what it said, and how to ask it again
           read_outcome()   context -> TestOutcome, or None for anything but a data test
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.gate_verdicts import combine_verdict
from tablestore_engine.api import Verdict


@dataclass(frozen=True)
class TestOutcome:
    """`statement` renders the one query that dbt judges the test by; `judge` turns its rows into a verdict."""

    __test__ = False  # pytest: not a class of tests

    test: str
    verdict: Verdict
    statement: Callable[[], str]
    judge: Callable[[Sequence[Sequence[object]]], Verdict]


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
    return TestOutcome(model["unique_id"], verdict, lambda: _statement(context, model, config), judge)


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
