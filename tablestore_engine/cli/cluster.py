"""`tablestore cluster start|stop|status`: a standalone Spark cluster for development.

Steps      start: a master and workers from pyspark's jars, and the lines of a profile that runs on them
           stop: end those that we started
INVARIANT  --json prints one object; without it, lines that a person can read.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tablestore_engine.cli.command_parser import add_data_dir
from tablestore_engine.cli.output import print_json, print_result, say, write_out
from tablestore_engine.devservers.spark_cluster import (
    ClusterInfo,
    WorkerSize,
    ask_master,
    find_cluster,
    profile_lines,
    start_cluster,
    stop_cluster,
)


def _start(arguments: argparse.Namespace) -> int:
    size = WorkerSize(arguments.cores, arguments.memory)
    info = start_cluster(arguments.data_dir, workers=arguments.workers, size=size, say=say)
    _show(info, as_json=arguments.json)
    return 0


def _show(info: ClusterInfo, *, as_json: bool) -> None:
    answer = ask_master(info.web)
    if as_json:
        print_json({**asdict(info), "answer": None if answer is None else asdict(answer)})
        return
    cores = "it does not answer" if answer is None else f"{answer.cores_used} of {answer.cores} cores in use"
    write_out(f"cluster at {info.master} ({len(info.workers)} workers, {cores}; page {info.web})")
    write_out("stop it with: tablestore cluster stop")
    write_out("the profile (the secret lets applications in, keep it to yourself):")
    write_out(profile_lines(info))


def _stop(arguments: argparse.Namespace) -> int:
    stopped = stop_cluster(arguments.data_dir)
    text = "stopped" if stopped else "no cluster was running"
    print_result({"stopped": stopped}, text, as_json=arguments.json)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    info = find_cluster(arguments.data_dir)
    if info is not None:
        _show(info, as_json=arguments.json)
    elif arguments.json:
        print_json(None)
    else:
        write_out("not running")
    return 0 if info else 1


_ACTIONS = {"start": _start, "stop": _stop, "status": _status}


def run(arguments: argparse.Namespace) -> int:
    return _ACTIONS[arguments.action](arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=sorted(_ACTIONS))
    parser.add_argument(
        "--workers", type=_count, default=2, help="start: number of workers, at most 100 (default: 2)"
    )
    parser.add_argument("--cores", type=_count, default=1, help="start: cores of each worker (default: 1)")
    parser.add_argument("--memory", default="2g", help="start: memory of each worker (default: 2g)")
    add_data_dir(parser, "logs and work folders")
    parser.add_argument("--json", action="store_true", help="print JSON")
