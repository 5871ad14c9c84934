"""Messages of any age → rows of today's columns: what log/decode.py does for messages of one schema.

Which      a message does not say its schema. Its columns do, by their names: they are always all there, in JSON and in
           Avro. Of schemas with the same names the newest that the values fit.
INVARIANT  columns are found by field id (format.md#evolution): a renamed one keeps its values.
Rule       None for whatever is not plainly what our envelope writes (log/message_envelope.py): other formats, nested
           columns, a value that the parser refuses, a row that is missing, a word of the kind that nobody knows.
           log/decode.py then reads it, or says what is wrong. So this file is about speed alone.
DANGER     Arrow's parser ends the process at a document that is `null`: it sees none that does not begin with a brace.
INVARIANT  where it answers, it answers as log/decode.py does (tests/laws/test_json_rows_laws.py).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataField
from tablestore_engine.format.evolution import evolve
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.log.avro_decode import FindSchema
from tablestore_engine.log.decode import LogMessage, decode_rows
from tablestore_engine.log.followed_log import UNSAID, Messages
from tablestore_engine.log.json_decode import json_column
from tablestore_engine.log.log_formats import KIND_OF_OP, KeyFormat, LogFormats, ValueFormat

_BLOCK_BYTES = 4 << 20
_AS_THEY_ARE = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "CHAR", "VARCHAR", "STRING"}
)
_NESTED = frozenset({"ARRAY", "MAP", "MULTISET", "ROW"})
_WORDS = pa.array(list(KIND_OF_OP))
_KIND_OF_WORD = np.array([int(kind) for kind in KIND_OF_OP.values()], np.int8)


def read_json_rows(
    keys: Sequence[bytes | None], values: Sequence[bytes | None], schema: TableSchema, formats: LogFormats
) -> pa.Table | None:
    """One row per message, in order."""
    read_puts = _READERS.get(formats.value)
    if read_puts is None or formats.key is not KeyFormat.JSON or formats.ignore_delete:
        return None
    if any(field.type.root in _NESTED for field in schema.fields) or not values:
        return None
    puts = [number for number, value in enumerate(values) if value is not None]
    try:
        if len(puts) == len(values):
            return read_puts([value for value in values if value is not None], schema)
        gone = [number for number, value in enumerate(values) if value is None]
        parts = [_tombstones([keys[number] for number in gone], schema)]
        if puts:
            parts.append(read_puts([value for value in values if value is not None], schema))
        order = np.argsort(np.asarray([*gone, *puts], np.int64))
        return pa.concat_tables(parts).take(pa.array(order))
    except (pa.ArrowException, ValueError, TypeError, _NotPlainError):
        return None


class _NotPlainError(Exception):
    """Not what our envelope writes."""


def _envelopes(values: Sequence[bytes], schema: TableSchema) -> pa.Table:
    row = pa.struct([_field(field) for field in schema.fields])
    found = _parse(values, pa.schema([("before", row), ("after", row), ("op", pa.string())]))
    places = pc.index_in(found["op"].combine_chunks(), value_set=_WORDS)
    if places.null_count:
        raise _NotPlainError
    kinds = _KIND_OF_WORD[places.to_numpy()]
    sides = {name: found[name].combine_chunks() for name in ("before", "after")}
    is_gone = kinds == RowKind.DELETE
    rows = sides["after"]
    if is_gone.any():
        rows = pc.if_else(pa.array(is_gone), sides["before"], rows)
    if rows.null_count:
        raise _NotPlainError
    columns = dict(zip((field.name for field in schema.fields), rows.flatten(), strict=True))
    return _typed(columns, schema.fields).append_column(ROW_KIND_COLUMN, pa.array(kinds))


def _bare_rows(values: Sequence[bytes], schema: TableSchema) -> pa.Table:
    found = _parse(values, pa.schema([_field(field) for field in schema.fields]))
    columns = {field.name: found[field.name].combine_chunks() for field in schema.fields}
    kinds = pa.array(np.full(len(values), int(RowKind.INSERT), np.int8))
    return _typed(columns, schema.fields).append_column(ROW_KIND_COLUMN, kinds)


_READERS = {ValueFormat.DEBEZIUM_JSON: _envelopes, ValueFormat.JSON: _bare_rows}


def _tombstones(keys: Sequence[bytes | None], schema: TableSchema) -> pa.Table:
    """The key's columns, and nothing in the others."""
    given = [key for key in keys if key is not None]
    if len(given) < len(keys):
        raise _NotPlainError
    names = set(schema.primary_keys)
    found = _parse(given, pa.schema([_field(field) for field in schema.fields if field.name in names]))
    columns = {name: found[name].combine_chunks() for name in found.column_names if name in names}
    nothing = {
        one.name: pa.nulls(len(given), _as_read(one)) for one in schema.fields if one.name not in names
    }
    kinds = pa.array(np.full(len(given), int(RowKind.DELETE), np.int8))
    return _typed({**columns, **nothing}, schema.fields).append_column(ROW_KIND_COLUMN, kinds)


def _parse(texts: Sequence[bytes], target: pa.Schema) -> pa.Table:
    """One JSON object per text."""
    joined = b"\n".join(texts)
    if joined.count(b"\n") != len(texts) - 1:
        raise _NotPlainError  # a line break within an object, or none around it
    if not joined.startswith(b"{") or joined.count(b"\n{") != len(texts) - 1:
        raise _NotPlainError
    block = max(_BLOCK_BYTES, 2 * max(map(len, texts)))
    found = pj.read_json(
        io.BytesIO(joined),
        read_options=pj.ReadOptions(use_threads=True, block_size=block),
        parse_options=pj.ParseOptions(explicit_schema=target, unexpected_field_behavior="ignore"),
    )
    if found.num_rows != len(texts):
        raise _NotPlainError
    return found


def _as_read(field: DataField) -> pa.DataType:
    """The type that the JSON parser gets for a column: text for types that JSON does not have."""
    if field.type.root in _AS_THEY_ARE:
        return type_to_arrow(field.type)
    return pa.float64() if field.type.root in ("FLOAT", "DOUBLE") else pa.string()


def _field(field: DataField) -> pa.Field:
    return pa.field(field.name, _as_read(field))


def _typed(columns: dict[str, pa.Array], fields: Sequence[DataField]) -> pa.Table:
    return pa.table({field.name: _column(columns[field.name], field) for field in fields})


def _column(read: pa.Array, field: DataField) -> pa.Array:
    target = type_to_arrow(field.type)
    if read.type == target:
        return read
    if field.type.root == "FLOAT":
        return pc.cast(read, target, safe=False)
    if field.type.root == "DATE" or field.type.root in TIMESTAMP_ROOTS:
        try:
            return read.cast(target)
        except pa.ArrowInvalid:  # years beyond 9999, as json_column knows them
            pass
    return json_column(read.to_pylist(), field.type)


_MEMBERS = {
    ValueFormat.DEBEZIUM_JSON: ("after", "before"),
    ValueFormat.CANAL_JSON: ("data",),
    ValueFormat.MAXWELL_JSON: ("data",),
}
Names = frozenset[str]


def decode_messages(
    messages: Messages,
    schemas: Sequence[TableSchema],
    formats: LogFormats,
    find_schema: FindSchema | None = None,
) -> pa.Table:
    """The columns of schemas[0] and `_ROW_KIND`, in the order of the messages; `schemas`: newest first.

    Raises FixData TS1718.
    """
    newest = schemas[0]
    by_names: dict[Names, list[TableSchema]] = {}
    for schema in schemas:
        by_names.setdefault(_columns(schema), []).append(schema)
    groups: Mapping[Names, Sequence[int]] = {_columns(newest): range(len(messages))}
    if len(by_names) > 1 and formats.value is not ValueFormat.AVRO:
        groups = _by_names(messages.values, formats, set(by_names), _columns(newest))
    parts: list[pa.Table] = []
    order: list[int] = []
    for names, places in groups.items():
        part = messages if len(groups) == 1 else messages.take(np.asarray(places, np.int64))
        parts.append(_decode(part, by_names[names], newest, formats, find_schema))
        order += places
    rows = pa.concat_tables(
        [pa.table(dict(zip(part.column_names, part.columns, strict=True))) for part in parts]
    )
    return rows if len(parts) == 1 else rows.take(pa.array(np.argsort(np.asarray(order, np.int64))))


def _columns(schema: TableSchema) -> Names:
    return frozenset(field.name for field in schema.fields)


def _to_list(messages: Messages) -> list[LogMessage]:
    columns = (messages.partitions.tolist(), messages.offsets.tolist(), messages.keys, messages.values)
    kinds = [None if kind == UNSAID else RowKind(kind) for kind in messages.kinds.tolist()]
    return [
        LogMessage(partition, offset, key, value, kind=kind)
        for partition, offset, key, value, kind in zip(*columns, kinds, strict=True)
    ]


def _by_names(
    values: Sequence[bytes | None], formats: LogFormats, known: set[Names], newest: Names
) -> Mapping[Names, Sequence[int]]:
    """Numbers of messages by the columns they have; what fits no schema is left to the newest, which says why."""
    found: dict[Names, list[int]] = {newest: []}
    for number, value in enumerate(values):
        names = newest if value is None else _names_of(value, formats.value)
        found.setdefault(names if names in known else newest, []).append(number)
    return found


def _names_of(value: bytes, value_format: ValueFormat) -> Names:
    try:
        envelope = json.loads(value)
        for member in _MEMBERS.get(value_format, ()):
            row = envelope.get(member)
            row = row[0] if isinstance(row, list) and row else row
            if row is not None:
                return frozenset(row)
        return frozenset(envelope)
    except (ValueError, TypeError, AttributeError):
        return frozenset()


def _decode(
    messages: Messages,
    schemas: Sequence[TableSchema],
    newest: TableSchema,
    formats: LogFormats,
    find_schema: FindSchema | None,
) -> pa.Table:
    """By the first schema that the values fit."""
    trouble: FixData | None = None
    for schema in schemas:
        try:
            rows = _rows(messages, schema, formats, find_schema)
        except FixData as error:
            trouble = trouble or error
        else:
            if schema is newest:
                return rows
            evolved = evolve(rows, schema, newest, keep=[ROW_KIND_COLUMN])
            return evolved.select([*(field.name for field in newest.fields), ROW_KIND_COLUMN])
    assert trouble is not None
    raise trouble


def _rows(
    messages: Messages, schema: TableSchema, formats: LogFormats, find_schema: FindSchema | None
) -> pa.Table:
    """All at once where that is possible, with the kinds that messages say."""
    rows = read_json_rows(messages.keys, messages.values, schema, formats)
    if rows is None:
        return decode_rows(_to_list(messages), schema, formats, find_schema)
    kinds = np.where(messages.kinds == UNSAID, rows.column(ROW_KIND_COLUMN).to_numpy(), messages.kinds)
    return rows.set_column(rows.num_columns - 1, ROW_KIND_COLUMN, pa.array(kinds))
