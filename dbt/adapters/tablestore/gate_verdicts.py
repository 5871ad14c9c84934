"""What dbt says about a model's tests, for the engine's gate (its rule: tablestore_engine/warehouse/gate/gate_rule.py).

Names      combine_verdict()   a data test's row and severity -> its verdict
           said()              the outcome of a test with what it has read
           project_tables()    tables that dbt builds: only what a test read of these binds it to versions
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tablestore_engine.api import Outcome, ReadLog, TableRead, Verdict

_BUILT = frozenset({"model", "seed", "snapshot"})


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


def said(test: str, verdict: Verdict, log: ReadLog, built: Collection[str]) -> Outcome:
    """What a test said and has read of `built`, what dbt builds."""
    return Outcome(test, verdict, _within(log.reads(), built), _within(log.constants(), built))


def _within(reads: Iterable[TableRead], tables: Collection[str]) -> tuple[TableRead, ...]:
    return tuple(read for read in reads if read.table in tables)
