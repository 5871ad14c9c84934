"""`tablestore sql`: one statement through Spark, or a query through DuckDB, with the names of the warehouse.

INVARIANT  rows in JSON are objects; columns of the same name get _2, _3 … so that none is lost.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tablestore_engine.api import SqlResult
from tablestore_engine.cli.commit_record import exit_status, report_record
from tablestore_engine.cli.output import print_json, print_table, say, write_out
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.errors import FixRequest

_SHOWN_ROWS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("statement", help="one SQL statement, or - to read it from standard input")
    add_place(parser, name=None)
    text = "duckdb answers a query over tables without a JVM, in DuckDB's SQL (default: spark)"
    parser.add_argument("--engine", choices=("spark", "duckdb"), default="spark", help=text)
    text = f"rows printed at most (default: {_SHOWN_ROWS}, with --json all)"
    parser.add_argument("--limit", type=int, metavar="ROWS", help=text)
    parser.add_argument("--master", help="Spark master, as in local[2] or spark://host:7077")
    text = "views and defaults that others stored in the warehouse may run code and read files (else TS1529)"
    parser.add_argument("--trusted-sql", action="store_true", help=text)
    add_brokers(parser)


def run(arguments: argparse.Namespace) -> int:
    statement = sys.stdin.read() if arguments.statement == "-" else arguments.statement
    if not statement.strip():
        raise FixRequest(
            "TS1927", "there is no statement", why="the text is empty", fix='tablestore sql "select 1"'
        )
    with open_engine(arguments) as engine:
        result = (engine.sql if arguments.engine == "spark" else engine.query_duckdb)(statement)
    if result.notice is not None:
        say(result.notice)
    status = 0 if result.report is None else exit_status(result.report)
    limit = arguments.limit
    if limit is None:
        limit = len(result.rows) if arguments.json else _SHOWN_ROWS
    rows = result.rows[: max(limit, 0)]
    if arguments.json:
        print_json(sql_record(result, rows))
        return status
    if result.columns:
        print_table([name for name, _ in result.columns], rows)
    if len(rows) < len(result.rows):
        say(f"{len(rows)} of {len(result.rows)} rows; see more with --limit {len(result.rows)}")
    if result.report is not None:
        write_out(f"{result.report.table}: {result.report.summary()}")
    return status


def sql_record(result: SqlResult, rows: Sequence[Sequence[object]]) -> dict[str, object]:
    """Columns, rows and, when a table was written, the report."""
    names = unique_names([name for name, _ in result.columns])
    return {
        "columns": [
            {"name": name, "type": kind} for name, (_, kind) in zip(names, result.columns, strict=True)
        ],
        "rows": [dict(zip(names, row, strict=True)) for row in rows],
        "report": None if result.report is None else report_record(result.report),
    }


def unique_names(names: Sequence[str]) -> list[str]:
    """a, a, b → a, a_2, b."""
    found: list[str] = []
    for name in names:
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found
