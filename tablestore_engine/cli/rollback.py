"""`tablestore rollback`: an earlier snapshot becomes the newest.

INVARIANT  rollback is the only command that takes history away by number, and does it only with --yes.
"""

from __future__ import annotations

import argparse

from tablestore_engine.cli.output import print_result
from tablestore_engine.cli.warehouse_choice import add_place, open_engine
from tablestore_engine.errors import FixRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--to", type=int, required=True, metavar="N", help="the snapshot to go back to")
    parser.add_argument("--yes", action="store_true", help="delete the later snapshots; there is no way back")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        table.store.snapshots.get(arguments.to)
        later = tuple(number for number in table.snapshot_ids() if number > arguments.to)
        if later and not arguments.yes:
            tags = [name for name, number in table.list_tags().items() if number in later]
            raise FixRequest(
                "TS1924",
                f"{arguments.table} is not rolled back to snapshot {arguments.to} without --yes",
                why=f"it deletes {_shown(later)}"
                + (f" and the tags {', '.join(tags)}" if tags else "")
                + " for ever; no writer may run meanwhile",
                fix="add --yes if that is what you want",
            )
        table.rollback(arguments.to)
    record = {"table": arguments.table, "snapshot": arguments.to, "deleted": list(later)}
    text = f"{arguments.table}: snapshot {arguments.to} is the newest, {len(later)} later ones are deleted"
    print_result(record, text, as_json=arguments.json)
    return 0


def _shown(numbers: tuple[int, ...]) -> str:
    """`snapshot 6`, or `snapshots 6 to 8`."""
    return f"snapshot {numbers[0]}" if len(numbers) == 1 else f"snapshots {numbers[0]} to {numbers[-1]}"
