"""The report: the page of one table as one file, with all that it shows, for a ticket or an artefact of CI.

INVARIANT  the same script draws it as draws the page. The file asks nobody for anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from tablestore_engine.api import Engine
from tablestore_engine.ui.commit_records import Record
from tablestore_engine.ui.compared_rows import read_difference
from tablestore_engine.ui.page_file import render_page
from tablestore_engine.ui.page_section import read_part
from tablestore_engine.ui.table_facts import read_streams, read_table, read_topic

_DIFFERENCES_MAX = 6


def collect_report(engine: Engine, name: str, now_ms: int, *, asks_brokers: bool) -> Record:
    """All parts of a table, differences of the newest snapshots, and of each staged one with its base.

    Raises NotFound TS1414, FixRequest TS1401, TS1402.
    """
    table = read_table(engine, name, now_ms)
    reads: dict[str, Callable[[], object]] = {"streams": lambda: read_streams(engine, name, now_ms)}
    if asks_brokers:
        reads["topic"] = lambda: read_topic(engine, name)
    parts = (
        {} if table["kind"] == "view" else {key: read_part(read).as_record() for key, read in reads.items()}
    )
    differences = {
        f"{first}…{second}": read_part(partial(read_difference, engine, name, first, second)).as_record()
        for first, second in _pairs(table)
    }
    return {
        "mode": "report",
        "warehouse": engine.warehouse,
        "now_ms": now_ms,
        "table": {**table, **parts},
        "differences": differences,
    }


def render_report(report: Record) -> str:
    """The file's text."""
    return render_page(report, connects=False)


def has_trouble(report: Record) -> bool:
    """Whether a part of it could not be read."""
    table = report["table"]
    assert isinstance(table, dict)
    return any(isinstance(part, dict) and "trouble" in part for part in table.values())


def _pairs(table: Record) -> list[tuple[str, str]]:
    """Of neighbours, the newest first; then of staged snapshots with their bases."""
    snapshots, staged = _value(table, "snapshots"), _value(table, "staged")
    ids = [one["id"] for one in snapshots["snapshots"]] if isinstance(snapshots, dict) else []
    pairs = [(str(first), str(second)) for first, second in pairwise(ids)]
    waiting = [
        (str(one["base_snapshot"]), f"@staged:{one['name']}")
        for one in (staged if isinstance(staged, list) else [])
        if one["base_snapshot"] is not None and not one["beside"]
    ]
    return [*waiting[:_DIFFERENCES_MAX], *pairs[: -_DIFFERENCES_MAX - 1 : -1]]


def _value(table: Record, key: str) -> object:
    part = table.get(key)
    return part.get("value") if isinstance(part, dict) else None
