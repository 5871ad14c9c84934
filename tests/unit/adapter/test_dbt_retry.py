"""Identities of writes over `dbt retry`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dbt.adapters.tablestore.write.dbt_retry import PENDING_FILE, PendingWrites, Retried, find_retried


def test_a_retry_has_the_identity_of_the_pending_write_and_hands_it_on(tmp_path: Path) -> None:
    """run → retry → retry of the retry: one identity; another node, and a new run, have their own."""
    first = PendingWrites(tmp_path, None)
    assert first.user_of("run-1", "model.a") == "dbt-run-1"
    first.keep("run-1", "model.a", "dbt-run-1")
    second = PendingWrites(tmp_path, Retried("run-1"))
    assert second.user_of("retry-1", "model.a") == "dbt-run-1"
    assert second.user_of("retry-1", "model.b") == "dbt-retry-1"
    second.keep("retry-1", "model.a", "dbt-run-1")
    assert PendingWrites(tmp_path, Retried("retry-1")).user_of("retry-2", "model.a") == "dbt-run-1"
    assert PendingWrites(tmp_path, None).user_of("run-2", "model.a") == "dbt-run-2"
    assert PendingWrites(tmp_path, None).user_of("", "model.a") is None


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    """The newest invocations are kept."""
    writes = PendingWrites(tmp_path, None)
    for number in range(60):
        writes.keep(f"run-{number}", "model.a", "u")
    kept = json.loads((tmp_path / PENDING_FILE).read_text())
    assert (len(kept), "run-59" in kept, "run-0" in kept) == (50, True, False)


def test_only_dbt_retry_retries(tmp_path: Path) -> None:
    """The invocation of run_results.json, when the command is retry; nothing for any other or without results."""
    results = {"metadata": {"invocation_id": "run-1"}}
    assert find_retried(tmp_path) is None
    with click.Context(click.Command("retry"), info_name="retry"):
        assert find_retried(tmp_path) is None
        (tmp_path / "run_results.json").write_text(json.dumps(results))
        assert find_retried(tmp_path) == Retried("run-1")
    with click.Context(click.Command("run"), info_name="run"):
        assert find_retried(tmp_path) is None


def test_a_retry_runs_what_did_not_end_well(tmp_path: Path) -> None:
    """dbt's macros see no selection in a retry: the nodes come from its results, so that their tests gate."""
    states = ["success", "pass", "partial success", "skipped", "error", "fail", "runtime error", "warn"]
    results = [{"unique_id": state.split()[0], "status": state} for state in states]
    text = json.dumps({"metadata": {"invocation_id": "run-1"}, "results": results})
    (tmp_path / "run_results.json").write_text(text)
    with click.Context(click.Command("retry"), info_name="retry"):
        retried = find_retried(tmp_path)
    again = {"partial", "skipped", "error", "fail", "runtime"}
    assert PendingWrites(tmp_path, retried).selected(["model.x"]) == again
    assert PendingWrites(tmp_path, None).selected(["model.x"]) == {"model.x"}


def test_retried_runs_of_a_chain_of_retries_are_all_named(tmp_path: Path) -> None:
    """The second retry of a run continues the run and its first retry; another command continues nothing."""
    assert PendingWrites(tmp_path, None).retried_runs("run-1") == ()
    assert PendingWrites(tmp_path, Retried("run-1")).retried_runs("retry-1") == ("run-1",)
    assert PendingWrites(tmp_path, Retried("retry-1")).retried_runs("retry-2") == ("retry-1", "run-1")
