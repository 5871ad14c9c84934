"""How many rows a command prints: a page for a person, all of them for a program.

INVARIANT  --json is never cut unless --limit is given.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

PAGE_ROWS = 100


def add_page(parser: argparse.ArgumentParser) -> None:
    either = parser.add_mutually_exclusive_group()
    text = f"only the newest N rows (default: {PAGE_ROWS}, with --json all)"
    either.add_argument("--limit", type=_count, metavar="N", help=text)
    either.add_argument("--all", action="store_true", help="all rows")


def page_rows(arguments: argparse.Namespace) -> int | None:
    """None: all."""
    if arguments.limit is not None:
        limit: int = arguments.limit
        return limit
    return None if arguments.all or arguments.json else PAGE_ROWS


@dataclass
class NewestRows:
    """The last `limit` rows (None: all) of the batches that were added, in their order; `total` counts all rows.

    Memory: these rows and one batch.
    """

    limit: int | None
    total: int = 0
    _held: int = 0
    _batches: deque[pa.RecordBatch] = field(default_factory=deque)

    def add(self, batch: pa.RecordBatch) -> None:
        """The rows that come after the others."""
        self.total, self._held = self.total + batch.num_rows, self._held + batch.num_rows
        self._batches.append(batch)
        while (
            self.limit is not None and self._batches and self._held - self._batches[0].num_rows >= self.limit
        ):
            self._held -= self._batches.popleft().num_rows

    def take(self) -> Iterator[pa.RecordBatch]:
        """The rows, once."""
        first = 0 if self.limit is None else max(self._held - self.limit, 0)
        while self._batches:
            yield self._batches.popleft().slice(first)
            first = 0

    @property
    def note(self) -> str | None:
        if self.limit is None or self.total <= self.limit:
            return None
        return f"the newest {self.limit} of {self.total} rows; see all with --all, or more with --limit N"


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number
