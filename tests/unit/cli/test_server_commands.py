"""`broker`, `s3` and `cluster` where no server runs: what is printed, and the exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


def test_broker_url_without_a_broker_leaves_stdout_empty(run: Run, tmp_path: Path) -> None:
    """`export TABLESTORE_KAFKA=$(tablestore broker url)` gives an empty variable; the note is on stderr."""
    done = run("broker", "url", "--data-dir", str(tmp_path / "none"))
    assert (done.status, done.out) == (1, "")
    assert "not running" in done.err
    assert "tablestore broker start" in done.err
    done = run("broker", "url", "--json", "--data-dir", str(tmp_path / "none"))
    assert (done.status, done.json) == (1, None)


@pytest.mark.parametrize("command", ["broker", "s3", "cluster"])
def test_status_without_a_server_is_the_answer(run: Run, tmp_path: Path, command: str) -> None:
    """The status is what `status` is asked for: it stays on stdout, with exit status 1."""
    done = run(command, "status", "--data-dir", str(tmp_path / "none"))
    assert (done.status, done.out, done.err) == (1, "not running\n", "")
