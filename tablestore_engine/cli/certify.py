"""`tablestore certify`: whether readers of others show the rows of a table as this engine does.

INVARIANT  exit status 1 when a reader differs, when one that was named could not read the table, or when none could.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tablestore_engine.cli.output import print_json, print_table, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    text = "readers, separated by commas: pypaimon, pypaimon-rust, duckdb, pyiceberg (default: all that are installed)"
    parser.add_argument("--with", dest="readers", metavar="READERS", help=text)
    parser.add_argument("--snapshot", type=int, metavar="ID", help="a snapshot id (default: the newest)")
    text = "the interpreter of the environment that has the readers (default: this one)"
    parser.add_argument("--python", metavar="PATH", help=text)


def run(arguments: argparse.Namespace) -> int:
    named = arguments.readers
    readers = None if named is None else [one.strip() for one in named.split(",")]
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        found = table.certify(readers, snapshot=arguments.snapshot, python=arguments.python)
    if arguments.json:
        record = {"table": found.table, "snapshot": found.snapshot_id, "rows": found.rows}
        print_json({**record, "clean": found.is_clean, "readers": list(map(asdict, found.readers))})
        return 0 if found.is_clean else 1
    write_out(f"{found.table}, snapshot {found.snapshot_id}: {found.rows} rows")
    print_table(
        ["reader", "version", "rows", "result"],
        [
            (one.reader, one.version or "", "" if one.rows is None else one.rows, one.status)
            for one in found.readers
        ],
    )
    for one in found.readers:
        for line in one.details:
            write_out(f"{one.reader}: {line}")
    return 0 if found.is_clean else 1
