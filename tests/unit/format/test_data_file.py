"""Columns of data files with their Parquet ids, and facts of one file."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from tablestore_engine.format.data_file import EMPTY_STATS, append_schema, key_value_schema
from tablestore_engine.format.data_type import BIGINT, INT, STRING, DataField, DataType
from tablestore_engine.format.schema import TableSchema

SCHEMA = TableSchema(
    id=0,
    fields=(
        DataField(0, "dt", STRING.with_nullable(False)),
        DataField(3, "v", DataType("ARRAY", element=INT)),
        DataField(1, "id", BIGINT.with_nullable(False)),
        DataField(7, "code", STRING.with_nullable(False)),
    ),
    highest_field_id=7,
    partition_keys=("dt",),
    primary_keys=("code", "dt", "id"),
)


def _ids(schema: pa.Schema) -> list[tuple[str, int]]:
    return [(field.name, int(field.metadata[b"PARQUET:field_id"])) for field in schema]


def test_a_keyed_file_has_keys_system_columns_and_columns() -> None:
    """Order and ids of reference 7.1: TPK in key order, sequence before kind, then every column in schema order."""
    assert _ids(key_value_schema(SCHEMA)) == [
        ("_KEY_code", 1073741830), ("_KEY_id", 1073741824), ("_SEQUENCE_NUMBER", 2147483646),
        ("_VALUE_KIND", 2147483645), ("dt", 0), ("v", 3), ("id", 1), ("code", 7),
    ]  # fmt: skip


def test_types_and_nullability_of_the_system_columns() -> None:
    """Keys keep their type; keys, number and kind are NOT NULL, columns as declared."""
    schema = key_value_schema(SCHEMA)
    assert [schema.field(i).type for i in range(4)] == [pa.string(), pa.int64(), pa.int64(), pa.int8()]
    assert [field.nullable for field in schema] == [False, False, False, False, False, True, False, False]


def test_an_append_file_has_the_columns_alone() -> None:
    """Item 4 of reference 7.1; elements of arrays have their own id."""
    schema = append_schema(dataclasses.replace(SCHEMA, primary_keys=()))
    assert _ids(schema) == [("dt", 0), ("v", 3), ("id", 1), ("code", 7)]
    element = schema.field("v").type.value_field
    assert int(element.metadata[b"PARQUET:field_id"]) == 536870911 + 1024 * 3 + 1


def test_empty_statistics_are_twelve_zero_bytes() -> None:
    """Two rows of no fields and no counts (reference 4.3)."""
    assert (EMPTY_STATS.min_values, EMPTY_STATS.max_values) == (bytes(12), bytes(12))
    assert EMPTY_STATS.null_counts == ()
