"""`tablestore staged|publish`: staged snapshots that wait for their tests, and what the log still lacks.

Names      find_red   tests of a staged snapshot that said no
INVARIANT  a staged snapshot with a red test is published only when --force says so.
INVARIANT  publishing again is harmless: what the topic has is never sent twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tablestore_engine.api import Engine, StagedInfo, WriteReport
from tablestore_engine.cli.output import print_json, print_table, say, write_out
from tablestore_engine.cli.place import KAFKA_ENV, add_brokers, add_place, list_names, open_engine
from tablestore_engine.errors import FixRequest

Run = Callable[[argparse.Namespace], int]
_GREEN = "green"


def _register_staged(parser: argparse.ArgumentParser) -> Run:
    add_place(parser, name="any")
    return _staged


def _staged(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        names = list_names(engine, arguments.table)
        found = [one for name in names for one in engine.staged(name)]
    if arguments.json:
        print_json([staged_record(one) for one in found])
        return 0
    rows = [
        (one.table, one.name, one.snapshot_id, one.base_snapshot_id or "", _outcomes_text(one))
        for one in found
    ]
    print_table(("table", "staged", "snapshot", "base", "tests"), rows)
    if not found:
        say("nothing is staged")
    return 0


def staged_record(one: StagedInfo) -> dict[str, object]:
    """A staged snapshot with the outcomes of its tests."""
    return {
        "table": str(one.table),
        "name": one.name,
        "snapshot": one.snapshot_id,
        "base_snapshot": one.base_snapshot_id,
        "outcomes": dict(one.outcomes),
        "properties": dict(one.properties),
    }


def find_red(one: StagedInfo) -> tuple[str, ...]:
    """Tests whose last outcome is not green."""
    return tuple(sorted(test for test, status in one.outcomes.items() if status != _GREEN))


def _outcomes_text(one: StagedInfo) -> str:
    red = find_red(one)
    if red:
        return f"red: {', '.join(_short(test) for test in red)}"
    return f"{len(one.outcomes)} green" if one.outcomes else "none has run"


def _short(unique_id: str) -> str:
    """`test.shop.unique_orders_id.ab12` → `unique_orders_id`."""
    parts = unique_id.split(".")
    return parts[2] if len(parts) > 2 else unique_id


# publish ---------------------------------------------------------------------------------------------


def _register_publish(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--staged", metavar="NAME", help="make this staged snapshot the current one first")
    parser.add_argument("--force", action="store_true", help="even though a test of it is red")
    either.add_argument(
        "--reset", metavar="N", type=int, help="repair: a new beginning, snapshots up to N count as published"
    )
    add_brokers(parser)
    return _publish


def _publish(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        if arguments.staged is not None:
            _check_green(engine, arguments.table, arguments.staged, force=arguments.force)
            report = engine.table(arguments.table).publish_staged(arguments.staged)
        else:
            _check_log(engine, arguments.table)
            if arguments.reset is not None:
                engine.table(arguments.table).reset_log(arguments.reset)
            report = engine.table(arguments.table).publish()
    if arguments.json:
        print_json(report_record(report))
    elif arguments.staged is None and not report.offsets:
        write_out(f"{arguments.table}: the log has everything up to snapshot {report.snapshot_id}")
    else:
        write_out(f"{arguments.table}: {report.summary()}")
    return 0


def report_record(report: WriteReport) -> dict[str, object]:
    """What a commit or a publishing did."""
    return {
        "table": str(report.table),
        "snapshot": report.snapshot_id,
        "inserted": report.inserted,
        "updated": report.updated,
        "deleted": report.deleted,
        "unchanged": report.unchanged,
        "files_added": report.files_added,
        "bytes_added": report.bytes_added,
        "changelog_rows": report.changelog_rows,
        "staged": report.staged,
        "topic": report.topic,
        "offsets": {str(number): list(ends) for number, ends in sorted(report.offsets.items())},
    }


def _check_green(engine: Engine, table: str, name: str, *, force: bool) -> None:
    for one in engine.staged(table):
        red = find_red(one) if one.name == name else ()
        if red and not force:
            raise FixRequest(
                "TS1923",
                f"staged snapshot {name} of {table} is not published",
                why=f"its last test run was red: {', '.join(_short(test) for test in red)}",
                fix="correct the data and build the model again; --force publishes it all the same",
            )


def _check_log(engine: Engine, name: str) -> None:
    if engine.table(name).facts().log_topic is None:
        raise FixRequest(
            "TS1922",
            f"{name} has nothing to publish to",
            why="its option log.system is not kafka",
            fix=f"build it with log_system='kafka'; brokers come from the table, --bootstrap or {KAFKA_ENV}",
        )


REGISTER = {"staged": _register_staged, "publish": _register_publish}
