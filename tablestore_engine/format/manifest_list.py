"""Manifest lists: one record per manifest file of a snapshot's base, delta or changelog (format.md#manifest-lists).

PAIMON     bucket and level ranges are used for pruning when present: right, or absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore_engine.format.avro_file import ROOT_NAME, AvroCodec, optional
from tablestore_engine.format.binary_row import decode_row, encode_row
from tablestore_engine.format.data_file import SimpleStats
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.manifest import (
    FileKind,
    ManifestEntry,
    stats_from_record,
    stats_to_record,
    stats_type,
)

MANIFEST_LIST_VERSION = 2


@dataclass(frozen=True)
class ManifestFileMeta:
    """One manifest file; ranges are None where the writer did not know them."""

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None


_CODEC = AvroCodec.of(
    "manifest list",
    [
        {"name": "_VERSION", "type": "int"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_NUM_ADDED_FILES", "type": "long"},
        {"name": "_NUM_DELETED_FILES", "type": "long"},
        {"name": "_PARTITION_STATS", "type": stats_type(f"{ROOT_NAME}__PARTITION_STATS")},
        {"name": "_SCHEMA_ID", "type": "long"},
        *(optional(name, "int") for name in ("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL")),
        *(optional(name, "long") for name in ("_MIN_ROW_ID", "_MAX_ROW_ID")),
    ],
)


def encode_manifest_list(metas: Iterable[ManifestFileMeta], compression: str = "zstd") -> bytes:
    """Avro bytes of the records in order."""
    return _CODEC.write((_to_record(meta) for meta in metas), compression)


def decode_manifest_list(data: bytes, name: str = "") -> list[ManifestFileMeta]:
    """Records in order; fields since 1.1 may be missing. Raises FixData TS1131."""
    return _CODEC.read(data, _from_record, name)


def describe_manifest(
    name: str, size_bytes: int, entries: Sequence[ManifestEntry], partition_types: Sequence[DataType]
) -> ManifestFileMeta:
    """The record of a manifest that holds `entries` (at least one)."""
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    added = sum(entry.kind is FileKind.ADD for entry in entries)
    return ManifestFileMeta(
        file_name=name,
        file_size=size_bytes,
        num_added_files=added,
        num_deleted_files=len(entries) - added,
        partition_stats=partition_stats({entry.partition for entry in entries}, partition_types),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
    )


def partition_stats(partitions: Iterable[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Minimum, maximum and null count of each partition column over the given encoded partitions."""
    nullable = [type_.with_nullable(True) for type_ in types]
    rows = [decode_row(partition, nullable) for partition in partitions]
    columns: list[list[Any]] = [[row[index] for row in rows] for index in range(len(types))]
    known = [[value for value in column if value is not None] for column in columns]
    low = [min(values) if values else None for values in known]
    high = [max(values) if values else None for values in known]
    nulls = tuple(len(column) - len(values) for column, values in zip(columns, known, strict=True))
    return SimpleStats(encode_row(low, nullable), encode_row(high, nullable), nulls)


def _to_record(meta: ManifestFileMeta) -> dict[str, object]:
    return {
        "_VERSION": MANIFEST_LIST_VERSION,
        "_FILE_NAME": meta.file_name,
        "_FILE_SIZE": meta.file_size,
        "_NUM_ADDED_FILES": meta.num_added_files,
        "_NUM_DELETED_FILES": meta.num_deleted_files,
        "_PARTITION_STATS": stats_to_record(meta.partition_stats),
        "_SCHEMA_ID": meta.schema_id,
        "_MIN_BUCKET": meta.min_bucket,
        "_MAX_BUCKET": meta.max_bucket,
        "_MIN_LEVEL": meta.min_level,
        "_MAX_LEVEL": meta.max_level,
    }


def _from_record(record: Mapping[str, Any]) -> ManifestFileMeta:
    numbers = ("_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES", "_SCHEMA_ID")
    if not all(type(record[name]) is int for name in numbers) or type(record["_FILE_NAME"]) is not str:
        raise TypeError("sizes, counts or names have another type than the format says")
    return ManifestFileMeta(
        file_name=record["_FILE_NAME"],
        file_size=record["_FILE_SIZE"],
        num_added_files=record["_NUM_ADDED_FILES"],
        num_deleted_files=record["_NUM_DELETED_FILES"],
        partition_stats=stats_from_record(record["_PARTITION_STATS"]),
        schema_id=record["_SCHEMA_ID"],
        min_bucket=record.get("_MIN_BUCKET"),
        max_bucket=record.get("_MAX_BUCKET"),
        min_level=record.get("_MIN_LEVEL"),
        max_level=record.get("_MAX_LEVEL"),
    )
