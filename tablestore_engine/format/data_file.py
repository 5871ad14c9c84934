"""Facts of one data file as manifests hold them, and the columns inside it (format.md#data-files).

INVARIANT  the field ids below reach disk and never change.
PAIMON     readers since 1.0 do not need _KEY_ columns, older ones fail without them: always written.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.format.binary_row import EMPTY_ROW
from tablestore_engine.format.schema import KEY_PREFIX, TableSchema
from tablestore_engine.format.type_arrow import field_with_ids

SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
KEY_FIELD_ID_BASE = 1073741823
SEQUENCE_NUMBER_ID = 2147483646
VALUE_KIND_ID = 2147483645

SOURCE_APPEND = 0
SOURCE_COMPACT = 1


@dataclass(frozen=True)
class SimpleStats:
    """Bounds and null counts: BinaryRow bytes of minima and maxima; None in `null_counts` means unknown."""

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


EMPTY_STATS = SimpleStats(EMPTY_ROW, EMPTY_ROW, ())


@dataclass(frozen=True)
class DataFileMeta:
    """One data file. `creation_time` is local wall-clock milliseconds taken as UTC (format.md#data-files).

    `value_stats_cols` None: the statistics cover all columns in schema order; a tuple: exactly these.
    """

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    value_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int
    creation_time: int | None
    extra_files: tuple[str, ...] = ()
    delete_row_count: int | None = None
    embedded_file_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None

    @property
    def file_names(self) -> tuple[str, ...]:
        """Its own, and those of the files that belong to it: indexes."""
        return (self.file_name, *self.extra_files)


def _with_id(field: pa.Field, parquet_id: int) -> pa.Field:
    return field.with_metadata({b"PARQUET:field_id": str(parquet_id).encode()})


def key_value_schema(schema: TableSchema) -> pa.Schema:
    """Columns of a keyed file in order, with Parquet field ids (format.md#data-files)."""
    keys = [
        _with_id(field_with_ids(field).with_name(KEY_PREFIX + field.name), KEY_FIELD_ID_BASE + field.id)
        for field in schema.fields_of(schema.trimmed_primary_keys)
    ]
    system = [
        _with_id(pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False), SEQUENCE_NUMBER_ID),
        _with_id(pa.field(VALUE_KIND, pa.int8(), nullable=False), VALUE_KIND_ID),
    ]
    return pa.schema([*keys, *system, *append_schema(schema)])


def append_schema(schema: TableSchema) -> pa.Schema:
    """Columns of an append-only file, with Parquet field ids."""
    return pa.schema([field_with_ids(field) for field in schema.fields])
