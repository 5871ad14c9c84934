"""`tablestore diff`: what changed between two snapshots, in counts and sample rows. No JVM."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

from tablestore_engine.cli.output import print_json, print_table, write_out
from tablestore_engine.cli.warehouse_choice import add_place, open_engine
from tablestore_engine.warehouse.net_changes import NetChange, pick_samples

Run = Callable[[argparse.Namespace], int]
Record = dict[str, object]
_SAMPLES = 5


def _register_diff(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument("a", type=int, metavar="A", help="snapshot id")
    parser.add_argument("b", type=int, metavar="B", nargs="?", help="snapshot id (default: the newest)")
    text = f"sample rows of each kind (default {_SAMPLES})"
    parser.add_argument("--samples", type=int, default=_SAMPLES, metavar="N", help=text)
    return _diff


def _diff(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        first, second = arguments.a, arguments.b
        if second is None:
            second = table.latest_snapshot_id() or first
        for number in (first, second):
            table.store.snapshots.get(number)
        counts = table.diff(first, second)
        low, high = min(first, second), max(first, second)
        samples = pick_samples(
            lambda columns: table.change_batches(low, high, columns),
            table.schema.primary_keys,
            max(arguments.samples, 0),
        )
        names = table.schema.field_names
    if second < first:
        samples = tuple(one.swapped() for one in samples)
    numbers = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
    if arguments.json:
        record: Record = {"table": arguments.table, "from": first, "to": second, **numbers}
        print_json({**record, "samples": samples_record(samples)})
        return 0
    summary = f"+{counts.inserted} ~{counts.updated} -{counts.deleted}"
    write_out(f"{arguments.table}, snapshot {first} to {second}: {summary}")
    lines = [line for one in samples for line in _sample_lines(one)]
    if lines:
        write_out("")
        print_table(("", *names), [(sign, *(row.get(name) for name in names)) for sign, row in lines])
    return 0


def samples_record(samples: Sequence[NetChange]) -> Record:
    """Sample rows by kind; an update has both rows."""
    return {
        "inserted": [one.after for one in samples if one.kind == "inserted"],
        "updated": [{"before": one.before, "after": one.after} for one in samples if one.kind == "updated"],
        "deleted": [one.before for one in samples if one.kind == "deleted"],
    }


def _sample_lines(change: NetChange) -> list[tuple[str, Mapping[str, object]]]:
    """The rows of one key with the sign that a changelog gives them."""
    is_update = change.kind == "updated"
    ends = ((change.before, "-U" if is_update else "-D"), (change.after, "+U" if is_update else "+I"))
    return [(sign, row) for row, sign in ends if row is not None]


REGISTER = {"diff": _register_diff}
