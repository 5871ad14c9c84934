"""`tablestore analyze`: count rows and values of columns, and store the result with a snapshot."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--columns", metavar="A,B", help="only these, separated by commas (default: all)")


def run(arguments: argparse.Namespace) -> int:
    columns = None if arguments.columns is None else [one.strip() for one in arguments.columns.split(",")]
    with open_engine(arguments) as engine:
        found = engine.table(arguments.table).analyze(columns)
    if arguments.json:
        print_json({"table": arguments.table, "statistics": None if found is None else asdict(found)})
    elif found is None:
        write_out(f"{arguments.table}: has no snapshot yet")
    else:
        counted = f"{found.row_count} rows, {len(found.columns)} columns of snapshot {found.snapshot_id}"
        write_out(
            f"{arguments.table}: {counted} counted (tablestore system-table {arguments.table} statistics)"
        )
    return 0
