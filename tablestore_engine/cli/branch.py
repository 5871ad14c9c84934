"""`tablestore branch`: branches of a table, which share its data files. No JVM."""

from __future__ import annotations

import argparse

from tablestore_engine.api import Table
from tablestore_engine.cli.output import print_json, print_records, print_result
from tablestore_engine.cli.warehouse_choice import add_place, open_engine

_ACTIONS = {
    "create": ("make a branch", "Make a branch from a snapshot or a tag; with neither it begins empty."),
    "list": ("branches and their newest snapshots", "Branches of a table."),
    "fast-forward": ("bring the snapshots of a branch to main", "Bring the snapshots of a branch to main."),
    "delete": ("remove a branch", "Remove a branch; main stays as it is."),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(_ACTIONS))
    for name, (text, description) in _ACTIONS.items():
        one = actions.add_parser(name, help=text, description=description)
        add_place(one)
        if name != "list":
            one.add_argument("name", help="name of the branch")
        if name == "create":
            state = one.add_mutually_exclusive_group()
            state.add_argument("--snapshot", type=int, metavar="N", help="begin with this snapshot")
            state.add_argument("--tag", metavar="TAG", help="begin with this tag")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        if arguments.action == "list":
            return _list(table, as_json=arguments.json)
        record: dict[str, object] = {"table": arguments.table, "branch": arguments.name}
        if arguments.action == "create":
            table.create_branch(arguments.name, snapshot=arguments.snapshot, tag=arguments.tag)
            text = f"branch {arguments.name} is created"
        elif arguments.action == "delete":
            table.delete_branch(arguments.name)
            text = f"branch {arguments.name} is removed"
        else:
            report = table.fast_forward(arguments.name)
            record |= {"before": report.before, "added": list(report.added)}
            count = len(report.added)
            text = (
                f"{count} snapshots of {arguments.name} added"
                if count
                else f"nothing new in {arguments.name}"
            )
    print_result(record, f"{arguments.table}: {text}", as_json=arguments.json)
    return 0


def _list(table: Table, *, as_json: bool) -> int:
    records = []
    for name in table.branches():
        branch = table.branch(name)
        last = branch.snapshots(last=1)
        records.append({"branch": name, "snapshot": last[0].id if last else None, "rows": branch.count()})
    if as_json:
        print_json(records)
    else:
        print_records(records, ("branch", "snapshot", "rows"))
    return 0
