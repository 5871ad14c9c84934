"""`tablestore session`: a Spark session that stays for the next command of this folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.runtime.command_server.command_client import find_server, stop_server
from tablestore_engine.runtime.session_place import SessionPlace, place_of
from tablestore_engine.spark.resident_session import IDLE_SECONDS

Run = Callable[[argparse.Namespace], int]


def _register_session(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("action", choices=("start", "status", "stop"))
    text = f"start: minutes without a command after which it ends (default {IDLE_SECONDS / 60:.0f})"
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS / 60, metavar="MINUTES", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return _session


def _session(arguments: argparse.Namespace) -> int:
    place = place_of(Path.cwd())
    if arguments.action == "start":
        place.want(arguments.idle * 60)
    elif arguments.action == "stop":
        place.forget()
        stop_server(place)
    place.drop_dead()
    _tell(place, as_json=arguments.json)
    return 0


def _tell(place: SessionPlace, *, as_json: bool) -> None:
    if as_json:
        _tell_json(place)
        return
    holder, idle = place.holder(), place.idle_seconds
    if idle is None:
        write_out(f"commands in {place.working} start Spark themselves")
        return
    if holder is None:
        write_out(f"the next command in {place.working} that needs Spark starts a session that stays")
    else:
        ends = f"it ends {idle / 60:g} minutes after the last command"
        write_out(f"a session for {place.working} runs (process {holder.pid}); {ends}")
    if sys.platform == "linux":
        write_out(f"`tablestore dbt build` is faster still: {_dbt_text(find_server(place))}")


def _tell_json(place: SessionPlace) -> None:
    holder = place.holder()
    facts = {"wanted": place.idle_seconds is not None, "pid": None if holder is None else holder.pid}
    more = {"dbt_pid": find_server(place), "idle_seconds": place.idle_seconds}
    print_json({"folder": str(place.working), **facts, **more})


def _dbt_text(pid: int | None) -> str:
    if pid is None:
        return "the first such command starts a process that has dbt loaded, and stays too"
    return f"process {pid} has dbt loaded"


REGISTER = {"session": _register_session}
