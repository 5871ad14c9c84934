"""What a column's type is: one frozen tree for all types of the format (format.md#types).

INVARIANT  a root is one of ATOMIC_ROOTS or NESTED_ROOTS; STRING and BYTES have no root of their own.
INVARIANT  parameters that do not belong to a root stay None, so that equal types are equal objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

STRING_LENGTH = 2147483647
COMPACT_DECIMAL_PRECISION = 18  # up to here the unscaled value is one int64
MICROS_PRECISION = 6  # Spark's timestamps, and up to here Parquet's are INT64
COMPACT_TIMESTAMP_PRECISION = 3  # up to here a timestamp is one int64 of epoch milliseconds

INTEGER_ROOTS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
CHARACTER_ROOTS = ("CHAR", "VARCHAR")
BINARY_ROOTS = ("BINARY", "VARBINARY")
TIMESTAMP_ROOTS = ("TIMESTAMP", "TIMESTAMP_LTZ")
OPAQUE_ROOTS = ("VARIANT", "BLOB")
ATOMIC_ROOTS = (
    "BOOLEAN", *INTEGER_ROOTS, "FLOAT", "DOUBLE", "DECIMAL", *CHARACTER_ROOTS, *BINARY_ROOTS,
    "DATE", "TIME", *TIMESTAMP_ROOTS,
)  # fmt: skip
NESTED_ROOTS = ("ARRAY", "MULTISET", "MAP", "ROW", "VECTOR")


@dataclass(frozen=True)
class DataType:
    """One type: `length` of CHAR/BINARY/VECTOR, `precision`/`scale` of numbers and times, nested children.

    `collation`: of incoming text that Spark compares otherwise than by its bytes; never stored (schema_check).
    """

    root: str
    nullable: bool = True
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    element: DataType | None = None
    key: DataType | None = None
    value: DataType | None = None
    fields: tuple[DataField, ...] = ()
    collation: str | None = None

    @property
    def is_atomic(self) -> bool:
        """Whether a value is one scalar (VARIANT and BLOB are neither atomic nor nested)."""
        return self.root in ATOMIC_ROOTS

    @property
    def is_compact(self) -> bool:
        """Whether a DECIMAL or TIMESTAMP fits its eight bytes (format.md#binaryrow); True for other types."""
        if self.root == "DECIMAL":
            return (self.precision or 0) <= COMPACT_DECIMAL_PRECISION
        if self.root in TIMESTAMP_ROOTS:
            return (self.precision or 0) <= COMPACT_TIMESTAMP_PRECISION
        return True

    def with_nullable(self, nullable: bool) -> DataType:
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def all_nullable(self) -> DataType:
        """The same type without NOT NULL, inside too; keys of a map are never NULL."""
        return replace(
            self,
            nullable=True,
            element=None if self.element is None else self.element.all_nullable(),
            value=None if self.value is None else self.value.all_nullable(),
            fields=tuple(replace(one, type=one.type.all_nullable()) for one in self.fields),
        )

    def children(self) -> tuple[DataType, ...]:
        """Direct child types: element, key, value, then ROW children."""
        direct = tuple(t for t in (self.element, self.key, self.value) if t is not None)
        return direct + tuple(f.type for f in self.fields)

    def walk(self) -> Iterator[DataType]:
        """The type itself and all types inside it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True)
class DataField:
    """One column, or one child of a ROW: `id` is unique in the table for ever (format.md#types)."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None


def is_fine_timestamp(type_: DataType) -> bool:
    """Whether it is a timestamp of more than 6 digits of a second: one in nanoseconds."""
    return type_.root in TIMESTAMP_ROOTS and (type_.precision or 0) > MICROS_PRECISION


VOID = DataType("NULL")  # of incoming columns that hold nothing but NULL; never stored
STRING = DataType("VARCHAR", length=STRING_LENGTH)
BYTES = DataType("VARBINARY", length=STRING_LENGTH)
INT = DataType("INT")
BIGINT = DataType("BIGINT")
