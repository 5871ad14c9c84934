"""`tablestore explain model`: how runs of a changed_keys model follow its inputs, as `dbt compile` reports it.

CHANGE     `tablestore explain`
INVARIANT  the adapter explains; this runs `dbt compile` and takes its lines out of dbt's log. Nothing is written.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.cli.dbt_command import dbt_program
from tablestore_engine.cli.output import print_json, say, write_out
from tablestore_engine.errors import FixRequest

_FLAGS = ("project-dir", "profiles-dir", "profile", "target", "vars")
_ADAPTER = "Tablestore"  # the name of the adapter's lines in dbt's log
_EXPLAINED = re.compile(r"(?P<model>[^\s:]+\.[^\s:]+): (?P<text>.+)", re.DOTALL)


@dataclass(frozen=True)
class LogLine:
    """Of dbt's log: `model` is schema.table of an explained one, else empty. `level`: debug, info, warn, error."""

    model: str
    text: str
    level: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["model"], help="model: a model by changed_keys")
    parser.add_argument("model", metavar="NAME", help="the model, or a selection as in dbt")
    for flag in _FLAGS:
        parser.add_argument(f"--{flag}", metavar="VALUE", help="as in dbt")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    done = subprocess.run(
        compile_words(dbt_program(), arguments), stdout=subprocess.PIPE, text=True, check=False
    )
    lines = list(read_log(done.stdout))
    if done.returncode:
        for line in lines:
            if line.level == "error":
                say(line.text)
        return 1
    explained = [line for line in lines if line.model]
    if not explained:
        raise FixRequest(
            "TS1993",
            f"{arguments.model} has no model by changed_keys",
            why="dbt selects none with incremental_strategy='changed_keys' or materialized='materialized_view'",
            fix=f"correct the name: dbt ls --select {arguments.model}",
        )
    if arguments.json:
        print_json(
            [{"model": one.model, "line": one.text, "is_warning": one.level == "warn"} for one in explained]
        )
        return 0
    for number, one in enumerate(explained):
        if number == 0 or explained[number - 1].model != one.model:
            write_out(one.model)
        write_out(f"  {'warning: ' if one.level == 'warn' else ''}{one.text}")
    return 0


def compile_words(program: Path, arguments: argparse.Namespace) -> list[str]:
    words = [str(program), "--log-format", "json", "--no-use-colors", "compile", "--select", arguments.model]
    for flag in _FLAGS:
        value = getattr(arguments, flag.replace("-", "_"))
        words += [] if value is None else [f"--{flag}", value]
    return words


def read_log(text: str) -> Iterator[LogLine]:
    """Lines of dbt's log as JSON; others, as Spark prints them, are left out."""
    for line in text.splitlines():
        try:
            event = json.loads(line)
            info, data = event["info"], event["data"]
        except (ValueError, KeyError, TypeError):
            continue
        if info["level"] == "debug":
            continue
        is_ours = data.get("name") == _ADAPTER
        found = _EXPLAINED.fullmatch(str(data.get("base_msg", ""))) if is_ours else None
        yield LogLine(
            "" if found is None else found["model"],
            str(info["msg"]) if found is None else found["text"],
            str(info["level"]),
        )
