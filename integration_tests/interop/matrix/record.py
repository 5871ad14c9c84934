"""The outcomes of tables in docs/interop.json, a line for each seed, so that a run can continue where one ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integration_tests.interop.environments import (
    BUNDLE,
    FLINK_VERSION,
    PAIMON_FLINK,
    PYPAIMON,
    RUST,
    SPARK35,
    SPARK_CONNECTOR,
)
from integration_tests.nightly_record import ROOT

RECORD = ROOT / "docs" / "interop.json"
VERSIONS: Mapping[str, str] = {
    "java": f"{BUNDLE[1]} {BUNDLE[2]}",
    "spark": f"{SPARK_CONNECTOR[1]} {SPARK_CONNECTOR[2]} on {SPARK35.pins[0].replace('==', ' ')}",
    "pypaimon": PYPAIMON.pins[0].replace("==", " "),
    "rust": RUST.pins[0].replace("==", " "),
    "flink": f"Flink {FLINK_VERSION}, {PAIMON_FLINK[0]} {PAIMON_FLINK[1]}",
}


def read_record(path: Path = RECORD) -> dict[str, Any]:
    """{seed: {commit, mark, features, outcomes}} under `tables`; none of another version of an engine."""
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    tables = record.get("tables", {}) if record.get("versions") == VERSIONS else {}
    return {"versions": dict(VERSIONS), "tables": tables}


def write_record(record: Mapping[str, Any], path: Path = RECORD) -> None:
    """A line for each table, ordered by seed."""
    tables = record["tables"]
    lines = [
        f'  "{seed}": {json.dumps(tables[seed], ensure_ascii=False, sort_keys=True)}'
        for seed in sorted(tables, key=int)
    ]
    head = json.dumps(record["versions"], sort_keys=True)
    path.write_text(f'{{\n "versions": {head},\n "tables": {{\n' + ",\n".join(lines) + "\n }\n}\n", "utf-8")


def is_done(table: Mapping[str, Any] | None, mark: str) -> bool:
    """Whether this very table has outcomes, none of them wrong."""
    if table is None or table["mark"] != mark:
        return False
    return not any(one.startswith("wrong") for cells in table["outcomes"].values() for one in cells.values())
