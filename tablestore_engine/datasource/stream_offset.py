"""How far a stream of Spark is, as Spark keeps it in its checkpoint: the end of a batch, and with it the batch's begin.

    {"version": 1, "begin": {position}, "end": {position}}      position: see stream/position.py

INVARIANT  a batch is planned from its own end offset alone, never from the start that Spark hands along. After a crash
           in the first batch Spark asks for an initial offset again, and gets another one when the table has moved on:
           rows would come twice, or never. What `begin` says is written down before the first row is read.
INVARIANT  equal offsets are equal texts: Spark compares them so, and would run an empty batch for each other text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tablestore_engine.errors import FixRequest
from tablestore_engine.stream.position import Position, decode_position, encode_position

_VERSION = 1
INITIAL: Mapping[str, Any] = {"version": _VERSION}


@dataclass(frozen=True)
class StreamOffset:
    """Everything from `begin` to `end` is the batch; what follows begins at `end`."""

    begin: Position
    end: Position


def encode_offset(offset: StreamOffset) -> dict[str, Any]:
    """What Spark is given."""
    return {
        "version": _VERSION,
        "begin": json.loads(encode_position(offset.begin)),
        "end": json.loads(encode_position(offset.end)),
    }


def decode_offset(value: Mapping[str, Any]) -> StreamOffset | None:
    """None for INITIAL. Raises FixRequest TS1444, TS1334."""
    if not isinstance(value, Mapping) or value.get("version") != _VERSION:
        raise _unreadable(value)
    if dict(value) == INITIAL:
        return None
    try:
        begin, end = value["begin"], value["end"]
    except KeyError:
        raise _unreadable(value) from None
    return StreamOffset(decode_position(json.dumps(begin)), decode_position(json.dumps(end)))


def _unreadable(value: object) -> FixRequest:
    return FixRequest(
        "TS1444",
        "an offset of the checkpoint cannot be read",
        why=f"expected one of version {_VERSION} of tablestore, got {str(value)[:200]}",
        fix="give the query the checkpoint that it wrote, with its sources in the same order, or a new checkpoint",
    )
