"""House rule: Spark is called in spark/ only; above it, its frames and sessions are passed on by their types.

datasource/ is what Spark calls, so it knows the classes that Spark asks for, its types, and which task it is in: no
functions, no errors, nothing of the JVM.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.statements import parsed, walk_statements

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = frozenset({"pyspark.sql.DataFrame", "pyspark.sql.SparkSession"})

ASKED_FOR = PASSED_ON | {"pyspark", "pyspark.TaskContext", "pyspark.sql.datasource"}
ASKED_FOR_ROOMS = ("pyspark.sql.datasource.", "pyspark.sql.streaming.datasource.", "pyspark.sql.types.")


def _spark_names(path: Path) -> set[str]:
    """Everything of pyspark and py4j that a file imports, wherever the statement stands."""
    found: set[str] = set()
    for node in walk_statements(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.partition(".")[0] in ("pyspark", "py4j")}


OUTSIDE = sorted(
    path
    for path in (ROOT / "tablestore_engine").rglob("*.py")
    if path.relative_to(ROOT / "tablestore_engine").parts[0] not in ("spark", "datasource")
)
CALLED_BY_SPARK = sorted((ROOT / "tablestore_engine" / "datasource").rglob("*.py"))


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_frames_and_sessions_leave_spark(path: Path) -> None:
    """Outside spark/ no functions, no Spark types, no Spark errors: DataFrame and SparkSession are all there is."""
    assert _spark_names(path) <= PASSED_ON


@pytest.mark.parametrize("path", CALLED_BY_SPARK, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_spark_calls_knows_its_classes_and_types(path: Path) -> None:
    """And the session that it is registered with; all else that is done with Spark is done in spark/."""
    rest = _spark_names(path) - ASKED_FOR
    assert not [name for name in rest if not name.startswith(ASKED_FOR_ROOMS)]


def test_the_rule_sees_what_spark_itself_imports() -> None:
    """The same look at spark/ finds what is not allowed elsewhere: the rule is not blind."""
    inside = set().union(*map(_spark_names, (ROOT / "tablestore_engine" / "spark").rglob("*.py")))
    assert {"pyspark.sql.functions", "pyspark.errors.PySparkException"} <= inside
