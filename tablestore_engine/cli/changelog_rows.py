"""`tablestore changelog`: changelog rows of snapshots with their row kinds. No JVM."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

import pyarrow as pa

from tablestore_engine.cli.output import print_json, print_table, say
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, snapshot_name

Run = Callable[[argparse.Namespace], int]
_SHOWN_ROWS = 100


def _register_changelog(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument(
        "--since", type=int, default=0, metavar="N", help="changes after snapshot N (default 0: all)"
    )
    text = "up to and with snapshot M, or @staged[:NAME] (default: the newest)"
    parser.add_argument("--until", type=snapshot_name, metavar="M", help=text)
    text = f"rows at most (default: {_SHOWN_ROWS}, with --json all)"
    parser.add_argument("--limit", type=int, metavar="ROWS", help=text)
    return _changelog


def _changelog(arguments: argparse.Namespace) -> int:
    limit = arguments.limit
    if limit is None and not arguments.json:
        limit = _SHOWN_ROWS
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        is_staged = isinstance(arguments.until, str)
        batches = (
            table.compare(arguments.since, arguments.until).read()
            if is_staged
            else table.change_batches(arguments.since, arguments.until)
        )
        kept, total = _first_rows(batches, limit)
        changes = pa.Table.from_batches(kept) if kept else table.changes(0, 0)
    shown = _kinds_first(changes)
    if arguments.json:
        print_json(shown.to_pylist())
    else:
        print_table(shown.column_names, [tuple(row.values()) for row in shown.to_pylist()])
    if shown.num_rows < total:
        say(f"{shown.num_rows} of {total} rows; see more with --limit {total}")
    return 0


def _first_rows(batches: Iterable[pa.RecordBatch], limit: int | None) -> tuple[list[pa.RecordBatch], int]:
    """The first `limit` rows (None: all), and how many there are; the others are counted and let go."""
    kept: list[pa.RecordBatch] = []
    total = 0
    for batch in batches:
        room = batch.num_rows if limit is None else max(limit - total, 0)
        if room:
            kept.append(batch.slice(0, room))
        total += batch.num_rows
    return kept, total


def _kinds_first(changes: pa.Table) -> pa.Table:
    helpers = ["_snapshot_id", "_row_kind"]
    return changes.select([*helpers, *(name for name in changes.column_names if name not in helpers)])


REGISTER = {"changelog": _register_changelog}
