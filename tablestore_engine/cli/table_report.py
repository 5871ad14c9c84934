"""`tablestore report`: the page of one table as one HTML file, for a ticket or an artefact of CI. No JVM.

INVARIANT  the file appears complete or not at all. The exit status is 1 when a part of the table cannot be read: the
           file is written then, too, and says what.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from tablestore_engine.api import Engine
from tablestore_engine.cli.output import print_result, say, write_lines
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import BROKERS, SYSTEM
from tablestore_engine.ui.html_report import collect_report, has_trouble, render_report

_STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "write HTML into this file (default: the name of the table and .html; - for stdout)"
    parser.add_argument("--html", metavar="FILE", nargs="?", const="", required=True, help=text)
    add_place(parser)
    add_brokers(parser)


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        report = _collect(engine, arguments.table)
    text = render_report(report)
    if arguments.html == _STDOUT:
        write_lines(text)
    else:
        file = Path(arguments.html or default_file(arguments.table))
        write_whole(file, text)
        said = f"{file}: {arguments.table}, {len(text):,} bytes"
        record = {"table": arguments.table, "file": str(file), "bytes": len(text)}
        print_result(record, said, as_json=arguments.json)
    if has_trouble(report):
        say("a part of the table cannot be read: the report has the code and the fix")
        return 1
    return 0


def _collect(engine: Engine, name: str) -> dict[str, object]:
    return collect_report(engine, name, SYSTEM.now_ms(), asks_brokers=bool(engine.clients.get(BROKERS)))


def default_file(table: str) -> str:
    """`demo.orders.html`; no character of it leads into a folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", table).lstrip(".") + ".html"


def write_whole(file: Path, text: str) -> None:
    """Beside it first, then in its place. Raises FixRequest TS1956."""
    aside = file.with_name(f".{file.name}.{SYSTEM.new_uuid()}")
    try:
        try:
            aside.write_text(text, "ascii")
            aside.replace(file)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise FixRequest(
            "TS1956",
            f"the report cannot be written into {file}",
            why=error.strerror or str(error),
            fix="name a file in a folder that exists and that this user may write to",
        ) from error
