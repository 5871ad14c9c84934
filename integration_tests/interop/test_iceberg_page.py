"""The programs of docs/engines.md read a table as they stand there, in an environment without the engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from integration_tests.docs.project import ROOT
from integration_tests.docs.snippets import read_snippets
from integration_tests.interop.environments import ICEBERG, PYPAIMON, RUST
from integration_tests.interop.golden import Kind, make_table
from integration_tests.interop.missing import made_or_skip
from integration_tests.interop.ours import Ours
from integration_tests.interop.scenarios import Step
from integration_tests.interop.schemas import schema
from integration_tests.interop.test_iceberg import OursWithIceberg

PAGE = ROOT / "docs" / "engines.md"
PROGRAMS = {
    one.file_name: one.text
    for one in read_snippets(PAGE)
    if (one.file_name or "").startswith("consumers/read_")
}
ENVIRONMENTS = {
    "consumers/read_duckdb.py": ICEBERG,
    "consumers/read_pyiceberg.py": ICEBERG,
    "consumers/read_pypaimon.py": PYPAIMON,
    "consumers/read_datafusion.py": RUST,
}
NEWEST = [(1, "paid"), (2, "new"), (3, "new")]


def make_orders(ours: Ours, warehouse: Path) -> Path:
    """The folder of the table demo.orders of the page: two rows, then one of them paid and a third."""
    made = schema({"id": "BIGINT", "status": "STRING"}, keys=("id",), options={"bucket": "1"})
    first, second = ({"id": one, "status": "new"} for one in (1, 2))
    steps = [
        Step((("+I", first), ("+I", second))),
        Step((("+U", {**first, "status": "paid"}), ("+I", {"id": 3, "status": "new"}))),
    ]
    location = warehouse / "demo.db" / "orders"
    make_table(ours, location, Kind(made, steps, early=False))
    return location


def test_every_program_of_the_page_is_run_here() -> None:
    """A further one needs its environment."""
    assert set(PROGRAMS) == set(ENVIRONMENTS)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_program_of_the_page_counts_the_rows(tmp_path: Path, name: str) -> None:
    """Three rows now, two at the first snapshot."""
    make_orders(OursWithIceberg("3"), tmp_path / "warehouse")
    python = str(made_or_skip(ENVIRONMENTS[name].python))
    done = subprocess.run(
        [python, "-c", PROGRAMS[name]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["3", "2"], done.stderr
