"""`tablestore log drop`: delete topics that dropped tables have left, or list them.

INVARIANT  without db.table nothing is deleted: the list is a dry run.
INVARIANT  the exit status is 1 when something was to be deleted and stays.
"""

from __future__ import annotations

import argparse

from tablestore_engine.api import Engine
from tablestore_engine.cli.output import print_json, say, write_out
from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.warehouse.log.former_logs import FormerLog


def add_drop_options(parser: argparse.ArgumentParser) -> None:
    """Of `log drop` alone."""
    text = "drop: print which topics of dropped tables would be deleted, and change nothing"
    parser.add_argument("--dry-run", action="store_true", help=text)
    text = "drop: remove the record of the topics alone; no broker is asked"
    parser.add_argument("--forget", action="store_true", help=text)


def run_drop(parser: argparse.ArgumentParser, engine: Engine, arguments: argparse.Namespace) -> int:
    """Raises NotFound TS1032, FixRequest TS1033, TS1701, TS17xx."""
    wanted, is_dry = arguments.table, arguments.dry_run
    if not is_dry and (wanted is None or "." not in wanted):
        parser.error("drop takes db.table, the name of the dropped table; --dry-run lists all of them")
    if arguments.forget and is_dry:
        parser.error("--forget changes the record alone; there is no dry run of it")
    if arguments.forget:
        return _forget(engine, wanted, as_json=arguments.json)
    found = engine.former_logs.find(wanted) if is_dry else engine.former_logs.delete(wanted)
    if arguments.json:
        print_json([_record(one, is_dry=is_dry) for one in found])
    else:
        for one in found:
            write_out(_line(one, is_dry=is_dry))
        if not found:
            say("no dropped table has left a topic")
    return 1 if any(one.remains.kept for one in found) and not is_dry else 0


def _forget(engine: Engine, wanted: str, *, as_json: bool) -> int:
    removed = engine.former_logs.forget(wanted)
    if as_json:
        print_json([{"table": str(left.table), "uuid": left.uuid} for left in removed])
    for left in () if as_json else removed:
        write_out(f"{left.table} (uuid {left.uuid}): its record is removed; its topics are as they were")
    return 0


def _line(one: FormerLog, *, is_dry: bool) -> str:
    """`demo.orders (dropped 2026-01-31T12:00:00.000Z): orders, orders__snapshots are deleted`."""
    left, remains = one.left, one.remains
    verb = "would be deleted" if is_dry else "deleted"
    parts = [f"{', '.join(remains.names)} {verb}"] if remains.names else []
    parts += [f"kept: {remains.kept}"] if remains.kept else []
    what = "; ".join(parts) or f"these brokers have no topic {one.name}; --forget removes the record"
    return f"{left.table} (dropped {moment_text(left.time_millis)}, uuid {left.uuid}): {what}"


def _record(one: FormerLog, *, is_dry: bool) -> dict[str, object]:
    return {
        "table": str(one.left.table),
        "uuid": one.left.uuid,
        "log": one.name,
        "dropped_at": moment_text(one.left.time_millis),
        "dry_run": is_dry,
        "deleted": list(one.remains.names),
        "kept": one.remains.kept or None,
    }
