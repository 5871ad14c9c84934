"""Messages of a log → changelog rows: the other direction of the envelope, for our readers and tests.

CHANGE     messages back to rows
Kinds      header `k` when it is there; else by the value: null -D, op c, r and u (type insert, update) +I (u is +U),
           op d (delete) -D; of json, which says nothing, and of every log with ignore_delete +I
INVARIANT  a tombstone gives a row with the key columns set and all others null.
INVARIANT  decode(encode(rows)) = rows: no value loses digits (decimals never pass through a float).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.json_file import DAMAGE
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.avro_decode import AvroReader, AvroRecord, FindSchema, avro_column
from tablestore_engine.log.json_decode import json_column, parse_object
from tablestore_engine.log.log_formats import KIND_OF_OP, KeyFormat, LogFormats, ValueFormat

_TYPES = {"insert": RowKind.INSERT, "update": RowKind.UPDATE_AFTER, "delete": RowKind.DELETE}
_KIND_OF_TYPE = {
    ValueFormat.CANAL_JSON: {word.upper(): kind for word, kind in _TYPES.items()},
    ValueFormat.MAXWELL_JSON: _TYPES,
}
_EXPECTED = {
    ValueFormat.DEBEZIUM_JSON: "debezium-json with before, after and op",
    ValueFormat.CANAL_JSON: "canal-json with one row in data, and type",
    ValueFormat.MAXWELL_JSON: "maxwell-json with data and type",
    ValueFormat.JSON: "a JSON object",
    ValueFormat.AVRO: "a record with before, after and op",
}


@dataclass(frozen=True)
class LogMessage:
    """One message; what a header would say is None where the message does not have it (foreign producers).

    `early`: header `a` of a row that was sent before its snapshot existed; it has no `snapshot_id`.
    """

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    snapshot_id: int | None = None
    commit: str | None = None
    kind: RowKind | None = None
    sequence: int | None = None
    timestamp_ms: int = 0
    early: str | None = None


@dataclass(frozen=True)
class _Row:
    """Raw values of one message, and how they were written: `record` None for JSON."""

    kind: RowKind
    values: Mapping[str, Any]
    record: AvroRecord | None


def decode_rows(
    messages: Sequence[LogMessage],
    schema: TableSchema,
    formats: LogFormats = LogFormats(),  # noqa: B008 - frozen
    find_schema: FindSchema | None = None,
) -> pa.Table:
    """All columns of the table and `_ROW_KIND`, one row per message, in order. Raises FixData TS1718.

    `find_schema`: where Avro's schemas are asked for.
    """
    decoder = _Decoder(formats, AvroReader(find_schema or _no_registry))
    rows = [decoder.decode(message) for message in messages]
    kinds = pa.array([int(row.kind) for row in rows], pa.int8())
    return _columns(rows, schema).append_column(ROW_KIND_COLUMN, kinds)


@dataclass(frozen=True)
class _Decoder:
    formats: LogFormats
    avro: AvroReader

    def decode(self, message: LogMessage) -> _Row:
        """Raises FixData TS1718."""
        try:
            row = self._tombstone(message) if message.value is None else self._value(message.value)
            return _Row(self._kind(message, row.kind), row.values, row.record)
        except (
            ValueError, KeyError, TypeError, ArithmeticError, fastavro.schema.SchemaParseException,
        ) as error:  # fmt: skip
            raise FixData(
                "TS1718",
                f"the message at offset {message.offset} of partition {message.partition} cannot be read",
                why=f"expected {_EXPECTED[self.formats.value]}: {error!r}",
                fix="give the table a topic that nothing else writes to",
            ) from error

    def _kind(self, message: LogMessage, read: RowKind) -> RowKind:
        kind = read if message.kind is None else message.kind
        if not self.formats.ignore_delete:
            return kind
        if kind.is_retract:
            raise ValueError(f"{kind.short_string} in a log with log.ignore-delete")
        return RowKind.INSERT

    def _tombstone(self, message: LogMessage) -> _Row:
        if self.formats.key is KeyFormat.AVRO:
            return _Row(RowKind.DELETE, *self.avro.read(message.key))
        return _Row(RowKind.DELETE, parse_object(message.key), None)

    def _value(self, value: bytes) -> _Row:
        match self.formats.value:
            case ValueFormat.AVRO:
                envelope, record = self.avro.read(value)
                kind, side, row = _of_debezium(envelope)
                return _Row(kind, row, self.avro.member(record, side))
            case ValueFormat.DEBEZIUM_JSON:
                kind, _, row = _of_debezium(parse_object(value))
            case ValueFormat.JSON:
                kind, row = RowKind.INSERT, parse_object(value)
            case _:
                kind, row = _of_type(parse_object(value), self.formats.value)
        return _Row(kind, row, None)


def _of_debezium(envelope: Mapping[str, Any]) -> tuple[RowKind, str, Mapping[str, Any]]:
    """Kind, the side that holds the row, the row."""
    op = envelope["op"]
    kind, side = KIND_OF_OP[op], "before" if op == "d" else "after"
    return kind, side, _checked(envelope[side], f"op {op!r}")


def _of_type(envelope: Mapping[str, Any], value_format: ValueFormat) -> tuple[RowKind, Mapping[str, Any]]:
    """canal-json and maxwell-json."""
    word, data = envelope["type"], envelope["data"]
    kind = _KIND_OF_TYPE[value_format][word]
    if value_format is ValueFormat.CANAL_JSON:
        if not isinstance(data, list) or len(data) != 1:
            raise TypeError("data is no array of one row")
        data = data[0]
    return kind, _checked(data, f"type {word!r}")


def _checked(row: object, what: str) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise TypeError(f"{what} without a row")
    return row


def _no_registry(number: int) -> str:
    raise ValueError(f"schema {number} cannot be asked for: no schema registry is named")


def _columns(rows: Sequence[_Row], schema: TableSchema) -> pa.Table:
    """Rows of one origin at once, then in the order of the messages."""
    origins: dict[tuple[int, str] | None, list[int]] = {}
    for number, row in enumerate(rows):
        origin = None if row.record is None else (row.record.number, row.record.name)
        origins.setdefault(origin, []).append(number)
    parts = [
        _columns_of([rows[n] for n in places], schema.fields) for places in (origins or {None: []}).values()
    ]
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([np.asarray(places) for places in origins.values()]))
    return pa.concat_tables(parts).take(pa.array(order))


def _columns_of(rows: Sequence[_Row], fields: Sequence[DataField]) -> pa.Table:
    record = rows[0].record if rows else None
    columns: dict[str, pa.Array] = {}
    for column in fields:
        raw = [row.values.get(column.name) for row in rows]
        try:
            if record is None:
                columns[column.name] = json_column(raw, column.type)
            else:
                written = record.fields.get(column.name)
                columns[column.name] = avro_column(raw, written, record.types, column.type)
        except (pa.ArrowException, *DAMAGE) as error:
            raise FixData(
                "TS1718",
                f"messages of column {column.name!r} cannot be read",
                why=f"expected {column.type.root}, got {error}",
                fix="read the topic with the schema it was written with",
            ) from error
    return pa.table(columns)


def decode_keys(keys: Sequence[bytes], schema: TableSchema) -> pa.Table:
    """One row per key that this schema can have, in order; a key of other columns is left out: no row has it.

    REQUIRES JSON keys.
    """
    fitting = [LogMessage(0, 0, key, None) for key in keys if _names_of(key) == set(schema.primary_keys)]
    try:
        rows = decode_rows(fitting, schema)
    except FixData:
        rows = pa.concat_tables(_decode_each(fitting, schema))
    return rows.select(list(schema.primary_keys))


def _names_of(key: bytes) -> set[str] | None:
    """Columns of a key that has a value for each of them."""
    try:
        found = parse_object(key)
    except (ValueError, TypeError):
        return None
    return None if None in found.values() else set(found)


def _decode_each(messages: Sequence[LogMessage], schema: TableSchema) -> list[pa.Table]:
    found = [decode_rows((), schema)]
    for message in messages:
        with suppress(FixData):
            found.append(decode_rows([message], schema))
    return found
