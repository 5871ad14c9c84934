"""What this suite found of each engine: docs/engines.json, which `make docs` prints on docs/engines.md.

Usage      TABLESTORE_ENGINES=docs/engines.json python -m pytest integration_tests/interop
INVARIANT  a cell is the outcome of tests that ran, never a sentence of a person. A run replaces cells that it has
           tests of, and leaves the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

VARIABLE = "TABLESTORE_ENGINES"
_PAIMON = ("batch, newest", "batch, past snapshots")
# test → (engine, None: that of the parameter `reader`; columns)
TESTS: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "test_java_reads_ours_at_every_snapshot": ("Java Paimon 1.4.2", _PAIMON),
    "test_java_sees_each_of_our_changes_once": ("Java Paimon 1.4.2", ("stream",)),
    "test_spark_reads_ours_at_every_snapshot": ("Spark, paimon-spark 0.9.0", _PAIMON),
    "test_python_and_rust_read_ours_at_every_snapshot": (None, _PAIMON),
    "test_rust_sees_each_of_our_changes_once": ("pypaimon-rust 0.4.0", ("stream",)),
    "test_duckdb_reads_every_snapshot": ("DuckDB 1.5.5 over Iceberg", _PAIMON),
    "test_pyiceberg_reads_every_snapshot": ("pyiceberg 0.12.0", _PAIMON),
    "test_iceberg_in_java_reads_every_snapshot": ("Spark 3.5, Iceberg 1.11.0", _PAIMON),
    "test_flink_reads_ours_at_every_snapshot": ("Flink 2.0, paimon-flink 1.4.2", _PAIMON),
    "test_flink_streams_our_changelog": ("Flink 2.0, paimon-flink 1.4.2", ("stream",)),
    "test_flink_writes_in_turns_with_us": ("Flink 2.0, paimon-flink 1.4.2", ("writes in turns",)),
    "test_java_writes_fully_in_turns_with_us": ("Java Paimon 1.4.2", ("writes in turns",)),
    "test_append_table_in_turns": ("Java Paimon 1.4.2", ("writes in turns",)),
    "test_rows_of_pypaimon_are_taken_in": ("pypaimon 2.1.0", ("writes in turns",)),
    "test_hive_reads_the_newest_state": ("Hive's read path, connector 1.2.0", _PAIMON[:1]),
}
# tests that pass when the engine refuses: (kind of table, engines, code)
REFUSALS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "test_a_table_with_a_time_column_is_refused": (
        "with_time",
        ("DuckDB 1.5.5 over Iceberg", "pyiceberg 0.12.0", "Spark 3.5, Iceberg 1.11.0"),
        "refused: TS1143",
    ),
}
_READERS = {"pypaimon": "pypaimon 2.1.0", "rust": "pypaimon-rust 0.4.0"}
Cells = dict[str, dict[str, dict[str, str]]]  # engine → kind of table → column → outcome


class EngineMatrix:
    """Outcomes of one process."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], set[str]] = {}

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """The outcome of a test, once: a skip before it, or the end of it."""
        test = getattr(item, "originalname", "")
        if not (report.when == "call" or report.skipped or report.failed):
            return
        outcome = "not run here" if report.skipped else "OK" if report.passed else "wrong"
        if test in REFUSALS:
            kind, engines, refusal = REFUSALS[test]
            for one in engines:
                self._note(one, kind, _PAIMON, refusal if outcome == "OK" else outcome)
        elif test in TESTS:
            words = item.callspec.params if hasattr(item, "callspec") else {}
            engine, columns = TESTS[test]
            kind = str(words.get("name") or words.get("kind") or test.removeprefix("test_"))
            self._note(engine or _READERS[words["reader"]], kind, columns, outcome)

    def _note(self, engine: str, kind: str, columns: tuple[str, ...], outcome: str) -> None:
        for column in columns:
            self._found.setdefault((engine, kind, column), set()).add(outcome)

    def write(self, path: Path) -> None:
        """The cells of this process over those of the file."""
        cells: Cells = json.loads(path.read_text()) if path.exists() else {}
        for (engine, kind, column), outcomes in self._found.items():
            worst = next((one for one in ("wrong", "not run here") if one in outcomes), max(outcomes))
            cells.setdefault(engine, {}).setdefault(kind, {})[column] = worst
        path.write_text(json.dumps(cells, indent=1, sort_keys=True) + "\n")
