"""What a Table is made of: each part of it (reads, writes, states, columns) knows these fields and no other part."""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.warehouse import Warehouse


@dataclass(frozen=True, repr=False)
class TableHandle:
    """The fields, and the schema, which each part needs."""

    warehouse: Warehouse
    identifier: Identifier
    store: TableStore

    def __repr__(self) -> str:
        """`Table('demo.orders')`; it looks at no file."""
        return f"Table('{self.identifier}')"

    @property
    def schema(self) -> TableSchema:
        """The newest schema; `schema.arrow_schema()` is the same for Arrow.

        >>> orders.schema.primary_keys
        ('id',)
        >>> orders.schema.arrow_schema().names
        ['id', 'region', 'amount']
        """
        return self.store.schema
