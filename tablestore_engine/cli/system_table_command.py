"""`tablestore system-table`: snapshots, files, partitions, options … of a table, as Paimon's system tables. No JVM."""

from __future__ import annotations

import argparse

from tablestore_engine.cli.output import print_json, print_table, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, split_names
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_values import row_dicts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("name", nargs="?", help="files, snapshots …; without it the names of all")
    parser.add_argument("--columns", metavar="a,b", help="only these columns, in this order")
    parser.add_argument("--where", metavar="SQL", help="only rows for which this is true, as in 'level > 0'")
    parser.add_argument("--limit", type=int, metavar="N", help="so many rows at most")
    parser.add_argument("--snapshot", type=int, metavar="N", help="of a past snapshot")
    parser.add_argument("--tag", metavar="NAME", help="of a tag")
    parser.add_argument(
        "--since", type=int, metavar="N", help="audit_log, binlog: changes after this snapshot"
    )
    parser.add_argument(
        "--until", type=int, metavar="N", help="audit_log, binlog: changes up to this snapshot"
    )


def run(arguments: argparse.Namespace) -> int:
    """Raises FixRequest TS1947 for two names."""
    place, _, suffix = arguments.table.partition("$")
    if suffix and arguments.name:
        raise FixRequest(
            "TS1947",
            f"{arguments.table} {arguments.name} names two system tables",
            why="the name after the $ is one already",
            fix=f"write tablestore system-table {place} {arguments.name}",
        )
    name = suffix or arguments.name
    with open_engine(arguments) as engine:
        table = engine.table(place)
        if name is None:
            names = table.system_tables
            print_json(list(names)) if arguments.json else write_out("\n".join(names))
            return 0
        rows = table.system_table(
            name,
            columns=None if arguments.columns is None else split_names(arguments.columns),
            filter=arguments.where,
            limit=arguments.limit,
            snapshot=arguments.snapshot,
            tag=arguments.tag,
            since=arguments.since,
            until=arguments.until,
        )
        records = [one for batch in rows.to_batches() for one in row_dicts(batch)]
    if arguments.json:
        print_json(records)
    else:
        print_table(rows.column_names, [tuple(one.values()) for one in records])
    return 0
