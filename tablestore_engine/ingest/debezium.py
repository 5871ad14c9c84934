"""Messages of Debezium: {before, after, op, source, …}, in JSON with or without its schema, or in Avro.

Operations c, r, u: the row is put; an update of the key takes the old one · d: it is taken · t: all are · m: a logical
           message · a tombstone: its key is taken, which is no change behind the delete before it
CHANGE     the decoding of Debezium's change messages
DANGER     a value that a database did not log (TOAST, unchanged) comes as a placeholder
           (toast_placeholder.py). It is taken from `before`; where that has none the message cannot be read: written as
           it is, it would be a wrong row.
Keys       of many messages: 1 keys with a schema: do all begin with the text of the first one's? 2 keys without: by
           Arrow's parser, all at once 3 where they are not all alike: each that is another one
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from tablestore_engine.ingest.change_event import (
    HEARTBEAT,
    LOGICAL_MESSAGE,
    SCHEMA_CHANGE,
    TOMBSTONE,
    TRANSACTION,
    Change,
    ChangeEvent,
    Row,
    key_changes,
    object_of,
    parse_json,
    spelled,
)
from tablestore_engine.ingest.connect_types import avro_row, connect_row
from tablestore_engine.ingest.toast_placeholder import UNAVAILABLE, is_null_placeholder, is_toast_placeholder
from tablestore_engine.ingest.wire_types import WireType
from tablestore_engine.log.avro_decode import AvroReader
from tablestore_engine.log.message_source import RawMessages

_ENVELOPE = frozenset({"schema", "payload"})


def key_names(
    keys: Sequence[bytes | None], numbers: npt.NDArray[np.int64], reader: DebeziumJson
) -> Mapping[tuple[str, ...], int]:
    """Names → the first message of `numbers` with them."""
    places = [at for at in numbers.tolist() if keys[at]]
    texts = [key for at in places if (key := keys[at])]
    if not texts:
        return {}
    names, begin = reader.key_names(texts[0]), reader.begin_of(texts[0])
    if _same_names(texts) if begin is None else all(key.startswith(begin) for key in texts):
        return {names: places[0]} if names else {}
    found: dict[tuple[str, ...], int] = {}
    for key, at in dict(zip(reversed(texts), reversed(places), strict=True)).items():
        names = reader.key_names(key)
        if names:
            found[names] = min(at, found.get(names, at))
    return found


def _same_names(keys: Sequence[bytes]) -> bool:
    """Whether all are objects of the same members, none of which is null."""
    if len(keys) < 2 or any(key[:1] != b"{" or key[-1:] != b"}" for key in keys):
        return False  # Arrow's parser ends the process at a document that is `null`
    joined = b"\n".join(keys)
    if joined.count(b"\n") != len(keys) - 1:
        return False
    try:
        table = pj.read_json(io.BytesIO(joined), read_options=pj.ReadOptions(use_threads=False))
    except pa.ArrowException:
        return False
    is_whole = table.num_rows == len(keys) and not any(one.null_count for one in table.columns)
    return is_whole and set(table.column_names) != _ENVELOPE


_FULL = "ALTER TABLE … REPLICA IDENTITY FULL"
_PUTS = frozenset({"c", "r", "u"})
_MOMENTS = frozenset({"ts_ms", "ts_us", "ts_ns"})
_BEGIN, _BETWEEN = b'{"schema":', b',"payload":'
_KNOWN_MAX = 64  # schemas that are told by their text
Wires = Mapping[str, WireType]


class _HiddenError(ValueError):
    """A value that the message does not have."""


@dataclass(frozen=True)
class DebeziumEnvelope:
    """A message without its schema: `wires` of its rows; `key` of its key, with `key_wires`."""

    payload: Mapping[str, Any]
    wires: Wires | None
    key: Row | None
    key_wires: Wires | None


def event_of(envelope: DebeziumEnvelope, names: tuple[str, ...]) -> ChangeEvent:
    """What follows from one message. Raises ValueError, KeyError, TypeError."""
    payload = envelope.payload
    if "op" not in payload:
        return ChangeEvent(ignored=_other(payload))
    op = payload["op"]
    key = tuple(envelope.key or ())
    table = _table_of(payload.get("source"))
    if op == "m":
        return ChangeEvent(ignored=LOGICAL_MESSAGE, table=table)
    if op == "t":
        return ChangeEvent(is_truncate=True, table=table)
    if op == "d":
        changes: tuple[Change, ...] = (Change(_gone(envelope, names), is_put=False),)
    elif op in _PUTS:
        try:
            changes = _puts(envelope, op, names)
        except _HiddenError as error:
            return ChangeEvent(table=table, unreadable=str(error))
    else:
        raise ValueError(f"unknown op {op!r}")
    return ChangeEvent(changes, wires=envelope.wires, table=table, key=key)


def tombstone(key: Row | None, wires: Wires | None, names: tuple[str, ...]) -> ChangeEvent:
    """The key is taken, if the message has it."""
    if key is None:
        return ChangeEvent(ignored=TOMBSTONE)
    _check_key(key, names)
    return ChangeEvent((Change(key, is_put=False),), wires=wires, key=tuple(key))


def _puts(envelope: DebeziumEnvelope, op: str, names: tuple[str, ...]) -> tuple[Change, ...]:
    after: Row = object_of(envelope.payload.get("after"), f"after of op {op!r}")
    before = envelope.payload.get("before")
    if before is not None:
        before = object_of(before, f"before of op {op!r}")
    elif op == "u":
        _check_nulls(envelope, after)
    hidden = [name for name, value in after.items() if is_toast_placeholder(value)]
    if hidden:
        after = _revealed(before, after, hidden)
    return key_changes(before if op == "u" else None, after, names)


def _revealed(before: Row | None, after: Row, hidden: list[str]) -> Row:
    for name in hidden:
        if before is None or is_toast_placeholder(before.get(name, UNAVAILABLE)):
            raise _HiddenError(f"column {name} is not in the message (unchanged TOAST): {_FULL}")
    assert before is not None
    return {**after, **{name: before[name] for name in hidden}}


def _check_nulls(envelope: DebeziumEnvelope, after: Row) -> None:
    """An update without the row before, in whose NULLs a value may hide. Raises _HiddenError."""
    source = envelope.payload.get("source")
    if not envelope.wires or not isinstance(source, dict) or source.get("connector") != "postgresql":
        return
    for name, wire in envelope.wires.items():
        if after.get(name, "") is None and is_null_placeholder(wire):
            raise _HiddenError(
                f"column {name} is NULL in the message, which is what Debezium writes for an unchanged TOAST value of "
                f"its type as well: {_FULL}"
            )


def _gone(envelope: DebeziumEnvelope, names: tuple[str, ...]) -> Row:
    """The row before; of a table that logs none, the key of the message."""
    before = envelope.payload.get("before")
    if before is not None:
        return object_of(before, "before of op 'd'")
    if envelope.key is None:
        raise ValueError("op 'd' with neither before nor key")
    _check_key(envelope.key, names)
    return envelope.key


def _check_key(key: Row, names: tuple[str, ...]) -> None:
    missing = [name for name in spelled(names, key) if key.get(name) is None]
    if missing:
        raise ValueError(f"the key of the message has no {', '.join(missing)}")


def _other(payload: Mapping[str, Any]) -> str:
    """What Debezium writes besides changes. Raises ValueError."""
    if "status" in payload and "id" in payload:
        return TRANSACTION
    if "ddl" in payload or "tableChanges" in payload:
        return SCHEMA_CHANGE
    if payload and set(payload) <= _MOMENTS:
        return HEARTBEAT
    raise ValueError("no op: expected before, after and op")


def _table_of(source: object) -> str | None:
    """`schema.table`, of systems without schemas `db.table`."""
    if not isinstance(source, dict) or not source.get("table"):
        return None
    return f"{source.get('schema') or source.get('db')}.{source['table']}"


@dataclass
class DebeziumJson:
    """`known`: text of a schema, up to the payload → what rows mean."""

    known: dict[bytes, Wires] = field(default_factory=dict)
    _wires: dict[str, Wires] = field(default_factory=dict)

    def read(self, key: bytes | None, value: bytes | None, names: tuple[str, ...]) -> ChangeEvent:
        key_row, key_wires = self._key(key)
        if value is None:
            return tombstone(key_row, key_wires, names)
        payload, wires = self._payload(value, _rows_of)
        if payload is None:
            return tombstone(key_row, key_wires, names)
        return event_of(DebeziumEnvelope(object_of(payload, "the payload"), wires, key_row, key_wires), names)

    def split(self, value: bytes) -> tuple[Wires, bytes] | None:
        """Of a message whose schema is known by its text: what rows mean, and the payload's text."""
        for begin, wires in self.known.items():
            if value.startswith(begin) and value.endswith(b"}"):
                return wires, value[len(begin) : -1]
        return None

    def begin_of(self, text: bytes) -> bytes | None:
        """The text of its schema, where that is known."""
        return next((begin for begin in self.known if text.startswith(begin)), None)

    def key_names(self, key: bytes | None) -> tuple[str, ...]:
        return tuple(self._key(key)[0] or ())

    def _key(self, key: bytes | None) -> tuple[Row | None, Wires | None]:
        """Keys that are no objects (a converter of strings) say nothing."""
        if key is None:
            return None, None
        try:
            parsed, wires = self._payload(key, connect_row)
        except (ValueError, TypeError):
            return None, None
        return (parsed, wires) if isinstance(parsed, dict) else (None, None)

    def _payload(self, text: bytes, read: Callable[[Mapping[str, Any]], Wires]) -> tuple[Any, Wires | None]:
        """`read`: what is made of its schema."""
        known = self.split(text)
        if known is not None:
            return parse_json(known[1]), known[0] or None
        parsed = object_of(parse_json(text), "the message")
        if set(parsed) != {"schema", "payload"}:
            return parsed, None
        if parsed["schema"] is None:
            return parsed["payload"], None
        wires = self._wires_of(object_of(parsed["schema"], "schema"), read)
        self._remember(text, parsed["schema"], wires)
        return parsed["payload"], wires or None

    def _wires_of(self, node: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Wires]) -> Wires:
        text = json.dumps(node, sort_keys=True, default=str)
        if text not in self._wires:
            self._wires[text] = read(node)
        return self._wires[text]

    def _remember(self, value: bytes, node: object, wires: Wires) -> None:
        """The text before the payload, if it is what it seems."""
        at = value.find(_BETWEEN)
        while value.startswith(_BEGIN) and at >= 0 and len(self.known) < _KNOWN_MAX:
            try:
                is_schema = parse_json(value[len(_BEGIN) : at]) == node
            except ValueError:
                is_schema = False
            if is_schema:
                self.known[value[: at + len(_BETWEEN)]] = wires
                return
            at = value.find(_BETWEEN, at + 1)


def _rows_of(node: Mapping[str, Any]) -> Wires:
    """Of the struct with before and after; nothing for other messages."""
    sides = {one.get("field"): one for one in node.get("fields", ())}
    if "op" not in sides or "after" not in sides:
        return {}
    return connect_row(sides["after"])


def group_by_schema(
    raw: RawMessages, begin: int, end: int, reader: DebeziumJson
) -> Mapping[int, tuple[Mapping[str, WireType] | None, list[int], list[bytes]]]:
    """Messages by their schema, and what is left of their texts."""
    if not reader.known:
        there = [(at, one) for at, one in enumerate(raw.values[begin:end], begin) if one is not None]
        return {0: (None, [at for at, _ in there], [one for _, one in there])} if there else {}
    groups: dict[int, tuple[Mapping[str, WireType] | None, list[int], list[bytes]]] = {}
    for number in range(begin, end):
        value = raw.values[number]
        if value is None:
            continue
        known = reader.split(value)
        wires, text = (None, value) if known is None else known
        _, numbers, texts = groups.setdefault(id(wires), (wires, [], []))
        numbers.append(number)
        texts.append(text)
    return groups


@dataclass
class DebeziumAvro:
    """Asks the registry for each schema once."""

    reader: AvroReader
    _wires: dict[tuple[int, str], Wires] = field(default_factory=dict)

    def read(self, key: bytes | None, value: bytes | None, names: tuple[str, ...]) -> ChangeEvent:
        key_row, key_wires = (None, None) if key is None else self._record(key)
        if value is None:
            return tombstone(key_row, key_wires, names)
        payload, record = self.reader.read(value)
        if "op" not in payload:
            return ChangeEvent(ignored=_other(payload))
        place = (record.number, "after")
        if place not in self._wires and payload["op"] != "m":
            self._wires[place] = avro_row(self.reader.member(record, "after"))
        return event_of(DebeziumEnvelope(payload, self._wires.get(place), key_row, key_wires), names)

    def _record(self, key: bytes) -> tuple[Row, Wires]:
        row, record = self.reader.read(key)
        place = (record.number, "")
        if place not in self._wires:
            self._wires[place] = avro_row(record)
        return row, self._wires[place]
