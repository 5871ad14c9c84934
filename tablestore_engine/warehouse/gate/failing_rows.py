"""Rows that failed a test of a staged snapshot, kept beside its verdict: few, as text, and bounded.

CHANGE     how many rows of a failed test are kept
INVARIANT  what is stored is at most ROWS_MAX rows of COLUMNS_MAX columns of CELL_MAX characters. It is deleted with
           the staged snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore_engine.runtime.json_plain import cell_text

ROWS_MAX, COLUMNS_MAX, CELL_MAX = 5, 40, 200


@dataclass(frozen=True)
class FailingRows:
    """Names of columns, and of each row the text of each value; None is NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


def pick_failing_rows(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> FailingRows:
    """The first rows and columns of a result."""
    names = tuple(str(name) for name in columns[:COLUMNS_MAX])
    picked = [tuple(cell_text(value, CELL_MAX) for value in row[: len(names)]) for row in rows[:ROWS_MAX]]
    return FailingRows(names, tuple(picked))


def encode_failing_rows(found: FailingRows | None) -> dict[str, Any]:
    """As part of what is stored of a test; empty without rows."""
    return {} if found is None else {"failing": {"columns": found.columns, "rows": found.rows}}


def decode_failing_rows(stored: Mapping[str, Any]) -> FailingRows | None:
    """The way back. Raises KeyError, TypeError for what cannot be one."""
    kept = stored.get("failing")
    if kept is None:
        return None
    rows = [tuple(None if value is None else str(value) for value in row) for row in kept["rows"]]
    return FailingRows(tuple(map(str, kept["columns"])), tuple(rows))
