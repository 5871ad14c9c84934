"""`tablestore broker start|stop|status|url`: the development broker.

Steps      start: fetch Kafka once, start the nodes that do not run, print their address and, of a secure one, where
           its log-in stands
           stop: end the ones we started, or one node of them
INVARIANT  --json prints one object; without it, one line a person can read.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tablestore_engine.cli.output import print_json, say, write_out
from tablestore_engine.devservers.kafka_broker import (
    BROKERS,
    BrokerInfo,
    find_broker,
    start_broker,
    stop_broker,
)


def _folder(arguments: argparse.Namespace) -> Path | None:
    return Path(arguments.data_dir) if arguments.data_dir else None


def _print(info: BrokerInfo | None, *, as_json: bool, text: str) -> None:
    if as_json:
        print_json(asdict(info) if info else None)
    else:
        write_out(text)


def _start(arguments: argparse.Namespace) -> int:
    folder = _folder(arguments)
    info = start_broker(folder, brokers=arguments.brokers, secure=arguments.secure, say=say)
    text = f"broker at {info.url} (process {info.pid}, data {info.data_dir}); stop it with: tablestore broker stop"
    _print(info, as_json=arguments.json, text=text + _nodes(info) + _log_in(info))
    return 0


def _nodes(info: BrokerInfo) -> str:
    """A line for each, where there are several."""
    if len(info.nodes) == 1:
        return ""
    return "".join(
        f"\nnode {node.number} at {node.url}: "
        + ("not running; `tablestore broker start` starts it" if node.pid is None else f"process {node.pid}")
        + f", log {node.log}"
        for node in info.nodes
    )


def _log_in(info: BrokerInfo) -> str:
    """What clients of a secure broker are given."""
    if info.client_config is None:
        return ""
    return (
        f"\nSASL/SCRAM-SHA-512 over TLS; settings for clients: --kafka-config {info.client_config} "
        f"(or TABLESTORE_KAFKA_CONFIG); for a superuser: {info.admin_config}"
    )


def _stop(arguments: argparse.Namespace) -> int:
    stopped = stop_broker(_folder(arguments), node=arguments.node)
    if arguments.json:
        print_json({"stopped": stopped})
    else:
        write_out("stopped" if stopped else "no broker was running")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    info = find_broker(_folder(arguments))
    text = (
        f"running at {info.url} (process {info.pid}, log {info.log}){_nodes(info)}{_log_in(info)}"
        if info
        else "not running"
    )
    _print(info, as_json=arguments.json, text=text)
    return 0 if info else 1


def _url(arguments: argparse.Namespace) -> int:
    """Without a broker stdout stays empty, for `export TABLESTORE_KAFKA=$(tablestore broker url)`."""
    info = find_broker(_folder(arguments))
    if info is None and not arguments.json:
        say("the broker is not running; start it with: tablestore broker start")
        return 1
    _print(info, as_json=arguments.json, text="" if info is None else info.url)
    return 0 if info else 1


_ACTIONS = {"start": _start, "stop": _stop, "status": _status, "url": _url}


def _run(arguments: argparse.Namespace) -> int:
    return _ACTIONS[arguments.action](arguments)


def register(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Arguments of `tablestore broker`."""
    parser.add_argument("action", choices=sorted(_ACTIONS))
    parser.add_argument("--data-dir", help="folder of the broker's data (default: in the cache folder)")
    parser.add_argument(
        "--brokers",
        type=int,
        choices=BROKERS,
        help="start: number of nodes; with 3, topics have three replicas (default: as the folder has, else 1)",
    )
    parser.add_argument("--node", type=int, help="stop: only this node of several; start starts it again")
    parser.add_argument(
        "--secure",
        action="store_true",
        help="start: log-in by SASL/SCRAM over TLS, and a user with no right more than tables need",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return _run


REGISTER = {"broker": register}
