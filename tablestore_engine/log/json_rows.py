"""Many JSON messages → Arrow rows at once, by Arrow's own parser: about 15 times as fast as one by one.

Rule       None for whatever is not plainly what our envelope writes (log/message_envelope.py): other formats, nested
           columns, a value that the parser refuses, a row that is missing, a word of the kind that nobody knows.
           log/decode.py then reads it, or says what is wrong. So this file is about speed alone.
DANGER     Arrow's parser ends the process at a document that is `null`: it sees none that does not begin with a brace.
INVARIANT  where it answers, it answers as log/decode.py does (tests/laws/test_json_rows_laws.py).
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.log.json_decode import json_column
from tablestore_engine.log.log_formats import KIND_OF_OP, KeyFormat, LogFormats, ValueFormat

_BLOCK_BYTES = 4 << 20
_AS_THEY_ARE = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "CHAR", "VARCHAR", "STRING"}
)
_NESTED = frozenset({"ARRAY", "MAP", "MULTISET", "ROW", "VARIANT"})
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
    """The type that the parser is told; what it does not know is read as text."""
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
