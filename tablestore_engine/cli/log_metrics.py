r"""Figures of logs as a text file for Prometheus (its node exporter's textfile collector, or any other scraper).

Names      render_metrics()  pure: records of `tablestore log show --json` → the text
           write_metrics()   into a file, at once or not at all: a scraper never reads half of it
Form       # HELP, # TYPE, then a line for each table: name{table="…",log="…"} value; \ " and line breaks of a name are
           escaped as the format has it
INVARIANT  a figure that is not known has no line; a table that could not be asked has tablestore_log_up 0.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tablestore_engine.errors import FixRequest

Record = Mapping[str, object]


def _at(*path: str) -> Callable[[Record], object]:
    """The value at a place of a record; None where there is none."""

    def find(record: Record) -> object:
        value: object = record
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    return find


def _offsets(*path: str) -> Callable[[Record], object]:
    """How many offsets the spans at a place of a record have."""
    find = _at(*path)

    def count(record: Record) -> object:
        spans = find(record)
        return sum(end - first for first, end in spans.values()) if isinstance(spans, Mapping) else None

    return count


_METRICS: tuple[tuple[str, str, Callable[[Record], object]], ...] = (
    (
        "up",
        "1 when the log could be asked and nothing keeps it from being published",
        lambda one: one["trouble"] is None,
    ),
    ("published_snapshot", "Newest snapshot that the log has as a whole", _at("published")),
    ("newest_snapshot", "Newest snapshot of the table", _at("newest")),
    ("lag_snapshots", "Snapshots that the log lacks", _at("lag", "snapshots")),
    ("lag_rows", "Changed rows that the log lacks", _at("lag", "rows")),
    ("lag_seconds", "For how long the oldest of them has been committed", _at("lag", "seconds")),
    ("open_transaction", "1 when a transaction of the table's publisher is open", _at("writer", "open")),
    ("unseen_messages", "Messages and control records that readers do not see yet", _offsets("unseen")),
    ("early_messages", "Messages and control records ahead of the newest marker", _offsets("early", "ahead")),
    ("unchecked_messages", "Messages before it that it does not answer for", _offsets("early", "unchecked")),
    ("producer_epoch", "Grows with each publisher that took over", _at("writer", "epoch")),
    ("looked_timestamp_seconds", "When this was looked at", _at("looked_seconds")),
)


def render_metrics(records: Sequence[Record]) -> str:
    """One family after the other, tables in the order given."""
    lines: list[str] = []
    for name, text, find in _METRICS:
        values = [(record, find(record)) for record in records]
        known = [(record, value) for record, value in values if isinstance(value, int | float)]
        if known:
            lines += [f"# HELP tablestore_log_{name} {text}.", f"# TYPE tablestore_log_{name} gauge"]
            lines += [f"tablestore_log_{name}{_labels(record)} {_number(value)}" for record, value in known]
    return "".join(f"{line}\n" for line in lines)


def _labels(record: Record) -> str:
    named = {"table": record["table"], "log": record["log"]}
    return "{" + ",".join(f'{key}="{_escaped(str(value))}"' for key, value in named.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if isinstance(value, bool | int) else f"{value:.3f}"


def write_metrics(file: Path, text: str) -> None:
    """Beside it first, then in its place. Raises FixRequest TS1932."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        aside.write_text(text, "utf-8")
        aside.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise FixRequest(
            "TS1932",
            f"the figures cannot be written into {file}",
            why=error.strerror or str(error),
            fix="name a file in a folder that exists and that this user may write to",
        ) from error
