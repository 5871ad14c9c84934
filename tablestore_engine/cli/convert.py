"""`tablestore convert`: a table of another engine gets deletion vectors and fixed buckets; rows stay as they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tablestore_engine.cli.commit_record import exit_status, expiry_record
from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine

Run = Callable[[argparse.Namespace], int]


def _register(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument(
        "--buckets", type=int, metavar="N", help="of each partition; default: as many as there are"
    )
    parser.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")
    return _run


def _run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        report = table.convert(arguments.buckets)
        buckets = table.schema.bucket_count
    if arguments.json:
        print_json(
            {
                "table": arguments.table,
                "buckets": buckets,
                "snapshot": report.snapshot_id,
                "committed": not report.is_empty,
                **expiry_record(report),
            }
        )
    elif report.is_empty:
        write_out(f"{arguments.table}: is written by this engine already")
    else:
        write_out(f"{arguments.table}: converted, {buckets} buckets: {report.summary()}")
    return exit_status(report)


REGISTER = {"convert": _register}
