"""`tablestore orphans`: lists orphan files of failed writers, dropped stages, stopped commands; --delete deletes them.

INVARIANT  without --delete nothing changes. A table that cannot be understood keeps all its files, the others go on,
           and the exit status is 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tablestore_engine.api import Engine
from tablestore_engine.cli.output import print_json, to_size, write_out
from tablestore_engine.cli.warehouse_choice import add_place, check_readable, open_engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.options.parse import parse_duration_ms
from tablestore_engine.spi import DAMAGED, OrphanFolder, OrphanReport, describe_damage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="db.table", nargs="?", help="the table, as in demo.orders")
    parser.add_argument(
        "--all", action="store_true", help="all tables, and folders of dropped ones beside them"
    )
    parser.add_argument("--delete", action="store_true", help="delete them; else they are only shown")
    text = "only files that are older than this, as in 36h (default: 1d); longer than any write takes"
    parser.add_argument("--older-than", metavar="TIME", default="1d", help=text)
    parser.add_argument("--files", action="store_true", help="show every file")
    add_place(parser, name=None)


def _unclear(arguments: argparse.Namespace) -> str:
    if arguments.table is None and not arguments.all:
        return "neither a table nor --all is given"
    if arguments.table is not None and arguments.all:
        return f"both the table {arguments.table} and --all are given"
    return f"--older-than {arguments.older_than} has no unit"


def run(arguments: argparse.Namespace) -> int:
    """Raises FixRequest TS1985, FixData TS1991 behind everything else."""
    if (arguments.table is None) is not arguments.all or arguments.older_than.strip().isdigit():
        raise FixRequest(
            "TS1985",
            "orphans does not know where to look, or how old orphan files are",
            why=_unclear(arguments),
            fix="name one table or --all, and write a time with its unit, as in 36h",
        )
    grace_ms, delete = parse_duration_ms("--older-than", arguments.older_than), arguments.delete
    problems: dict[str, str] = {}
    with open_engine(arguments) as engine:
        if not arguments.all:
            reports = {
                arguments.table: engine.table(arguments.table).orphans(delete=delete, older_than_ms=grace_ms)
            }
            folders: tuple[OrphanFolder, ...] = ()
        else:
            reports = dict(_reports(engine, grace_ms, problems, delete=delete))
            folders = engine.orphans.folders(grace_ms=grace_ms, delete=delete)
    _show(arguments, reports, folders, problems)
    check_readable(problems, len(reports) + len(problems))
    return 0


def _reports(
    engine: Engine, grace_ms: int, problems: dict[str, str], *, delete: bool
) -> Iterator[tuple[str, OrphanReport]]:
    for identifier in engine.orphans.tables():
        name = f"{identifier} (staged)" if identifier.is_replacement else str(identifier)
        try:
            yield name, engine.orphans.of_table(identifier, grace_ms=grace_ms, delete=delete)
        except DAMAGED as damage:
            problems[name] = describe_damage(damage)


def _show(
    arguments: argparse.Namespace,
    reports: dict[str, OrphanReport],
    folders: tuple[OrphanFolder, ...],
    problems: dict[str, str],
) -> None:
    if arguments.json:
        found = [orphan_record(name, report) for name, report in reports.items()]
        print_json({"tables": found, "folders": [vars(one) for one in folders], "problems": problems})
        return
    for name, report in reports.items():
        write_out(f"{name}: {orphan_text(report)}")
        for one in report.found if arguments.files else ():
            write_out(f"  {one.path}")
    for folder in folders:
        gone = "is deleted" if arguments.delete else "can go"
        write_out(f"{folder.what} {folder.path}, {to_size(folder.size_bytes)}, {gone}")


def orphan_record(name: str, report: OrphanReport) -> dict[str, object]:
    return {
        "table": name,
        "deleted": report.is_deleted,
        "files": len(report.found),
        "bytes": report.size_bytes,
        "kinds": {kind: {"files": count, "bytes": size} for kind, (count, size) in report.by_kind.items()},
        "left": dict(report.left),
        "paths": [one.path for one in report.found],
    }


def orphan_text(report: OrphanReport, flag: str = "--delete") -> str:
    """`3 orphan files, 1.2 kB, deleted: 2 data (1.1 kB), 1 manifest (0.1 kB); 4 left: younger than …`."""
    kinds = ", ".join(f"{count} {kind} ({to_size(size)})" for kind, (count, size) in report.by_kind.items())
    left = "".join(f"; {count} left: {why}" for why, count in report.left.items())
    if not report.found:
        return f"no orphan files{left}"
    what = "deleted" if report.is_deleted else f"would be deleted ({flag})"
    return f"{len(report.found)} orphan files, {to_size(report.size_bytes)}, {what}: {kinds}{left}"
