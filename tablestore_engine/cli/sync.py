"""`tablestore sync`: a whole PostgreSQL into tables.

Steps      what the database has committed by now → the topics of its tables → tables
Ends       after what was committed when it began; with --follow it begins again, until SIGTERM or Ctrl-C
INVARIANT  a table that could not be brought up to now makes the status 1, also of the last whole round of --follow; so
           does a connector that has failed, and an end before everything was read.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from tablestore_engine.api import OnError, OnTruncate
from tablestore_engine.cli.command_parser import add_data_dir
from tablestore_engine.cli.output import print_json, say, write_out
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.errors import RetryError
from tablestore_engine.spi import (
    ConnectInfo,
    SyncReport,
    SyncSpec,
    find_connect,
    find_last_start,
    stopped_by_signals,
    sync_database,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="of a source that runs (tablestore connect start)")
    parser.add_argument("--into", metavar="db", required=True, help="database of the warehouse")
    add_place(parser, name=None)
    add_brokers(parser)
    add_data_dir(parser, "Connect's offsets and logs")
    text = "messages that cannot be read: an error (default), or kept in the table <into>__dead_letters"
    parser.add_argument("--on-error", choices=list(OnError), default=OnError.FAIL, help=text)
    text = "the database emptied a table: it is emptied too (default), nothing, or an error"
    parser.add_argument("--on-truncate", choices=list(OnTruncate), default=OnTruncate.APPLY, help=text)
    text = "read all rows of one table again (schema.table); may come again"
    parser.add_argument("--resnapshot", metavar="TABLE", action="append", default=[], help=text)
    parser.add_argument("--follow", action="store_true", help="again and again, until SIGTERM or Ctrl-C")
    text = "with --follow: pause between two iterations, in seconds (default 1.0)"
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help=text)


def _say_once(error: RetryError, before: str) -> str:
    """The text, printed unless the round `before` failed with the same one: rounds come each second."""
    text = str(error)
    if text != before:
        say(text)
    return text


def run(arguments: argparse.Namespace) -> int:
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
    running = find_connect(arguments.name, arguments.data_dir)
    if running is None:
        is_known = find_last_start(arguments.name, arguments.data_dir) is not None
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
