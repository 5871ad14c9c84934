"""`tablestore changelog`: changelog rows of snapshots with their row kinds. No JVM.

INVARIANT  a person gets the newest page, a program (--json) all rows; output that is cut says so on stderr.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pyarrow as pa

from tablestore_engine.cli.output import print_json, print_table, say
from tablestore_engine.cli.page import NewestRows, add_page, page_rows
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, snapshot_name

Run = Callable[[argparse.Namespace], int]


def _register_changelog(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument(
        "--since", type=int, default=0, metavar="N", help="changes after snapshot N (default 0: all)"
    )
    text = "up to and with snapshot M, or @staged[:NAME] (default: the newest)"
    parser.add_argument("--until", type=snapshot_name, metavar="M", help=text)
    add_page(parser)
    return _changelog


def _changelog(arguments: argparse.Namespace) -> int:
    newest = NewestRows(page_rows(arguments))
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        is_staged = isinstance(arguments.until, str)
        batches = (
            table.compare(arguments.since, arguments.until).read()
            if is_staged
            else table.change_batches(arguments.since, arguments.until)
        )
        for batch in batches:
            newest.add(batch)
        kept = list(newest.take())
        changes = pa.Table.from_batches(kept) if kept else table.changes(0, 0)
    shown = _kinds_first(changes)
    if arguments.json:
        print_json(shown.to_pylist())
    else:
        print_table(shown.column_names, [tuple(row.values()) for row in shown.to_pylist()])
    if newest.note is not None:
        say(newest.note)
    return 0


def _kinds_first(changes: pa.Table) -> pa.Table:
    helpers = ["_snapshot_id", "_row_kind"]
    return changes.select([*helpers, *(name for name in changes.column_names if name not in helpers)])


REGISTER = {"changelog": _register_changelog}
