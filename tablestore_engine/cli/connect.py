"""`tablestore connect start|stop|status` and `tablestore sync`: a whole PostgreSQL into tables.

Steps      connect: fetch Connect and Debezium once, start them, say how they are · sync: what the database has
           committed by now → the topics of its tables → tables
Ends       sync: behind what was committed when it began; with --follow it begins again, until SIGTERM or Ctrl-C
INVARIANT  a table that could not be brought up to now makes the status 1, also of the last whole round of --follow; so
           does a connector that has failed, and an end before everything was read.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from tablestore_engine.api import OnError, OnTruncate
from tablestore_engine.cli.output import print_json, say, write_out
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.spi import (
    BROKERS,
    ConnectInfo,
    DatabaseSource,
    LastStart,
    SyncReport,
    SyncSpec,
    client_settings,
    connector_status,
    find_connect,
    find_last_start,
    parse_source,
    start_connect,
    stop_connect,
    stopped_by_signals,
    sync_database,
)

Run = Callable[[argparse.Namespace], int]


def _register_connect(parser: argparse.ArgumentParser) -> Run:
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
    parser.add_argument(
        "--data-dir", help="folder of Connect's offsets and logs (default: in the cache folder)"
    )
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="start: Kafka brokers (default: $TABLESTORE_KAFKA, else those of its last start)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return _connect


def _connect(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.data_dir) if arguments.data_dir else None
    if arguments.action == "stop":
        stopped = stop_connect(arguments.name, folder)
        if arguments.json:
            print_json({"stopped": stopped})
        else:
            write_out("stopped" if stopped else f"{arguments.name} was not running")
        return 0
    if arguments.action == "start":
        source, brokers = _wanted(arguments, find_last_start(arguments.name, folder))
        start_connect(source, brokers, data_dir=folder, anew=arguments.anew, say=say)
    return _tell(find_connect(arguments.name, folder), arguments)


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


def _register_sync(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("name", help="of a source that runs (tablestore connect start)")
    parser.add_argument("--into", metavar="db", required=True, help="database of the warehouse")
    add_place(parser, name=None)
    add_brokers(parser)
    parser.add_argument(
        "--data-dir", help="folder of Connect's offsets and logs (default: in the cache folder)"
    )
    text = "messages that cannot be read: an error (default), or kept in the table <into>__dead_letters"
    parser.add_argument("--on-error", choices=list(OnError), default=OnError.FAIL, help=text)
    text = "the database emptied a table: it is emptied too (default), nothing, or an error"
    parser.add_argument("--on-truncate", choices=list(OnTruncate), default=OnTruncate.APPLY, help=text)
    text = "read all rows of one table again (schema.table); may come again"
    parser.add_argument("--resnapshot", metavar="TABLE", action="append", default=[], help=text)
    parser.add_argument("--follow", action="store_true", help="again and again, until SIGTERM or Ctrl-C")
    text = "with --follow: pause between two iterations, in seconds (default 1.0)"
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help=text)
    return _sync


def _say_once(error: RetryError, before: str) -> str:
    """The text, printed unless the round `before` failed with the same one: rounds come each second."""
    text = str(error)
    if text != before:
        say(text)
    return text


def _sync(arguments: argparse.Namespace) -> int:
    spec = SyncSpec(
        arguments.into,
        OnError(arguments.on_error),
        OnTruncate(arguments.on_truncate),
        resnapshot=tuple(arguments.resnapshot),
    )
    status, said = 1, ""  # until a round was whole, no table is known to be up to now
    with open_engine(arguments) as engine, stopped_by_signals() as stop:
        while True:
            try:
                report = sync_database(engine, _find_running(arguments), spec, stop=stop, say=say)
            except RetryError as error:
                if not arguments.follow:
                    raise
                status = 1
                said = _say_once(error, said)
            else:
                said = ""
                if report.is_complete or not arguments.follow:
                    status = 0 if report.is_success else 1
                    if spec.names_unchanged or report.has_changes or arguments.json:
                        _report(report, as_json=arguments.json)
                elif report.errors:  # it was stopped, and had found tables that cannot be brought up to now
                    status = 1
                spec = replace(spec, resnapshot=(), names_unchanged=False)
            if not arguments.follow or stop.wait(arguments.interval):
                return status


def _find_running(arguments: argparse.Namespace) -> ConnectInfo:
    """Each round: it may have been started again meanwhile. Raises RetryError TS1468."""
    folder = Path(arguments.data_dir) if arguments.data_dir else None
    running = find_connect(arguments.name, folder)
    if running is None:
        is_known = find_last_start(arguments.name, folder) is not None
        database = "" if is_known else " --database postgresql://user@host:port/database"
        raise RetryError(
            "TS1468",
            f"source {arguments.name} does not run",
            why="no connector sends its changes, so there is no `up to now`",
            fix=f"tablestore connect start {arguments.name}{database}",
        )
    return running


def _report(report: SyncReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report.record())
        return
    count = len(report.tables)
    failed = f", {len(report.errors)} failed: {', '.join(report.errors)}" if report.errors else ""
    how = f"up to {report.place}" if report.is_complete else "when it was stopped, before the end"
    write_out(f"{count} tables {how}{failed}")


REGISTER = {"connect": _register_connect, "sync": _register_sync}
