"""What dbt's rows and graph mean for the gate; the rule itself is in tests/unit/warehouse/test_gate_rule.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbt.adapters.tablestore.write.data_tests import combine_verdict, project_tables
from tablestore_engine.spi import Verdict

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("row", "severity", "warn_is_error", "verdict"),
    [
        ((0, False, False), "error", False, Verdict.GREEN),
        ((3, True, True), "error", False, Verdict.RED),
        ((3, True, True), "ERROR", False, Verdict.RED),
        ((3, True, False), "error", False, Verdict.GREEN),
        ((3, True, True), "warn", False, Verdict.GREEN),
        ((3, True, True), "warn", True, Verdict.RED),
        (None, "warn", False, Verdict.ERROR),
        (None, "error", False, Verdict.ERROR),
    ],
)
def test_verdicts_are_those_of_dbt(
    row: tuple[int, bool, bool] | None, severity: str, warn_is_error: bool, verdict: Verdict
) -> None:
    """The same row and severity that dbt calls fail, warn, pass or error give red, green or error here."""
    assert combine_verdict(row, severity, warn_is_error=warn_is_error) is verdict


def test_sources_bind_nothing() -> None:
    """Only tables that dbt builds have versions that a verdict depends on."""
    nodes = {
        "model.p.a": {"resource_type": "model", "schema": "demo", "alias": "orders", "name": "a"},
        "seed.p.b": {"resource_type": "seed", "schema": "demo", "name": "b"},
        "test.p.c": {"resource_type": "test", "schema": "demo_audit", "alias": "c", "name": "c"},
    }
    assert project_tables(nodes) == {"demo.orders", "demo.b"}


def test_the_rule_is_not_told_twice() -> None:
    """Neither dbt's side nor the command line knows by which codes the engine refuses a publication."""
    for folder in ("dbt/adapters/tablestore", "tablestore_engine/cli"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            said = set(re.findall(r'"(TS\d{4})"', path.read_text()))
            assert not said & {"TS1082", "TS1308", "TS1075", "TS1076"}, path
