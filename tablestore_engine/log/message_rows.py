"""Messages of any age → rows of today's columns: what log/decode.py does for messages of one schema.

Which      a message does not say its schema. Its columns do, by their names: they are always all there, in JSON and in
           Avro. Of schemas with the same names the newest that the values fit.
INVARIANT  columns are found by field id (format.md#evolution): a renamed one keeps its values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.evolution import evolve
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.avro_decode import FindSchema
from tablestore_engine.log.decode import LogMessage, decode_rows
from tablestore_engine.log.followed_log import UNSAID, Messages
from tablestore_engine.log.json_rows import read_json_rows
from tablestore_engine.log.log_formats import LogFormats, ValueFormat

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
