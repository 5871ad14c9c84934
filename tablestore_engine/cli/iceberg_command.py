"""`tablestore iceberg sync`: the Iceberg metadata that a killed writer or a failed commit left behind."""

from __future__ import annotations

import argparse

from tablestore_engine.cli.output import print_result
from tablestore_engine.cli.warehouse_choice import add_place, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="sync")
    add_place(
        actions.add_parser(
            "sync",
            help="write what is missing",
            description="Write the Iceberg metadata that a table lacks; commits do it by themselves.",
        )
    )


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        done = engine.table(arguments.table).sync_iceberg()
    record: dict[str, object] = {"table": arguments.table, "metadata": None, "snapshot": None}
    record |= {"added": (), "dropped": ()}
    text = "has no snapshot yet"
    if done is not None:
        record |= {"metadata": done.metadata, "snapshot": done.snapshot_id}
        record |= {"added": done.added, "dropped": done.dropped}
        what = f"{len(done.added)} snapshots added, {len(done.dropped)} dropped"
        text = f"snapshot {done.snapshot_id} is in {done.metadata} ({what})"
    print_result(record, f"{arguments.table}: {text}", as_json=arguments.json)
    return 0
