"""`tablestore iceberg sync`: the Iceberg metadata that a killed writer or a failed commit left behind."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine

Run = Callable[[argparse.Namespace], int]


def _register(parser: argparse.ArgumentParser) -> Run:
    actions = parser.add_subparsers(dest="action", required=True, metavar="sync")
    add_place(
        actions.add_parser(
            "sync",
            help="write what is missing",
            description="Write the Iceberg metadata that a table lacks; commits do it by themselves.",
        )
    )
    return _sync


def _sync(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        done = engine.table(arguments.table).sync_iceberg()
    if arguments.json:
        print_json(
            {
                "table": arguments.table,
                "metadata": None if done is None else done.metadata,
                "snapshot": None if done is None else done.snapshot_id,
                "added": [] if done is None else list(done.added),
                "dropped": [] if done is None else list(done.dropped),
            }
        )
    elif done is None:
        write_out(f"{arguments.table}: has no snapshot yet")
    else:
        what = f"{len(done.added)} snapshots added, {len(done.dropped)} dropped"
        write_out(f"{arguments.table}: snapshot {done.snapshot_id} is in {done.metadata} ({what})")
    return 0


REGISTER = {"iceberg": _register}
