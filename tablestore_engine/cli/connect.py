"""`tablestore connect start|stop|status`: changes of a PostgreSQL database into topics of Kafka.

Steps      fetch Connect and Debezium once, start them, say how they are
INVARIANT  the exit status is 1 when the connector does not run.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict

from tablestore_engine.cli.command_parser import add_data_dir
from tablestore_engine.cli.output import print_json, print_result, say, write_out
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import (
    BROKERS,
    ConnectInfo,
    DatabaseSource,
    LastStart,
    client_settings,
    connector_status,
    find_connect,
    find_last_start,
    parse_source,
    start_connect,
    stop_connect,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["start", "stop", "status"])
    parser.add_argument("name", help="of the source; its topics and its replication slot are named by it")
    text = "start: postgresql://user@host:port/database (default: that of its last start); the password comes from "
    text += "TABLESTORE_DATABASE_PASSWORD"
    parser.add_argument("--database", metavar="URL", help=text)
    text = "start: a table, schema.table with * for anything; may come again (default: all, "
    text += "without --database those of its last start)"
    parser.add_argument("--table", metavar="PATTERN", action="append", default=[], help=text)
    text = "start: delete its slot and its topics, and load all rows again, into new tables"
    parser.add_argument("--anew", action="store_true", help=text)
    add_data_dir(parser, "Connect's offsets and logs")
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="start: Kafka brokers (default: $TABLESTORE_KAFKA, else those of its last start)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "stop":
        stopped = stop_connect(arguments.name, arguments.data_dir)
        text = "stopped" if stopped else f"{arguments.name} was not running"
        print_result({"stopped": stopped}, text, as_json=arguments.json)
        return 0
    if arguments.action == "start":
        source, brokers = _wanted(arguments, find_last_start(arguments.name, arguments.data_dir))
        start_connect(source, brokers, data_dir=arguments.data_dir, anew=arguments.anew, say=say)
    return _tell(find_connect(arguments.name, arguments.data_dir), arguments)


def _wanted(arguments: argparse.Namespace, last: LastStart | None) -> tuple[DatabaseSource, str]:
    """Database and brokers: of the command line, else of the last start. Raises FixRequest TS1469, TS1475.

    Tables of the last start count only with its database: --database without --table means all tables.
    """
    url, tables = arguments.database or "", arguments.table
    if last is not None and not url:
        url, tables = last.source.url, tables or last.source.tables
        shown = ", ".join(tables) or "all tables"
        say(f"{arguments.name}: {shown} of {url}, as in its last start")
    return parse_source(arguments.name, url, tables), _brokers(arguments, last)


def _brokers(arguments: argparse.Namespace, last: LastStart | None) -> str:
    said = {BROKERS: arguments.bootstrap} if arguments.bootstrap else {}
    found = client_settings(os.environ, said=said).get(BROKERS) or (None if last is None else last.brokers)
    if not found:
        raise FixRequest(
            "TS1469",
            "it is not clear where the changes go",
            why="no brokers are named",
            fix="give --bootstrap or TABLESTORE_KAFKA, for example that of: tablestore broker start",
        )
    return found


def _tell(info: ConnectInfo | None, arguments: argparse.Namespace) -> int:
    status = None if info is None else connector_status(info)
    if arguments.json:
        said = (
            None if info is None else {**asdict(info), "status": None if status is None else asdict(status)}
        )
        print_json(said)
    elif info is None:
        write_out(f"{arguments.name}: not running")
    elif status is None:
        write_out(f"{arguments.name}: process {info.pid} does not answer; see {info.log}")
    else:
        how = (
            "running" if status.is_running else f"{status.connector}, its task {status.task}: {status.error}"
        )
        write_out(
            f"{arguments.name}: {how} · {info.source.url} → {info.brokers} · process {info.pid}, log {info.log}"
        )
    return 0 if status is not None and status.is_running else 1
