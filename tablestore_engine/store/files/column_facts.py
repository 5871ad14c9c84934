"""What is known of the values of one column in a set of rows: a file's, or those of some of its row groups."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.format.data_type import INTEGER_ROOTS, DataField, DataType
from tablestore_engine.format.schema import TableSchema

if TYPE_CHECKING:
    from tablestore_engine.store.files.comparable_values import Comparable


@dataclass(frozen=True)
class ColumnFacts:
    """`low` and `high` enclose all values that are neither NULL nor NaN; None: unknown. `nulls` None: unknown too.

    exact   whether `low` and `high` are such values themselves, not shortened ones
    """

    rows: int
    nulls: int | None = None
    low: Comparable | None = None
    high: Comparable | None = None
    exact: bool = False

    @property
    def is_all_null(self) -> bool:
        return self.nulls is not None and self.nulls >= self.rows


FindFacts = Callable[[str], ColumnFacts | None]


def constant_facts(value: object, column: DataField, rows: int) -> ColumnFacts:
    from tablestore_engine.store.files.comparable_values import comparable

    if value is None:
        return ColumnFacts(rows, nulls=rows)
    known = comparable(value, column.type)
    return ColumnFacts(rows, nulls=0, low=known, high=known, exact=True)


class StoredColumns:
    """Columns of a table by name, of its old schemas by id; schemas are few and files many."""

    def __init__(self, schema: TableSchema) -> None:
        self.by_name = {field.name: field for field in schema.fields}
        self.partition = {name: at for at, name in enumerate(schema.partition_keys)}
        self._stored: dict[int, dict[int, DataField]] = {}
        self._alike: dict[tuple[int, int], bool] = {}

    def stored(self, schema: TableSchema) -> dict[int, DataField]:
        found = self._stored.get(schema.id)
        if found is None:
            found = self._stored[schema.id] = {field.id: field for field in schema.fields}
        return found

    def stored_as(self, schema: TableSchema, column: DataField) -> tuple[DataField | None, bool]:
        """A column in files of an old schema, None where they have none, and whether its statistics hold now."""
        field, place = self.stored(schema).get(column.id), (schema.id, column.id)
        if field is not None and place not in self._alike:
            self._alike[place] = compares_alike(field.type, column.type)
        return field, self._alike.get(place, False)


def compares_alike(stored: DataType, now: DataType) -> bool:
    """Whether statistics of the stored type hold for what is read: the same type, or an integer that was widened."""
    if stored.with_nullable(True) == now.with_nullable(True):
        return True
    roots = [INTEGER_ROOTS.index(one.root) for one in (stored, now) if one.root in INTEGER_ROOTS]
    return len(roots) == 2 and roots[0] <= roots[1]
