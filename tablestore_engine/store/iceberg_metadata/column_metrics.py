"""Bounds and NULL counts of the columns of data files, out of the statistics in the table's own manifests.

INVARIANT  what file pruning of our own scans knows of a column (store.read.file_pruning), in the type that the column
           has in the described state; what that does not know is left out.
WHY        remembered by file: a file is listed again whenever its manifest is written again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.iceberg.column_bounds import ColumnBounds, encode_bound, encode_column_maps
from tablestore_engine.store.files.column_facts import FindFacts
from tablestore_engine.store.files.stored_formats import is_parquet
from tablestore_engine.store.read.file_pruning import FactFinder, fact_finder
from tablestore_engine.store.table_context import TableContext


@dataclass
class ColumnMetrics:
    """Of the files of one state; `schema`: of the state."""

    context: TableContext
    schema: TableSchema
    spec: PartitionSpec
    _finder: FactFinder = field(init=False)
    _fields: tuple[DataField, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._finder = fact_finder(self.schema)
        self._fields = tuple(one for one in self.schema.fields if one.type.is_atomic)

    def of(self, entry: ManifestEntry) -> bytes:
        """The maps of a file in its manifest entry. Raises Unsupported TS1378."""
        if not is_parquet(entry.file.file_name):
            raise Unsupported(
                "TS1378",
                f"Iceberg metadata cannot list the data file {entry.file.file_name}",
                why="readers of Iceberg find columns by ids, which only Parquet files of these tables have",
                fix="compact the table with file.format=parquet; the next commit writes the metadata",
            )
        key = f"{entry.file.file_name}#{self.schema.id}"
        [found] = self.context.manifests.memory.get_or_read(key, lambda: (self._encode(entry),))
        assert isinstance(found, bytes)
        return found

    def _encode(self, entry: ManifestEntry) -> bytes:
        [file] = self.context.scanner.stored_files([entry], self.spec)
        find = self._finder(file)
        return encode_column_maps([_bounds(one, entry.file.row_count, find) for one in self._fields])


def _bounds(column: DataField, rows: int, find: FindFacts) -> ColumnBounds:
    facts = find(column.name)
    if facts is None:
        return ColumnBounds(column.id, rows)
    low, high = (None if one is None else encode_bound(one, column.type) for one in (facts.low, facts.high))
    return ColumnBounds(column.id, rows, facts.nulls, low, high)
