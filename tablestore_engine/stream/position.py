"""How far a reader is, as a value that can be stored.

    {"version": 1, "table": "9f2c…", "snapshot": 8, "part": "changes", "rows": 1200,
     "seen": {"snapshot": 8, "unique": "7d1a…"}}

Names      Position   so many rows of a snapshot's part were handed out, and everything before it
           Seen       the snapshot that the position stands on: numbers come again after a rollback
           encode_position, decode_position   value ⇄ JSON text
Part       `full`: the rows of the snapshot, which a reader begins with; `changes`: what the snapshot changed
Order      changes of N < rows of N < changes of N + 1
INVARIANT  it says which table (store.metadata.identity) and which snapshots it is of: on any other it is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.snapshot import Snapshot

_VERSION = 1


class Part(StrEnum):
    """What of a snapshot is read."""

    FULL = "full"
    CHANGES = "changes"


@dataclass(frozen=True)
class Seen:
    """One snapshot, told from any other that ever has its number."""

    snapshot: int
    unique: str

    @classmethod
    def of(cls, snapshot: Snapshot) -> Seen:
        """How it is recognised."""
        return cls(snapshot.id, snapshot.unique)


@dataclass(frozen=True)
class Position:
    """`seen`: the snapshot itself when some of it was read, else the one before it; None where nobody has said."""

    table: str
    snapshot: int
    part: Part = Part.CHANGES
    rows: int = 0
    seen: Seen | None = None

    def moved(self, rows: int, snapshot: Snapshot) -> Position:
        """So many rows of its snapshot further."""
        return replace(self, rows=self.rows + rows, seen=Seen.of(snapshot))

    def after(self, snapshot: Snapshot) -> Position:
        """All of its snapshot was handed out."""
        return Position(self.table, snapshot.id + 1, seen=Seen.of(snapshot))

    @property
    def order(self) -> tuple[int, int, int]:
        """Compares positions of one reader: larger is further."""
        return self.snapshot, int(self.part is Part.FULL), self.rows

    @property
    def is_within(self) -> bool:
        """Whether it needs the snapshot of its number, not one that is still to come."""
        return self.part is Part.FULL or self.rows > 0


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
    return json.dumps(out)


def decode_position(text: str) -> Position:
    """Raises FixRequest TS1334."""
    try:
        value = parse_object(text.encode())
        if value["version"] != _VERSION:
            raise ValueError(f"it is of version {value['version']!r}, known is {_VERSION}")
        seen = value.get("seen")
        position = Position(
            table=str(value["table"]),
            snapshot=_count(value["snapshot"], least=1),
            part=Part(value["part"]),
            rows=_count(value["rows"], least=0),
            seen=None if seen is None else Seen(_count(seen["snapshot"], least=0), str(seen["unique"])),
        )
    except DAMAGE as damage:
        raise FixRequest(
            "TS1334",
            "a position cannot be read",
            why=f"{damage}; got {text[:200]!r}",
            fix="give the text of `position` of a reader as it was, or begin anew with a mode",
        ) from damage
    if position.is_within and position.seen is None:
        raise FixRequest(
            "TS1334",
            "a position cannot be read",
            why=f"it stands within snapshot {position.snapshot} and does not say which one that was",
            fix="give the text of `position` of a reader as it was, or begin anew with a mode",
        )
    return position


def _count(value: object, *, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"expected a number from {least}, got {value!r}")
    return value
