"""Rows in the memory of the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.warehouse.write.incoming import check_names, checked_kinds, group_count, shape_arrow


@dataclass(frozen=True)
class ArrowRows:
    """`table` has the columns of `fields`, and the helper columns. Raises FixRequest TS1024 for repeated names."""

    fields: tuple[DataField, ...]
    table: pa.Table

    def __post_init__(self) -> None:
        check_names([field.name for field in self.fields])

    @property
    def has_kinds(self) -> bool:
        """Whether a column _ROW_KIND comes along."""
        return ROW_KIND_COLUMN in self.table.column_names

    @property
    def only_deletes(self) -> bool:
        if not self.has_kinds:
            return False
        kinds = checked_kinds(self.table.column(ROW_KIND_COLUMN))
        return bool(pc.all(pc.equal(kinds, int(RowKind.DELETE))).as_py())

    def size_bytes(self) -> int:
        return int(self.table.nbytes)

    def count_groups(self, columns: Sequence[str]) -> int:
        return group_count([self.table], columns)

    def read(self, schema: TableSchema) -> pa.Table:
        """They are in memory, however many."""
        return shape_arrow(self.table, schema)
