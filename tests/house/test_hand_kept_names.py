"""Lists of names that are kept by hand beside what they name: a name that is missing there was lost in silence."""

from __future__ import annotations

import ast
import dataclasses
import json
import types
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from dbt.adapters.tablestore.gate.whole_run import _TABLES
from docs.generate import collect_errors
from tablestore_engine.catalog.functions import FunctionDefinition, decode_function, encode_function
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.read_log import TableRead
from tablestore_engine.catalog.views import ViewDefinition, decode_view, encode_view
from tablestore_engine.datasource.stream_reader import StreamOffset, decode_offset, encode_offset
from tablestore_engine.errors import Area
from tablestore_engine.format.consumer import Consumer, decode_consumer, encode_consumer
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.index_manifest import (
    DELETION_VECTORS,
    IndexEntry,
    decode_index_manifest,
    encode_index_manifest,
)
from tablestore_engine.format.manifest import ManifestEntry, decode_manifest, encode_rolled
from tablestore_engine.format.manifest_list import (
    ManifestFileMeta,
    decode_manifest_list,
    encode_manifest_list,
)
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema, new_schema
from tablestore_engine.format.snapshot import (
    Snapshot,
    Tag,
    decode_snapshot,
    decode_tag,
    encode_snapshot,
    encode_tag,
)
from tablestore_engine.iceberg.manifest_files import (
    IcebergFile,
    ListedFile,
    ManifestFacts,
    decode_iceberg_list,
    decode_iceberg_manifest,
    encode_iceberg_list,
    encode_iceberg_manifest,
)
from tablestore_engine.iceberg.table_metadata import IcebergTable, decode_iceberg_table, encode_iceberg_table
from tablestore_engine.log.kafka.commit_marker import CommitMarker, decode_marker, encode_marker
from tablestore_engine.options import OPTIONS, Scope
from tablestore_engine.stream.position import Part, Position, decode_position, encode_position
from tablestore_engine.warehouse.gate.failing_rows import (
    FailingRows,
    decode_failing_rows,
    encode_failing_rows,
)
from tests.statements import parsed

ROOT = Path(__file__).resolve().parents[2]
GIVEN: Mapping[type, Mapping[str, object]] = {  # where a value made from the type alone is refused
    TableSchema: {
        "fields": (DataField(7, "text", DataType("INT", nullable=False), "text"),),
        "partition_keys": ("text",),
        "primary_keys": ("text",),
        "options": {"bucket": "3"},
    },
    FunctionDefinition: {"sql": "() RETURNS INT RETURN 1"},
    Position: {"part": Part.LOG},
    IndexEntry: {"external_path": None, "index_type": DELETION_VECTORS},  # the path is refused when read
    IcebergTable: {"is_ours": True},  # as all that is written here
}
PLAIN_TABLE = new_schema([DataField(0, "id", DataType("INT"))])
ICEBERG_OF: Mapping[str, Any] = {"schema": PLAIN_TABLE, "content": 0, "version": 3, "snapshot_id": 7}
STORED: Mapping[type, Callable[[Any], object]] = {  # written and read back
    Snapshot: lambda one: decode_snapshot(encode_snapshot(one)),
    Tag: lambda one: decode_tag(encode_tag(one)),
    TableSchema: lambda one: decode_schema(encode_schema(one)),
    ManifestEntry: lambda one: decode_manifest(next(encode_rolled([one], target_bytes=1))[0])[0],
    ManifestFileMeta: lambda one: decode_manifest_list(encode_manifest_list([one]))[0],
    IndexEntry: lambda one: decode_index_manifest(encode_index_manifest([one]))[0],
    IcebergFile: lambda one: decode_iceberg_manifest(
        encode_iceberg_manifest([ListedFile(one, {})], **ICEBERG_OF), "m"
    )[0],
    ManifestFacts: lambda one: decode_iceberg_list(encode_iceberg_list([one], version=3, snapshot={}), "l")[
        0
    ],
    IcebergTable: lambda one: decode_iceberg_table(
        encode_iceberg_table(one, [PLAIN_TABLE], PLAIN_TABLE), one.version, ""
    ),
    Consumer: lambda one: decode_consumer(encode_consumer(one)),
    ViewDefinition: lambda one: decode_view(encode_view(one), "v"),
    FunctionDefinition: lambda one: decode_function(encode_function(one), "f", Identifier("d", "f")),
    CommitMarker: lambda one: decode_marker(encode_marker(one)[1]),
    Position: lambda one: decode_position(encode_position(one)),
    StreamOffset: lambda one: decode_offset(encode_offset(one)),
    FailingRows: lambda one: decode_failing_rows(json.loads(json.dumps(encode_failing_rows(one)))),
    TableRead: lambda one: TableRead(**json.loads(json.dumps(dataclasses.asdict(one)))),
}
NO_RECORDS = {
    "bitmaps",
    "file_index",
    "partition",
    "row",
    "bare_row",
    "key_columns",
    "deletion_vectors",
    "hashes",
    "steps",
    "rows",
    "group_state",
}  # values, no fields
PLAIN: Mapping[object, object] = {
    int: 7,
    str: "text",
    bytes: b"bytes",
    object: "text",
    datetime: datetime(2024, 1, 2, 3, 4, 5),  # noqa: DTZ001 — a tag's time has no zone
    timedelta: timedelta(hours=2),
}


def filled(type_: Any, default: object = None) -> Any:
    """A value of a type, made from its hints: no field has its default."""
    inner = [one for one in get_args(type_) if one not in (type(None), Ellipsis)]
    origin = get_origin(type_)
    if origin in (Union, types.UnionType):
        return filled(inner[0], default)
    if origin is tuple:
        return tuple(filled(one) for one in inner)
    if origin is not None:
        return {filled(inner[0]): filled(inner[1])}
    if type_ is bool:
        return not default
    if dataclasses.is_dataclass(type_):
        hints, given = get_type_hints(type_), GIVEN.get(type_, {})
        others = [one for one in dataclasses.fields(type_) if one.name not in given]
        made = {one.name: filled(hints[one.name], one.default) for one in others}
        assert not [one.name for one in others if made[one.name] == one.default]
        return type_(**made, **given)
    if issubclass(type_, Enum):
        return next(one for one in type_ if one != default)
    return PLAIN[type_]


@pytest.mark.parametrize("record", STORED, ids=lambda one: one.__name__)
def test_a_stored_record_with_every_field_set_is_read_back_whole(record: type) -> None:
    """A new field that the encoder or the decoder does not know is lost here, not in a user's table."""
    value = filled(record)
    for one in dataclasses.fields(record):
        assert getattr(STORED[record](value), one.name) == getattr(value, one.name), one.name


def test_every_pair_of_encoder_and_decoder_stands_in_the_table_of_records() -> None:
    """A new file or message of the engine is compared too."""
    defined = {
        node.name
        for path in (ROOT / "tablestore_engine").rglob("*.py")
        for node in parsed(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    pairs = {name.removeprefix("encode_") for name in defined if name.startswith("encode_")}
    pairs = {one for one in pairs if {f"decode_{one}", f"decode_{one.removesuffix('s')}"} & defined}
    text = Path(__file__).read_text()
    assert not {one for one in pairs - NO_RECORDS if f"encode_{one}(" not in text}


def test_keys_of_a_snapshot_file_stand_in_the_order_of_java() -> None:
    """The order in which Java Paimon writes them: one field after the other."""
    keys = list(json.loads(encode_snapshot(filled(Snapshot))))[1:-1]  # without the checksum
    java = (
        "version uuid id schemaId baseManifestList baseManifestListSize deltaManifestList deltaManifestListSize "
        "changelogManifestList changelogManifestListSize indexManifest commitUser writerVersion commitIdentifier "
        "commitKind timeMillis logOffsets totalRecordCount deltaRecordCount changelogRecordCount watermark statistics "
        "properties nextRowId operation"
    )
    assert keys == java.split()


def test_materializations_that_publish_tables_are_those_that_the_macros_define() -> None:
    """One that is missing in the rule of whole runs would be published by itself."""
    macros = (ROOT / "dbt/include/tablestore/macros").rglob("*.sql")
    words = [line.split() for path in macros for line in path.read_text().splitlines()]
    defined = {line[2].rstrip(",") for line in words if line[:2] == ["{%-", "materialization"]}
    assert defined - {"view", "clone", "unit"} == _TABLES


def test_every_scope_of_an_option_and_area_of_an_error_is_used() -> None:
    """A kind that nothing has is a name without a meaning."""
    assert {one.scope for one in OPTIONS.values()} == set(Scope)
    assert {int(one.code[2:4]) for one in collect_errors()} == set(Area)
