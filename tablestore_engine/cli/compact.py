"""`tablestore compact`: compacts sorted runs, level 0 and small files; also for tables whose writers do not compact.

Steps      partition words → Table.compact → what was rewritten, or that nothing was due
INVARIANT  exit status 0 means that nothing (of what was asked for) is left to do, not that something was done.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tablestore_engine.cli.commit_record import exit_status, expiry_record, log_record
from tablestore_engine.cli.output import print_result
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.errors import FixRequest

if TYPE_CHECKING:
    from tablestore_engine.api import CompactReport
    from tablestore_engine.spi import FileTotals

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    text = "only this partition, as in dt=2026-01-31; some of the columns: all partitions that agree"
    parser.add_argument("--partition", nargs="+", metavar="COLUMN=VALUE", default=[], help=text)
    text = "rewrite each bucket as one run without deleted rows, and all small files, not only what is due"
    parser.add_argument("--full", action="store_true", help=text)
    text = "sort all rows of an append table, as in zorder:a,b (or order:, hilbert:, or only columns)"
    parser.add_argument("--order-by", metavar="STRATEGY:COLUMNS", help=text)
    parser.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")
    add_brokers(parser)


def run(arguments: argparse.Namespace) -> int:
    partition = parse_partition(arguments.partition)
    with open_engine(arguments) as engine:
        report = engine.table(arguments.table).compact(
            partition=partition, full=arguments.full, order_by=arguments.order_by
        )
    text = f"{'in its best shape already' if arguments.full else 'nothing is due'}{report.notes}"
    if not report.is_empty:
        text = f"{report.summary()}\n  before  {_spelled(report.before)}\n  after   {_spelled(report.after)}"
    print_result(compact_record(report), f"{report.table}: {text}", as_json=arguments.json)
    return exit_status(report)


def parse_partition(words: Sequence[str]) -> dict[str, str]:
    """Raises FixRequest TS1960."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name or name in found:
            raise FixRequest(
                "TS1960",
                f"--partition {word} is not understood",
                why=f"{name} is named twice" if name in found else "it is not of the form COLUMN=VALUE",
                fix="write a partition as --partition dt=2026-01-31 region=eu",
            )
        found[name] = value
    return found


def compact_record(report: CompactReport) -> dict[str, object]:
    return {
        "table": str(report.table),
        "snapshot": report.snapshot_id,
        "compacted": not report.is_empty,
        "snapshots": list(report.snapshot_ids),
        "before": vars(report.before),
        "after": vars(report.after),
        **log_record(report.log),
        **expiry_record(report),
    }


def _spelled(totals: FileTotals) -> str:
    size, unit = float(totals.bytes), 0
    while size >= 1024 and unit + 1 < len(_UNITS):
        size, unit = size / 1024, unit + 1
    return f"{totals.files:,} files, {totals.rows:,} rows, {size:.{min(unit, 1)}f} {_UNITS[unit]}"
