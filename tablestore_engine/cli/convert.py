"""`tablestore convert`: a table of another engine gets deletion vectors and fixed buckets; rows stay as they are."""

from __future__ import annotations

import argparse

from tablestore_engine.cli.commit_record import exit_status, expiry_record
from tablestore_engine.cli.output import print_result
from tablestore_engine.cli.warehouse_choice import add_place, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument(
        "--buckets", type=int, metavar="N", help="of each partition; default: as many as there are"
    )
    parser.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        report = table.convert(arguments.buckets)
        buckets = table.schema.bucket_count
    record = {
        "table": arguments.table,
        "buckets": buckets,
        "snapshot": report.snapshot_id,
        "committed": not report.is_empty,
        **expiry_record(report),
    }
    done = f"converted, {buckets} buckets: {report.summary()}"
    text = "is written by this engine already" if report.is_empty else done
    print_result(record, f"{arguments.table}: {text}", as_json=arguments.json)
    return exit_status(report)
