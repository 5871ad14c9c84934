"""`vN.metadata.json`: one version of a table's Iceberg metadata, as a value and as JSON.

INVARIANT  versions are numbered by ones and never replaced: each is made from the one before it.
INVARIANT  sequence numbers and row ids only grow, also over a rollback and a rebuild.
INVARIANT  `snapshots` are in the order in which they were made, each on the manifests of the one before it: a manifest
           or vector file is in neighbours only (store.iceberg_metadata.iceberg_cleanup).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablestore_engine.errors import FixData
from tablestore_engine.format.checksum import checksummed_json, verify_checksum
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.iceberg.partition_fields import FIRST_FIELD_ID, SPEC_ID, spec_fields
from tablestore_engine.iceberg.schema_mapping import iceberg_schema, last_column_id

MAIN_REF = "main"
_UUID_KEY = "tablestore.snapshot-uuid"
_OURS_KEY = "tablestore.iceberg"
_OURS = "1"  # another number is another layout: all states are described again


@dataclass(frozen=True)
class IcebergSnapshot:
    """A snapshot of the table; `number` is the table's own, `unique` as Snapshot.unique."""

    number: int
    unique: str
    sequence: int
    time_millis: int
    manifest_list: str
    schema_id: int
    operation: str
    totals: Mapping[str, str] = field(hash=False)
    parent: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None


@dataclass(frozen=True)
class IcebergTable:
    """One version. `newest`: the number of the snapshot that readers see; `tags`: name → number.

    `log`: (file, time) of the versions before it.
    """

    version: int
    format_version: int
    uuid: str
    location: str
    last_sequence: int = 0
    next_row_id: int = 0
    updated_ms: int = 0
    newest: int | None = None
    snapshots: tuple[IcebergSnapshot, ...] = ()
    tags: Mapping[str, int] = field(default_factory=dict, hash=False)
    log: tuple[tuple[str, int], ...] = ()
    is_ours: bool = True


def metadata_name(version: int) -> str:
    """`v7.metadata.json`."""
    return f"v{version}.metadata.json"


def encode_iceberg_table(table: IcebergTable, schemas: Sequence[TableSchema], current: TableSchema) -> bytes:
    """The JSON of a version; `schemas`: of its snapshots and the `current` one."""
    out: dict[str, object] = {
        "format-version": table.format_version,
        "table-uuid": table.uuid,
        "location": table.location,
        "last-sequence-number": table.last_sequence,
        "last-updated-ms": table.updated_ms,
        "last-column-id": last_column_id(schemas),
        "current-schema-id": current.id,
        "schemas": [iceberg_schema(one) for one in schemas],
        "default-spec-id": SPEC_ID,
        "partition-specs": [{"spec-id": SPEC_ID, "fields": spec_fields(current)}],
        "last-partition-id": FIRST_FIELD_ID - 1 + len(current.partition_keys),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": _properties(current.comment),
        "current-snapshot-id": -1 if table.newest is None else table.newest,
        "snapshots": [_snapshot_json(one) for one in table.snapshots],
        "snapshot-log": _snapshot_log(table),
        "metadata-log": [{"metadata-file": name, "timestamp-ms": at} for name, at in table.log],
        "refs": _refs(table),
    }
    if table.format_version >= 3:
        out["next-row-id"] = table.next_row_id
    return checksummed_json(out, indent=None)


def decode_iceberg_table(data: bytes, version: int, name: str) -> IcebergTable:
    """A version that was written here; `is_ours` False, without snapshots, where another writer made it.

    Raises FixData TS1160 for damaged bytes, TS1146 for what is no metadata.
    """
    verify_checksum(data, "Iceberg metadata", name)
    try:
        value = parse_object(data)
        is_ours = value.get("properties", {}).get(_OURS_KEY) == _OURS
        return _table(value, version, is_ours=is_ours)
    except (*DAMAGE, ValueError) as wrong:
        raise FixData(
            "TS1146",
            f"the Iceberg metadata {name} cannot be read",
            why=f"it is no metadata of an Iceberg table: {type(wrong).__name__}: {wrong}",
            fix="delete the folder that it is in, and run tablestore iceberg sync",
        ) from wrong


def _properties(comment: str | None) -> dict[str, str]:
    # gc.enabled: Iceberg must not delete files, which are the table's
    out = {_OURS_KEY: _OURS, "gc.enabled": "false", "write.format.default": "parquet"}
    return out if comment is None else {**out, "comment": comment}


def _snapshot_json(one: IcebergSnapshot) -> dict[str, object]:
    out: dict[str, object] = {
        "snapshot-id": one.number,
        "sequence-number": one.sequence,
        "timestamp-ms": one.time_millis,
        "summary": {"operation": one.operation, **one.totals, _UUID_KEY: one.unique},
        "manifest-list": one.manifest_list,
        "schema-id": one.schema_id,
    }
    optional = {
        "parent-snapshot-id": one.parent,
        "first-row-id": one.first_row_id,
        "added-rows": one.added_rows,
    }
    return {**out, **{key: value for key, value in optional.items() if value is not None}}


def _snapshot_log(table: IcebergTable) -> list[dict[str, int]]:
    """Times never go back, whatever the clocks of the writers said; a state that only a tag has came first."""
    out: list[dict[str, int]] = []
    latest = 0
    for one in sorted(table.snapshots, key=lambda snapshot: snapshot.number):
        latest = max(latest, one.time_millis)
        out.append({"snapshot-id": one.number, "timestamp-ms": latest})
    return out


def _refs(table: IcebergTable) -> dict[str, object]:
    tags: dict[str, object] = {
        name: {"snapshot-id": number, "type": "tag"}
        for name, number in table.tags.items()
        if name != MAIN_REF
    }
    if table.newest is None:
        return tags
    return {MAIN_REF: {"snapshot-id": table.newest, "type": "branch"}, **tags}


def _table(value: Mapping[str, Any], version: int, *, is_ours: bool) -> IcebergTable:
    newest = value.get("current-snapshot-id")
    snapshots = [_snapshot_of(one) for one in value["snapshots"]] if is_ours else []
    refs = value.get("refs") or {}
    return IcebergTable(
        version=version,
        format_version=int(value["format-version"]),
        uuid=str(value["table-uuid"]),
        location=str(value["location"]),
        last_sequence=int(value.get("last-sequence-number", 0)),
        next_row_id=int(value.get("next-row-id") or 0),
        updated_ms=int(value["last-updated-ms"]),
        newest=int(newest) if is_ours and newest is not None and newest != -1 else None,
        snapshots=tuple(sorted(snapshots, key=lambda one: one.sequence)),
        tags={name: int(ref["snapshot-id"]) for name, ref in refs.items() if ref["type"] == "tag"},
        log=tuple(
            (str(one["metadata-file"]), int(one["timestamp-ms"])) for one in value.get("metadata-log", ())
        ),
        is_ours=is_ours,
    )


def _snapshot_of(value: Mapping[str, Any]) -> IcebergSnapshot:
    summary = dict(value["summary"])
    return IcebergSnapshot(
        number=int(value["snapshot-id"]),
        unique=str(summary.pop(_UUID_KEY)),
        sequence=int(value["sequence-number"]),
        time_millis=int(value["timestamp-ms"]),
        manifest_list=str(value["manifest-list"]),
        schema_id=int(value["schema-id"]),
        operation=str(summary.pop("operation")),
        totals=summary,
        parent=value.get("parent-snapshot-id"),
        first_row_id=value.get("first-row-id"),
        added_rows=value.get("added-rows"),
    )
