"""Iceberg's manifests and manifest lists: live files of a snapshot, as Avro bytes and back.

CHANGE     what an Iceberg manifest holds (option metadata.iceberg.format-version)
INVARIANT  sequence numbers, snapshot ids and row ids are written and never inherited: an entry says the same in
           whatever manifest it is.
INVARIANT  manifests have live files only (status ADDED or EXISTING): a removed file is one that a new manifest lacks.
INVARIANT  partition values and bounds of columns are written and never read back: they come from the snapshot that is
           described.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tablestore_engine.format.avro_file import AvroCodec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.iceberg.column_bounds import METRIC_FIELDS, NO_METRICS, PartitionSummary
from tablestore_engine.iceberg.partition_fields import SPEC_ID, avro_fields, spec_fields
from tablestore_engine.iceberg.schema_mapping import iceberg_schema

DATA, DELETES = 0, 1
_EXISTING, _ADDED = 0, 1
_CODEC = "deflate"  # every Iceberg reader unpacks it


@dataclass(frozen=True)
class IcebergFile:
    """A live file: a data file, or the deleted rows of the data file `referenced`.

    `rows`: of a data file, or how many are deleted. `offset`, `length`: of a vector in its Puffin file. `first_row_id`:
    of data files where the format has row ids.
    """

    path: str
    rows: int
    size_bytes: int
    snapshot_id: int
    sequence: int
    first_row_id: int | None = None
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None

    @property
    def data_path(self) -> str:
        """The data file that it is, or whose rows it deletes."""
        return self.path if self.referenced is None else self.referenced


@dataclass(frozen=True)
class ListedFile:
    """A file as a manifest lists it. `partition`: partition_fields.avro_values; `metrics`: encode_column_maps."""

    file: IcebergFile
    partition: Mapping[str, object] = field(hash=False)
    metrics: bytes = NO_METRICS


@dataclass(frozen=True)
class ManifestFacts:
    """What a manifest list says of a manifest; rows and files by whether its snapshot added them.

    `partitions`: one for each partition column, none where they are unknown.
    """

    path: str
    size_bytes: int
    content: int
    sequence: int
    min_sequence: int
    snapshot_id: int
    added_files: int
    existing_files: int
    added_rows: int
    existing_rows: int
    first_row_id: int | None = None
    partitions: tuple[PartitionSummary, ...] = ()

    @property
    def files(self) -> int:
        return self.added_files + self.existing_files

    @property
    def rows(self) -> int:
        return self.added_rows + self.existing_rows


def encode_iceberg_manifest(
    files: Sequence[ListedFile],
    schema: TableSchema,
    *,
    content: int,
    version: int,
    snapshot_id: int,
) -> bytes:
    header = {
        "schema": json.dumps(iceberg_schema(schema)),
        "schema-id": str(schema.id),
        "partition-spec": json.dumps(spec_fields(schema)),
        "partition-spec-id": str(SPEC_ID),
        "format-version": str(version),
        "content": "deletes" if content == DELETES else "data",
    }
    codecs = _EntryCodecs.of(schema, version)
    records = [codecs.encode(one, content, snapshot_id) for one in files]
    return codecs.whole.write_encoded(records, header)


def decode_iceberg_manifest(data: bytes, name: str) -> list[IcebergFile]:
    """The files of a manifest that was written here. Raises FixData TS1160, TS1131."""
    return _READER.read(data, _file_of, name)


def facts_of(
    path: str,
    size_bytes: int,
    content: int,
    files: Sequence[IcebergFile],
    *,
    snapshot_id: int,
    sequence: int,
    partitions: tuple[PartitionSummary, ...],
) -> ManifestFacts:
    """What a list says of a manifest that this snapshot wrote."""
    added = [one for one in files if one.snapshot_id == snapshot_id]
    rows, added_rows = sum(one.rows for one in files), sum(one.rows for one in added)
    return ManifestFacts(
        path=path,
        size_bytes=size_bytes,
        content=content,
        sequence=sequence,
        min_sequence=min((one.sequence for one in files), default=sequence),
        snapshot_id=snapshot_id,
        added_files=len(added),
        existing_files=len(files) - len(added),
        added_rows=added_rows,
        existing_rows=rows - added_rows,
        partitions=partitions,
    )


def encode_iceberg_list(
    manifests: Sequence[ManifestFacts], *, version: int, snapshot: Mapping[str, str]
) -> bytes:
    """The manifests of a snapshot; `snapshot`: its ids, for the header."""
    codec = _LIST_3 if version >= 3 else _LIST_2
    return codec.write(
        (_facts_record(one) for one in manifests), _CODEC, {"format-version": str(version), **snapshot}
    )


def decode_iceberg_list(data: bytes, name: str) -> list[ManifestFacts]:
    """The manifests of a list that was written here. Raises FixData TS1160, TS1131."""
    return _LIST_3.read(data, _facts_from, name)


def with_row_ids(facts: ManifestFacts, first_row_id: int) -> ManifestFacts:
    """The same manifest with the row id at which its rows begin."""
    return replace(facts, first_row_id=first_row_id)


# ---- records ---------------------------------------------------------------------------------------------------


def _column(name: str, avro_type: object, number: int, *, optional: bool = False) -> dict[str, object]:
    if optional:
        return {"name": name, "type": ["null", avro_type], "default": None, "field-id": number}
    return {"name": name, "type": avro_type, "field-id": number}


@dataclass(frozen=True)
class _EntryCodecs:
    """A manifest entry, and its parts before and after the metrics: a record is its fields in their order."""

    whole: AvroCodec
    head: AvroCodec
    tail: AvroCodec

    @classmethod
    def of(cls, schema: TableSchema, version: int) -> _EntryCodecs:
        entry, head, tail = _entry_columns(), _head_columns(schema), _tail_columns(version)
        file = {"type": "record", "name": "r2", "fields": [*head, *METRIC_FIELDS, *tail]}
        whole = [*entry, _column("data_file", file, 2)]
        return cls(
            AvroCodec.of("Iceberg manifest", whole, "manifest_entry"),
            AvroCodec.of("Iceberg manifest", [*entry, *head], "head"),
            AvroCodec.of("Iceberg manifest", tail, "tail"),
        )

    def encode(self, listed: ListedFile, content: int, snapshot_id: int) -> bytes:
        one = listed.file
        head = {
            "status": _ADDED if one.snapshot_id == snapshot_id else _EXISTING,
            "snapshot_id": one.snapshot_id,
            "sequence_number": one.sequence,
            "file_sequence_number": one.sequence,
            "content": content,
            "file_path": one.path,
            "file_format": "PARQUET" if one.offset is None else "PUFFIN",
            "partition": listed.partition,
            "record_count": one.rows,
            "file_size_in_bytes": one.size_bytes,
        }
        tail = {
            "referenced_data_file": one.referenced,
            "first_row_id": one.first_row_id,
            "content_offset": one.offset,
            "content_size_in_bytes": one.length,
        }
        return self.head.encode(head) + listed.metrics + self.tail.encode(tail)


def _entry_columns() -> list[dict[str, object]]:
    return [
        _column("status", "int", 0),
        _column("snapshot_id", "long", 1, optional=True),
        _column("sequence_number", "long", 3, optional=True),
        _column("file_sequence_number", "long", 4, optional=True),
    ]


def _head_columns(schema: TableSchema) -> list[dict[str, object]]:
    partition = {"type": "record", "name": "r102", "fields": avro_fields(schema)}
    return [
        _column("content", "int", 134),
        _column("file_path", "string", 100),
        _column("file_format", "string", 101),
        _column("partition", partition, 102),
        _column("record_count", "long", 103),
        _column("file_size_in_bytes", "long", 104),
    ]


def _tail_columns(version: int) -> list[dict[str, object]]:
    fields = [_column("referenced_data_file", "string", 143, optional=True)]
    if version >= 3:
        fields += [
            _column("first_row_id", "long", 142, optional=True),
            _column("content_offset", "long", 144, optional=True),
            _column("content_size_in_bytes", "long", 145, optional=True),
        ]
    return fields


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _column("contains_null", "boolean", 509),
        _column("contains_nan", "boolean", 518, optional=True),
        _column("lower_bound", "bytes", 510, optional=True),
        _column("upper_bound", "bytes", 511, optional=True),
    ],
}


def _list_codec(version: int) -> AvroCodec:
    counts = [
        ("added_files_count", "int", 504),
        ("existing_files_count", "int", 505),
        ("deleted_files_count", "int", 506),
        ("added_rows_count", "long", 512),
        ("existing_rows_count", "long", 513),
        ("deleted_rows_count", "long", 514),
    ]
    fields = [
        _column("manifest_path", "string", 500),
        _column("manifest_length", "long", 501),
        _column("partition_spec_id", "int", 502),
        _column("content", "int", 517),
        _column("sequence_number", "long", 515),
        _column("min_sequence_number", "long", 516),
        _column("added_snapshot_id", "long", 503),
        *(_column(*one) for one in counts),
        _column("partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}, 507, optional=True),
    ]
    if version >= 3:
        fields.append(_column("first_row_id", "long", 520, optional=True))
    return AvroCodec.of("Iceberg manifest list", fields, "manifest_file")


_LIST_2, _LIST_3 = _list_codec(2), _list_codec(3)
_READER = AvroCodec("Iceberg manifest", None)  # files bring their own schema


def _file_of(record: Mapping[str, Any]) -> IcebergFile:
    file = record["data_file"]
    return IcebergFile(
        path=file["file_path"],
        rows=file["record_count"],
        size_bytes=file["file_size_in_bytes"],
        snapshot_id=record["snapshot_id"],
        sequence=record["sequence_number"],
        first_row_id=file.get("first_row_id"),
        referenced=file.get("referenced_data_file"),
        offset=file.get("content_offset"),
        length=file.get("content_size_in_bytes"),
    )


def _facts_record(one: ManifestFacts) -> dict[str, object]:
    return {
        "manifest_path": one.path,
        "manifest_length": one.size_bytes,
        "partition_spec_id": SPEC_ID,
        "content": one.content,
        "sequence_number": one.sequence,
        "min_sequence_number": one.min_sequence,
        "added_snapshot_id": one.snapshot_id,
        "added_files_count": one.added_files,
        "existing_files_count": one.existing_files,
        "deleted_files_count": 0,
        "added_rows_count": one.added_rows,
        "existing_rows_count": one.existing_rows,
        "deleted_rows_count": 0,
        "partitions": [_summary_record(part) for part in one.partitions] or None,
        "first_row_id": one.first_row_id,
    }


def _facts_from(record: Mapping[str, Any]) -> ManifestFacts:
    return ManifestFacts(
        path=record["manifest_path"],
        size_bytes=record["manifest_length"],
        content=record["content"],
        sequence=record["sequence_number"],
        min_sequence=record["min_sequence_number"],
        snapshot_id=record["added_snapshot_id"],
        added_files=record["added_files_count"],
        existing_files=record["existing_files_count"],
        added_rows=record["added_rows_count"],
        existing_rows=record["existing_rows_count"],
        first_row_id=record.get("first_row_id"),
        partitions=tuple(_summary_from(part) for part in record.get("partitions") or ()),
    )


def _summary_record(one: PartitionSummary) -> dict[str, object]:
    return {
        "contains_null": one.has_null,
        "contains_nan": one.has_nan,
        "lower_bound": one.low,
        "upper_bound": one.high,
    }


def _summary_from(record: Mapping[str, Any]) -> PartitionSummary:
    return PartitionSummary(
        record["contains_null"], record["contains_nan"], record["lower_bound"], record["upper_bound"]
    )
