"""Partition values: Python objects ⇄ BinaryRow bytes, and → directory names (format.md#partitions).

CHANGE     partition values and folder names (options partition.default-name, partition.legacy-name)
INVARIANT  readers compute the directory from the bytes: both forms come from the same values, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore_engine.format.binary_row import decode_row, encode_row
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.value_text import cast_text, legacy_text

DEFAULT_PARTITION = "__DEFAULT_PARTITION__"
_ESCAPED = frozenset("\"#%'*/:=?\\{}[]^\x7f") | frozenset(map(chr, range(0x20)))
# what Java's Character.isWhitespace accepts: no-break spaces are not white space there
_BLANK = frozenset(
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)


@dataclass(frozen=True)
class PartitionSpec:
    """How one table names its partition directories; `legacy_name` is option `partition.legacy-name`."""

    keys: tuple[str, ...]
    types: tuple[DataType, ...]
    default_name: str = DEFAULT_PARTITION
    legacy_name: bool = True

    @classmethod
    def of(cls, schema: TableSchema) -> PartitionSpec:
        """The spec of a table from its partition keys and options."""
        return cls(
            keys=schema.partition_keys,
            types=tuple(field.type for field in schema.fields_of(schema.partition_keys)),
            default_name=schema.options.get("partition.default-name", DEFAULT_PARTITION),
            legacy_name=schema.options.get("partition.legacy-name", "true").strip().lower() != "false",
        )

    def path(self, values: Sequence[object]) -> str:
        """``k=v/k=v/`` of these values, '' without partition keys."""
        return partition_path(
            self.keys, self.types, values, default_name=self.default_name, legacy_name=self.legacy_name
        )

    def encode(self, values: Sequence[object]) -> bytes:
        return encode_partition(values, self.types)

    def decode(self, data: bytes) -> tuple[object, ...]:
        """The values of bytes in a manifest."""
        return decode_partition(data, self.types)

    def path_of_bytes(self, data: bytes) -> str:
        """The directory of the partition that a manifest entry names."""
        return self.path(self.decode(data))


def partition_path(
    keys: Sequence[str],
    types: Sequence[DataType],
    values: Sequence[object],
    *,
    default_name: str = DEFAULT_PARTITION,
    legacy_name: bool = True,
) -> str:
    """``k=v/k=v/``, escaped, one level per key; '' without keys (format.md#partitions).

    Raises Unsupported TS1122 for types whose text is not fixed by the format (binaries, zoned time with
    legacy_name off, nested types).
    """
    parts = []
    for key, type_, value in zip(keys, types, values, strict=True):
        text = None if value is None else (legacy_text if legacy_name else cast_text)(value, type_)
        if text is None or all(char in _BLANK for char in text):
            text = default_name
        parts.append(f"{escape_path_name(key)}={escape_path_name(text)}/")
    return "".join(parts)


def escape_path_name(text: str) -> str:
    r"""`text` with ``%XX`` for control characters and ``" # % ' * / : = ? \ { } [ ] ^``; the rest stays raw."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def encode_partition(values: Sequence[object], types: Sequence[DataType]) -> bytes:
    """The canonical bytes of partition values; twelve zero bytes without partitions (format.md#partitions)."""
    return encode_row(values, types)


def decode_partition(data: bytes, types: Sequence[DataType]) -> tuple[object, ...]:
    """The partition values of a manifest entry's bytes. Raises FixData TS1116 when they do not fit the types."""
    return decode_row(data, types)
