"""`tablestore streams`: which tables keep up with what, and how far behind they are; for people, for Prometheus.

Names      source_records   of one table: each source that its rows are made from, as JSON has it
Steps      positions in the table's newest snapshot → of a table of this warehouse: what lies behind its position, by
           metadata alone · of a topic or of files: where it stands
INVARIANT  nothing is read but metadata, no broker is asked, no JVM starts.
INVARIANT  the exit status is 1 when a table cannot go on by itself; the file for Prometheus is written first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tablestore_engine.api import TABLE_SOURCE, Engine, Table
from tablestore_engine.cli.metrics import Family, at, render_families, write_metrics
from tablestore_engine.cli.output import print_json, print_table, say, to_utc
from tablestore_engine.cli.warehouse_choice import add_place, list_names, open_engine
from tablestore_engine.errors import TablestoreError

Run = Callable[[argparse.Namespace], int]
_COLUMNS = (
    "table",
    "follows",
    "at",
    "newest",
    "lag snapshots",
    "lag rows",
    "lag seconds",
    "last commit",
    "trouble",
)
_FAMILIES: tuple[Family, ...] = (
    ("up", "1 when the table can go on with this source", lambda one: one["trouble"] is None),
    ("lag_snapshots", "Snapshots of the source that the table has not taken", at("lag", "snapshots")),
    ("lag_rows", "Changed rows of them", at("lag", "rows")),
    ("lag_seconds", "For how long the oldest of them has been committed", at("lag", "seconds")),
    ("committed_timestamp_seconds", "When the table was written last", at("committed_seconds")),
)


def _register(parser: argparse.ArgumentParser) -> Run:
    add_place(parser, name="any")
    text = "write the figures into this file, for Prometheus, instead of printing them"
    parser.add_argument("--prometheus", metavar="FILE", help=text)
    return _run


def _run(arguments: argparse.Namespace) -> int:
    now_ms = int(time.time() * 1000)
    with open_engine(arguments) as engine:
        tables = {engine.table(name).source: name for name in list_names(engine, None)}
        records = [
            record
            for name in list_names(engine, arguments.table)
            for record in source_records(engine, name, tables, now_ms)
        ]
    if arguments.prometheus:
        text = render_families("tablestore_stream", ("table", "follows"), _FAMILIES, records)
        write_metrics(Path(arguments.prometheus), text)
        for record in records:
            if record["trouble"] is not None:
                say(f"{record['table']} ← {record['follows']}: {record['trouble']}")
    elif arguments.json:
        print_json(records)
    elif not records:
        say("no table follows anything")
    else:
        print_table(_COLUMNS, [_row(record) for record in records])
    return 1 if any(record["trouble"] is not None for record in records) else 0


def source_records(
    engine: Engine, name: str, tables: Mapping[str, str], now_ms: int
) -> list[dict[str, object]]:
    """Names that programs may rely on; `tables`: name among positions → table."""
    table = engine.table(name)
    committed_ms = table.facts().committed_at_ms
    committed = None if committed_ms is None else committed_ms / 1000
    try:
        positions = table.positions()
    except TablestoreError as error:
        return [_record(name, "unknown", committed, trouble=str(error))]
    records = []
    for source, position in sorted(positions.items()):
        if source.startswith(TABLE_SOURCE):
            followed = tables.get(source)
            if followed is None:
                gone = "the table that it followed was dropped or made anew: a full refresh takes the new one"
                records.append(_record(name, source, committed, trouble=gone))
            else:
                behind = _behind(engine.table(followed), position, now_ms)
                records.append(_record(name, followed, committed, **behind))
        elif ":" in source:
            records.append(_record(name, source, committed, at=position))
    return records


def _behind(followed: Table, position: str, now_ms: int) -> dict[str, object]:
    """Of a table of this warehouse."""
    try:
        found = followed.plan_changes(position)
        rows = followed.count_changed_rows(found)
    except TablestoreError as error:
        return {"trouble": str(error)}
    since, until = found.between.since or 0, found.between.until or 0
    oldest_ms = followed.store.snapshots.get(since + 1).time_millis if until > since else None
    lag = {
        "snapshots": until - since,
        "rows": rows,
        "seconds": 0.0 if oldest_ms is None else max(0, now_ms - oldest_ms) / 1000,
        "since": to_utc(oldest_ms),
    }
    return {"at": since, "newest": until, "lag": lag}


def _record(
    table: str,
    follows: str,
    committed: float | None,
    *,
    at: object = None,
    newest: object = None,
    lag: object = None,
    trouble: object = None,
) -> dict[str, object]:
    return {
        "table": table,
        "follows": follows,
        "at": at,
        "newest": newest,
        "lag": lag,
        "committed_seconds": committed,
        "trouble": trouble,
    }


def _row(record: Mapping[str, object]) -> list[object]:
    lag, seconds = record["lag"], record["committed_seconds"]
    figures = lag if isinstance(lag, dict) else {}
    committed = int(seconds * 1000) if isinstance(seconds, float) else None
    cells = [
        *(record[name] for name in ("table", "follows", "at", "newest")),
        *(figures.get(name) for name in ("snapshots", "rows", "seconds")),
        to_utc(committed),
        str(record["trouble"] or "").partition("\n")[0],
    ]
    return ["" if cell is None else cell for cell in cells]


REGISTER = {"streams": _register}
