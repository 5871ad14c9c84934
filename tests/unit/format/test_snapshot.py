"""Snapshot and tag files: the keys that are written, and what absence means."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import dataclasses
import datetime as dt
import json

import pytest

from tablestore_engine.errors import FixData
from tablestore_engine.format.checksum import CHECKSUM_KEY, HAS_CHECKSUM_KEY
from tablestore_engine.format.snapshot import (
    CommitKind,
    Snapshot,
    Tag,
    decode_snapshot,
    decode_tag,
    encode_snapshot,
    encode_tag,
)

MINIMUM = Snapshot(
    id=1, schema_id=0, base_manifest_list="b", delta_manifest_list="d", commit_user="u", commit_identifier=2**63 - 1,
    commit_kind=CommitKind.APPEND, time_millis=5, total_record_count=3, delta_record_count=-1,
)  # fmt: skip
FULL = dataclasses.replace(
    MINIMUM, uuid="x", base_manifest_list_size=1, delta_manifest_list_size=2, changelog_manifest_list="c",
    changelog_manifest_list_size=3, index_manifest="i", writer_version="w", log_offsets={0: 7},
    changelog_record_count=4, watermark=6, statistics="s", properties={"k": "v"}, next_row_id=0, operation="WRITE",
    commit_kind=CommitKind.OVERWRITE,
)  # fmt: skip


def plain(snapshot: Snapshot) -> dict[str, object]:
    """The keys of a snapshot file without its checksum."""
    value: dict[str, object] = json.loads(encode_snapshot(snapshot))
    assert (next(iter(value)), list(value)[-1]) == (CHECKSUM_KEY, HAS_CHECKSUM_KEY)
    return {key: one for key, one in value.items() if key not in (CHECKSUM_KEY, HAS_CHECKSUM_KEY)}


def test_only_the_safe_minimum_is_written_without_extras() -> None:
    """Absent parts are left out, never written as null (readers differ on null)."""
    assert plain(MINIMUM) == {
        "version": 3, "id": 1, "schemaId": 0, "baseManifestList": "b", "deltaManifestList": "d", "commitUser": "u",
        "commitIdentifier": 9223372036854775807, "commitKind": "APPEND", "timeMillis": 5, "totalRecordCount": 3,
        "deltaRecordCount": -1,
    }  # fmt: skip


def test_every_key_survives() -> None:
    """All keys of a snapshot file are written and read back."""
    assert decode_snapshot(encode_snapshot(FULL)) == FULL
    assert set(json.loads(encode_snapshot(FULL))) >= {
        "changelogManifestListSize",
        "indexManifest",
        "nextRowId",
        "logOffsets",
    }
    assert json.loads(encode_snapshot(FULL))["logOffsets"] == {"0": 7}


def test_unknown_keys_nulls_and_missing_counts_are_tolerated() -> None:
    """Snapshots of older and newer writers are read: unknown keys, nulls, no version, no counts."""
    value = plain(MINIMUM)
    for key in ("version", "totalRecordCount", "deltaRecordCount"):
        del value[key]
    value |= {"somethingNew": {"a": 1}, "changelogManifestList": None, "logOffsets": {}}
    read = decode_snapshot(json.dumps(value).encode())
    assert (read.version, read.total_record_count, read.delta_record_count) == (3, 0, 0)
    assert read.changelog_manifest_list is None


@pytest.mark.parametrize("key", ["baseManifestList", "deltaManifestList", "id", "commitKind", "schemaId"])
def test_a_snapshot_without_a_needed_key_is_damaged(key: str) -> None:
    """Without a key that nothing can replace, TS1109 is raised."""
    value = plain(MINIMUM)
    del value[key]
    with pytest.raises(FixData) as raised:
        decode_snapshot(json.dumps(value).encode())
    assert raised.value.code == "TS1109"


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"id": "x"}'])
def test_text_that_is_no_snapshot_is_damaged(data: bytes) -> None:
    """Half-written or foreign files give TS1109."""
    with pytest.raises(FixData):
        decode_snapshot(data)


def test_tag_keeps_time_and_retention() -> None:
    """A tag with retention has the array of Java's LocalDateTime and seconds; one without is a plain snapshot."""
    tag = Tag(FULL, dt.datetime(2024, 1, 2, 3, 4, 5, 600700), dt.timedelta(hours=1, milliseconds=500))
    value = json.loads(encode_tag(tag))
    assert value["tagCreateTime"] == [2024, 1, 2, 3, 4, 5, 600700000]
    assert value["tagTimeRetained"] == 3600.5
    assert decode_tag(encode_tag(tag)) == tag
    assert encode_tag(Tag(FULL)) == encode_snapshot(FULL)
    assert decode_tag(encode_snapshot(FULL)) == Tag(FULL)


def test_tag_times_may_be_short() -> None:
    """Trailing zero parts of tagCreateTime may be missing; anything else is damaged."""
    value = plain(MINIMUM) | {
        "tagCreateTime": [2024, 1, 2, 3, 4],
        "tagTimeRetained": "86400.000000000",
    }
    tag = decode_tag(json.dumps(value).encode())
    assert tag.create_time == dt.datetime(2024, 1, 2, 3, 4)
    assert tag.time_retained == dt.timedelta(days=1)
    with pytest.raises(FixData):
        decode_tag(json.dumps(value | {"tagCreateTime": "now"}).encode())
