"""`tablestore snapshots`: the snapshots of a table, newest last. No JVM."""

from __future__ import annotations

import argparse

from tablestore_engine.cli.output import print_json, print_records
from tablestore_engine.cli.warehouse_choice import add_place, open_engine
from tablestore_engine.ui.commit_records import snapshot_record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--last", type=int, metavar="N", help="only the newest N")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        tags: dict[int, list[str]] = {}
        for name, number in table.list_tags().items():
            tags.setdefault(number, []).append(name)
        snapshots = table.snapshots(last=arguments.last)
    records = [snapshot_record(snapshot, tags.get(snapshot.id, [])) for snapshot in snapshots]
    if arguments.json:
        print_json(records)
        return 0
    shown = (
        "id",
        "committed_at",
        "kind",
        "inserted",
        "updated",
        "deleted",
        "changelog_rows",
        "schema",
        "tags",
    )
    print_records([{**one, "tags": ", ".join(tags.get(_int(one["id"]), []))} for one in records], shown)
    return 0


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
