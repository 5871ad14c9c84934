"""Snapshot and tag files: JSON of one state of the table (format.md#snapshots).

INVARIANT  None is never written; sizes of manifest lists are exact or absent; `watermark` is absent
           unless real (format.md#snapshots); unknown keys are ignored, as every reader does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from tablestore_engine.errors import FixData
from tablestore_engine.format.checksum import checksummed_json, verify_checksum
from tablestore_engine.format.json_file import DAMAGE, parse_object

SNAPSHOT_VERSION = 3
BATCH_COMMIT_IDENTIFIER = 9223372036854775807  # Long.MAX_VALUE: what batch writers use


class CommitKind(StrEnum):
    """Why a snapshot was made (format.md#snapshots)."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One state of a table; its fields are the file's keys, in the file's order. The ten without a default, and the
    version, are the minimum that every reader needs.
    """

    version: int = SNAPSHOT_VERSION
    uuid: str | None = None
    id: int
    schema_id: int
    base_manifest_list: str
    base_manifest_list_size: int | None = None
    delta_manifest_list: str
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    commit_user: str
    writer_version: str | None = None
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    log_offsets: Mapping[int, int] | None = None
    total_record_count: int
    delta_record_count: int
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = None
    next_row_id: int | None = None
    operation: str | None = None

    @property
    def unique(self) -> str:
        """Tells it from every other snapshot: numbers come again after a rollback."""
        return self.uuid or f"{self.id}-{self.time_millis}"


@dataclass(frozen=True)
class Tag:
    """A snapshot under a name: `create_time` is the writer's wall clock, both extras only with a retention."""

    snapshot: Snapshot
    create_time: datetime | None = None
    time_retained: timedelta | None = None


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """UTF-8 JSON of a snapshot; None and empty maps are left out (format.md#snapshots)."""
    return checksummed_json(_snapshot_to_json(snapshot))


def decode_snapshot(data: bytes, name: str = "") -> Snapshot:
    """A snapshot from its file. Unknown keys are ignored; record counts and version may be missing (0 and 3).

    Raises FixData TS1160 for damaged bytes, TS1109 when the text is no JSON object or a key without a default
    is missing.
    """
    verify_checksum(data, "snapshot", name)
    return _snapshot_from_json(_load(data, "snapshot"))


def encode_tag(tag: Tag) -> bytes:
    """UTF-8 JSON of a tag: the snapshot, `tagCreateTime` as an array, `tagTimeRetained` in seconds."""
    out = _snapshot_to_json(tag.snapshot)
    if tag.create_time is not None:
        at = tag.create_time
        out["tagCreateTime"] = [
            at.year,
            at.month,
            at.day,
            at.hour,
            at.minute,
            at.second,
            at.microsecond * 1000,
        ]
    if tag.time_retained is not None:
        micros = tag.time_retained // timedelta(microseconds=1)
        seconds, rest = divmod(micros, 1_000_000)
        out["tagTimeRetained"] = seconds if rest == 0 else micros / 1e6
    return checksummed_json(out)


def decode_tag(data: bytes, name: str = "") -> Tag:
    """A tag from its file; missing trailing parts of `tagCreateTime` are 0. Raises FixData TS1109, TS1160."""
    verify_checksum(data, "tag", name)
    value = _load(data, "tag")
    created, retained = value.get("tagCreateTime"), value.get("tagTimeRetained")
    snapshot = _snapshot_from_json(value)
    try:
        return Tag(
            snapshot,
            create_time=None if created is None else _create_time(created),
            time_retained=None if retained is None else _seconds(retained),
        )
    except DAMAGE as wrong:
        raise _damaged("tag", f"{type(wrong).__name__}: {wrong}") from wrong


def _json_key(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


_KEYS = {field.name: _json_key(field.name) for field in fields(Snapshot)}
_COUNTS = ("total_record_count", "delta_record_count")
_INTS = tuple(field.name for field in fields(Snapshot) if field.type in ("int", "int | None"))
_TEXTS = tuple(field.name for field in fields(Snapshot) if field.type in ("str", "str | None"))


def _snapshot_to_json(snapshot: Snapshot) -> dict[str, object]:
    out: dict[str, object] = {}
    for name, key in _KEYS.items():
        value = getattr(snapshot, name)
        if isinstance(value, Mapping):
            value = {str(k): v for k, v in value.items()} or None
        if value is not None:
            out[key] = value
    return out


def _snapshot_from_json(value: Mapping[str, object]) -> Snapshot:
    known = {name: value[key] for name, key in _KEYS.items() if value.get(key) is not None}
    for name in _COUNTS:
        known.setdefault(name, 0)  # readers of every age take absence as 0
    try:
        for name in _INTS:
            if name in known:
                known[name] = int(str(known[name]))
        known["commit_kind"] = CommitKind(str(known["commit_kind"]))
        offsets = known.get("log_offsets")
        if offsets is not None:
            known["log_offsets"] = {int(k): int(v) for k, v in offsets.items()}  # type: ignore[attr-defined]
        for name in _TEXTS:
            if not isinstance(known.get(name, ""), str):
                raise TypeError(f"{_KEYS[name]} is no text")
        if not all(isinstance(text, str) for text in known.get("properties", {}).values()):  # type: ignore[attr-defined]
            raise TypeError("properties are no texts")
        return Snapshot(**known)  # type: ignore[arg-type]
    except DAMAGE as wrong:
        raise _damaged("snapshot", f"{type(wrong).__name__}: {wrong}") from wrong


def _create_time(parts: object) -> datetime:
    if not isinstance(parts, list) or not 3 <= len(parts) <= 7:
        raise _damaged("tag", f"tagCreateTime is {parts!r}, expected [year, month, day, …]")
    year, month, day, hour, minute, second, nanos = [int(p) for p in parts] + [0] * (7 - len(parts))
    return datetime(year, month, day, hour, minute, second, nanos // 1000)  # noqa: DTZ001 — local wall clock by format


def _seconds(value: object) -> timedelta:
    return timedelta(microseconds=int(Decimal(str(value)) * 1_000_000))


def _load(data: bytes, what: str) -> Mapping[str, object]:
    try:
        return parse_object(data)
    except ValueError as wrong:
        raise _damaged(what, str(wrong)) from wrong


def _damaged(what: str, why: str) -> FixData:
    return FixData(
        "TS1109",
        f"a {what} file cannot be read",
        why=why,
        fix=f"restore the {what} file from a copy; nothing else was changed",
    )
