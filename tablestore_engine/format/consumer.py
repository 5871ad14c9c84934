"""Consumer files: how far a named reader of a table is (format.md#consumers).

    consumer/consumer-<id>   {"nextSnapshot": 8}   ours add "tablestore.position": a text, "tablestore.table": of which

CHANGE     the file of a consumer
PAIMON     readers take `nextSnapshot` and leave unknown keys aside; their next commit writes the file without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tablestore_engine.format.json_file import parse_object

_NEXT, _POSITION, _TABLE = "nextSnapshot", "tablestore.position", "tablestore.table"


@dataclass(frozen=True)
class Consumer:
    """`next_snapshot` and all after it are still needed; `position` says more exactly where it is.

    `table` is the identity of the table that it reads, None when the writer did not say.
    """

    next_snapshot: int
    position: str | None = None
    table: str | None = None


def encode_consumer(consumer: Consumer) -> bytes:
    out: dict[str, object] = {_NEXT: consumer.next_snapshot}
    if consumer.position is not None:
        out[_POSITION] = consumer.position
    if consumer.table is not None:
        out[_TABLE] = consumer.table
    return json.dumps(out).encode()


def decode_consumer(data: bytes) -> Consumer:
    """The consumer. Raises ValueError, KeyError."""
    value = parse_object(data)
    following, position, table = value[_NEXT], value.get(_POSITION), value.get(_TABLE)
    if type(following) is not int or following < 0:
        raise ValueError(f"{_NEXT} is {following!r}, expected a snapshot id")
    return Consumer(
        following,
        position if isinstance(position, str) else None,
        table if isinstance(table, str) else None,
    )
