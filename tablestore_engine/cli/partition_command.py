"""`tablestore partition`: drops partitions by a condition, and marks partitions as done."""

from __future__ import annotations

import argparse

from tablestore_engine.cli.output import print_result
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine

_WHERE = "a filter of partition columns, as in \"dt < '2026-02-01'\""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="drop|mark-done")
    text = "Delete the rows of partitions in one commit."
    drop = actions.add_parser("drop", help="delete the rows of partitions", description=text)
    add_place(drop)
    add_brokers(drop)
    drop.add_argument("--where", required=True, metavar="FILTER", help=_WHERE)
    drop.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")
    drop.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")
    text = "Mark partitions as done, as the option partition.mark-done-action of the table says."
    mark = actions.add_parser("mark-done", help="mark partitions as done", description=text)
    add_place(mark)
    mark.add_argument("--where", metavar="FILTER", help=f"{_WHERE}; without it the idle ones")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        if arguments.action == "mark-done":
            marked = table.mark_done(arguments.where)
            shown = f"{', '.join(marked) or 'no partition'} marked as done"
            record: dict[str, object] = {"marked": list(marked)}
        else:
            report = table.drop_partitions(arguments.where, dry_run=arguments.dry_run)
            shown = report.summary()
            record = {
                "partitions": list(report.partitions),
                "rows": report.rows,
                "snapshot": report.snapshot_id,
            }
    print_result({"table": arguments.table, **record}, f"{arguments.table}: {shown}", as_json=arguments.json)
    return 0
