"""Manifest files: one record per added or removed data file and their merging (format.md#manifests).

CHANGE     the bytes of a manifest
PAIMON     pypaimon reads fields 0-16 by key: all are written. Level is part of a file's identity, so an upgrade
           is DELETE + ADD of one name. A null _NULL_COUNTS crashes Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

from tablestore_engine.errors import FixData
from tablestore_engine.format.avro_file import ROOT_NAME, AvroCodec, optional
from tablestore_engine.format.data_file import DataFileMeta, SimpleStats

MANIFEST_VERSION = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class FileKind(IntEnum):
    """The numbers reach disk."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True)
class ManifestEntry:
    """A data file added or removed; `total_buckets` is -1 for unaware and dynamic buckets."""

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two entries speak of the same file (format.md#manifests)."""
        file = self.file
        return (
            self.partition, self.bucket, file.level, file.file_name,
            file.extra_files, file.embedded_file_index, file.external_path,
        )  # fmt: skip


def stats_type(name: str) -> dict[str, Any]:
    """The SimpleStats record under the given Java name."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": "_MIN_VALUES", "type": "bytes"},
            {"name": "_MAX_VALUES", "type": "bytes"},
            optional("_NULL_COUNTS", {"type": "array", "items": ["null", "long"]}),
        ],
    }


def _texts(name: str) -> dict[str, object]:
    return optional(name, {"type": "array", "items": "string"})


_FILE = {
    "type": "record",
    "name": f"{ROOT_NAME}__FILE",
    "fields": [
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {"name": "_MIN_KEY", "type": "bytes"},
        {"name": "_MAX_KEY", "type": "bytes"},
        {"name": "_KEY_STATS", "type": stats_type(f"{ROOT_NAME}__FILE__KEY_STATS")},
        {"name": "_VALUE_STATS", "type": stats_type(f"{ROOT_NAME}__FILE__VALUE_STATS")},
        {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_SCHEMA_ID", "type": "long"},
        {"name": "_LEVEL", "type": "int"},
        {"name": "_EXTRA_FILES", "type": {"type": "array", "items": "string"}},
        optional("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
        optional("_DELETE_ROW_COUNT", "long"),
        optional("_EMBEDDED_FILE_INDEX", "bytes"),
        optional("_FILE_SOURCE", "int"),
        _texts("_VALUE_STATS_COLS"),
        optional("_EXTERNAL_PATH", "string"),
        optional("_FIRST_ROW_ID", "long"),
        _texts("_WRITE_COLS"),
    ],
}
_CODEC = AvroCodec.of(
    "manifest",
    [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_TOTAL_BUCKETS", "type": "int"},
        {"name": "_FILE", "type": _FILE},
    ],
)


def encode_rolled(
    entries: Iterable[ManifestEntry], *, target_bytes: int, compression: str = "zstd"
) -> Iterator[tuple[bytes, tuple[ManifestEntry, ...]]]:
    """Manifests with their entries, in order: each but the last has at least `target_bytes`.

    Rolling by size, not by count: a manifest that ends below the target is merged again and again.
    """
    return _CODEC.write_rolled(entries, _to_record, compression, target_bytes)


def decode_manifest(data: bytes, name: str = "") -> list[ManifestEntry]:
    """Entries in order; tolerant of fields that older writers did not know. Raises FixData TS1131."""
    return _CODEC.read(data, _from_record, name)


def merge_entries(entries: Iterable[ManifestEntry]) -> dict[tuple[object, ...], ManifestEntry]:
    """Live ADD entries by identity, in order; a DELETE without its ADD stays as a pending DELETE (format.md#manifests).

    Raises FixData TS1132 when a file is added that is there, or whose DELETE is pending: names never come back.
    """
    live: dict[tuple[object, ...], ManifestEntry] = {}
    for entry in entries:
        key = entry.identity
        after = merge_entry(live.get(key), entry)
        if after is None:
            del live[key]
        else:
            live[key] = after
    return live


def merge_entry(known: ManifestEntry | None, entry: ManifestEntry) -> ManifestEntry | None:
    """What is known of a file after one more entry of it; None: it is gone. Raises FixData TS1132."""
    if entry.kind is FileKind.ADD:
        if known is not None:
            before = "added" if known.kind is FileKind.ADD else "removed"
            raise FixData(
                "TS1132",
                f"data file {entry.file.file_name} is added twice",
                why=f"an earlier manifest entry has {before} the same file on level {entry.file.level}",
                fix="run tablestore verify; roll back to an earlier snapshot",
            )
        return entry
    return None if known is not None and known.kind is FileKind.ADD else entry


def stats_to_record(stats: SimpleStats) -> dict[str, object]:
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }


def stats_from_record(record: Mapping[str, Any]) -> SimpleStats:
    """Back from the record; null counts that are missing become none."""
    return SimpleStats(record["_MIN_VALUES"], record["_MAX_VALUES"], tuple(record.get("_NULL_COUNTS") or ()))


def _to_record(entry: ManifestEntry) -> dict[str, object]:
    file = entry.file
    return {
        "_VERSION": MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": {
            "_FILE_NAME": file.file_name,
            "_FILE_SIZE": file.file_size,
            "_ROW_COUNT": file.row_count,
            "_MIN_KEY": file.min_key,
            "_MAX_KEY": file.max_key,
            "_KEY_STATS": stats_to_record(file.key_stats),
            "_VALUE_STATS": stats_to_record(file.value_stats),
            "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
            "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
            "_SCHEMA_ID": file.schema_id,
            "_LEVEL": file.level,
            "_EXTRA_FILES": list(file.extra_files),
            "_CREATION_TIME": file.creation_time,
            "_DELETE_ROW_COUNT": file.delete_row_count,
            "_EMBEDDED_FILE_INDEX": file.embedded_file_index,
            "_FILE_SOURCE": file.file_source,
            "_VALUE_STATS_COLS": None if file.value_stats_cols is None else list(file.value_stats_cols),
            "_EXTERNAL_PATH": file.external_path,
            "_FIRST_ROW_ID": file.first_row_id,
            "_WRITE_COLS": None if file.write_cols is None else list(file.write_cols),
        },
    }


def _from_record(record: Mapping[str, Any]) -> ManifestEntry:
    file = record["_FILE"]
    _check_types(record, file)
    return ManifestEntry(
        FileKind(record["_KIND"]),
        record["_PARTITION"],
        record["_BUCKET"],
        record["_TOTAL_BUCKETS"],
        DataFileMeta(
            file_name=file["_FILE_NAME"],
            file_size=file["_FILE_SIZE"],
            row_count=file["_ROW_COUNT"],
            min_key=file["_MIN_KEY"],
            max_key=file["_MAX_KEY"],
            key_stats=stats_from_record(file["_KEY_STATS"]),
            value_stats=stats_from_record(file["_VALUE_STATS"]),
            min_sequence_number=file["_MIN_SEQUENCE_NUMBER"],
            max_sequence_number=file["_MAX_SEQUENCE_NUMBER"],
            schema_id=file["_SCHEMA_ID"],
            level=file["_LEVEL"],
            creation_time=_millis(file.get("_CREATION_TIME")),
            extra_files=tuple(file.get("_EXTRA_FILES") or ()),
            delete_row_count=file.get("_DELETE_ROW_COUNT"),
            embedded_file_index=file.get("_EMBEDDED_FILE_INDEX"),
            file_source=file.get("_FILE_SOURCE"),
            value_stats_cols=_tuple(file.get("_VALUE_STATS_COLS")),
            external_path=file.get("_EXTERNAL_PATH"),
            first_row_id=file.get("_FIRST_ROW_ID"),
            write_cols=_tuple(file.get("_WRITE_COLS")),
        ),
    )


_ROWS_MAX = 2**31
_NUMBERS = (
    "_FILE_SIZE", "_ROW_COUNT", "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID", "_LEVEL",
)  # fmt: skip


def _check_types(record: Mapping[str, Any], file: Mapping[str, Any]) -> None:
    """The file brings its own schema: what it calls a size must be a number. Raises TypeError, ValueError."""
    if not (
        all(type(file[name]) is int for name in _NUMBERS)
        and type(record["_BUCKET"]) is int
        and type(record["_TOTAL_BUCKETS"]) is int
        and type(file["_FILE_NAME"]) is str
        and type(file.get("_EXTERNAL_PATH") or "") is str
        and type(record["_PARTITION"]) is bytes
    ):
        raise TypeError("sizes, buckets, levels or names have another type than the format says")
    if file["_FILE_SIZE"] < 0 or not 0 <= file["_ROW_COUNT"] < _ROWS_MAX or file["_LEVEL"] < 0:
        raise ValueError("sizes, row counts and levels are not negative, and a file has fewer than 2^31 rows")


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _millis(value: datetime | int | None) -> int | None:
    """fastavro gives timestamp-millis as an aware datetime."""
    return (value - _EPOCH) // _MILLISECOND if isinstance(value, datetime) else value
