"""Bounded runs one after the other, until somebody asks to stop or they keep failing. What to do next is decided here.

CHANGE     one iteration of `tablestore run-stream`, and its end
Steps      a round → its lines → red tests: stop or hold · another failure: wait longer each time, give up at last ·
           success: wait for the interval
INVARIANT  a round is never cut: who asks to stop waits until it has committed.
INVARIANT  status 0 means: asked to stop, and the last round was good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

FAIL = "fail"
_TROUBLE = (FAIL, "error")
_SKIPPED = "SKIPPED"  # the code of a model that on_configuration_change='continue' keeps as it is
_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True)
class Rules:
    """`interval_s` between the end of a round and the next; `on_red`: stop, hold, or dead_letter, where only tests are
    red that could not be answered by quarantining rows; `retries`: failures in a row that are waited out.
    """

    interval_s: float = 10.0
    on_red: str = "stop"
    retries: int = 5


@dataclass(frozen=True)
class Round:
    """`lines`: of models that committed or quarantined something; `kept`: of those that stay as they are, told
    once; `red`: data tests whose rows are held back; `failed`: anything else, with its reason.
    """

    lines: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class Stop(Protocol):
    """threading.Event, as far as it is used."""

    def is_set(self) -> bool:
        """Whether to end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is set, at most so many seconds."""


def read_round(success: bool, exception: BaseException | None, results: Sequence[Any]) -> Round:
    """`results`: dbt's, of every node."""
    lines: list[str] = []
    kept: list[str] = []
    red: list[str] = []
    failed: list[str] = []
    for one in results:
        status, kind = str(one.status), str(one.node.resource_type)
        if status in _TROUBLE:
            (red if kind == "test" and status == FAIL else failed).append(f"{one.node.name}: {one.message}")
        facts = getattr(one, "adapter_response", None) or {}
        if facts.get("code") == _SKIPPED:
            kept.append(f"{one.node.name}: {one.message}")
        elif kind == "model" and status == "success" and facts.get("rows_affected"):
            lines.append(f"{one.node.name}: {one.message}")
    if not success and not red and not failed:
        failed.append(str(exception or "dbt ended without success and named no node"))
    return Round(tuple(lines), tuple(kept), tuple(red), tuple(failed))


def follow(play: Callable[[], Round], rules: Rules, stop: Stop, say: Callable[[str], None]) -> int:
    """The exit status."""
    failures, is_good = 0, True
    told: tuple[str, ...] = ()
    while not stop.is_set():
        now = play()
        for line in (*now.lines, *(one for one in now.kept if one not in told)):
            say(line)
        told = now.kept or (told if now.failed else ())
        for line in now.red:
            say(f"red: {line}")
        for line in now.failed:
            say(f"failed: {line}")
        is_good = not now.red and not now.failed
        if now.red and rules.on_red != "hold":
            say("stopped: the rows of the failed test are not published; the next run reads them again")
            return 1
        failures = failures + 1 if now.failed else 0
        if failures > rules.retries:
            say(f"stopped: {failures} iterations in a row have failed")
            return 1
        stop.wait(pick_wait(rules, failures))
    return 0 if is_good else 1


def pick_wait(rules: Rules, failures: int) -> float:
    """Seconds until the next round: twice as long behind each failure, up to a minute or the interval."""
    longest = max(_LONGEST_WAIT_S, rules.interval_s)
    return float(min(max(rules.interval_s, 1.0) * 2**failures, longest)) if failures else rules.interval_s
