"""`tablestore publish`: sends what the log of a table lacks, or publishes a staged snapshot first; --reset repairs.

INVARIANT  publishing again is harmless: what the topic has is never sent twice.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tablestore_engine.cli.commit_record import exit_status, report_record
from tablestore_engine.cli.output import print_result, say, write_out
from tablestore_engine.cli.staged import check_published, get_staged, publish_staged
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import KAFKA_ENV

if TYPE_CHECKING:
    from tablestore_engine.api import Engine
    from tablestore_engine.spi import Publication, Staged


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--staged", metavar="NAME", help="make this staged snapshot the current one first")
    parser.add_argument("--force", action="store_true", help="whatever its tests said")
    either.add_argument(
        "--reset", metavar="N", type=int, help="repair: a new beginning, snapshots up to N count as published"
    )
    add_brokers(parser)


def run(arguments: argparse.Namespace) -> int:
    dropped = 0
    with open_engine(arguments) as engine:
        if arguments.staged is not None:
            item = get_staged(engine, [arguments.table, arguments.staged])
            done = publish_staged(engine, item, force=arguments.force)
            _say_others(done, item)
            check_published(done)
            report = next(one.report for one in done if one.staged.key == item.key and one.report is not None)
        else:
            _check_log(engine, arguments.table)
            if arguments.reset is not None:
                dropped = engine.table(arguments.table).reset_log(arguments.reset)
            report = engine.table(arguments.table).publish()
    if dropped and not arguments.json:
        write_out(
            f"{arguments.table}: {dropped} messages of a transaction that never ended were dropped; no reader had seen "
            f"them, and what belongs to snapshots after {arguments.reset} is sent again"
        )
    more = {} if arguments.reset is None else {"dropped_messages": dropped}
    is_current = arguments.staged is None and not (report.log and report.log.ranges)
    text = f"the log has everything up to snapshot {report.snapshot_id}" if is_current else report.summary()
    print_result({**report_record(report), **more}, f"{arguments.table}: {text}", as_json=arguments.json)
    return exit_status(report)


def _say_others(done: tuple[Publication, ...], item: Staged) -> None:
    for one in done:
        if one.staged.key != item.key:
            say(one.line())


def _check_log(engine: Engine, name: str) -> None:
    if engine.table(name).facts().log is None:
        raise FixRequest(
            "TS1922",
            f"{name} has nothing to publish to",
            why="its option log.system is not kafka",
            fix=f"build it with log_system='kafka'; brokers come from --bootstrap or {KAFKA_ENV}",
        )
