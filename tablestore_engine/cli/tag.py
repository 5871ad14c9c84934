"""`tablestore tag`: names for snapshots, which keep their rows when they expire."""

from __future__ import annotations

import argparse
from datetime import timedelta

from tablestore_engine.cli.expire import duration_ms
from tablestore_engine.cli.output import print_json, print_table, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|delete|list")
    create = actions.add_parser("create", help="name a snapshot", description="Name a snapshot.")
    add_place(create)
    create.add_argument("name", help="name of the tag")
    create.add_argument("--snapshot", type=int, metavar="N", help="snapshot id (default: the newest)")
    text = "delete the tag when it is older than this, as in 30d (default: tag.default-time-retained of the table)"
    create.add_argument("--time-retained", metavar="TIME", help=text)
    delete = actions.add_parser(
        "delete", help="remove a tag", description="Remove a tag; the snapshot stays."
    )
    add_place(delete)
    delete.add_argument("name", help="name of the tag")
    add_place(actions.add_parser("list", help="tags and their snapshots", description="Tags of a table."))


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        if arguments.action == "create":
            text = arguments.time_retained
            kept = None if text is None else timedelta(milliseconds=duration_ms("--time-retained", text))
            table.tag(arguments.name, arguments.snapshot, time_retained=kept)
        elif arguments.action == "delete":
            table.delete_tag(arguments.name)
        tags = table.list_tags()
    if arguments.json:
        print_json(dict(tags))
    elif arguments.action == "create":
        write_out(f"{arguments.table}: {arguments.name} is snapshot {tags[arguments.name]}")
    elif arguments.action == "delete":
        write_out(f"{arguments.table}: tag {arguments.name} is removed")
    else:
        print_table(("tag", "snapshot"), list(tags.items()))
    return 0
