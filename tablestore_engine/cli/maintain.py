"""`tablestore tag|rollback|verify`: keep tables in shape.

INVARIANT  rollback is the only command that takes history away, and does it only with --yes.
INVARIANT  verify reads only, goes on past damaged tables, and its exit status is 1 when a table has a problem.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tablestore_engine.api import DAMAGED, Engine, describe_damage
from tablestore_engine.cli.output import print_json, print_table, say, write_out
from tablestore_engine.cli.place import add_place, list_names, open_engine
from tablestore_engine.errors import FixRequest

Run = Callable[[argparse.Namespace], int]


# tag -------------------------------------------------------------------------------------------------


def _register_tag(parser: argparse.ArgumentParser) -> Run:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|delete|list")
    create = actions.add_parser("create", help="name a snapshot", description="Name a snapshot.")
    add_place(create)
    create.add_argument("name", help="name of the tag")
    create.add_argument("--snapshot", type=int, metavar="N", help="snapshot id (default: the newest)")
    delete = actions.add_parser(
        "delete", help="remove a tag", description="Remove a tag; the snapshot stays."
    )
    add_place(delete)
    delete.add_argument("name", help="name of the tag")
    add_place(actions.add_parser("list", help="tags and their snapshots", description="Tags of a table."))
    return _tag


def _tag(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        if arguments.action == "create":
            table.tag(arguments.name, arguments.snapshot)
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


# rollback --------------------------------------------------------------------------------------------


def _register_rollback(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument("--to", type=int, required=True, metavar="N", help="the snapshot to go back to")
    parser.add_argument("--yes", action="store_true", help="delete the later snapshots; there is no way back")
    return _rollback


def _rollback(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        table.store.snapshots.get(arguments.to)
        later = tuple(number for number in table.snapshot_ids() if number > arguments.to)
        if later and not arguments.yes:
            tags = [name for name, number in table.list_tags().items() if number in later]
            raise FixRequest(
                "TS1924",
                f"{arguments.table} is not rolled back to snapshot {arguments.to} without --yes",
                why=f"it deletes snapshots {later[0]} to {later[-1]}"
                + (f" and the tags {', '.join(tags)}" if tags else "")
                + " for ever; no writer may run meanwhile",
                fix="add --yes if that is what you want",
            )
        table.rollback(arguments.to)
    if arguments.json:
        print_json({"table": arguments.table, "snapshot": arguments.to, "deleted": list(later)})
    else:
        write_out(
            f"{arguments.table}: snapshot {arguments.to} is the newest, {len(later)} later ones are deleted"
        )
    return 0


# verify ----------------------------------------------------------------------------------------------


def _register_verify(parser: argparse.ArgumentParser) -> Run:
    add_place(parser, name="any")
    return _verify


def _verify(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        found = {name: _problems(engine, name) for name in list_names(engine, arguments.table)}
    if arguments.json:
        print_json([{"table": name, "problems": list(problems)} for name, problems in found.items()])
    else:
        for name, problems in found.items():
            write_out(f"{name}: {f'{len(problems)} problems' if problems else 'all is well'}")
            for problem in problems:
                write_out(f"  {problem}")
    if not found:
        say("there are no tables")
    return 1 if any(found.values()) else 0


def _problems(engine: Engine, name: str) -> tuple[str, ...]:
    """Of one table; one that cannot even be opened is one problem, and the others are looked at all the same."""
    try:
        return engine.table(name).verify()
    except DAMAGED as damage:
        return (describe_damage(damage),)


REGISTER = {
    "tag": _register_tag,
    "rollback": _register_rollback,
    "verify": _register_verify,
}
