"""`tablestore gc`: what expire and orphans do, for a table, a database or the warehouse; --yes deletes.

Steps      each table: staged snapshots past their retention, old snapshots (expire.py) → orphan files (orphans.py);
           of the whole warehouse also folders of dropped tables
INVARIANT  without --yes nothing changes. A table that fails keeps what it has, the others are done, the status is 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from tablestore_engine.api import Engine
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.cli.expire import ExpiredTable, duration_ms, expire_table
from tablestore_engine.cli.orphans import orphan_record, orphan_text
from tablestore_engine.cli.output import print_json, say, to_size, write_out
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, list_names, open_engine
from tablestore_engine.errors import FixRequest, Stopped, TablestoreError
from tablestore_engine.spi import OrphanFolder, OrphanReport, describe_damage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser, name="any")
    add_brokers(parser)
    parser.add_argument(
        "--yes", action="store_true", help="delete; without it the command only prints what it would do"
    )
    text = "only the newest N snapshots of each table stay, whatever their age (default: as the table's options say)"
    parser.add_argument("--keep", type=int, metavar="N", help=text)
    text = "snapshots that were the table within this time stay, as in 36h or 7d"
    parser.add_argument("--older-than", metavar="TIME", help=text)
    text = "orphan files of at least this age, as in 36h (default: 1d); longer than any write takes"
    parser.add_argument("--orphan-age", metavar="TIME", default="1d", help=text)


@dataclass(frozen=True)
class GcRules:
    keep: int | None
    older_than_ms: int | None
    orphan_age_ms: int
    is_dry: bool


@dataclass
class Collected:
    """By table; `problems`: why a table, or a part of its work, was left out."""

    expired: dict[str, ExpiredTable] = field(default_factory=dict)
    orphans: dict[str, OrphanReport] = field(default_factory=dict)
    folders: tuple[OrphanFolder, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Of all files that are, or would be, deleted."""
        reports = [one.report.bytes for one in self.expired.values()]
        orphans = [one.size_bytes for one in self.orphans.values()]
        return sum(reports) + sum(orphans) + sum(one.size_bytes for one in self.folders)


def run(arguments: argparse.Namespace) -> int:
    """Raises FixRequest TS1940 at its end, after all that could be done."""
    older, wanted = arguments.older_than, arguments.table
    rules = GcRules(
        keep=arguments.keep,
        older_than_ms=None if older is None else duration_ms("--older-than", older),
        orphan_age_ms=duration_ms("--orphan-age", arguments.orphan_age),
        is_dry=not arguments.yes,
    )
    with open_engine(arguments) as engine:
        done = collect(engine, wanted, rules)
    if arguments.json:
        print_json(_record(done, rules))
    else:
        _print(done, rules)
    check_collected(done.problems)
    return 0


def collect(engine: Engine, wanted: str | None, rules: GcRules) -> Collected:
    """All of it. Raises NotFound TS1414, TS1925 for a name that is not there."""
    done = Collected()
    for name in list_names(engine, wanted):
        _try(done, name, partial(_expire, engine, name, rules, done))
    for identifier in engine.orphans.tables():
        if wanted in (None, identifier.database, str(identifier)):
            name = f"{identifier} (staged)" if identifier.is_replacement else str(identifier)
            _try(done, name, partial(_clean, engine, identifier, name, rules, done))
    if wanted is None:
        done.folders = engine.orphans.folders(grace_ms=rules.orphan_age_ms, delete=not rules.is_dry)
    return done


def _expire(engine: Engine, name: str, rules: GcRules, done: Collected) -> None:
    done.expired[name] = expire_table(engine, name, rules.keep, rules.older_than_ms, is_dry=rules.is_dry)


def _clean(engine: Engine, identifier: Identifier, name: str, rules: GcRules, done: Collected) -> None:
    delete = not rules.is_dry
    done.orphans[name] = engine.orphans.of_table(identifier, grace_ms=rules.orphan_age_ms, delete=delete)


def _try(done: Collected, name: str, work: Callable[[], object]) -> None:
    """A table that fails does not keep the others from being cleaned."""
    try:
        work()
    except Stopped:
        raise
    except TablestoreError as error:
        done.problems[name] = describe_damage(error)


def check_collected(problems: Mapping[str, str]) -> None:
    """Raises FixRequest TS1940."""
    if problems:
        raise FixRequest(
            "TS1940",
            f"gc left something out of {', '.join(problems)}",
            why="; ".join(f"{name}: {why}" for name, why in problems.items()),
            fix="follow each code in docs/errors.md, then run the command again; tables with a log need --bootstrap",
        )


def _print(done: Collected, rules: GcRules) -> None:
    names = dict.fromkeys([*done.expired, *done.orphans])
    for name in names:
        for line in done.expired[name].lines() if name in done.expired else ():
            write_out(line)
        if name in done.orphans:
            write_out(f"{name}: {orphan_text(done.orphans[name], '--yes')}")
    for folder in done.folders:
        verb = "would be deleted (--yes)" if rules.is_dry else "is deleted"
        write_out(f"{folder.what} {folder.path}, {to_size(folder.size_bytes)}, {verb}")
    write_out(f"{len(names)} tables, {to_size(done.size_bytes)} {'to delete' if rules.is_dry else 'deleted'}")
    if rules.is_dry:
        say("nothing was deleted: run it again with --yes")


def _record(done: Collected, rules: GcRules) -> dict[str, object]:
    tables = [
        {
            "table": name,
            "expire": done.expired[name].record() if name in done.expired else None,
            "orphans": orphan_record(name, done.orphans[name]) if name in done.orphans else None,
        }
        for name in dict.fromkeys([*done.expired, *done.orphans])
    ]
    return {
        "dry_run": rules.is_dry,
        "bytes": done.size_bytes,
        "tables": tables,
        "folders": [vars(one) for one in done.folders],
        "problems": done.problems,
    }
