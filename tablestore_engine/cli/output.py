"""What commands print: aligned tables for people, one JSON document for programs.

INVARIANT  --json prints exactly one document on stdout; notes and progress go to stderr.
INVARIANT  a number in JSON is exact: what a double cannot hold is text.
INVARIANT  everything that a command prints leaves through write_out, write_lines, say or print_json: no control
           character of a name, comment or value reaches the terminal, and none that its encoding lacks ends the
           command.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal

from tablestore_engine.display import fit, fit_json, shown, visible
from tablestore_engine.runtime.json_plain import to_plain
from tablestore_engine.runtime.moments import moment_text

WIDEST = 60
_GAP = "  "


def to_utc(millis: int | None) -> str | None:
    """`2026-01-31T12:00:00.123Z`; None stays."""
    return None if millis is None else moment_text(millis)


def to_text(value: object) -> str:
    """A value in one cell of a table: one line (see display.visible), at most WIDEST wide."""
    plain = to_plain(value)
    if plain is None:
        text = "NULL"
    elif isinstance(plain, dict | list):
        text = json.dumps(plain, ensure_ascii=False)
    else:
        text = str(plain)
    text = visible(text)
    return text if _width(text) <= WIDEST else _cut(text, WIDEST - 1) + "…"


def to_size(count: int) -> str:
    """Bytes as people read them: `812 B`, `3.4 MB`."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"


def layout_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], encoding: str | None = None
) -> list[str]:
    """Header, rule and rows; a column of numbers is aligned to the right. Cells are measured as `encoding` has them."""
    columns = [fit(visible(name), encoding) for name in columns]
    cells = [[fit(to_text(value), encoding) for value in row] for row in rows]
    widths = [
        max(_width(name), *(_width(row[at]) for row in cells), 1) if cells else _width(name)
        for at, name in enumerate(columns)
    ]
    is_number = [
        bool(rows) and all(row[at] is None or _is_number(row[at]) for row in rows)
        for at in range(len(columns))
    ]
    lines = [_line(columns, widths, is_number), _GAP.join("─" * width for width in widths)]
    return [*lines, *(_line(row, widths, is_number) for row in cells)]


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    write_out("\n".join(layout_table(columns, rows, sys.stdout.encoding)))


def print_facts(facts: Mapping[str, object]) -> None:
    """One fact per line; those that are None or empty are left out."""
    known = {name: value for name, value in facts.items() if value not in (None, "", (), [])}
    width = max((_width(name) for name in known), default=0)
    for name, value in known.items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        write_out(f"{name.ljust(width)}  {visible(text)}")


def print_json(value: object) -> None:
    document = json.dumps(to_plain(value), ensure_ascii=False, indent=2, allow_nan=False)
    write_out(fit_json(document, sys.stdout.encoding))


def print_result(record: object, text: str, *, as_json: bool) -> None:
    """The record for programs, or the text for people."""
    if as_json:
        print_json(record)
    else:
        write_out(text)


def say(text: str) -> None:
    """A note for the person at the terminal."""
    print(shown(text, sys.stderr.encoding), file=sys.stderr, flush=True)


def write_out(text: str) -> None:
    """A line on stdout; a reader that went away (`| head`) ends the output, not the program."""
    write_lines(shown(text, sys.stdout.encoding))


def write_lines(text: str) -> bool:
    """Lines on stdout; whether somebody still reads. REQUIRES text that went through `display`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    padded = []
    for cell, width, right in zip(cells, widths, is_number, strict=True):
        space = " " * (width - _width(cell))
        padded.append(space + cell if right else cell + space)
    return _GAP.join(padded).rstrip()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _width(text: str) -> int:
    """Columns on a terminal: wide East Asian characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def _cut(text: str, width: int) -> str:
    end = width
    while _width(text[:end]) > width:
        end -= 1
    return text[:end]


def print_records(records: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Some columns of records as an aligned table; None is empty."""
    rows = [["" if one.get(name) is None else one[name] for name in columns] for one in records]
    print_table([name.replace("_", " ") for name in columns], rows)
