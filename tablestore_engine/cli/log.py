"""`tablestore log show`: the state of the logs of tables, and their writers; `drop` is in log_drop.py.

CHANGE     the output of `tablestore log`
INVARIANT  nothing is disturbed: who publishes meanwhile goes on (log/kafka/log_state.py).
INVARIANT  the exit status is 1 when a log is in trouble or could not be asked; the file for Prometheus is written
           first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tablestore_engine.api import Engine
from tablestore_engine.cli.log_drop import add_drop_options, run_drop
from tablestore_engine.cli.log_metrics import render_metrics
from tablestore_engine.cli.output import print_facts, print_json, print_table, say, write_out
from tablestore_engine.cli.prometheus_text import write_metrics
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, list_names, open_engine
from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.spi import KAFKA_ENV
from tablestore_engine.ui.lag_records import status_record

Run = Callable[[argparse.Namespace], int]
_COLUMNS = ("table", "log", "published", "newest", "lag", "rows", "seconds", "open", "trouble")


def _register(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("action", choices=["show", "drop"], help="what to do")
    add_place(parser, name="any")
    add_brokers(parser)
    text = "write the figures into this file, for Prometheus, instead of printing them"
    parser.add_argument("--prometheus", metavar="FILE", help=text)
    add_drop_options(parser)
    return partial(_run, parser)


def _run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
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


REGISTER = {"log": _register}
