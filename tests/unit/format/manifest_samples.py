"""Data files and manifest entries for tests: small facts, everything overridable."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro

from tablestore_engine.format.binary_row import EMPTY_ROW, encode_row
from tablestore_engine.format.data_file import EMPTY_STATS, DataFileMeta, SimpleStats
from tablestore_engine.format.data_type import BIGINT
from tablestore_engine.format.manifest import FileKind, ManifestEntry, encode_rolled

STATS_FIELDS = [
    {"name": "_MIN_VALUES", "type": "bytes"},
    {"name": "_MAX_VALUES", "type": "bytes"},
    {"name": "_NULL_COUNTS", "type": ["null", {"type": "array", "items": ["null", "long"]}], "default": None},
]
KEY_1, KEY_9 = encode_row([1], [BIGINT]), encode_row([9], [BIGINT])
KEY_STATS = SimpleStats(KEY_1, KEY_9, (0,))


def make_file(name: str = "data-a-0.parquet", **facts: Any) -> DataFileMeta:
    """A data file of nine rows on level 5, as a keyed table has it."""
    known: dict[str, Any] = {
        "file_name": name, "file_size": 1234, "row_count": 9, "min_key": KEY_1, "max_key": KEY_9,
        "key_stats": KEY_STATS, "value_stats": EMPTY_STATS, "min_sequence_number": 0, "max_sequence_number": 8,
        "schema_id": 0, "level": 5, "creation_time": 1_700_000_000_123, "value_stats_cols": (),
    }  # fmt: skip
    return DataFileMeta(**{**known, **facts})


def make_entry(
    name: str = "data-a-0.parquet",
    kind: FileKind = FileKind.ADD,
    *,
    partition: bytes = EMPTY_ROW,
    bucket: int = 0,
    **facts: Any,
) -> ManifestEntry:
    """An entry of a table with two buckets."""
    return ManifestEntry(kind, partition, bucket, 2, make_file(name, **facts))


def encode_manifest(entries: Sequence[ManifestEntry], compression: str = "zstd") -> bytes:
    """Bytes of the one manifest that holds all `entries` (at least one)."""
    ((data, held),) = encode_rolled(entries, target_bytes=1 << 40, compression=compression)
    assert list(held) == list(entries)
    return data


def raw_avro(fields: list[dict[str, Any]], records: list[dict[str, Any]], codec: str = "null") -> bytes:
    """Bytes written by fastavro alone with another record name than ours."""
    sink = io.BytesIO()
    schema = {"type": "record", "name": "theirs", "fields": fields}
    fastavro.writer(sink, fastavro.parse_schema(schema), records, codec=codec)
    return sink.getvalue()


def writer_schema(data: bytes) -> dict[str, Any]:
    """The schema in the header, as JSON has it."""
    return json.loads(fastavro.reader(io.BytesIO(data)).metadata["avro.schema"])
