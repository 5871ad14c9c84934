"""Commands start without pandas, and pandas works in their process all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from tablestore_engine.api import Engine

_COMMAND = """
import sys
from tablestore_engine.cli.main import main
assert main() == 0
"""
_FRAMES_AFTERWARDS = """
import pyarrow as pa
import pyarrow.parquet
assert "pandas" not in sys.modules
assert pa.table({"n": [1, None]}).to_pandas()["n"].isna().tolist() == [False, True]
import pandas as pd
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert pa.Table.from_pandas(pd.DataFrame({"n": [pd.NaT]})).column("n").null_count == 1
"""
_PYARROW_BEFORE = """
import sys
import pyarrow
from tablestore_engine.cli.without_pandas import leave_out_pandas
before = list(sys.meta_path)
leave_out_pandas()
assert sys.meta_path == before
"""


def _run(program: str, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, *words], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_a_command_reads_a_table_without_pandas(tmp_path: Path) -> None:
    """`head` prints rows of each kind of value; frames made afterwards are those of pandas."""
    with Engine(tmp_path) as engine:
        engine.create_database("demo")
        engine.create_table(
            "demo.orders", pa.schema([("id", pa.int64()), ("name", pa.string())]), primary_key="id"
        )
        engine.table("demo.orders").upsert(pa.table({"id": [1, 2], "name": ["a", None]}))
    _run(_COMMAND + _FRAMES_AFTERWARDS, "head", "demo.orders", "--warehouse", str(tmp_path))


def test_a_process_that_has_pyarrow_keeps_its_import_system() -> None:
    """Its values may be of pandas already."""
    _run(_PYARROW_BEFORE)
