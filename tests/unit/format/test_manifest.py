"""Manifests: exact fields on disk, every vintage read, identity and merging of entries."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
from typing import Any

import fastavro
import pytest

from tablestore_engine.errors import FixData
from tablestore_engine.format.binary_row import EMPTY_ROW, encode_row
from tablestore_engine.format.data_file import EMPTY_STATS
from tablestore_engine.format.data_type import STRING
from tablestore_engine.format.manifest import (
    FileKind,
    ManifestEntry,
    decode_manifest,
    encode_rolled,
    merge_entries,
)
from tests.unit.format.manifest_samples import (
    KEY_1,
    KEY_9,
    STATS_FIELDS,
    encode_manifest,
    make_entry,
    make_file,
    raw_avro,
    writer_schema,
)

ADD, DELETE = FileKind.ADD, FileKind.DELETE
FULL = make_entry(
    partition=encode_row(["2024-01-01"], [STRING]), bucket=1, extra_files=("data-a-0.parquet.index",),
    delete_row_count=2, embedded_file_index=b"\0\1", file_source=1, value_stats_cols=("a", "b"),
    first_row_id=3,
    write_cols=("a",),
)  # fmt: skip
TEXTS = {"type": "array", "items": "string"}


def _bare(type_: Any) -> Any:
    """An Avro type without record names."""
    if isinstance(type_, list):
        return [_bare(one) for one in type_]
    if not isinstance(type_, dict):
        return type_
    if type_["type"] == "record":
        return {"type": "record", "fields": [{**f, "type": _bare(f["type"])} for f in type_["fields"]]}
    return {key: _bare(value) if key == "items" else value for key, value in type_.items()}


def test_the_schema_on_disk_is_the_formats() -> None:
    """Names, order, types and defaults of all fields are those of reference 4.2, numbers 0 to 19."""
    schema = _bare(writer_schema(encode_manifest([FULL])))
    top = {field["name"]: field["type"] for field in schema["fields"]}
    assert list(top) == ["_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE"]
    assert [top[name] for name in list(top)[:5]] == ["int", "int", "bytes", "int", "int"]
    assert top["_FILE"]["fields"][:12] == [
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {"name": "_MIN_KEY", "type": "bytes"},
        {"name": "_MAX_KEY", "type": "bytes"},
        {"name": "_KEY_STATS", "type": {"type": "record", "fields": STATS_FIELDS}},
        {"name": "_VALUE_STATS", "type": {"type": "record", "fields": STATS_FIELDS}},
        {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_SCHEMA_ID", "type": "long"},
        {"name": "_LEVEL", "type": "int"},
        {"name": "_EXTRA_FILES", "type": TEXTS},
    ]
    optional = [(field["name"], field["type"], field["default"]) for field in top["_FILE"]["fields"][12:]]
    assert optional == [
        ("_CREATION_TIME", ["null", {"type": "long", "logicalType": "timestamp-millis"}], None),
        ("_DELETE_ROW_COUNT", ["null", "long"], None),
        ("_EMBEDDED_FILE_INDEX", ["null", "bytes"], None),
        ("_FILE_SOURCE", ["null", "int"], None),
        ("_VALUE_STATS_COLS", ["null", TEXTS], None),
        ("_EXTERNAL_PATH", ["null", "string"], None),
        ("_FIRST_ROW_ID", ["null", "long"], None),
        ("_WRITE_COLS", ["null", TEXTS], None),
    ]


def test_record_names_are_javas() -> None:
    """Nested records are called <parent>_<field> below Java's root name."""
    file = writer_schema(encode_manifest([FULL]))["fields"][5]["type"]
    names = [file["name"], *(f["type"]["name"] for f in file["fields"][5:7])]
    assert [name.rpartition(".")[2] for name in names] == [
        "record__FILE", "record__FILE__KEY_STATS", "record__FILE__VALUE_STATS",
    ]  # fmt: skip


def test_another_avro_reader_sees_our_values() -> None:
    """fastavro alone reads version 2, the kind's number, plain bytes and the time as written."""
    (record,) = fastavro.reader(io.BytesIO(encode_manifest([dataclasses.replace(FULL, kind=DELETE)])))
    assert (record["_VERSION"], record["_KIND"], record["_BUCKET"], record["_TOTAL_BUCKETS"]) == (2, 1, 1, 2)
    assert record["_PARTITION"] == encode_row(["2024-01-01"], [STRING])
    file = record["_FILE"]
    assert file["_CREATION_TIME"] == dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC)
    assert (file["_MIN_KEY"], file["_MAX_KEY"], file["_LEVEL"]) == (KEY_1, KEY_9, 5)
    assert file["_VALUE_STATS"] == {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": []}
    assert file["_VALUE_STATS_COLS"] == ["a", "b"]


def test_entries_round_trip_in_order() -> None:
    """Full and minimal entries of both kinds come back equal, in their order."""
    entries = [FULL, make_entry("b", DELETE, creation_time=None, value_stats_cols=None), make_entry("c")]
    assert decode_manifest(encode_manifest(entries)) == entries


@pytest.mark.parametrize("millis", [0, 1, -1, 999, 1_700_000_000_999, -62_135_596_800_000])
def test_creation_times_keep_their_millisecond(millis: int) -> None:
    """Wall-clock milliseconds, before 1970 too, are not rounded on the way through Avro."""
    (entry,) = decode_manifest(encode_manifest([make_entry(creation_time=millis)]))
    assert entry.file.creation_time == millis


def _file_record(**extra: Any) -> dict[str, Any]:
    stats = {"_MIN_VALUES": KEY_1, "_MAX_VALUES": KEY_9, "_NULL_COUNTS": [0]}
    empty = {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": []}
    return {
        "_FILE_NAME": "old.orc", "_FILE_SIZE": 5, "_ROW_COUNT": 3, "_MIN_KEY": KEY_1, "_MAX_KEY": KEY_9,
        "_KEY_STATS": stats, "_VALUE_STATS": empty, "_MIN_SEQUENCE_NUMBER": 0, "_MAX_SEQUENCE_NUMBER": 2,
        "_SCHEMA_ID": 0, "_LEVEL": 0, "_EXTRA_FILES": [], "_CREATION_TIME": 77, **extra,
    }  # fmt: skip


def _their_manifest(more: list[dict[str, Any]], **extra: Any) -> bytes:
    """A manifest with the fields 0 to 12 and `more`, record names not ours."""
    fields: list[dict[str, Any]] = [
        *({"name": name, "type": type_} for name, type_ in (
            ("_FILE_NAME", "string"), ("_FILE_SIZE", "long"), ("_ROW_COUNT", "long"), ("_MIN_KEY", "bytes"),
            ("_MAX_KEY", "bytes"),
        )),
        {"name": "_KEY_STATS", "type": {"type": "record", "name": "stats", "fields": STATS_FIELDS}},
        {"name": "_VALUE_STATS", "type": "stats"},
        *({"name": name, "type": type_} for name, type_ in (
            ("_MIN_SEQUENCE_NUMBER", "long"), ("_MAX_SEQUENCE_NUMBER", "long"), ("_SCHEMA_ID", "long"),
            ("_LEVEL", "int"), ("_EXTRA_FILES", TEXTS),
            ("_CREATION_TIME", ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
        )),
        *more,
    ]  # fmt: skip
    top = [
        {"name": "_VERSION", "type": "int"}, {"name": "_KIND", "type": "int"}, {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"}, {"name": "_TOTAL_BUCKETS", "type": "int"},
        {"name": "_FILE", "type": {"type": "record", "name": "file", "fields": fields}},
    ]  # fmt: skip
    record = {
        "_VERSION": 2, "_KIND": 0, "_PARTITION": bytes(12), "_BUCKET": 0, "_TOTAL_BUCKETS": 2,
        "_FILE": _file_record(**extra),
    }  # fmt: skip
    return raw_avro(top, [record])


OLD = ManifestEntry(
    ADD, EMPTY_ROW, 0, 2,
    make_file(
        "old.orc", file_size=5, row_count=3, max_sequence_number=2, level=0, creation_time=77, value_stats_cols=None,
    ),
)  # fmt: skip


def test_a_manifest_of_paimon_0_9_is_read() -> None:
    """The 0.9 field set (0 to 15) reads; what came later is None."""
    more = [
        {"name": "_DELETE_ROW_COUNT", "type": ["null", "long"]},
        {"name": "_EMBEDDED_FILE_INDEX", "type": ["null", "bytes"]},
        {"name": "_FILE_SOURCE", "type": ["null", "int"]},
    ]
    data = _their_manifest(more, _DELETE_ROW_COUNT=1, _EMBEDDED_FILE_INDEX=None, _FILE_SOURCE=1)
    want = dataclasses.replace(OLD, file=dataclasses.replace(OLD.file, delete_row_count=1, file_source=1))
    assert decode_manifest(data) == [want]


def test_a_manifest_with_the_oldest_fields_is_read() -> None:
    """Fields 13 and later may all be missing: unknown, not zero."""
    assert decode_manifest(_their_manifest([])) == [OLD]


def test_a_manifest_of_a_newer_writer_is_read() -> None:
    """Fields that we do not know are skipped."""
    more = [{"name": "_WRITE_COLS_SEQUENCES", "type": ["null", {"type": "array", "items": "long"}]}]
    assert decode_manifest(_their_manifest(more, _WRITE_COLS_SEQUENCES=[1, 2])) == [OLD]


def test_null_counts_that_are_null_are_read_as_none() -> None:
    """A null _NULL_COUNTS, which crashes Java, is read as unknown and written back as an empty array."""
    stats = {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": None}
    (entry,) = decode_manifest(_their_manifest([], _VALUE_STATS=stats))
    assert entry.file.value_stats == EMPTY_STATS
    (record,) = fastavro.reader(io.BytesIO(encode_manifest([entry])))
    assert record["_FILE"]["_VALUE_STATS"]["_NULL_COUNTS"] == []


def test_an_avro_file_that_is_no_manifest_is_named() -> None:
    """Valid Avro of another kind, or an unknown kind of entry, is FixData with the file's name."""
    for data in (raw_avro([{"name": "a", "type": "int"}], [{"a": 1}]), _with_kind(7)):
        with pytest.raises(FixData, match="manifest-x") as caught:
            decode_manifest(data, "manifest-x")
        assert caught.value.code == "TS1131"


def _with_kind(kind: int) -> bytes:
    entry = make_entry()
    object.__setattr__(entry, "kind", kind)
    return encode_manifest([entry])


def test_delete_cancels_its_add() -> None:
    """An ADD and its DELETE leave nothing; other files stay in order."""
    live = merge_entries([make_entry("a"), make_entry("b"), make_entry("c"), make_entry("b", DELETE)])
    assert [entry.file.file_name for entry in live.values()] == ["a", "c"]


def test_an_upgrade_keeps_the_file_on_its_new_level() -> None:
    """Level is identity: DELETE on the old level and ADD on the new one, in either order, leave the file there."""
    steps = [make_entry(level=0, kind=DELETE), make_entry(level=5)]
    for order in (steps, steps[::-1]):
        (entry,) = merge_entries([make_entry(level=0), *order]).values()
        assert (entry.kind, entry.file.level) == (ADD, 5)


@pytest.mark.parametrize(
    "other",
    [{"partition": KEY_1}, {"bucket": 1}, {"level": 4}, {"extra_files": ("x",)}, {"embedded_file_index": b"i"},
    ],
)  # fmt: skip
def test_each_part_of_the_identity_counts(other: dict[str, Any]) -> None:
    """Entries that differ in one part of the identity are different files."""
    assert len(merge_entries([make_entry(), make_entry(**other)])) == 2


def test_size_and_counts_are_no_identity() -> None:
    """A DELETE finds its ADD though other facts of the two records differ."""
    assert merge_entries([make_entry(), make_entry(kind=DELETE, file_size=1, row_count=2, schema_id=3)]) == {}


def test_a_delete_without_add_stays_pending() -> None:
    """While merging a subset, a DELETE whose ADD lies elsewhere must survive."""
    (entry,) = merge_entries([make_entry(kind=DELETE)]).values()
    assert entry.kind is DELETE


@pytest.mark.parametrize("first", [ADD, DELETE])
def test_adding_what_is_there_or_pending_is_refused(first: FileKind) -> None:
    """A second ADD, or an ADD over a pending DELETE (which it would swallow), is damage, not a choice."""
    with pytest.raises(FixData) as caught:
        merge_entries([make_entry("dup", first), make_entry("dup")])
    assert caught.value.code == "TS1132"
    assert "dup" in str(caught.value)


def test_manifests_roll_at_their_target_size() -> None:
    """Each rolled manifest but the last reaches the target and decodes to the entries it is given with."""
    entries = [make_entry(f"data-{i}") for i in range(2000)]
    parts = list(encode_rolled(entries, target_bytes=60_000, compression="none"))
    assert len(parts) > 2
    assert min(len(data) for data, _ in parts[:-1]) >= 60_000
    assert all(decode_manifest(data) == list(held) for data, held in parts)
    assert [entry for _, held in parts for entry in held] == entries
