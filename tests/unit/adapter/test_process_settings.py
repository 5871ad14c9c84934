"""What the adapter does for the process of a dbt command, and for no other program."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dbt.adapters.tablestore.garbage_collection import is_dbt_command
from tests.doses import cases


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["/opt/venv/bin/dbt", "run"], True),
        (["dbt"], True),
        (["/venv/lib/python3.11/site-packages/dbt/cli/main.py", "run"], True),
        (["/venv/bin/tablestore", "run-stream"], False),
        (["/venv/bin/airflow"], False),
        (["-c"], False),
        ([], False),
    ],
)
def test_the_program_is_dbt(arguments: list[str], expected: bool) -> None:
    """By the name of the program, whatever its arguments are."""
    assert is_dbt_command(arguments) is expected


@pytest.mark.parametrize("program", cases(["dbt", "airflow"], 1))
def test_only_dbt_collects_less(program: str) -> None:
    """A program that runs dbt inside itself keeps Python's settings."""
    code = (
        f"import sys, gc; before = gc.get_threshold(); sys.argv = ['/bin/{program}', 'run'];"
        " import dbt.adapters.tablestore; print(gc.get_threshold() == before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(program != "dbt")]
