"""Columns of one table: add, drop and rename. Each is a new version of the schema; no data file is rewritten."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.type_arrow import type_from_arrow
from tablestore_engine.format.type_text import parse_type

if TYPE_CHECKING:
    from tablestore_engine.sql.statement import AlterAction

_TWO_MEANINGS = re.compile(r"\btimestamp\b", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class ColumnChanges(TableHandle):
    """What ALTER TABLE does to columns, without Spark."""

    def add_column(self, name: str, type_: str | pa.DataType) -> None:
        """A column at the end, NULL in all rows. Raises FixRequest TS1101, TS1112, TS1138 to TS1142.

        `type_` is a pyarrow type, or text such as STRING or DECIMAL(10, 2). A text TIMESTAMP is refused, because
        engines read it in two ways: write TIMESTAMP_LTZ, or give pyarrow's type.

        >>> orders.add_column("note", "string")
        >>> orders.to_arrow().column_names
        ['id', 'region', 'amount', 'note']
        """
        from tablestore_engine.sql.statement import AddColumns

        self._alter(AddColumns(()), DataField(0, name, _column_type(type_)))

    def drop_column(self, name: str) -> None:
        """Its values are gone from later states only. Raises NotFound TS1110, FixRequest TS1125 for a key.

        >>> orders.drop_column("amount")
        >>> orders.to_arrow().column_names, orders.scan(snapshot=1).to_arrow().column_names
        (['id', 'region'], ['id', 'region', 'amount'])
        """
        from tablestore_engine.sql.statement import DropColumns

        self._alter(DropColumns((name,)))

    def rename_column(self, name: str, new_name: str) -> None:
        """The rows stay. Raises NotFound TS1110, FixRequest TS1112, TS1125, TS1139.

        >>> orders.rename_column("region", "area")
        >>> orders.to_arrow().column_names
        ['id', 'area', 'amount']
        """
        from tablestore_engine.sql.statement import RenameColumn

        self._alter(RenameColumn(name, new_name))

    def _alter(self, action: AlterAction, *columns: DataField) -> None:
        from tablestore_engine.warehouse.statements.table_actions import TableActions

        place = (self.identifier.database, self.identifier.name)
        TableActions(self.warehouse).alter(*place, action, columns)


def _column_type(given: str | pa.DataType) -> DataType:
    if isinstance(given, pa.DataType):
        return type_from_arrow(given)
    if _TWO_MEANINGS.search(given) is not None:
        raise FixRequest(
            "TS1142",
            f"type {given!r} has two meanings",
            why="TIMESTAMP has a time zone in the SQL of Spark, and none in the format",
            fix="write TIMESTAMP_LTZ, or give a pyarrow type: pa.timestamp('us') has no zone",
        )
    return parse_type(given)
