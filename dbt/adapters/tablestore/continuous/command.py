"""`tablestore run-stream`: dbt runs of streaming models, one after the other in one process, until SIGTERM or Ctrl-C.

CHANGE     `tablestore run-stream`
Steps      arguments → follow(), whose round is `dbt run` (with --test `dbt build`: staged, tested, then published)
Ends       behind the round that is running; a second signal ends it at once, which loses nothing (decision 0043)
CHANGE     one iteration of `tablestore run-stream`, and its end
Round      a round → its lines → red tests: stop or hold · another failure: wait longer each time, give up at last ·
           success: wait for the interval
INVARIANT  a round is never cut: who asks to stop waits until it has committed.
INVARIANT  status 0 means: asked to stop, and the last round was good.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dbt.adapters.factory import get_adapter_by_type
from dbt.cli.main import dbtRunner

from dbt.adapters.tablestore.continuous.quarantine_table import SUFFIX, Quarantined, quarantine_failed
from dbt.adapters.tablestore.messages import shown
from tablestore_engine.api import FixRequest, TablestoreError
from tablestore_engine.spi import SYSTEM, moment_text, stopped_by_signals

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


DEAD_LETTER = "dead_letter"
STREAMING_MODELS = "config.materialized:streaming"
Run = Callable[[argparse.Namespace], int]


def register(parser: argparse.ArgumentParser) -> Run:
    """What tablestore_engine.cli.main asks of a command."""
    text = "models, as in dbt; may come again (default: all with materialized='streaming')"
    parser.add_argument("--select", "-s", metavar="MODEL", action="append", nargs="+", default=[], help=text)
    text = "seconds between two iterations (default 10)"
    parser.add_argument("--interval", type=float, default=10.0, metavar="SECONDS", help=text)
    text = "each iteration is a `dbt build`: rows are tested before they are published"
    parser.add_argument("--test", action="store_true", help=text)
    text = (
        "after a failed test: end with status 1 (default); hold its rows back, the next iteration reads them again; "
        f"or quarantine them in <model>{SUFFIX} and continue after them"
    )
    parser.add_argument("--on-red", choices=["stop", "hold", DEAD_LETTER], default="stop", help=text)
    text = "failed iterations in a row that are retried (exponential backoff) before it ends with status 1 (default 5)"
    parser.add_argument("--retries", type=int, default=5, metavar="N", help=text)
    for flag in ("--project-dir", "--profiles-dir", "--target", "--vars"):
        parser.add_argument(flag, metavar="VALUE", help="as in dbt")
    return run_stream


def run_stream(arguments: argparse.Namespace) -> int:
    """Raises FixRequest TS1847."""
    if arguments.on_red != "stop" and not arguments.test:
        raise FixRequest(
            "TS1847",
            f"--on-red {arguments.on_red} needs --test",
            why="without it no iteration runs a test",
            fix="add --test, or leave --on-red out",
        )
    if arguments.interval < 0 or arguments.retries < 0:
        raise FixRequest(
            "TS1847",
            "run-stream cannot wait or try less than not at all",
            why=f"--interval is {arguments.interval}, --retries is {arguments.retries}",
            fix="give numbers from 0",
        )
    command = dbt_command(arguments)

    def play() -> Round:
        done = dbtRunner().invoke(command)
        results = getattr(done.result, "results", None) or ()
        if done.success:
            _check_models(results, command)
        try:
            quarantined = _quarantine(results) if arguments.on_red == DEAD_LETTER else Quarantined()
        except TablestoreError as error:
            return Round(failed=(str(error),))
        left = [
            one for one in results if str(one.status) != FAIL or one.node.unique_id not in quarantined.tests
        ]
        found = read_round(bool(done.success) or bool(quarantined.tests), done.exception, left)
        return replace(found, lines=(*found.lines, *quarantined.lines))

    rules = Rules(arguments.interval, arguments.on_red, arguments.retries)
    names = " ".join(one for group in arguments.select for one in group) or "all streaming models"
    _say(f"started: {names}, every {arguments.interval:g} s{', with tests' if arguments.test else ''}")
    with stopped_by_signals() as stop:
        return follow(play, rules, stop, _say)


def _check_models(results: Sequence[Any], command: Sequence[str]) -> None:
    """Raises FixRequest TS1847: rounds that find nothing would go on for ever."""
    if not any(str(one.node.resource_type) == "model" for one in results):
        selected = " ".join(command[command.index("--select") + 1 :])
        raise FixRequest(
            "TS1847",
            "run-stream has no model to keep up",
            why=f"dbt finds none by --select {selected}",
            fix="correct the name (dbt ls --select …), or give a model materialized='streaming'",
        )


def _quarantine(results: Sequence[Any]) -> Quarantined:
    if all(str(one.status) != FAIL for one in results):
        return Quarantined()
    adapter: Any = get_adapter_by_type("tablestore")  # type: ignore[no-untyped-call]  # dbt's; that of the round
    return quarantine_failed(adapter.engine, results)


def dbt_command(arguments: argparse.Namespace) -> list[str]:
    """The words of one round."""
    models = [one for group in arguments.select for one in group] or [STREAMING_MODELS]
    words = ["--quiet", "--no-use-colors", "build" if arguments.test else "run", "--select", *models]
    for flag in ("project_dir", "profiles_dir", "target", "vars"):
        value = getattr(arguments, flag)
        words += [] if value is None else [f"--{flag.replace('_', '-')}", value]
    return words


def _say(line: str) -> None:
    print(shown(f"{moment_text(SYSTEM.now_ms())} {line}"), file=sys.stdout, flush=True)
