"""The headers of a row's message: their names, their writer and their readers.

CHANGE     the headers of a message in Kafka (docs/kafka-envelope.md)
Written    by a publisher after the commit: s c k q · by an eventual log before it: c a k q
INVARIANT  readers take no header for granted: foreign producers have none, or others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from tablestore_engine.format.row_kind import RowKind

SNAPSHOT = "s"  # id of the snapshot that changed the row
COMMIT = "c"  # commit user:identifier
KIND = "k"  # row kind: +I, -U, +U, -D
SEQUENCE = "q"  # number of the message, from 0: within (snapshot, partition), or within the call of `a`
CALL = "a"  # which call sent it before its snapshot existed

Header = tuple[str, str | bytes | None]
_KINDS: Sequence[Header] = tuple((KIND, kind.short_string.encode()) for kind in RowKind)
KIND_OF_HEADER: Mapping[bytes, RowKind] = {kind.short_string.encode(): kind for kind in RowKind}


@dataclass(frozen=True)
class RowHeaders:
    """What the messages of a snapshot, or of a call before it, have in common."""

    snapshot_id: int | None
    commit: str
    call: str | None = None

    def constant(self) -> tuple[Header, ...]:
        snapshot = None if self.snapshot_id is None else str(self.snapshot_id)
        given = ((SNAPSHOT, snapshot), (COMMIT, self.commit), (CALL, self.call))
        return tuple((name, text.encode()) for name, text in given if text is not None)


def row_headers(constant: Sequence[Header], kind: int, sequence: int) -> list[Header]:
    """Of one message; `constant` is made once for many."""
    return [*constant, _KINDS[kind], (SEQUENCE, b"%d" % sequence)]


def read_headers(message: Message) -> Mapping[str, bytes]:
    """Name → value; of a name that comes twice the last one."""
    listed = message.headers()
    return {
        name: text for name, text in (listed if isinstance(listed, list) else ()) if isinstance(text, bytes)
    }


def number_of(text: bytes | None) -> int | None:
    """Of a header with digits; None for everything else."""
    return int(text) if text is not None and text.isdigit() else None
