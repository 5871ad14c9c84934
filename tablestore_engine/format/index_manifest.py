"""Index manifests: the complete list of a snapshot's live index files (format.md#index-manifests).

PAIMON     array items are unions with null. Exactly one DELETION_VECTORS entry per (partition, bucket) of a
           keyed table: with two, Java's next write loses one of them (format.md#index-manifests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.avro_file import ROOT_NAME, AvroCodec, optional

INDEX_MANIFEST_VERSION = 1
DELETION_VECTORS = "DELETION_VECTORS"
HASH = "HASH"
_KIND_ADD = 0


@dataclass(frozen=True)
class DvRange:
    """The deletion vector of `data_file`: offset of its size field, length as the format counts it, set bits."""

    data_file: str
    start: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True)
class IndexEntry:
    """One index file of a (partition, bucket)."""

    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    file_size: int
    row_count: int
    dv_ranges: tuple[DvRange, ...] = ()
    external_path: str | None = None


_RANGE = {
    "type": "record",
    "name": f"{ROOT_NAME}__DELETIONS_VECTORS_RANGES",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        optional("_CARDINALITY", "long"),
    ],
}
_CODEC = AvroCodec.of(
    "index manifest",
    [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        optional("_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _RANGE]}),
        optional("_EXTERNAL_PATH", "string"),
    ],
)


def encode_index_manifest(entries: Iterable[IndexEntry], compression: str = "zstd") -> bytes:
    """Avro bytes of the entries, all of kind ADD."""
    return _CODEC.write((_to_record(entry) for entry in entries), compression)


def decode_index_manifest(data: bytes, name: str = "") -> list[IndexEntry]:
    """Entries in order. Raises FixData TS1131."""
    return _CODEC.read(data, _from_record, name)


def replace_entries(
    entries: Sequence[IndexEntry],
    new: Mapping[tuple[bytes, int], IndexEntry | None],
    index_type: str = DELETION_VECTORS,
) -> tuple[IndexEntry, ...]:
    """The entries with those of one type and these buckets (partition, bucket) replaced (None: removed)."""
    kept = (
        entry
        for entry in entries
        if not (entry.index_type == index_type and (entry.partition, entry.bucket) in new)
    )
    return (*kept, *(entry for entry in new.values() if entry is not None))


def without_hash_index(entries: Sequence[IndexEntry]) -> tuple[IndexEntry, ...]:
    """The entries without HASH indexes, which say in which dynamic bucket a key lies."""
    return tuple(entry for entry in entries if entry.index_type != HASH)


def _to_record(entry: IndexEntry) -> dict[str, object]:
    ranges = [
        {"f0": one.data_file, "f1": one.start, "f2": one.length, "_CARDINALITY": one.cardinality}
        for one in entry.dv_ranges
    ]
    return {
        "_VERSION": INDEX_MANIFEST_VERSION,
        "_KIND": _KIND_ADD,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.file_name,
        "_FILE_SIZE": entry.file_size,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": ranges if entry.index_type == DELETION_VECTORS else None,
        "_EXTERNAL_PATH": entry.external_path,
    }


def _from_record(record: Mapping[str, Any]) -> IndexEntry:
    if record.get("_EXTERNAL_PATH") is not None:
        raise Unsupported(
            "TS1192",
            f"index file {record['_FILE_NAME']} lies outside of its table",
            why="the index manifest names an external path; only files inside the table's folder are read",
            fix="rewrite the table without external paths in the engine that wrote it",
        )
    ranges = record.get("_DELETIONS_VECTORS_RANGES") or ()
    if type(record["_FILE_NAME"]) is not str or type(record["_PARTITION"]) is not bytes:
        raise TypeError("names or partitions have another type than the format says")
    if not all(type(one[part]) is int for one in ranges if one is not None for part in ("f1", "f2")):
        raise TypeError("places of deletion vectors are no numbers")
    return IndexEntry(
        partition=record["_PARTITION"],
        bucket=record["_BUCKET"],
        index_type=record["_INDEX_TYPE"],
        file_name=record["_FILE_NAME"],
        file_size=record["_FILE_SIZE"],
        row_count=record["_ROW_COUNT"],
        dv_ranges=tuple(
            DvRange(one["f0"], one["f1"], one["f2"], one.get("_CARDINALITY"))
            for one in ranges
            if one is not None
        ),
        external_path=record.get("_EXTERNAL_PATH"),
    )
