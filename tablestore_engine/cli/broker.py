"""`tablestore broker start|stop|status|url`: the development broker.

Steps      start: fetch Kafka once, start the nodes that do not run, print their address and, of a secure one, where
           its log-in stands
           stop: end the ones we started, or one node of them
INVARIANT  --json prints one object; without it, one line a person can read.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tablestore_engine.cli.command_parser import add_data_dir
from tablestore_engine.cli.output import print_result, say
from tablestore_engine.devservers.kafka_broker import (
    BROKERS,
    BrokerInfo,
    find_broker,
    start_broker,
    stop_broker,
)


def _start(arguments: argparse.Namespace) -> int:
    info = start_broker(arguments.data_dir, brokers=arguments.brokers, secure=arguments.secure, say=say)
    text = f"broker at {info.url} (process {info.pid}, data {info.data_dir}); stop it with: tablestore broker stop"
    print_result(asdict(info), text + _nodes(info) + _log_in(info), as_json=arguments.json)
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
    stopped = stop_broker(arguments.data_dir, node=arguments.node)
    text = "stopped" if stopped else "no broker was running"
    print_result({"stopped": stopped}, text, as_json=arguments.json)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    info = find_broker(arguments.data_dir)
    text = (
        f"running at {info.url} (process {info.pid}, log {info.log}){_nodes(info)}{_log_in(info)}"
        if info
        else "not running"
    )
    print_result(info and asdict(info), text, as_json=arguments.json)
    return 0 if info else 1


def _url(arguments: argparse.Namespace) -> int:
    """Without a broker stdout stays empty, for `export TABLESTORE_KAFKA=$(tablestore broker url)`."""
    info = find_broker(arguments.data_dir)
    if info is None and not arguments.json:
        say("the broker is not running; start it with: tablestore broker start")
        return 1
    print_result(info and asdict(info), info.url if info else "", as_json=arguments.json)
    return 0 if info else 1


_ACTIONS = {"start": _start, "stop": _stop, "status": _status, "url": _url}


def run(arguments: argparse.Namespace) -> int:
    return _ACTIONS[arguments.action](arguments)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=sorted(_ACTIONS))
    add_data_dir(parser, "the broker's data")
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
