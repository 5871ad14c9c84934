r"""Figures as a text file for Prometheus (its node exporter's textfile collector, or any other scraper).

CHANGE     the format of metrics for Prometheus
Form       # HELP, # TYPE, then a line for each record: name{label="…"} value; \ " and line breaks of a label are
           escaped as the format has it
INVARIANT  a figure that is not known has no line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tablestore_engine.errors import FixRequest

Record = Mapping[str, object]
Family = tuple[str, str, Callable[[Record], object]]


def at(*path: str) -> Callable[[Record], object]:
    """The value at a place of a record; None where there is none."""

    def find(record: Record) -> object:
        value: object = record
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    return find


def render_families(
    prefix: str, labels: Sequence[str], families: Sequence[Family], records: Sequence[Record]
) -> str:
    """One family after the other, records in the order given; `labels`: which of a record's texts name its lines."""
    lines: list[str] = []
    for name, text, find in families:
        values = [(record, find(record)) for record in records]
        known = [(record, value) for record, value in values if isinstance(value, int | float)]
        if known:
            lines += [f"# HELP {prefix}_{name} {text}.", f"# TYPE {prefix}_{name} gauge"]
            lines += [f"{prefix}_{name}{_labels(record, labels)} {_number(value)}" for record, value in known]
    return "".join(f"{line}\n" for line in lines)


def _labels(record: Record, labels: Sequence[str]) -> str:
    return "{" + ",".join(f'{label}="{_escaped(str(record[label]))}"' for label in labels) + "}"


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
