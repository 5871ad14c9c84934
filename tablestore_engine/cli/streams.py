"""`tablestore streams`: which tables follow which sources, and how far each lags; for people and for Prometheus.

CHANGE     `tablestore streams`
INVARIANT  nothing is read but metadata, no broker is asked, no JVM starts.
INVARIANT  the exit status is 1 when a table cannot go on by itself; the file for Prometheus is written first.
CHANGE     the Prometheus metrics of `tablestore streams`
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tablestore_engine.api import stream_lags
from tablestore_engine.cli.output import print_json, print_table, say, to_utc
from tablestore_engine.cli.prometheus_text import Family, Record, at, render_families, write_metrics
from tablestore_engine.cli.warehouse_choice import add_place, list_names, open_engine
from tablestore_engine.ui.lag_records import lag_record

_METRICS: tuple[Family, ...] = (
    ("up", "1 when the table can follow this source", lambda one: one["trouble"] is None),
    ("lag_snapshots", "Snapshots of the source that the table has not processed", at("lag", "snapshots")),
    ("lag_rows", "Changed rows of them", at("lag", "rows")),
    ("lag_seconds", "For how long the oldest of them has been committed", at("lag", "seconds")),
    ("committed_timestamp_seconds", "When the table was written last", at("committed_seconds")),
)


def render_metrics(records: Sequence[Record]) -> str:
    """One family after the other, tables in the order given."""
    return render_families("tablestore_stream", ("table", "follows"), _METRICS, records)


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser, name="any")
    text = "write the figures into this file, for Prometheus, instead of printing them"
    parser.add_argument("--prometheus", metavar="FILE", help=text)


def run(arguments: argparse.Namespace) -> int:
    now_ms = int(time.time() * 1000)
    with open_engine(arguments) as engine:
        found = stream_lags(engine, list_names(engine, arguments.table))
    records = [lag_record(one, now_ms) for one in found]
    if arguments.prometheus:
        write_metrics(Path(arguments.prometheus), render_metrics(records))
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
