"""`tablestore expire`: expires old snapshots and deletes the files that only they reference; or old partitions.

Steps      snapshots: --keep, --older-than → Table.expire, which drops staged ones past their retention first;
           --partitions → Table.expire_partitions, which the table's options rule alone
INVARIANT  without --keep and --older-than the table's own options decide, as they do behind each commit.
INVARIANT  --dry-run says what would go and changes nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.cli.output import print_json, print_result, to_size, write_out
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.options.parse import parse_duration_ms

if TYPE_CHECKING:
    from tablestore_engine.api import Engine, ExpireReport
    from tablestore_engine.spi import PartitionReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    add_brokers(parser)
    parser.add_argument(
        "--keep", type=int, metavar="N", help="only the newest N snapshots stay, whatever their age"
    )
    text = (
        "snapshots that were the table within this time stay, as in 36h or 7d; with --keep also the newest N"
    )
    parser.add_argument("--older-than", metavar="TIME", help=text)
    text = "instead of snapshots, delete the rows of partitions that are old by the table's partition.expiration-time"
    parser.add_argument("--partitions", action="store_true", help=text)
    parser.add_argument("--master", help="Spark master for large work, as in local[2] or spark://host:7077")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")


def run(arguments: argparse.Namespace) -> int:
    if arguments.partitions:
        return _expire_partitions(arguments)
    older_than_ms = (
        None if arguments.older_than is None else duration_ms("--older-than", arguments.older_than)
    )
    with open_engine(arguments) as engine:
        done = expire_table(engine, arguments.table, arguments.keep, older_than_ms, is_dry=arguments.dry_run)
    if arguments.json:
        print_json(done.record())
    else:
        for line in done.lines():
            write_out(line)
    return 0


@dataclass(frozen=True)
class ExpiredTable:
    """What expired of one table, or would. `is_gone`: it had only staged rows, and they are dropped."""

    table: str
    is_dry: bool
    report: ExpireReport
    is_gone: bool

    def lines(self) -> list[str]:
        found = [one.line for one in self.report.staged]
        said = "would be deleted" if self.is_dry else "is deleted"
        found += [f"{self.table}: tag {name} {said}: its time is over" for name in self.report.tags]
        if self.is_gone:
            return found
        return [*found, f"{self.table}: {_summary(self.report, is_dry=self.is_dry)}"]

    def record(self) -> dict[str, object]:
        report = self.report
        common = {
            "table": self.table,
            "dry_run": self.is_dry,
            "staged": [{"table": one.table, "name": one.name} for one in report.staged],
        }
        if self.is_gone:
            return common
        return {
            **common,
            "tags": list(report.tags),
            "snapshots": report.snapshots,
            "first": report.first if report.snapshots else None,
            "last": report.end - 1 if report.snapshots else None,
            "files": report.files,
            "bytes": report.bytes,
            "reason": report.reason,
        }


def expire_table(
    engine: Engine, name: str, keep: int | None, older_than_ms: int | None, *, is_dry: bool
) -> ExpiredTable:
    """Staged snapshots past their retention, then snapshots. Raises what Table.expire raises."""
    report = engine.table(name).expire(keep=keep, older_than_ms=older_than_ms, dry_run=is_dry)
    return ExpiredTable(name, is_dry, report, bool(report.staged) and engine.find_table(name) is None)


def _expire_partitions(arguments: argparse.Namespace) -> int:
    """Raises FixRequest TS1951: a rule for snapshots would be taken for one about partitions."""
    if arguments.keep is not None or arguments.older_than is not None:
        raise FixRequest(
            "TS1951",
            "--partitions goes with neither --keep nor --older-than",
            why="these are for snapshots; options of the table decide which partitions expire",
            fix="change partition.expiration-time of the table, or leave --partitions out",
        )
    with open_engine(arguments) as engine:
        report = engine.table(arguments.table).expire_partitions(dry_run=arguments.dry_run)
    text = f"{arguments.table}: {report.summary()}"
    print_result(_partition_record(arguments, report), text, as_json=arguments.json)
    return 0


def _partition_record(arguments: argparse.Namespace, report: PartitionReport) -> dict[str, object]:
    return {
        "table": arguments.table,
        "dry_run": arguments.dry_run,
        "partitions": list(report.partitions),
        "rows": report.rows,
        "left": report.left,
        "timeless": report.timeless,
        "snapshot": report.snapshot_id,
    }


def duration_ms(flag: str, text: str) -> int:
    """Raises FixRequest TS1001, TS1950: options take a bare number as milliseconds, of which nobody thinks here."""
    if text.strip().isdigit():
        raise FixRequest(
            "TS1950",
            f"{flag} {text} has no unit",
            why="7 could be days or minutes, and what expires is gone",
            fix=f"write {text}d, {text}h or {text}min",
        )
    return parse_duration_ms(flag, text)


def _summary(report: ExpireReport, *, is_dry: bool) -> str:
    if not report.snapshots:
        return f"no snapshot expires: {report.reason}"
    count = f"{report.snapshots} snapshot{'s' if report.snapshots > 1 else ''}"
    went = "would expire" if is_dry else "expired"
    span = str(report.first) if report.snapshots == 1 else f"{report.first} to {report.end - 1}"
    return f"{count} {went} ({span}) with {report.files} files, {to_size(report.bytes)}; {report.reason}"
