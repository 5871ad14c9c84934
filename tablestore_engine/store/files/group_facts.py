"""Facts of the columns of a table in neighbouring row groups of one file: what conditions skip row groups by.

INVARIANT  the facts are those of the columns as the reader's schema has them: by field id, partition columns as
           constants, columns that the file lacks as NULL; a type that changed in another way has no facts.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.store.files.column_facts import (
    ColumnFacts,
    FindFacts,
    StoredColumns,
    constant_facts,
)
from tablestore_engine.store.files.parquet_footer import Footer
from tablestore_engine.store.files.stored_file import StoredFile


class GroupFacts:
    """Of one file; `columns` are those of the reader's schema."""

    def __init__(self, footer: Footer, file: StoredFile, columns: StoredColumns) -> None:
        self._footer, self._file, self._columns = footer, file, columns

    def of(self, groups: range) -> FindFacts:
        """Facts of the rows of neighbouring row groups, by column."""
        return lambda name: self._find(name, groups)

    def _find(self, name: str, groups: range) -> ColumnFacts | None:
        column, at = self._columns.by_name.get(name), self._columns.partition.get(name)
        if column is None:
            return None
        starts = self._footer.group_starts
        rows = int(starts[groups.stop] - starts[groups.start])
        if at is not None:
            return constant_facts(self._file.partition[at], column, rows)
        stored, _ = self._columns.stored_as(self._file.schema, column)
        if stored is None:
            return ColumnFacts(rows, nulls=rows)  # added later: NULL in every row
        known = self.of_groups(name)
        return None if known is None else joined_facts(known[groups.start : groups.stop])

    def of_groups(self, name: str) -> tuple[ColumnFacts, ...] | None:
        """What statistics say of a column in each row group; None: nothing, as of partition columns."""
        column = self._columns.by_name.get(name)
        if column is None or name in self._columns.partition:
            return None
        stored, is_alike = self._columns.stored_as(self._file.schema, column)
        return self._footer.group_facts(stored.name, stored.type) if stored is not None and is_alike else None


def joined_facts(parts: Sequence[ColumnFacts]) -> ColumnFacts:
    """Facts of the rows of all parts together; REQUIRES one part at least."""
    if len(parts) == 1:
        return parts[0]
    counts = [one.nulls for one in parts if one.nulls is not None]
    rows, nulls = sum(one.rows for one in parts), sum(counts) if len(counts) == len(parts) else None
    valued = [one for one in parts if not one.is_all_null]
    lows = [one.low for one in valued if one.low is not None]
    highs = [one.high for one in valued if one.high is not None]
    if not valued or len(lows) < len(valued) or len(highs) < len(valued):
        return ColumnFacts(rows, nulls)
    exact = all(one.exact for one in valued)
    return ColumnFacts(rows, nulls, min(lows), max(highs), exact)
