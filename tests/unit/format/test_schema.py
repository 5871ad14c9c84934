"""Schema files: keys, defaults of old versions, ids, and names that are refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, FixRequest, NotFound
from tablestore_engine.format.checksum import CHECKSUM_KEY, HAS_CHECKSUM_KEY
from tablestore_engine.format.data_type import BIGINT, STRING, DataField, DataType
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema, new_schema
from tablestore_engine.format.type_text import type_to_text

ARROW = pa.schema([
    ("id", pa.int64()),
    ("l", pa.list_(pa.struct([("x", pa.int8()), ("m", pa.map_(pa.string(), pa.struct([("y", pa.bool_())])))]))),
    ("dt", pa.string()),
])  # fmt: skip
SCHEMA = new_schema(
    ARROW,
    partition_keys=["dt"],
    primary_keys=["dt", "id"],
    options={"bucket": "2"},
    comment="c",
    time_millis=9,
)


def _file(**changes: object) -> bytes:
    value = {
        "version": 3,
        "id": 0,
        "fields": [],
        "highestFieldId": -1,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
    }
    value |= changes
    return json.dumps({k: v for k, v in value.items() if v != "absent"}).encode()


def test_ids_are_given_in_order_parents_first() -> None:
    """Columns and nested fields get ids depth first, as Paimon's builder gives them."""
    row = SCHEMA.field("l").type.element
    assert [f.id for f in SCHEMA.fields] == [0, 1, 5]
    assert row is not None
    assert [f.id for f in row.fields] == [2, 3]
    assert row.fields[1].type.value is not None
    assert row.fields[1].type.value.fields[0].id == 4
    assert SCHEMA.highest_field_id == 5


def test_keys_are_not_null_and_trimmed() -> None:
    """Primary key columns become NOT NULL; the trimmed key leaves partition columns out."""
    assert [type_to_text(f.type).endswith("NOT NULL") for f in SCHEMA.fields] == [True, False, True]
    assert SCHEMA.trimmed_primary_keys == ("id",)
    assert SCHEMA.bucket_keys == ("id",)
    assert (SCHEMA.bucket_count, SCHEMA.is_keyed) == (2, True)
    append = new_schema(ARROW, options={"bucket": "2", "bucket-key": " id , dt "})
    assert append.bucket_keys == ("id", "dt")
    assert new_schema(ARROW).bucket_keys == ()
    assert new_schema(ARROW).bucket_count == -1


def test_file_round_trip_and_exact_keys() -> None:
    """The file has exactly the keys of a schema, and no comment when there is none."""
    assert decode_schema(encode_schema(SCHEMA)) == SCHEMA
    plain = json.loads(encode_schema(new_schema(ARROW)))
    assert set(plain) == {
        CHECKSUM_KEY,
        HAS_CHECKSUM_KEY,
        "version",
        "id",
        "fields",
        "highestFieldId",
        "partitionKeys",
        "primaryKeys",
        "options",
        "timeMillis",
    }
    assert plain["version"] == 3
    assert json.loads(encode_schema(SCHEMA))["comment"] == "c"
    assert hash(SCHEMA) == hash(decode_schema(encode_schema(SCHEMA)))


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("absent", {"bucket": "1", "file.format": "orc"}),
        (1, {"bucket": "1", "file.format": "orc"}),
        (2, {"file.format": "orc"}),
        (3, {}),
    ],
)
def test_old_versions_get_the_defaults_of_their_time(version: object, options: dict[str, str]) -> None:
    """Without an option, version 1 means bucket 1, and versions 1 and 2 mean ORC."""
    assert decode_schema(_file(version=version)).options == options
    given = {"bucket": "7", "file.format": "parquet"}
    assert decode_schema(_file(version=version, options=given)).options == given


@pytest.mark.parametrize("key", ["id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options"])
def test_a_schema_without_a_needed_key_is_damaged(key: str) -> None:
    """Keys that Java requires are required here as well."""
    with pytest.raises(FixData) as raised:
        decode_schema(_file(**{key: "absent"}))
    assert raised.value.code == "TS1111"


@pytest.mark.parametrize("data", [b"{", b"3", _file(version=4)])
def test_text_that_is_no_schema_is_damaged(data: bytes) -> None:
    """Broken JSON and newer versions are refused, not guessed."""
    with pytest.raises(FixData):
        decode_schema(data)


@pytest.mark.parametrize(
    "name",
    [
        "_KEY_a",
        "_SEQUENCE_NUMBER",
        "_VALUE_KIND",
        "_LEVEL",
        "rowkind",
        "_ROW_ID",
        "",
        " ",
        "dup",
        "_row_kind",
        "_Row_Kind",
        "_SNAPSHOT_ID",
    ],
)
def test_column_names_that_are_refused(name: str) -> None:
    """Names the files use themselves, empty ones and repeated ones give TS1112."""
    with pytest.raises(FixRequest) as raised:
        new_schema([DataField(0, "dup", STRING), DataField(0, name, STRING)])
    assert raised.value.code == "TS1112"


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"primary_keys": ["l"]}, "TS1113"),
        ({"primary_keys": ["dt"], "partition_keys": ["dt"]}, "TS1113"),
        ({"primary_keys": ["id", "id"]}, "TS1113"),
        ({"options": {"bucket-key": "l"}}, "TS1113"),
        ({"primary_keys": ["id"], "options": {"bucket-key": "dt"}}, "TS1113"),
        ({"partition_keys": ["dt"], "options": {"bucket-key": "dt"}}, "TS1113"),
        ({"primary_keys": ["nope"]}, "TS1110"),
        ({"partition_keys": ["nope"]}, "TS1110"),
    ],
)
def test_keys_that_are_refused(keys: dict[str, object], code: str) -> None:
    """Nested, repeated, unknown or misplaced key columns are refused before anything exists."""
    with pytest.raises(FixRequest) as raised:
        new_schema(ARROW, **keys)  # type: ignore[arg-type]
    assert raised.value.code == code


def test_lookups() -> None:
    """Columns are found by name; an unknown one names the columns there are."""
    assert SCHEMA.field("id").type.with_nullable(True) == BIGINT
    assert [f.name for f in SCHEMA.fields_of(["dt", "id"])] == ["dt", "id"]
    with pytest.raises(NotFound, match="id, l, dt"):
        SCHEMA.field("ID")
    assert SCHEMA.arrow_schema().field("id").nullable is False
    assert TableSchema(0, (DataField(0, "a", DataType("INT")),), 0).arrow_schema() == pa.schema(
        [("a", pa.int32())]
    )
