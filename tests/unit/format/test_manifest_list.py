"""Manifest lists: fields on disk and the facts of a manifest."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io

import fastavro
import pytest

from tablestore_engine.format.binary_row import encode_row
from tablestore_engine.format.data_file import EMPTY_STATS, SimpleStats
from tablestore_engine.format.data_type import INT, STRING, DataType
from tablestore_engine.format.manifest import FileKind
from tablestore_engine.format.manifest_list import (
    ManifestFileMeta,
    decode_manifest_list,
    describe_manifest,
    encode_manifest_list,
    partition_stats,
)
from tests.unit.format.manifest_samples import STATS_FIELDS, make_entry, raw_avro, writer_schema

META = ManifestFileMeta("manifest-1", 100, 3, 1, EMPTY_STATS, 2, 0, 1, 4, 5)


def test_the_schema_on_disk_is_the_formats() -> None:
    """Names, order and types of reference 4.1; partition statistics are no union."""
    fields = writer_schema(encode_manifest_list([META]))["fields"]
    assert [(f["name"], f["type"]) for f in fields if f["name"] != "_PARTITION_STATS"] == [
        ("_VERSION", "int"), ("_FILE_NAME", "string"), ("_FILE_SIZE", "long"), ("_NUM_ADDED_FILES", "long"),
        ("_NUM_DELETED_FILES", "long"), ("_SCHEMA_ID", "long"), *((name, ["null", "int"]) for name in
        ("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL")), ("_MIN_ROW_ID", ["null", "long"]),
        ("_MAX_ROW_ID", ["null", "long"]),
    ]  # fmt: skip
    assert fields[5]["name"] == "_PARTITION_STATS"
    assert fields[5]["type"]["type"] == "record"
    assert fields[5]["type"]["fields"] == STATS_FIELDS


def test_another_avro_reader_sees_our_values() -> None:
    """fastavro alone reads version 2 and the exact size."""
    (record,) = fastavro.reader(io.BytesIO(encode_manifest_list([META])))
    assert (record["_VERSION"], record["_FILE_SIZE"], record["_MAX_LEVEL"]) == (2, 100, 5)
    assert record["_PARTITION_STATS"]["_NULL_COUNTS"] == []


def test_records_round_trip_in_order() -> None:
    """Full records and records without ranges come back equal; so does an empty list."""
    other = dataclasses.replace(
        META, file_name="manifest-2", min_bucket=None, max_bucket=None, min_level=None
    )
    assert decode_manifest_list(encode_manifest_list([META, other])) == [META, other]
    assert decode_manifest_list(encode_manifest_list([])) == []


@pytest.mark.parametrize("newer", [False, True])
def test_lists_of_other_vintages_are_read(newer: bool) -> None:
    """Fields 0 to 6 suffice (before 1.1); fields of newer writers are skipped."""
    more = [{"name": "_TOTAL_BUCKETS", "type": ["null", "int"]}] if newer else []
    fields = [
        {"name": "_VERSION", "type": "int"}, {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_NUM_ADDED_FILES", "type": "long"}, {"name": "_NUM_DELETED_FILES", "type": "long"},
        {"name": "_PARTITION_STATS", "type": {"type": "record", "name": "s", "fields": STATS_FIELDS}},
        {"name": "_SCHEMA_ID", "type": "long"}, *more,
    ]  # fmt: skip
    record = {
        "_VERSION": 2, "_FILE_NAME": "m", "_FILE_SIZE": 1, "_NUM_ADDED_FILES": 2, "_NUM_DELETED_FILES": 3,
        "_SCHEMA_ID": 4, "_TOTAL_BUCKETS": 5,
        "_PARTITION_STATS": {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": []},
    }  # fmt: skip
    assert decode_manifest_list(raw_avro(fields, [record])) == [
        ManifestFileMeta("m", 1, 2, 3, EMPTY_STATS, 4)
    ]


def test_a_manifest_is_described_by_its_entries() -> None:
    """Counts by kind, highest schema id, bucket and level ranges, partition bounds with null count."""
    rows = [("b", 0, 5, 1), ("a", 3, 2, 4), (None, 1, 3, 0)]
    entries = [
        make_entry(
            str(i), FileKind(i % 2), partition=encode_row([p], [STRING]), bucket=b, level=lv, schema_id=s
        )
        for i, (p, b, lv, s) in enumerate(rows)
    ]
    meta = describe_manifest("m", 77, entries, [STRING])
    bounds = SimpleStats(encode_row(["a"], [STRING]), encode_row(["b"], [STRING]), (1,))
    assert meta == ManifestFileMeta("m", 77, 2, 1, bounds, 4, 0, 3, 2, 5)


def test_partition_bounds_of_several_types() -> None:
    """Each column has its own bounds; an all-null column has none; no column at all is the empty row."""
    types = [INT, DataType("DATE"), STRING]
    rows = [(2, dt.date(2024, 1, 2), None), (-5, dt.date(1969, 12, 31), None)]
    stats = partition_stats([encode_row(row, types) for row in rows], types)
    assert stats.min_values == encode_row([-5, dt.date(1969, 12, 31), None], types)
    assert stats.max_values == encode_row([2, dt.date(2024, 1, 2), None], types)
    assert stats.null_counts == (0, 0, 2)
    assert partition_stats([bytes(12)], []) == EMPTY_STATS
