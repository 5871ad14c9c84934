"""`tablestore session`: Spark and dbt stay loaded for the next command of this folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from tablestore_engine.cli.output import print_result
from tablestore_engine.runtime.resident.process_client import stop_session
from tablestore_engine.runtime.resident.session_place import IDLE_SECONDS, SessionPlace, place_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("start", "status", "stop"))
    text = f"start: minutes without a command after which it ends (default {IDLE_SECONDS / 60:.0f})"
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS / 60, metavar="MINUTES", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    place = place_of(Path.cwd())
    if arguments.action == "start":
        place.want(arguments.idle * 60)
    elif arguments.action == "stop":
        stop_session(place)
    print_result(_facts(place), _sentence(place), as_json=arguments.json)
    return 0


def _facts(place: SessionPlace) -> dict[str, object]:
    jvm, idle = place.jvm(), place.idle_seconds
    processes = {"pid": place.process(), "java_pid": jvm and jvm.pid, "program": place.program()}
    return {"folder": str(place.working), "wanted": idle is not None, **processes, "idle_seconds": idle}


def _sentence(place: SessionPlace) -> str:
    process, jvm, idle = place.process(), place.jvm(), place.idle_seconds
    if idle is None:
        return f"commands in {place.working} start Spark and dbt themselves"
    if process is None:
        return f"the next command in {place.working} that needs Spark, or `tablestore dbt`, starts a process that stays"
    keeps = [f"Spark (Java process {jvm.pid})"] if jvm is not None else []
    keeps += ["dbt"] if place.program() is not None else []
    ends = f"it ends {idle / 60:g} minutes after the last command"
    return f"process {process} keeps {' and '.join(keeps)} for {place.working}; {ends}"
