"""A column as dbt's macros and packages ask for it: by the names of Spark's types.

WHY        dbt's own lists are PostgreSQL's: there `int` is no integer, `string` no text and `decimal(12,2)` no number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.spark.column import SparkColumn

from tablestore_engine.api import ColumnInfo

_INTEGERS = frozenset({"tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"})
_FLOATS = frozenset({"float", "real", "double"})
_DECIMALS = frozenset({"decimal", "dec", "numeric"})
_TEXTS = frozenset({"string", "varchar", "char", "character", "text"})


@dataclass
class TablestoreColumn(SparkColumn):
    """`dtype` is Spark's text of the type, with length or precision where it has one."""

    @classmethod
    def of_relation(cls, relation: BaseRelation, infos: Iterable[ColumnInfo]) -> list[TablestoreColumn]:
        """From metadata, in order."""
        return [
            cls(
                table_schema=relation.schema,
                table_name=relation.identifier,
                table_type=relation.type,
                column=info.name,
                column_index=index,
                dtype=info.type_text,
            )
            for index, info in enumerate(infos)
        ]

    @property
    def _root(self) -> str:
        return self.dtype.partition("(")[0].partition(" ")[0].strip().lower()

    def is_integer(self) -> bool:
        return self._root in _INTEGERS

    def is_float(self) -> bool:
        return self._root in _FLOATS

    def is_numeric(self) -> bool:
        """A decimal number."""
        return self._root in _DECIMALS

    def is_string(self) -> bool:
        """Text, of bounded length or not."""
        return self._root in _TEXTS

    def string_size(self) -> int:
        """The bound of varchar(n) and char(n); dbt's 256 for text without one. Raises for other types."""
        bound = self.dtype.partition("(")[2].rstrip(") ")
        return int(bound) if self.is_string() and bound.isdigit() else super().string_size()
