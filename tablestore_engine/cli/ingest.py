"""`tablestore ingest`: change messages of other systems into a keyed table, exactly once.

Steps      arguments → IngestSpec → Engine.ingest → what was done
Ends       behind what is there now; with --follow at SIGTERM or Ctrl-C, behind the batch that is being written
Status     0, 1 for an error and for a run that a signal stopped before it was up to now
"""

from __future__ import annotations

import argparse

from tablestore_engine.api import ChangeFormat, IngestSpec, OnError, OnSchemaChange, OnTruncate
from tablestore_engine.cli.output import print_result, say
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine, split_names
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import stopped_by_signals

_RULES = [OnSchemaChange.APPEND_NEW_COLUMNS, OnSchemaChange.IGNORE, OnSchemaChange.FAIL]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=list(ChangeFormat), help="how the messages are written")
    parser.add_argument(
        "--into", metavar="db.table", required=True, help="the table; made when it is not there"
    )
    add_place(parser, name=None)
    add_brokers(parser)
    _add_source(parser)
    _add_columns(parser)
    _add_rules(parser)
    text = "continue as messages come, until SIGTERM or Ctrl-C; temporary errors are retried"
    parser.add_argument("--follow", action="store_true", help=text)
    text = "with --follow: how long messages are collected for one commit (default 1.0)"
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help=text)
    text = "messages of one commit at most (default 200000)"
    parser.add_argument("--rows", type=int, default=200_000, metavar="N", help=text)
    text = "megabytes of one commit at most (default 128)"
    parser.add_argument("--megabytes", type=int, default=128, metavar="N", help=text)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="NAME", help="the Kafka topic with the changes")
    parser.add_argument("--path", metavar="PATH", help="instead: a file of JSON lines, or a folder of them")
    text = "which of the source's tables are meant: schema.table, with * and ?"
    parser.add_argument("--source-table", metavar="PATTERN", help=text)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    text = "columns of the primary key (default: the table's, else what the messages say)"
    parser.add_argument("--key", metavar="a,b", default="", help=text)
    text = "type of a column, for messages that carry none, or another one than they say; may come again"
    parser.add_argument("--column", metavar="NAME=TYPE", action="append", default=[], help=text)
    text = "infer types of columns without a schema from their values"
    parser.add_argument("--infer", action="store_true", help=text)
    text = "what a text of a DECIMAL is where messages carry no types"
    parser.add_argument("--decimals", choices=["base64", "text"], help=text)
    parser.add_argument(
        "--partition-by", metavar="a,b", default="", help="partitions of a table that is made"
    )
    text = "option of a table that is made; may come again"
    parser.add_argument("--option", metavar="KEY=VALUE", action="append", default=[], help=text)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    text = "columns that the table does not have (default: they are added, wider types are taken)"
    parser.add_argument("--on-schema-change", choices=_RULES, default=_RULES[0], help=text)
    text = "messages that cannot be read: an error (default), or kept in the table <into>__dead_letters"
    parser.add_argument("--on-error", choices=list(OnError), default=OnError.FAIL, help=text)
    text = "the source emptied its table: an error (default), nothing, or the table is emptied too"
    parser.add_argument("--on-truncate", choices=list(OnTruncate), default=OnTruncate.FAIL, help=text)


def run(arguments: argparse.Namespace) -> int:
    spec = IngestSpec(
        format=arguments.format,
        into=arguments.into,
        topic=arguments.topic,
        path=arguments.path,
        key=split_names(arguments.key),
        columns=_pairs(arguments.column, "--column"),
        infer=arguments.infer,
        decimals=arguments.decimals,
        source_table=arguments.source_table,
        on_schema_change=arguments.on_schema_change,
        on_error=arguments.on_error,
        on_truncate=arguments.on_truncate,
        partition_by=split_names(arguments.partition_by),
        options=_pairs(arguments.option, "--option"),
        rows_max=arguments.rows,
        bytes_max=arguments.megabytes << 20,
        interval_s=arguments.interval,
    )
    with open_engine(arguments) as engine, stopped_by_signals() as stop:
        report = engine.ingest(spec, follow=arguments.follow, stop=stop, say=say)
    print_result(report.record(), f"{spec.into}: {report.summary()}", as_json=arguments.json)
    return 0 if report.is_complete else 1


def _pairs(given: list[str], flag: str) -> dict[str, str]:
    """Raises FixRequest TS1439."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise FixRequest(
                "TS1439",
                f"{flag} {text!r} is no pair",
                why="expected NAME=VALUE",
                fix=f"write for example {flag} {'price=DECIMAL(10,2)' if flag == '--column' else 'bucket=4'}",
            )
        found[name.strip()] = value.strip()
    return found
