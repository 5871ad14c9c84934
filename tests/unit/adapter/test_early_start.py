"""For which commands of dbt a JVM is begun before the imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.tablestore import early_start


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("dbt build", True),
        ("dbt --no-use-colors run --select build", True),
        ("bin/dbt --log-format json snapshot", True),
        ("dbt show --inline 'select 1'", True),
        ("dbt test --select build", False),
        ("dbt ls run", False),
        ("dbt --version", False),
        ("pytest build", False),
        ("tablestore run-stream", False),
    ],
)
def test_commands_that_run_queries_begin_a_jvm(
    line: str, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is the first word that is one; other programs are left alone."""
    begun: list[Path] = []
    monkeypatch.setattr(early_start, "begin", begun.append)
    early_start.start_early(line.split())
    assert begun == ([Path.cwd()] if begins else [])
