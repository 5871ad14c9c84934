"""House rule: Spark is called in spark/ only; above it, its frames and sessions are passed on by their types."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = frozenset({"pyspark.sql.DataFrame", "pyspark.sql.SparkSession"})


def _spark_names(path: Path) -> set[str]:
    """Everything of pyspark and py4j that a file imports, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.partition(".")[0] in ("pyspark", "py4j")}


OUTSIDE = sorted(
    path
    for path in (ROOT / "tablestore_engine").rglob("*.py")
    if path.relative_to(ROOT / "tablestore_engine").parts[0] != "spark"
)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_frames_and_sessions_leave_spark(path: Path) -> None:
    """Outside spark/ no functions, no Spark types, no Spark errors: DataFrame and SparkSession are all there is."""
    assert _spark_names(path) <= PASSED_ON


def test_the_rule_sees_what_spark_itself_imports() -> None:
    """The same look at spark/ finds what is not allowed elsewhere: the rule is not blind."""
    inside = set().union(*map(_spark_names, (ROOT / "tablestore_engine" / "spark").rglob("*.py")))
    assert {"pyspark.sql.functions", "pyspark.errors.PySparkException"} <= inside
