"""`tablestore changelog`: changelog rows of snapshots with their row kinds. No JVM.

INVARIANT  a person gets the newest page, a program (--json) all rows; output that is cut says so on stderr.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pyarrow as pa

from tablestore_engine.api import Table
from tablestore_engine.cli.output import print_json, print_table, say
from tablestore_engine.cli.page import NewestRows, add_page, page_rows
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, published_name, state_name
from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.warehouse.compared_states import SnapshotName


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    text = "changes after snapshot or tag N (default 0: all)"
    parser.add_argument("--since", type=published_name, default=0, metavar="N", help=text)
    text = "up to and with snapshot or tag M, or @staged[:NAME] (default: the newest)"
    parser.add_argument("--until", type=state_name, metavar="M", help=text)
    add_page(parser)


def run(arguments: argparse.Namespace) -> int:
    newest = NewestRows(page_rows(arguments))
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        batches = _batches(table, arguments.since, arguments.until)
        for batch in batches:
            newest.add(batch)
        kept = list(newest.take())
        changes = pa.Table.from_batches(kept) if kept else table.changes(0, 0)
    shown = _kinds_first(changes)
    rows = row_dicts(shown)
    if arguments.json:
        print_json(rows)
    else:
        print_table(shown.column_names, [tuple(row.values()) for row in rows])
    if newest.note is not None:
        say(newest.note)
    return 0


def _batches(table: Table, since: SnapshotName, until: SnapshotName | None) -> Iterator[pa.RecordBatch]:
    if isinstance(since, int) and not isinstance(until, str):
        return table.change_batches(since, until)
    states = table.compare(since, until)
    if states.is_kept:
        say(f"net changes of {states.title()}: the snapshot of a tag has expired, so the rows are compared")
    return states.read_changelog()


def _kinds_first(changes: pa.Table) -> pa.Table:
    helpers = ["_snapshot_id", "_row_kind"]
    return changes.select([*helpers, *(name for name in changes.column_names if name not in helpers)])
