"""Rows that are too large to be sent, found before they are committed.

CHANGE     the size limit of a message (option kafka.message.max.bytes)
Steps      1 an upper bound from column lengths: nearly all batches end here 2 only above it, the messages themselves
Limit      kafka.message.max.bytes, which the client holds against key, value, headers and the head of a record, before
           compression; headers name the commit, which is not known yet, so bytes are kept free for them. The topic's
           own max.message.bytes is held against compressed batches and is known when they arrive (TS1709)
INVARIANT  the messages measured are those that publishing makes (log/message_envelope.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixData
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.json_values import json_column_of, object_texts
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.log_formats import LogFormats
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope

_CLIENT_DEFAULT = 1_000_000
_SLICE_ROWS = 8_192
_ESCAPED = 6  # bytes of JSON for one byte of text, at most: \u0000
_FIXED = 64  # bytes for a number, date or boolean, at most
_PLUS = 16  # quotes, commas, brackets; in Avro a length, a count and the branch of a union
_AROUND = 64  # before and behind the row
HEADERS = 512  # librdkafka counts 36 bytes and the headers: s, k, q and c, in which a commit user has some 400 bytes
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


@dataclass(frozen=True)
class MessageLimit:
    """`size` in bytes: one message with its headers, before compression. A RowLimit of log/sink.py."""

    table: str
    topic: str
    mode: ChangelogMode
    size: int
    formats: LogFormats = LogFormats()  # noqa: RUF009 - frozen

    def check(self, rows: pa.Table, schema: TableSchema) -> None:
        check_sizes(rows, schema, self)


def message_limit(settings: LogSettings) -> MessageLimit:
    size = int(settings.client.properties.get("message.max.bytes", _CLIENT_DEFAULT))
    return MessageLimit(settings.table, settings.topic, settings.mode, size, settings.formats)


def check_sizes(rows: pa.Table, schema: TableSchema, limit: MessageLimit) -> None:
    """`rows`: the table's columns. Raises FixData TS1739, and TS1715, TS1716 for values that JSON cannot hold."""
    if not rows.num_rows or _bound(rows) <= limit.size - HEADERS:
        return
    envelope = plan_envelope(schema, limit.mode, limit.formats)
    for start in range(0, rows.num_rows, _SLICE_ROWS):
        part = rows.slice(start, _SLICE_ROWS)
        kinds = pa.array(np.full(part.num_rows, RowKind.INSERT, np.int8))
        encoded = encode_rows(part.append_column(ROW_KIND_COLUMN, kinds), envelope)
        keys = encoded.keys or [b""] * len(encoded)
        for number, (key, value) in enumerate(zip(keys, encoded.values, strict=True)):
            size = len(key) + len(value or b"")
            if size > limit.size - HEADERS:
                raise FixData(
                    "TS1739",
                    f"a row for {limit.table} is too large for its log; nothing is written",
                    why=f"key {_shown_key(part.slice(number, 1), schema)}: its message has "
                    f"{size} bytes and up to {HEADERS} of headers, 'kafka.message.max.bytes' is {limit.size}",
                    fix="raise 'kafka.message.max.bytes' of the table and max.message.bytes of "
                    f"topic {limit.topic}, or make the row smaller",
                )


def _shown_key(row: pa.Table, schema: TableSchema) -> str:
    """As JSON, whatever the log has."""
    members = tuple((name, json_column_of(row[name])) for name in schema.primary_keys)
    return str(object_texts(members, 1)[0])[:200] if members else "(none)"


def _bound(rows: pa.Table) -> int:
    """No message of these rows is larger, key included."""
    total = _AROUND
    for name in rows.column_names:
        most = max((_most(chunk) for chunk in rows[name].chunks), default=0)
        total += 2 * (_ESCAPED * len(name.encode()) + _PLUS + most)  # a column of the key comes twice
    return total


def _most(array: pa.Array) -> int:
    """No value of the array is longer, in any format: of a list, the longest one of the longest items."""
    kind = array.type
    if any(is_text(kind) for is_text in _TEXTS):
        return _PLUS + _ESCAPED * int(pc.max(pc.binary_length(array)).as_py() or 0)
    if pa.types.is_fixed_size_binary(kind):
        return _PLUS + _ESCAPED * int(kind.byte_width)
    if pa.types.is_struct(kind):
        members = zip(kind, array.flatten(), strict=True)
        return _PLUS + sum(_ESCAPED * len(one.name.encode()) + _PLUS + _most(child) for one, child in members)
    if pa.types.is_map(kind):
        offsets = np.asarray(array.offsets)
        return _PLUS + int(np.diff(offsets).max(initial=0)) * (_most(array.keys) + _most(array.items))
    if pa.types.is_nested(kind):
        length = pc.max(pc.list_value_length(array)).as_py() or 0
        return _PLUS + int(length) * _most(array.values)
    return _FIXED
