"""`tablestore consumers`: who follows a table under a name, and how far each is."""

from __future__ import annotations

import argparse

from tablestore_engine.api import Table
from tablestore_engine.cli.output import print_json, print_table, say, to_utc, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine
from tablestore_engine.errors import FixRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--delete", metavar="ID", help="forget a consumer: it keeps no snapshot any more")
    text = "move a consumer: with --to"
    act.add_argument("--reset", metavar="ID", help=text)
    text = "next snapshot of --reset: its changes come first (default: what is committed next)"
    parser.add_argument("--to", type=int, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    if arguments.to is not None and arguments.reset is None:
        raise FixRequest(
            "TS1942",
            "--to goes with --reset",
            why="it is the position at which that consumer resumes",
            fix="add --reset ID",
        )
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        if arguments.delete is not None:
            table.delete_consumer(arguments.delete)
        elif arguments.reset is not None:
            to = arguments.to
            table.reset_consumer(
                arguments.reset, to if to is not None else (table.latest_snapshot_id() or 0) + 1
            )
        _show(table, arguments)
    return 0


def _show(table: Table, arguments: argparse.Namespace) -> None:
    records = [
        {
            "consumer": one.name,
            "next_snapshot": one.next_snapshot,
            "lag_snapshots": one.lag_snapshots,
            "lag_rows": one.lag_rows,
            "last_change": to_utc(one.moved_ms),
            "trouble": one.trouble,
        }
        for one in table.consumers()
    ]
    if arguments.json:
        print_json(records)
        return
    if arguments.delete is not None:
        write_out(f"{arguments.table}: consumer {arguments.delete} is forgotten")
    if not records:
        say(f"{arguments.table} has no consumers")
        return
    names = [name for name in records[0] if name != "trouble" or any(one["trouble"] for one in records)]
    rows = [["" if one[name] is None else one[name] for name in names] for one in records]
    print_table([name.replace("_", " ") for name in names], rows)
