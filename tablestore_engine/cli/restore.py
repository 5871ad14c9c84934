"""`tablestore restore`: the rows of an earlier snapshot as the newest one.

INVARIANT  nothing is taken away: later snapshots stay, so no question is asked (rollback asks).
"""

from __future__ import annotations

import argparse

from tablestore_engine.cli.commit_record import exit_status, expiry_record, log_record
from tablestore_engine.cli.output import print_result
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--to", type=_snapshot_id, metavar="N", help="the snapshot whose rows come back")
    wanted.add_argument("--tag", metavar="NAME", help="the tag whose rows come back")
    parser.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")
    add_brokers(parser)


def _snapshot_id(text: str) -> int:
    if text.isascii() and text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no snapshot id; name a tag with --tag {text}")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        report = engine.table(arguments.table).restore(snapshot=arguments.to, tag=arguments.tag)
    meant = f"snapshot {arguments.to}" if arguments.tag is None else f"tag {arguments.tag}"
    counts = {"inserted": report.inserted, "updated": report.updated, "deleted": report.deleted}
    record = {
        "table": arguments.table,
        "restored": meant,
        "snapshot": report.snapshot_id,
        "committed": not report.is_empty,
        **counts,
        **log_record(report.log),
        **expiry_record(report),
    }
    text = f"{arguments.table}: the rows of {meant}: {report.summary()}"
    print_result(record, text, as_json=arguments.json)
    return exit_status(report)
