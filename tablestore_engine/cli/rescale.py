"""`tablestore rescale`: another number of buckets; rows stay as they are."""

from __future__ import annotations

import argparse

from tablestore_engine.cli.commit_record import exit_status, expiry_record, log_record
from tablestore_engine.cli.output import print_result
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--buckets", type=int, required=True, metavar="N", help="of each partition")
    parser.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")
    add_brokers(parser)


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        before = table.schema.bucket_count
        report = table.rescale(arguments.buckets)
    record = {
        "table": arguments.table,
        "buckets_before": before,
        "buckets": arguments.buckets,
        "snapshot": report.snapshot_id,
        "committed": not report.is_empty,
        **log_record(report.log),
        **expiry_record(report),
    }
    done = f"{before} → {arguments.buckets} buckets: {report.summary()}"
    text = f"has {before} buckets already" if report.is_empty else done
    print_result(record, f"{arguments.table}: {text}", as_json=arguments.json)
    return exit_status(report)
