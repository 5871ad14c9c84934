"""Rounds of `tablestore run-stream`: what ends them, how long they wait, what they tell."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.tablestore.continuous import command
from dbt.adapters.tablestore.continuous.command import (
    STREAMING_MODELS,
    Round,
    Rules,
    dbt_command,
    follow,
    pick_wait,
    read_round,
    register,
    run_stream,
)
from dbt.adapters.tablestore.continuous.quarantine_table import Quarantined
from tablestore_engine.errors import FixRequest

GOOD, RED = Round(("copy: snapshot 2",)), Round(red=("not_null: got 1",))
FAILED = Round(failed=("copy: broker away",))


class Asked:
    """Somebody asks to stop behind so many waits."""

    def __init__(self, rounds: int) -> None:
        self.rounds, self.waits = rounds, list[float]()

    def is_set(self) -> bool:
        """Whether they are over."""
        return len(self.waits) >= self.rounds

    def wait(self, timeout: float | None = None) -> bool:
        """Noted, not waited."""
        self.waits.append(timeout or 0.0)
        return self.is_set()


def play(rounds: list[Round], rules: Rules, limit: int = 99) -> tuple[int, list[float], list[str]]:
    """Status, waits, what was said."""
    asked, said = Asked(min(limit, len(rounds))), list[str]()
    turn = iter(rounds)
    return follow(lambda: next(turn), rules, asked, said.append), asked.waits, said


def test_good_rounds_go_on_until_somebody_asks() -> None:
    """At the interval; status 0."""
    assert play([GOOD, Round(), GOOD], Rules(interval_s=3)) == (0, [3, 3, 3], ["copy: snapshot 2"] * 2)


def test_a_red_test_stops_or_is_held() -> None:
    """By default status 1 at once; held back it goes on, and only a good round behind it makes status 0."""
    assert play([GOOD, RED, GOOD], Rules())[0] == 1
    assert len(play([GOOD, RED, GOOD], Rules())[1]) == 1
    assert play([RED, GOOD], Rules(on_red="hold"))[0] == 0
    assert play([GOOD, RED], Rules(on_red="hold"))[0] == 1


def test_failures_are_waited_out_longer_each_time() -> None:
    """A good round forgets them; too many in a row end with status 1, as does being asked behind one."""
    rules = Rules(interval_s=4, retries=2)
    status, waits, said = play([FAILED, FAILED, GOOD, FAILED, FAILED, FAILED, GOOD], rules)
    assert (status, waits) == (1, [8, 16, 4, 8, 16])
    assert said[-1] == "stopped: 3 iterations in a row have failed"
    assert play([GOOD, FAILED], rules)[0] == 1
    assert pick_wait(Rules(interval_s=0), 3) == 8
    assert pick_wait(Rules(interval_s=10), 9) == 60
    assert pick_wait(Rules(interval_s=300), 9) == 300


def node(kind: str, name: str, status: str, **facts: Any) -> Any:
    """One of dbt's results."""
    shape = SimpleNamespace(resource_type=kind, name=name)
    return SimpleNamespace(node=shape, status=status, message=f"{status}.", adapter_response=facts)


def test_what_dbt_says_becomes_a_round() -> None:
    """Models that wrote, red tests, and everything else that failed; a command that failed without a node too."""
    results = [
        node("model", "a", "success", rows_affected=3),
        node("model", "b", "success", rows_affected=0),
        node("model", "c", "error"),
        node("model", "d", "skipped"),
        node("test", "e", "fail"),
        node("test", "f", "error"),
        node("test", "g", "pass"),
    ]
    found = read_round(False, None, results)
    assert found == Round(("a: success.",), (), ("e: fail.",), ("c: error.", "f: error."))
    assert read_round(False, ValueError("no profile"), ()).failed == ("no profile",)
    assert read_round(False, None, ()).failed
    assert read_round(True, None, ()) == Round()


def test_a_model_that_stays_as_it_is_says_so_once() -> None:
    """By on_configuration_change='continue': in its first round, and again when it was kept up meanwhile."""
    kept = read_round(True, None, [node("model", "a", "success", rows_affected="0", code="SKIPPED")])
    assert kept == Round(kept=("a: success.",))
    assert play([kept, kept, FAILED, kept, GOOD, kept], Rules())[2] == [
        "a: success.",
        "failed: copy: broker away",
        "copy: snapshot 2",
        "a: success.",
    ]


def said(results: list[Any], monkeypatch: pytest.MonkeyPatch, *words: str, success: bool = True) -> list[str]:
    """Everything that `run-stream` with these words says, when each round of dbt has these results."""
    lines: list[str] = []
    answer = SimpleNamespace(success=success, exception=None, result=SimpleNamespace(results=results))
    monkeypatch.setattr(command, "dbtRunner", lambda: SimpleNamespace(invoke=lambda _: answer))
    monkeypatch.setattr(command, "_say", lines.append)
    parser = argparse.ArgumentParser()
    register(parser)
    run_stream(parser.parse_args(["--interval", "0", "--retries", "0", *words]))
    return lines


def test_run_stream_says_what_it_repeats_before_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The selection and the interval, on the channel of the other lines."""
    red = [node("model", "m", "error")]
    assert said(red, monkeypatch, success=False)[0] == "started: all streaming models, every 0 s"
    words = ("--select", "a", "b", "--interval", "2.5", "--test")
    assert said(red, monkeypatch, *words, success=False)[0] == "started: a b, every 2.5 s, with tests"


def test_a_round_without_a_model_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that dbt does not find would be looked for for ever, in silence."""
    for results in ([], [node("seed", "s", "success"), node("test", "t", "pass")]):
        with pytest.raises(FixRequest, match=r"TS1847[\s\S]*--select typo"):
            said(results, monkeypatch, "--select", "typo")
    assert said([node("model", "m", "error")], monkeypatch, success=False)[1] == "failed: m: error."
    assert said([], monkeypatch, success=False)[1].startswith("failed: dbt ended without success")


def test_only_red_tests_that_were_answered_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that failed to publish something else is an error, whatever it said of the rows."""
    answer = Quarantined(("copy: aside",), frozenset({"test.p.t"}))
    monkeypatch.setattr(command, "_quarantine", lambda _: answer)
    results = [node("model", "m", "success"), node("test", "t", "error")]
    for one in results:
        one.node.unique_id = f"{one.node.resource_type}.p.{one.node.name}"
    lines = said(results, monkeypatch, "--test", "--on-red", "dead_letter", success=False)
    assert lines[1:3] == ["copy: aside", "failed: t: error."]


def test_words_of_a_round() -> None:
    """All streaming models by default; --test builds; what is dbt's is passed on."""
    parser = argparse.ArgumentParser()
    assert register(parser) is run_stream
    assert dbt_command(parser.parse_args([]))[2:] == ["run", "--select", STREAMING_MODELS]
    words = dbt_command(parser.parse_args(["-s", "a", "b", "--test", "--target", "x", "--vars", "{k: 1}"]))
    assert words[2:] == ["build", "--select", "a", "b", "--target", "x", "--vars", "{k: 1}"]
    for wrong in (
        ["--interval", "-1"],
        ["--retries", "-1"],
        ["--on-red", "hold"],
        ["--on-red", "dead_letter"],
    ):
        with pytest.raises(FixRequest, match="TS1847"):
            run_stream(parser.parse_args(wrong))
