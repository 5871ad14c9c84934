"""`tablestore diff`: what changed between two snapshots, published or staged, in counts and sample rows. No JVM."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from tablestore_engine.cli.output import print_json, print_table, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, parse_count, state_name
from tablestore_engine.ui.commit_records import samples_record
from tablestore_engine.warehouse.net_changes import NetChange

Record = dict[str, object]
_SAMPLES = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("a", type=state_name, metavar="A", help="snapshot id, tag, or @staged[:NAME]")
    parser.add_argument(
        "b",
        type=state_name,
        metavar="B",
        nargs="?",
        help="the same (default: the newest; for @staged alone the snapshot that it was built on is A)",
    )
    text = f"sample rows of each kind (default {_SAMPLES})"
    parser.add_argument("--samples", type=parse_count, default=_SAMPLES, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        for number in (arguments.a, arguments.b):
            if isinstance(number, int):
                table.store.snapshots.get(number)
        states = table.compare(arguments.a, arguments.b)
        counts, seen = states.count(), states.seen.schema
        samples = states.samples(arguments.samples)
    numbers = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
    if arguments.json:
        record: Record = {"table": arguments.table, "from": states.first, "to": states.second, **numbers}
        record |= {name: tag for name, tag in zip(("from_tag", "to_tag"), states.tags, strict=True) if tag}
        if states.stage is not None:
            record["staged"] = states.stage.name
        print_json({**record, "samples": samples_record(samples)})
        return 0
    summary = f"+{counts.inserted} ~{counts.updated} -{counts.deleted}"
    write_out(f"{arguments.table}, {states.title()}: {summary}")
    lines = [line for one in samples for line in _sample_lines(one)]
    if lines:
        write_out("")
        names = seen.field_names
        print_table(("", *names), [(sign, *(row.get(name) for name in names)) for sign, row in lines])
    return 0


def _sample_lines(change: NetChange) -> list[tuple[str, Mapping[str, object]]]:
    """The rows of one key with the sign that a changelog gives them."""
    is_update = change.kind == "updated"
    ends = ((change.before, "-U" if is_update else "-D"), (change.after, "+U" if is_update else "+I"))
    return [(sign, row) for row, sign in ends if row is not None]
