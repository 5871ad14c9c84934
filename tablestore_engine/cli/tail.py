"""`tablestore tail`: the changes of a table as they come, a line for each row; no JVM.

Steps      arguments → Table.stream → batches → lines, with --json one JSON object each
Ends       behind --until; on Ctrl-C; when nobody reads the output any more (`| head`), also while it waits for changes
INVARIANT  a consumer moves only behind lines that were written, and gets every row: it has no page.
INVARIANT  --json has no page either; a person gets the newest rows of the past, and a note.
"""

from __future__ import annotations

import argparse
import json
import select
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.api import Table, TableStream
from tablestore_engine.cli.output import say, to_text, write_lines
from tablestore_engine.cli.page import NewestRows, add_page, page_rows
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, split_names
from tablestore_engine.display import fit_json, shown
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.runtime.json_plain import to_plain
from tablestore_engine.runtime.moments import parse_moment
from tablestore_engine.stream.open_stream import NOW, ReadMode
from tablestore_engine.stream.startup_mode import StartupMode

_KIND, _ID = "_row_kind", "_snapshot_id"
_LINES = 1_000  # rows between two looks at who reads
_INTERVAL_S = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    text = "where to begin (default: the table's scan.mode, else latest: only what comes from now on)"
    parser.add_argument("--from", dest="mode", choices=list(StartupMode), help=text)
    parser.add_argument("--snapshot", type=int, metavar="N", help="begin with the changes of snapshot N")
    text = (
        "begin with the first change at this time or later: 2026-01-31T12:00:00Z, or milliseconds since 1970"
    )
    parser.add_argument("--timestamp", metavar="TIME", help=text)
    text = "resume at the position of the consumer with this name, and store its progress; see tablestore consumers"
    parser.add_argument("--consumer", metavar="ID", help=text)
    text = "end after a snapshot, or after the newest one: now (default: wait for more)"
    parser.add_argument("--until", metavar=f"N|{NOW}", help=text)
    parser.add_argument("--columns", metavar="a,b", help="only these columns")
    add_page(parser)
    text = "where changes come from: the table's files or its log (default: as the table says, log for an eventual one)"
    parser.add_argument("--read-mode", choices=list(ReadMode), help=text)
    text = "messages of an upsert log as they are: the newest row of a key, the key of a deleted one"
    parser.add_argument("--remove-normalize", action="store_true", help=text)
    text = f"how often to look for changes (default {_INTERVAL_S})"
    parser.add_argument("--interval", type=float, default=_INTERVAL_S, metavar="SECONDS", help=text)


def run(arguments: argparse.Namespace) -> int:
    pager = _Pager(_page_of(arguments), as_json=arguments.json)
    with open_engine(arguments) as engine:
        stream = _open(engine.table(arguments.table), arguments, pager)
        try:
            for batch in stream:
                if not pager.add(batch):
                    return 0
                if arguments.consumer is not None:
                    stream.commit()
            pager.flush()
        except KeyboardInterrupt:
            return 0
    return 0


def _page_of(arguments: argparse.Namespace) -> int | None:
    """Rows of the past that are printed at most; None: all. Raises FixRequest TS1939."""
    if arguments.consumer is None:
        return page_rows(arguments)
    if arguments.limit is not None:
        raise FixRequest(
            "TS1939",
            f"tail of {arguments.table} cannot have both --consumer and --limit",
            why="the consumer would count rows as read that were not printed",
            fix="leave out --limit, or --consumer",
        )
    return None


@dataclass
class _Pager:
    """Rows that are there already are held until all of them were read, and the newest are printed; later ones at once.

    `flush` is called where the stream waits for the first time, or ends.
    """

    limit: int | None
    as_json: bool
    is_past: bool = True

    def __post_init__(self) -> None:
        self._newest = NewestRows(self.limit)

    def add(self, batch: pa.RecordBatch) -> bool:
        """Whether somebody still reads the output."""
        if self.limit is not None and self.is_past:
            self._newest.add(batch)
            return True
        return self._write(batch)

    def flush(self) -> bool:
        self.is_past = False
        rows, self._newest = self._newest, NewestRows(None)
        if rows.note is not None:
            say(rows.note)
        return all(map(self._write, rows.take()))

    def _write(self, batch: pa.RecordBatch) -> bool:
        return all(map(write_lines, _portions(batch, as_json=self.as_json)))


def _open(table: Table, arguments: argparse.Namespace, pager: _Pager) -> TableStream:
    mode = arguments.mode
    says_where = arguments.snapshot is not None or arguments.timestamp is not None
    if mode is None and not says_where and not {"scan.mode", "log.scan"} & set(table.schema.options):
        mode = StartupMode.LATEST
    return table.stream(
        mode,
        snapshot_id=arguments.snapshot,
        timestamp_ms=None if arguments.timestamp is None else _to_millis(arguments.timestamp),
        consumer_id=arguments.consumer,
        until=_to_until(arguments.until),
        columns=None if arguments.columns is None else split_names(arguments.columns),
        read_mode=arguments.read_mode,
        normalize=False if arguments.remove_normalize else None,
        interval_s=arguments.interval,
        wait=lambda seconds: not pager.flush() or _wait_for_readers(seconds),
    )


def _wait_for_readers(seconds: float) -> bool:
    """Wait, and say whether whoever reads our output went away meanwhile."""
    try:
        poller = select.poll()
        poller.register(sys.stdout.fileno(), 0)  # errors alone: a pipe without reader has one
    except (AttributeError, OSError, ValueError):
        time.sleep(seconds)  # no output at all, or a system that cannot tell
        return False
    return bool(poller.poll(seconds * 1000))


def _to_until(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text


def _to_millis(text: str) -> int:
    """Raises FixRequest TS1941."""
    try:
        return parse_moment(text)
    except ValueError as wrong:
        raise FixRequest(
            "TS1941",
            f"--timestamp {text!r} is no time",
            why=str(wrong),
            fix="write 2026-01-31T12:00:00Z, or milliseconds since 1970; a time without a zone is UTC",
        ) from wrong


def _portions(batch: pa.RecordBatch, *, as_json: bool) -> Iterator[str]:
    encoding, line = sys.stdout.encoding, _json_line if as_json else _plain_line
    for start in range(0, batch.num_rows, _LINES):
        rows = row_dicts(batch.slice(start, _LINES))
        yield "\n".join(line(row, encoding) for row in rows)


def _json_line(row: dict[str, object], encoding: str | None) -> str:
    plain = to_plain({_ID: row[_ID], _KIND: row[_KIND], **row})
    return fit_json(json.dumps(plain, ensure_ascii=False, allow_nan=False), encoding)


def _plain_line(row: dict[str, object], encoding: str | None) -> str:
    cells = [f"{name}={to_text(value)}" for name, value in row.items() if name not in (_ID, _KIND)]
    snapshot = "-" if row[_ID] is None else row[_ID]  # a row of an eventual log that came before its snapshot
    return shown("  ".join([f"{snapshot} {row[_KIND]}", *cells]).replace("\n", " "), encoding)
