"""The position of a reader, as a value that can be stored.

    {"version": 1, "table": "9f2c…", "snapshot": 8, "part": "changes", "rows": 1200,
     "seen": {"snapshot": 8, "unique": "7d1a…"}}

or, in a log:
    {…, "part": "log", "rows": 1, "log": {"id": "Xq…", "beginning": "0@0:0", "next": {"0": 512, "1": 498}, "after": 0,
     "within": 1}}

CHANGE     the stored position of a stream
Part       `full`: the rows of the snapshot, which a reader begins with; `changes`: what the snapshot changed; `log`:
           messages of a log: the snapshot is that of the last boundary before them (log/followed_log.py)
Order      changes of N < rows of N < messages on N < changes of N + 1
INVARIANT  it says which table (store.metadata.identity) and which snapshots it is of: on any other it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.snapshot import Snapshot

_VERSION = 1


class Part(StrEnum):
    FULL = "full"
    CHANGES = "changes"
    LOG = "log"


_ORDER = (Part.CHANGES, Part.FULL, Part.LOG)


@dataclass(frozen=True)
class Seen:
    """One snapshot, told from any other that ever has its number."""

    snapshot: int
    unique: str

    @classmethod
    def of(cls, snapshot: Snapshot) -> Seen:
        return cls(snapshot.id, snapshot.unique)


@dataclass(frozen=True)
class LogPlace:
    """`following`: the next offset of each partition. `after`: messages of snapshots up to this one are not told.
    `within`: the partition of whose next message `rows` rows were handed out.
    """

    log_id: str
    beginning: str
    following: Mapping[int, int]
    after: int = 0
    within: int | None = None


@dataclass(frozen=True)
class Position:
    """`seen`: the snapshot itself when some of it was read, else the one before it; None where nobody has said."""

    table: str
    snapshot: int
    part: Part = Part.CHANGES
    rows: int = 0
    seen: Seen | None = None
    log: LogPlace | None = field(default=None, hash=False)

    def moved(self, rows: int, snapshot: Snapshot) -> Position:
        return replace(self, rows=self.rows + rows, seen=Seen.of(snapshot))

    def after(self, snapshot: Snapshot) -> Position:
        return Position(self.table, snapshot.id + 1, seen=Seen.of(snapshot))

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Compares positions of one reader: larger is further."""
        passed = 0 if self.log is None else sum(self.log.following.values())
        return self.snapshot, _ORDER.index(self.part), passed, self.rows

    @property
    def is_within(self) -> bool:
        """Whether it needs the snapshot of its number, not one that is still to come."""
        return self.part is not Part.CHANGES or self.rows > 0


def encode_position(position: Position) -> str:
    """One line of JSON."""
    out: dict[str, object] = {
        "version": _VERSION,
        "table": position.table,
        "snapshot": position.snapshot,
        "part": str(position.part),
        "rows": position.rows,
    }
    if position.seen is not None:
        out["seen"] = {"snapshot": position.seen.snapshot, "unique": position.seen.unique}
    if position.log is not None:
        out["log"] = _encode_place(position.log)
    return json.dumps(out)


def _encode_place(place: LogPlace) -> dict[str, object]:
    following = {str(partition): offset for partition, offset in sorted(place.following.items())}
    out: dict[str, object] = {"id": place.log_id, "beginning": place.beginning, "next": following}
    if place.after:
        out["after"] = place.after
    return out if place.within is None else {**out, "within": place.within}


def _decode_place(value: Mapping[str, Any]) -> LogPlace:
    within = value.get("within")
    return LogPlace(
        str(value["id"]),
        str(value["beginning"]),
        {int(partition): _count(offset, least=0) for partition, offset in value["next"].items()},
        _count(value.get("after", 0), least=0),
        None if within is None else _count(within, least=0),
    )


def decode_position(text: str) -> Position:
    """Raises FixRequest TS1334."""
    try:
        value = parse_object(text.encode())
        if value["version"] != _VERSION:
            raise ValueError(f"it is of version {value['version']!r}, known is {_VERSION}")
        seen, part = value.get("seen"), Part(value["part"])
        position = Position(
            table=str(value["table"]),
            snapshot=_count(value["snapshot"], least=0 if part is Part.LOG else 1),
            part=part,
            rows=_count(value["rows"], least=0),
            seen=None if seen is None else Seen(_count(seen["snapshot"], least=0), str(seen["unique"])),
            log=_decode_place(value["log"]) if part is Part.LOG else None,
        )
    except DAMAGE as damage:
        raise FixRequest(
            "TS1334",
            "a position cannot be read",
            why=f"{damage}; got {text[:200]!r}",
            fix="give the text of `position` of a reader as it was, or start again with a mode",
        ) from damage
    if position.is_within and position.seen is None and part is not Part.LOG:
        raise FixRequest(
            "TS1334",
            "a position cannot be read",
            why=f"it stands within snapshot {position.snapshot} and does not say which one that was",
            fix="give the text of `position` of a reader as it was, or start again with a mode",
        )
    return position


def _count(value: object, *, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"expected a number from {least}, got {value!r}")
    return value
