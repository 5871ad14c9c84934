"""Rows that are too large to be sent, found before they are committed.

Names      MessageLimit    what the check needs of a log, frozen and picklable: it goes to Spark tasks, no secret does
           message_limit() the limit of a log
           check_sizes()   raise for a row whose message the publisher would refuse
Steps      1 an upper bound from column lengths: nearly all batches end here 2 only above it, the messages themselves
Limit      kafka.message.max.bytes, which the client holds against key and value before compression; the topic's own
           max.message.bytes is held against compressed batches and is known when they arrive (TS1709)
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
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope

_CLIENT_DEFAULT = 1_000_000
_SLICE_ROWS = 8_192
_ESCAPED = 6  # bytes of JSON for one byte of text, at most: \u0000
_FIXED = 64  # bytes of JSON for a number, date or boolean, at most
_ENVELOPE = 64
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


@dataclass(frozen=True)
class MessageLimit:
    """`size` in bytes: key and value of one message, before compression. A RowLimit of log/sink.py."""

    table: str
    topic: str
    mode: ChangelogMode
    size: int

    def check(self, rows: pa.Table, schema: TableSchema) -> None:
        """As check_sizes."""
        check_sizes(rows, schema, self)


def message_limit(settings: LogSettings) -> MessageLimit:
    """What the client of this log refuses."""
    size = int(settings.client.get("message.max.bytes", _CLIENT_DEFAULT))
    return MessageLimit(settings.table, settings.topic, settings.mode, size)


def check_sizes(rows: pa.Table, schema: TableSchema, limit: MessageLimit) -> None:
    """`rows`: the table's columns. Raises FixData TS1739, and TS1715, TS1716 for values that JSON cannot hold."""
    if not rows.num_rows or _bound(rows) <= limit.size:
        return
    envelope = plan_envelope(schema, limit.mode)
    for start in range(0, rows.num_rows, _SLICE_ROWS):
        part = rows.slice(start, _SLICE_ROWS)
        kinds = pa.array(np.full(part.num_rows, RowKind.INSERT, np.int8))
        encoded = encode_rows(part.append_column(ROW_KIND_COLUMN, kinds), envelope)
        keys = encoded.keys or [b""] * len(encoded)
        for key, value in zip(keys, encoded.values, strict=True):
            if len(key) + len(value or b"") > limit.size:
                raise FixData(
                    "TS1739",
                    f"a row for {limit.table} is too large for its log; nothing is written",
                    why=f"key {key[:200].decode('utf-8', 'replace') or '(none)'}: its message has "
                    f"{len(key) + len(value or b'')} bytes, 'kafka.message.max.bytes' is {limit.size}",
                    fix="raise 'kafka.message.max.bytes' of the table and max.message.bytes of "
                    f"topic {limit.topic}, or make the row smaller",
                )


def _bound(rows: pa.Table) -> int:
    """No message of these rows is larger, key included."""
    total = _ENVELOPE
    for name in rows.column_names:
        column = rows[name]
        kind = column.type
        if pa.types.is_fixed_size_binary(kind) or pa.types.is_nested(kind):
            widest = column.nbytes + 8 * _FIXED
        elif any(is_text(kind) for is_text in _TEXTS):
            widest = pc.max(pc.binary_length(column)).as_py() or 0
        else:
            widest = _FIXED
        total += 2 * (len(name.encode()) + 8 + _ESCAPED * widest)  # a column of the key comes twice
    return int(total)
