"""Index manifests: fields on disk, foreign vintages, and one vector entry per bucket."""

from __future__ import annotations

import dataclasses
import io

import fastavro

from tablestore_engine.format.binary_row import EMPTY_ROW
from tablestore_engine.format.index_manifest import (
    DELETION_VECTORS,
    DvRange,
    IndexEntry,
    decode_index_manifest,
    encode_index_manifest,
    replace_entries,
)
from tests.unit.format.manifest_samples import KEY_1, raw_avro, writer_schema

RANGES = (DvRange("data-a", 1, 26, 3), DvRange("data-b", 35, 20))
VECTORS = IndexEntry(EMPTY_ROW, 0, DELETION_VECTORS, "index-1", 63, 2, RANGES)
HASHES = IndexEntry(EMPTY_ROW, 0, "HASH", "index-2", 40, 10)


def test_the_schema_on_disk_is_the_formats() -> None:
    """Names, order and types of reference 4.4; the items of the ranges are a union with null."""
    fields = writer_schema(encode_index_manifest([VECTORS]))["fields"]
    assert [(f["name"], f["type"]) for f in fields if f["name"] != "_DELETIONS_VECTORS_RANGES"] == [
        ("_VERSION", "int"), ("_KIND", "int"), ("_PARTITION", "bytes"), ("_BUCKET", "int"), ("_INDEX_TYPE", "string"),
        ("_FILE_NAME", "string"), ("_FILE_SIZE", "long"), ("_ROW_COUNT", "long"),
        ("_EXTERNAL_PATH", ["null", "string"]),
    ]  # fmt: skip
    assert fields[8]["name"] == "_DELETIONS_VECTORS_RANGES"
    null, array = fields[8]["type"]
    assert (null, array["type"], array["items"][0]) == ("null", "array", "null")
    assert [(f["name"], f["type"]) for f in array["items"][1]["fields"]] == [
        ("f0", "string"), ("f1", "int"), ("f2", "int"), ("_CARDINALITY", ["null", "long"]),
    ]  # fmt: skip


def test_another_avro_reader_sees_our_values() -> None:
    """fastavro alone reads version 1, kind ADD, the ranges, and no ranges for a hash index."""
    first, second = fastavro.reader(io.BytesIO(encode_index_manifest([VECTORS, HASHES])))
    assert (first["_VERSION"], first["_KIND"], first["_ROW_COUNT"]) == (1, 0, 2)
    assert first["_DELETIONS_VECTORS_RANGES"] == [
        {"f0": "data-a", "f1": 1, "f2": 26, "_CARDINALITY": 3},
        {"f0": "data-b", "f1": 35, "f2": 20, "_CARDINALITY": None},
    ]
    assert second["_DELETIONS_VECTORS_RANGES"] is None


def test_entries_round_trip_in_order() -> None:
    """Vectors, an index file whose last vector is gone, hashes and foreign paths come back equal."""
    bare = IndexEntry(KEY_1, 3, DELETION_VECTORS, "index-3", 1, 0)
    entries = [VECTORS, HASHES, bare]
    assert decode_index_manifest(encode_index_manifest(entries)) == entries
    assert decode_index_manifest(encode_index_manifest([])) == []


def test_entries_of_other_vintages_are_read() -> None:
    """Without cardinality and external path (0.9), and with fields of newer writers, entries read."""
    item = {"type": "record", "name": "r", "fields": [
        {"name": "f0", "type": "string"}, {"name": "f1", "type": "int"}, {"name": "f2", "type": "int"},
    ]}  # fmt: skip
    fields = [
        {"name": "_VERSION", "type": "int"}, {"name": "_KIND", "type": "int"}, {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"}, {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"}, {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {"name": "_DELETIONS_VECTORS_RANGES", "type": ["null", {"type": "array", "items": ["null", item]}]},
        {"name": "_GLOBAL_INDEX", "type": ["null", "long"]},
    ]  # fmt: skip
    record = {
        "_VERSION": 1, "_KIND": 0, "_PARTITION": EMPTY_ROW, "_BUCKET": 0, "_INDEX_TYPE": "DELETION_VECTORS",
        "_FILE_NAME": "index-1", "_FILE_SIZE": 63, "_ROW_COUNT": 1, "_GLOBAL_INDEX": None,
        "_DELETIONS_VECTORS_RANGES": [{"f0": "data-a", "f1": 1, "f2": 26}, None],
    }  # fmt: skip
    want = IndexEntry(EMPTY_ROW, 0, "DELETION_VECTORS", "index-1", 63, 1, (DvRange("data-a", 1, 26, None),))
    assert decode_index_manifest(raw_avro(fields, [record])) == [want]


def test_replacing_leaves_exactly_one_entry_of_the_bucket() -> None:
    """With two entries of one bucket Java's next write loses one (format.md#index-manifests): one replaces both."""
    new = dataclasses.replace(VECTORS, file_name="index-new")
    twice = [VECTORS, dataclasses.replace(VECTORS, file_name="index-other")]
    assert replace_entries(twice, {(EMPTY_ROW, 0): new}) == (new,)
    assert replace_entries([], {(EMPTY_ROW, 0): new}) == (new,)


def test_replacing_touches_nothing_else() -> None:
    """Hashes of the bucket and vectors of other buckets and partitions stay."""
    others = [HASHES, dataclasses.replace(VECTORS, bucket=1), dataclasses.replace(VECTORS, partition=KEY_1)]
    assert replace_entries([*others, VECTORS], {(EMPTY_ROW, 0): None}) == tuple(others)
