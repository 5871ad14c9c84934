"""`tablestore dbt`: dbt itself; with a resident session a fork of the process that has loaded it.

CHANGE     which commands of `tablestore dbt` run in a loaded process
INVARIANT  every word goes to dbt as it is. Commands that ask, serve or install run in a dbt of their own.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tablestore_engine.cli.output import say
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.resident.process_client import run_served
from tablestore_engine.runtime.resident.session_place import place_of

PROGRAM = "dbt.adapters.tablestore.loaded_dbt"
_SERVED_WORDS = "build clone compile list ls parse retry run run-operation seed show snapshot source test"
_SERVED = frozenset(_SERVED_WORDS.split(" "))
_ALONE = frozenset({"clean", "debug", "deps", "docs", "init"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs=argparse.REMAINDER, help="a dbt command with its options")


def dbt_program() -> Path:
    """dbt beside this Python. Raises FixRequest TS1962."""
    program = Path(sys.executable).with_name("dbt")
    if not program.exists():
        raise FixRequest(
            "TS1962",
            "dbt is not installed beside this Python",
            why=f"{program} is missing",
            fix="install dbt-tablestore with pip in this environment",
        )
    return program


def run(arguments: argparse.Namespace) -> int:
    program = dbt_program()
    words = [str(program), *arguments.words]
    if _is_served(arguments.words):
        status = run_served(words, PROGRAM)
        if status is not None:
            return status
        if place_of(Path.cwd()).idle_seconds is not None:
            say("dbt runs by itself: no process could be started that has it loaded")
    sys.stdout.flush()
    return os.execv(program, words)  # noqa: S606 - no shell: the words are passed on as they are


def _is_served(words: list[str]) -> bool:
    """By the first word that is a command of dbt. A value of an option that is one too is taken for it."""
    return next((word for word in words if word in _SERVED | _ALONE), "") in _SERVED
