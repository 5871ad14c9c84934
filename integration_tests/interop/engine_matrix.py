"""What this suite found of each engine: docs/engines.json, which `make docs` prints on docs/engines.md.

Usage      TABLESTORE_ENGINES=docs/engines.json python -m pytest integration_tests/interop
Cell       `OK`, or what the test says by `record_property(CELL, …)`: `OK: …` with a limit, `refused: …`; else `wrong`
INVARIANT  a cell is the outcome of tests that ran, never a sentence of a person. A run replaces cells that it has
           tests of, and leaves the others. A skipped test has no outcome.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

VARIABLE, CELL = "TABLESTORE_ENGINES", "cell"
INSERTS = "OK: rows that are inserted; deletes, updates and overwrites are left out"
UPSERTS = "OK: upserts; deletes are left out, since the table has no changelog"
_BATCH = ("batch", "past")
# test → (engine, None: that of the parameter `reader`; columns). Names and columns are those of docs/engine_tables.py
TESTS: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "test_java_reads_ours_at_every_snapshot": ("java", _BATCH),
    "test_java_follows": ("java", ("stream",)),
    "test_java_writes": ("java", ("write",)),
    "test_spark_reads_ours_at_every_snapshot": ("spark", _BATCH),
    "test_spark_follows": ("spark", ("stream",)),
    "test_spark_writes": ("spark", ("write",)),
    "test_python_and_rust_read_ours_at_every_snapshot": (None, _BATCH),
    "test_pypaimon_follows": ("pypaimon", ("stream",)),
    "test_pypaimon_writes": ("pypaimon", ("write",)),
    "test_rust_follows": ("rust", ("stream",)),
    "test_rust_writes": ("rust", ("write",)),
    "test_duckdb_reads_every_snapshot": ("duckdb", _BATCH),
    "test_pyiceberg_reads_every_snapshot": ("pyiceberg", _BATCH),
    "test_iceberg_in_java_reads_every_snapshot": ("spark-iceberg", _BATCH),
    "test_flink_reads_ours_at_every_snapshot": ("flink", _BATCH),
    "test_flink_streams_our_changelog": ("flink", ("stream",)),
    "test_flink_streams_the_inserts_of_a_table_without_key": ("flink", ("stream",)),
    "test_flink_gets_no_deletes_of_a_table_without_changelog": ("flink", ("stream",)),
    "test_flink_writes": ("flink", ("write",)),
    "test_hive_reads_the_newest_state": ("hive", _BATCH[:1]),
    "test_hive_reads_past_snapshots": ("hive", _BATCH[1:]),
}
# tests of one kind of table for several engines
OF_ENGINES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "test_a_table_with_a_time_column_is_refused": ("with_time", ("duckdb", "pyiceberg", "spark-iceberg")),
}
Cells = dict[str, dict[str, dict[str, str]]]  # engine → kind of table → column → outcome


class EngineMatrix:
    """Outcomes of one process."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], set[str]] = {}

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """The outcome of a test, once: a failure before it, or the end of it."""
        test = getattr(item, "originalname", "")
        if report.skipped or not (report.when == "call" or report.failed):
            return
        said = dict(report.user_properties).get(CELL, "OK")
        outcome = str(said) if report.passed else "wrong"
        if test in OF_ENGINES:
            kind, engines = OF_ENGINES[test]
            for one in engines:
                self._note(one, kind, _BATCH, outcome)
        elif test in TESTS:
            words = item.callspec.params if hasattr(item, "callspec") else {}
            engine, columns = TESTS[test]
            kind = str(words.get("name", "without_changelog"))
            self._note(engine or words["reader"], kind, columns, outcome)

    def _note(self, engine: str, kind: str, columns: tuple[str, ...], outcome: str) -> None:
        for column in columns:
            self._found.setdefault((engine, kind, column), set()).add(outcome)

    def write(self, path: Path) -> None:
        """The cells of this process over those of the file."""
        cells: Cells = json.loads(path.read_text()) if path.exists() else {}
        for (engine, kind, column), outcomes in self._found.items():
            worst = "wrong" if "wrong" in outcomes else max(outcomes)
            cells.setdefault(engine, {}).setdefault(kind, {})[column] = worst
        path.write_text(json.dumps(cells, indent=1, sort_keys=True) + "\n")
