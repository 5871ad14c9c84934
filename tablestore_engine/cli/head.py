"""`tablestore head`: the first rows of a table, of a snapshot, a tag or a staged snapshot. No JVM.

INVARIANT  files are opened one after the other, only until there are rows enough; equal states give equal rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from tablestore_engine.api import Table
from tablestore_engine.catalog.name_lookup import require_published
from tablestore_engine.cli.output import print_json, print_table, say
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, split_names
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import result_schema
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.compared_states import STAGED

_ROWS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("-n", "--rows", type=int, default=_ROWS, metavar="N", help=f"rows (default: {_ROWS})")
    text = "of a snapshot id, a tag, or @staged[:NAME] (default: the newest snapshot)"
    parser.add_argument("--snapshot", metavar="N|TAG", help=text)
    parser.add_argument("--columns", metavar="a,b", help="only these columns, in this order")


def run(arguments: argparse.Namespace) -> int:
    """Raises FixRequest TS1938."""
    if arguments.rows < 0:
        raise FixRequest(
            "TS1938",
            f"head cannot print {arguments.rows} rows of {arguments.table}",
            why="the number of rows is negative",
            fix="give -n 0 or more",
        )
    columns: Sequence[str] | None = None if arguments.columns is None else split_names(arguments.columns)
    with open_engine(arguments) as engine:
        store, plan = find_state(engine.table(arguments.table), arguments.snapshot, arguments.rows)
        columns = None if columns is None else plan.schema.spelled(columns)
        names = result_schema(plan.schema, columns).names
        rows = [
            row
            for batch in take_first(store.read_batches(plan, columns), arguments.rows)
            for row in row_dicts(batch)
        ]
    if arguments.json:
        print_json(rows)
    else:
        print_table(names, [tuple(row.values()) for row in rows])
    total = plan.visible_rows + plan.rows_behind
    if len(rows) < total:
        say(f"{len(rows)} of {total} rows; see more with -n {total}")
    return 0


def find_state(table: Table, name: str | None, rows: int) -> tuple[TableStore, ScanPlan]:
    """The first files of a state, which have so many rows: None is the newest snapshot.

    Raises NotFound for a state that does not exist, TS1417 if all rows are staged, TS1544, TS1547.
    """
    if name is not None and name.partition(":")[0] == STAGED:
        store = table.compare(name).seen
        return store, store.plan_scan(rows_max=rows)
    if name is not None and name.isdecimal():
        return table.store, table.scan(snapshot=int(name), limit=rows).plan_needed()
    plan = table.scan(tag=name, limit=rows).plan_needed()
    if plan.snapshot is None:
        require_published(table.store, table.identifier)
    return table.store, plan


def take_first(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Batches with `count` rows together, or all; the batch behind the last row is not asked for."""
    if count <= 0:
        return
    for batch in batches:
        yield batch.slice(0, count)
        count -= batch.num_rows
        if count <= 0:
            return
