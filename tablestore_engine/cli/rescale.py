"""`tablestore rescale`: another number of buckets; rows stay as they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tablestore_engine.cli.commit_record import exit_status, expiry_record, log_record
from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine

Run = Callable[[argparse.Namespace], int]


def _register(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument("--buckets", type=int, required=True, metavar="N", help="of each partition")
    parser.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")
    add_brokers(parser)
    return _run


def _run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        before = table.schema.bucket_count
        report = table.rescale(arguments.buckets)
    if arguments.json:
        print_json(
            {
                "table": arguments.table,
                "buckets_before": before,
                "buckets": arguments.buckets,
                "snapshot": report.snapshot_id,
                "committed": not report.is_empty,
                **log_record(report.log),
                **expiry_record(report),
            }
        )
    elif report.is_empty:
        write_out(f"{arguments.table}: has {before} buckets already")
    else:
        write_out(f"{arguments.table}: {before} → {arguments.buckets} buckets: {report.summary()}")
    return exit_status(report)


REGISTER = {"rescale": _register}
