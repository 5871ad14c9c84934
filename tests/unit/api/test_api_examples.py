"""Each name of the Python API has an example in its docstring: it runs, prints what it says, and has strict types."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from docs.api_examples import SETUP, ApiName, api_names, code_of, header, program, run_example

NAMES = api_names()
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("one", NAMES, ids=lambda one: one.name)
def test_name_of_api_has_an_example(one: ApiName) -> None:
    """At least one line, after a text of its own."""
    assert one.prose
    assert one.steps


@pytest.mark.parametrize("one", [one for one in NAMES if not one.needs_spark], ids=lambda one: one.name)
def test_example_prints_what_it_says(one: ApiName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a doctest after the setup of the page, in an empty folder; those with Spark in integration_tests/spark."""
    monkeypatch.chdir(tmp_path)
    assert run_example(one) == ""


def test_example_that_prints_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the checks: a wrong value and an exception are both reported."""
    monkeypatch.chdir(tmp_path)

    def wrong() -> None:
        """Text.

        >>> orders.scan().to_arrow().num_rows
        4
        >>> orders.scan(filter="nothing")
        """

    found = run_example(ApiName("wrong", wrong))
    assert "Expected:\n    4" in found
    assert "TS1565" in found


@pytest.mark.nightly  # by day the examples are run
def test_examples_pass_strict_mypy(tmp_path: Path) -> None:
    """Each as a module of its own beside the setup, so that a name that is missing or wrong is an error."""
    (tmp_path / "example.py").write_text(SETUP)
    for one in NAMES:
        (tmp_path / f"{one.name.lower().replace('.', '_')}_example.py").write_text(program(one))
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(ROOT / "pyproject.toml"),
            *map(str, tmp_path.glob("*.py")),
        ],
        cwd=ROOT,
        env={"MYPYPATH": f"{ROOT}:{tmp_path}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_program_has_imports_and_output() -> None:
    """What the page shows: imports by use, the code, and the output as comments."""
    (one,) = (one for one in NAMES if one.name == "Table.upsert")
    assert header(code_of(one)) == "import polars as pl\nfrom example import orders"
    assert program(one).endswith("report.summary()\n# 'snapshot 2 (+1 ~1 -0)'\n")
    assert doctest.DocTestParser().get_examples(one.text)
