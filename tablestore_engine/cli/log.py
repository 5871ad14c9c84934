"""`tablestore log show`: the state of the logs of tables; `tablestore log drop`: topics that dropped tables have left.

CHANGE     the output of `tablestore log`
INVARIANT  nothing is disturbed: who publishes meanwhile goes on (log/kafka/log_state.py).
INVARIANT  the exit status is 1 when a log is in trouble or could not be asked; the file for Prometheus is written
           first.
CHANGE     the Prometheus metrics of `tablestore log show`
INVARIANT  a table that could not be asked has tablestore_log_up 0, and nothing else.
INVARIANT  drop: without db.table nothing is deleted, the list is a dry run; the exit status is 1 when something was to
           be deleted and stays.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tablestore_engine.api import Engine
from tablestore_engine.cli.output import print_facts, print_json, print_table, say, write_out
from tablestore_engine.cli.prometheus_text import Family, Record, at, render_families, write_metrics
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, list_names, open_engine
from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.spi import KAFKA_ENV
from tablestore_engine.ui.lag_records import status_record
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


def _offsets(*path: str) -> Callable[[Record], object]:
    """How many offsets the spans at a place of a record have."""
    find = at(*path)

    def count(record: Record) -> object:
        spans = find(record)
        return sum(end - first for first, end in spans.values()) if isinstance(spans, Mapping) else None

    return count


_METRICS: tuple[Family, ...] = (
    (
        "up",
        "1 when the log could be asked and nothing keeps it from being published",
        lambda one: one["trouble"] is None,
    ),
    ("published_snapshot", "Newest snapshot that the log has as a whole", at("published")),
    ("newest_snapshot", "Newest snapshot of the table", at("newest")),
    ("lag_snapshots", "Snapshots that the log lacks", at("lag", "snapshots")),
    ("lag_rows", "Changed rows that the log lacks", at("lag", "rows")),
    ("lag_seconds", "For how long the oldest of them has been committed", at("lag", "seconds")),
    ("open_transaction", "1 when a transaction of the table's publisher is open", at("writer", "open")),
    ("unseen_messages", "Messages and control records that readers do not see yet", _offsets("unseen")),
    ("early_messages", "Messages and control records ahead of the newest marker", _offsets("early", "ahead")),
    ("unchecked_messages", "Messages before it that it does not answer for", _offsets("early", "unchecked")),
    ("producer_epoch", "Grows with each publisher that took over", at("writer", "epoch")),
    ("looked_timestamp_seconds", "When this was looked at", at("looked_seconds")),
)


def render_metrics(records: Sequence[Record]) -> str:
    """One family after the other, tables in the order given."""
    return render_families("tablestore_log", ("table", "log"), _METRICS, records)


_COLUMNS = ("table", "log", "published", "newest", "lag", "rows", "seconds", "open", "trouble")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["show", "drop"], help="what to do")
    add_place(parser, name="any")
    add_brokers(parser)
    text = "write the figures into this file, for Prometheus, instead of printing them"
    parser.add_argument("--prometheus", metavar="FILE", help=text)
    add_drop_options(parser)


def run(arguments: argparse.Namespace) -> int:
    parser: argparse.ArgumentParser = arguments.parser
    if arguments.action == "drop":
        with open_engine(arguments) as engine:
            return run_drop(parser, engine, arguments)
    if arguments.dry_run or arguments.forget:
        parser.error("--dry-run and --forget are for drop")
    return _show(arguments)


def _show(arguments: argparse.Namespace) -> int:
    is_one = arguments.table is not None and "." in arguments.table
    with open_engine(arguments) as engine:
        names = [
            name for name in list_names(engine, arguments.table) if _find_log(engine, name, needed=is_one)
        ]
        records = _look_each(engine, names, is_one=is_one and not arguments.prometheus)
    if arguments.prometheus:
        write_metrics(Path(arguments.prometheus), render_metrics(records))
        for record in records:
            if record["trouble"] is not None:
                say(f"{record['table']}: {record['trouble']}")
    elif arguments.json:
        print_json(records[0] if is_one else records)
    elif is_one:
        _print_one(records[0])
    else:
        print_table(_COLUMNS, [_row(record) for record in records])
    return 1 if any(record["trouble"] is not None for record in records) else 0


def _find_log(engine: Engine, name: str, *, needed: bool) -> str | None:
    found = engine.table(name).facts().log
    if found is None and needed:
        raise FixRequest(
            "TS1931",
            f"{name} has no log to show",
            why="its option log.system is not kafka",
            fix=f"build it with log_system='kafka'; brokers come from --bootstrap or {KAFKA_ENV}",
        )
    return found


def _look_each(engine: Engine, names: list[str], *, is_one: bool) -> list[dict[str, object]]:
    """The record of each table; of one among several also when its log cannot be asked."""
    records: list[dict[str, object]] = []
    away: str | None = None
    for name in names:
        try:
            status = None if away is not None else engine.table(name).log_status()
        except TablestoreError as error:
            if is_one:
                raise
            if isinstance(error, RetryError):  # nobody answers: the next table would only wait for it again
                away = str(error)
            records.append(_unknown(engine, name, str(error)))
            continue
        records.append(_unknown(engine, name, away or "") if status is None else status_record(status))
    return records


def _unknown(engine: Engine, name: str, trouble: str) -> dict[str, object]:
    return {"table": name, "log": engine.table(name).facts().log, "trouble": trouble}


def _shard_line(shard: Mapping[str, object]) -> str:
    """`[1] snapshot 7, and 12 messages of the next, transaction ongoing`."""
    writer = shard["writer"]
    state = writer["state"] if isinstance(writer, dict) else None
    part = f" and {shard['part_of_next']:,} messages of the next" if shard["part_of_next"] else ""
    told = "" if state is None else f", transaction {state}"
    return f"[{shard['shard']}] snapshot {shard['published']}{part}{told}"


def _row(record: dict[str, object]) -> list[object]:
    lag, writer = record.get("lag"), record.get("writer")
    figures = lag if isinstance(lag, dict) else {}
    is_open = writer.get("open") if isinstance(writer, dict) else None
    trouble = record["trouble"]
    return [
        record["table"],
        record["log"],
        record.get("published"),
        record.get("newest"),
        figures.get("snapshots"),
        figures.get("rows"),
        figures.get("seconds"),
        is_open,
        "" if trouble is None else str(trouble).partition("\n")[0],
    ]


def _early_facts(early: object) -> dict[str, object]:
    """Lines that an eventual log has beside the others."""
    if not isinstance(early, dict):
        return {}
    named = {"ahead of the marker": early["ahead"], "not checked": early["unchecked"]}
    lines = {
        name: [f"[{where}] {first}..{end}" for where, (first, end) in spans.items()]
        for name, spans in named.items()
    }
    return {"consistency": "eventual", **{name: text or "nothing" for name, text in lines.items()}}


def _print_one(record: dict[str, object]) -> None:
    lag, writer = record["lag"], record["writer"]
    assert isinstance(writer, dict)
    behind = "not known"
    if isinstance(lag, dict):
        rows = "unknown" if lag["rows"] is None else f"{lag['rows']:,}"
        behind = (
            f"{lag['snapshots']} snapshots, {rows} rows, {lag['seconds']:.1f} s"
            if lag["snapshots"]
            else "none"
        )
    unseen, ends, settings = record["unseen"], record["ends"], record["settings"]
    assert isinstance(unseen, dict)
    assert isinstance(ends, dict)
    assert isinstance(settings, dict)
    shards = record["shards"]
    assert isinstance(shards, list)
    part = record["part_of_next"]
    print_facts(
        {
            "table": record["table"],
            "log": f"{record['system']} {record['log']}",
            "published": record["published"],
            "newest snapshot": record["newest"],
            "lag": behind,
            "begun": f"{part:,} messages of the next snapshot" if part else None,
            "publisher": writer["id"],
            "epoch": "not known"
            if writer["epoch"] is None
            else f"{writer['epoch']} (producer {writer['producer']})",
            "transaction": None if writer["state"] is None else f"{writer['state']}, {writer['changed']}",
            "not seen yet": [f"{where} {first}..{end}" for where, (first, end) in unseen.items()],
            "ends": [f"[{where}] {end}" for where, end in ends.items()],
            "shards": [_shard_line(shard) for shard in shards],
            **_early_facts(record["early"]),
        }
    )
    _print_settings(settings)
    if record["trouble"] is not None:
        write_out(f"\ntrouble: {record['trouble']}")


def _print_settings(settings: Mapping[str, Mapping[str, object]]) -> None:
    for name, values in settings.items():
        write_out(f"\n{name}")
        print_facts({f"  {key}": value for key, value in values.items()})
