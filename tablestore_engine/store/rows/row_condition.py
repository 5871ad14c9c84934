"""What a caller asks of rows, independent of how it is written: SQL text, a pyarrow expression or triples.

A RowCondition names no schema; `bind` checks it against one. It travels to Spark tasks by pickle.

CHANGE     the port of a filter
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.store.files.column_facts import FindFacts
from tablestore_engine.store.files.comparable_values import Comparable
from tablestore_engine.store.files.stored_file import StoredFile


class BoundCondition(Protocol):
    """A condition over the columns of one schema."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that `mask` needs, in table order."""

    def mask(self, rows: pa.Table) -> Mask:
        """For each row whether the condition is TRUE: neither FALSE nor NULL."""

    def prune(self, files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
        """The files that may hold such a row, by their metadata; in the same order."""

    def possible(self, sets: Sequence[FindFacts]) -> Sequence[bool]:
        """For each set of rows, by the facts of its columns, whether it may hold such a row: row groups of a file."""

    def key_values(self, columns: Sequence[str]) -> Sequence[frozenset[Comparable]] | None:
        """The values that such a row can have in each of these columns; None: one of them may have any."""


class RowCondition(Protocol):
    def bind(self, schema: TableSchema) -> BoundCondition:
        """Over the columns of a schema. Raises FixRequest for what the columns do not allow."""
