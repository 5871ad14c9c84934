"""The schema file `schema/schema-<N>`: columns with ids, keys and options (format.md#schemas).

Steps      decode: read keys → defaults of old versions (bucket 1, orc) → object
INVARIANT  ids of dropped columns are never used again: highest_field_id only grows.
INVARIANT  primary key columns are NOT NULL; options are text to text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tablestore_engine.errors import FixData, FixRequest, NotFound, TablestoreError
from tablestore_engine.format.checksum import checksummed_json, verify_checksum
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.type_arrow import field_to_arrow, type_from_arrow
from tablestore_engine.format.type_text import field_from_json, field_to_json, type_to_text

SCHEMA_VERSION = 3
KEY_PREFIX = "_KEY_"
CLAIM_KEY = "tablestore.claim"
CHANGE_COLUMNS = ("_row_kind", "_snapshot_id")  # what readers of changes add to the columns of a table
RESERVED_NAMES = ("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID")
_REQUIRED = ("id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options")


@dataclass(frozen=True)
class TableSchema:
    """One version of a table's schema; `options` is a plain dict of text that nobody changes in place.

    `claim`: the commit that wrote this schema. With a claim the schema is valid only if a snapshot names it (readers
    ignore the key); None: it is valid without. A claim is no part of the content and is not compared.
    """

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    comment: str | None = None
    time_millis: int = 0
    claim: str | None = field(default=None, compare=False)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of all columns in order."""
        return tuple(f.name for f in self.fields)

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """Primary key columns without partition columns, in primary-key order (TPK)."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """Columns whose hash picks the bucket: option `bucket-key`, else the TPK; () for unaware append tables."""
        named = split_names(self.options.get("bucket-key", ""))
        return named or self.trimmed_primary_keys

    @property
    def has_dynamic_buckets(self) -> bool:
        """Whether a hash index says in which bucket a key lies."""
        return self.is_keyed and self.bucket_count == -1 and not self.crosses_partitions

    @property
    def crosses_partitions(self) -> bool:
        """Whether a key may move between partitions: the primary key lacks a partition column."""
        return self.is_keyed and not set(self.partition_keys) <= set(self.primary_keys)

    @property
    def bucket_count(self) -> int:
        """Option `bucket`: n fixed, -1 unaware or dynamic, -2 postponed."""
        return int(self.options.get("bucket", "-1"))

    @property
    def is_keyed(self) -> bool:
        return bool(self.primary_keys)

    def field(self, name: str) -> DataField:
        """The column called `name`. Raises NotFound TS1110."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise NotFound(
            "TS1110",
            f"column {name!r} does not exist",
            why=f"the columns are {', '.join(self.field_names)}",
            fix="correct the name of the column",
        )

    def fields_of(self, names: Iterable[str]) -> tuple[DataField, ...]:
        """The columns called `names`, in that order. Raises NotFound TS1110."""
        return tuple(self.field(name) for name in names)

    def spelled(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names that a user wrote, as the table has them: in that very spelling, else without case. NotFound TS1110."""
        known = {name.lower(): name for name in reversed(self.field_names)}
        have = set(self.field_names)
        found = [name if name in have else known.get(name.lower(), name) for name in names]
        return tuple(one.name for one in self.fields_of(found))

    def arrow_schema(self) -> pa.Schema:
        """All columns as an Arrow schema in column order, without metadata."""
        return pa.schema([field_to_arrow(f) for f in self.fields])


def split_names(text: str) -> tuple[str, ...]:
    """The column names of an option such as ``a, b``; () for blank text."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def encode_schema(schema: TableSchema) -> bytes:
    """UTF-8 JSON of a schema, always version 3; `comment` is left out when there is none (format.md#schemas)."""
    out: dict[str, object] = {
        "version": SCHEMA_VERSION,
        "id": schema.id,
        "fields": [field_to_json(f) for f in schema.fields],
        "highestFieldId": schema.highest_field_id,
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(schema.options),
    }
    if schema.comment is not None:
        out["comment"] = schema.comment
    out["timeMillis"] = schema.time_millis
    if schema.claim is not None:
        out[CLAIM_KEY] = schema.claim
    return checksummed_json(out)


def decode_schema(data: bytes, name: str = "") -> TableSchema:
    """A schema from its file; versions 1 and 2 get the defaults of their time as explicit options (format.md#schemas).

    Raises FixData TS1160 for damaged bytes, TS1111 when the text is no schema, or its version is newer than 3.
    """
    verify_checksum(data, "schema", name)
    try:
        schema = _decode(parse_object(data))
        if not isinstance(schema.comment, str | None):
            raise TypeError("the comment is no text")
        int(schema.options.get("bucket", "-1"))
        named = (*schema.partition_keys, *schema.primary_keys)
        if len(set(schema.field_names)) != len(schema.fields) or not set(named) <= set(schema.field_names):
            raise ValueError("column names repeat, or a key names no column")
    except DAMAGE as wrong:
        if isinstance(wrong, FixData):
            raise
        if isinstance(wrong, TablestoreError):  # a request when a user writes it; damage when a file has it
            raise _damaged(f"{wrong.code} {wrong.what}: {wrong.why}") from wrong
        raise _damaged(f"{type(wrong).__name__}: {wrong}") from wrong
    return schema


def _decode(value: Mapping[str, Any]) -> TableSchema:
    missing = [key for key in _REQUIRED if value.get(key) is None]
    if missing:
        raise _damaged(f"the keys {', '.join(missing)} are missing")
    version = int(value.get("version", 1))
    if version > SCHEMA_VERSION:
        raise _damaged(f"version {version} is newer than {SCHEMA_VERSION}")
    options = {str(k): str(v) for k, v in value["options"].items()}
    if version == 1:
        options.setdefault("bucket", "1")
    if version <= 2:
        options.setdefault("file.format", "orc")
    return TableSchema(
        id=int(value["id"]),
        fields=tuple(field_from_json(f) for f in value["fields"]),
        highest_field_id=int(value["highestFieldId"]),
        partition_keys=tuple(value["partitionKeys"]),
        primary_keys=tuple(value["primaryKeys"]),
        options=options,
        comment=value.get("comment"),
        time_millis=int(value.get("timeMillis") or 0),
        claim=None if value.get(CLAIM_KEY) is None else str(value[CLAIM_KEY]),
    )


def new_schema(
    columns: pa.Schema | Sequence[DataField],
    *,
    partition_keys: Sequence[str] = (),
    primary_keys: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    comment: str | None = None,
    time_millis: int = 0,
) -> TableSchema:
    """Schema 0 of a new table: ids assigned in order, parents before children; key columns made NOT NULL.

    Raises FixRequest TS1112 (forbidden, empty or repeated names), TS1113 (keys), NotFound TS1110 (unknown key).
    """
    listed = _fields_from_arrow(columns) if isinstance(columns, pa.Schema) else tuple(columns)
    check_column_names(f.name for f in listed)
    assigned, highest = assign_ids(listed, highest=-1)
    keyed = tuple(
        replace(f, type=f.type.with_nullable(False)) if f.name in primary_keys else f for f in assigned
    )
    schema = TableSchema(
        id=0,
        fields=keyed,
        highest_field_id=highest,
        partition_keys=tuple(partition_keys),
        primary_keys=tuple(primary_keys),
        options=dict(options or {}),
        comment=comment,
        time_millis=time_millis,
    )
    check_keys(schema)
    return schema


def assign_ids(fields: Sequence[DataField], *, highest: int) -> tuple[tuple[DataField, ...], int]:
    """The fields with ids highest+1, highest+2 …, each parent before its children; and the new highest id."""
    out: list[DataField] = []
    for one in fields:
        own = highest + 1
        type_, highest = assign_type_ids(one.type, highest=own)
        out.append(replace(one, id=own, type=type_))
    return tuple(out), highest


def assign_type_ids(type_: DataType, *, highest: int) -> tuple[DataType, int]:
    """The type with fresh ids for all ROW children inside it, and the new highest id."""
    changes: dict[str, Any] = {}
    for part in ("element", "key", "value"):
        child: DataType | None = getattr(type_, part)
        if child is not None:
            changes[part], highest = assign_type_ids(child, highest=highest)
    if type_.fields:
        changes["fields"], highest = assign_ids(type_.fields, highest=highest)
    return replace(type_, **changes) if changes else type_, highest


def check_column_names(names: Iterable[str], *, new: str | None = None) -> None:
    """Raises FixRequest TS1112 for empty and repeated names, and names that the format or rows of changes use.

    The latter of the `new` column alone, if there is one: a table of another engine may have such a column.
    """
    seen: set[str] = set()
    for name in names:
        why = _name_fault(name, seen)
        if name.lower() in CHANGE_COLUMNS and new in (None, name):
            why = f"rows of changes have {' and '.join(CHANGE_COLUMNS)} beside the columns of the table, in any case"
        if why:
            raise FixRequest(
                "TS1112", f"column name {name!r} is not allowed", why=why, fix="rename the column"
            )
        seen.add(name)


def check_keys(schema: TableSchema) -> None:
    """Raises FixRequest TS1113 when key columns or sequence fields break a rule; NotFound TS1110 if unknown."""
    groups = {
        "primary key": schema.primary_keys,
        "partition": schema.partition_keys,
        "bucket-key": split_names(schema.options.get("bucket-key", "")),
        "sequence.field": split_names(schema.options.get("sequence.field", "")),
    }
    for what, names in groups.items():
        for column in schema.fields_of(names):
            if not column.type.is_atomic:
                raise _bad_key(what, column.name, f"type {type_to_text(column.type)} cannot be a key")
        if len(set(names)) != len(names):
            raise _bad_key(what, ", ".join(names), "a column is named twice")
    if schema.primary_keys and not schema.trimmed_primary_keys:
        raise _bad_key(
            "primary key", ", ".join(schema.primary_keys), "every key column is a partition column"
        )
    if schema.crosses_partitions and groups["sequence.field"]:
        why = "versions of a key in two partitions are not compared, so the primary key must have all partition columns"
        raise _bad_key("sequence.field", ", ".join(groups["sequence.field"]), why)
    for name in groups["bucket-key"]:
        if name in schema.partition_keys:
            raise _bad_key("bucket-key", name, "a partition column cannot be a bucket key")
        if schema.primary_keys and name not in schema.primary_keys:
            raise _bad_key("bucket-key", name, "a bucket key must be part of the primary key")


def _name_fault(name: str, seen: set[str]) -> str | None:
    if not name.strip():
        return "the name is empty"
    if name.startswith(KEY_PREFIX) or name in RESERVED_NAMES:
        return f"{KEY_PREFIX}*, {', '.join(RESERVED_NAMES)} are names of the file format"
    return "the name is used twice" if name in seen else None


def _bad_key(what: str, names: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1113", f"{what} ({names}) is not allowed", why=why, fix=f"choose other {what} columns"
    )


def _fields_from_arrow(schema: pa.Schema) -> tuple[DataField, ...]:
    return tuple(DataField(0, f.name, type_from_arrow(f.type, f.nullable)) for f in schema)


def _damaged(why: str) -> FixData:
    return FixData(
        "TS1111",
        "a schema file cannot be read",
        why=why,
        fix="restore the schema file from a copy, or use an engine of the version that wrote it",
    )
