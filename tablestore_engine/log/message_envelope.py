"""Changelog rows → Kafka messages: key bytes, value bytes, row kind, in the formats that Flink has.

CHANGE     the message of a changelog row (option log.ignore-delete)
Rows       mode      +I, +U            -U               -D
           upsert    a put             not sent         null (tombstone)
           all       a put             a retraction, with the row that was
           With log.ignore-delete neither -U nor -D is sent, in either mode.
Values     format          a put                                          a retraction
           debezium-json   {"before":null,"after":row,"op":"c"}           {"before":row,"after":null,"op":"d"}
           canal-json      {"data":[row],"type":"INSERT"}                 {"data":[row],"type":"DELETE"}
           maxwell-json    {"data":row,"type":"insert"}                   {"data":row,"type":"delete"}
           json            row                                            not in mode all (log/log_formats.py)
           avro            before null, after row, op "c"                 before row, after null, op "d"
Key        the object or record of the FULL primary key, in its order; null without a primary key.
FLINK      writes no updates either: what it encodes is a put or a retraction of one row.
DECISION   auto = upsert for a table with a key, all for one without. So a snapshot that inserts i, updates u and
           deletes d rows makes the topic grow by exactly i + u + d messages, one per changed key.
INVARIANT  the order of rows is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.avro_schema import SchemaIds
from tablestore_engine.log.avro_values import Part, column_parts, join_parts
from tablestore_engine.log.json_values import JsonColumn, json_column_of, object_texts
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat

_Ends = tuple[str, str]
# value format → what stands around the row: of a put, of a retraction
_AROUND: Mapping[ValueFormat, tuple[_Ends, _Ends]] = {
    ValueFormat.DEBEZIUM_JSON: (
        ('{"before":null,"after":', ',"op":"c"}'),
        ('{"before":', ',"after":null,"op":"d"}'),
    ),
    ValueFormat.CANAL_JSON: (('{"data":[', '],"type":"INSERT"}'), ('{"data":[', '],"type":"DELETE"}')),
    ValueFormat.MAXWELL_JSON: (('{"data":', ',"type":"insert"}'), ('{"data":', ',"type":"delete"}')),
    ValueFormat.JSON: (("", ""), ("", "")),  # the second one is never used
}
_PUT_AVRO = (b"\0\2", b"\2c")  # branches of before and after; op, a text of one letter
_RETRACT_AVRO = (b"\2", b"\0\2d")
Mask = npt.NDArray[np.bool_]


class ChangelogMode(StrEnum):
    AUTO = "auto"
    UPSERT = "upsert"
    ALL = "all"


@dataclass(frozen=True)
class Envelope:
    """Columns of one schema, those of its key among them, and UPSERT or ALL."""

    columns: tuple[DataField, ...]
    keys: tuple[DataField, ...]
    mode: ChangelogMode
    formats: LogFormats = LogFormats()  # noqa: RUF009 - frozen
    ids: SchemaIds = SchemaIds()  # noqa: RUF009 - frozen


@dataclass(frozen=True)
class EncodedRows:
    """Messages in row order; `keys` is None for a table without a key; a None value is a tombstone."""

    keys: list[bytes] | None
    values: list[bytes | None]
    kinds: list[int]

    def __len__(self) -> int:
        return len(self.values)


def resolve_mode(mode: ChangelogMode, *, is_keyed: bool) -> ChangelogMode:
    """UPSERT or ALL. Raises FixRequest TS1722 for upsert without a key."""
    if mode is ChangelogMode.UPSERT and not is_keyed:
        raise FixRequest(
            "TS1722",
            "'log.changelog-mode' = 'upsert' does not fit this table",
            why="an upsert needs a key, and the table has no primary key",
            fix="set a primary key, or leave the mode at 'auto'",
        )
    if mode is not ChangelogMode.AUTO:
        return mode
    return ChangelogMode.UPSERT if is_keyed else ChangelogMode.ALL


def plan_envelope(
    schema: TableSchema,
    mode: ChangelogMode,
    formats: LogFormats = LogFormats(),  # noqa: B008 - frozen
    ids: SchemaIds = SchemaIds(),  # noqa: B008 - frozen
) -> Envelope:
    """The envelope of a table; `ids`: of its Avro schemas, where its formats have any."""
    keys = tuple(schema.field(name) for name in schema.primary_keys)
    return Envelope(schema.fields, keys, resolve_mode(mode, is_keyed=schema.is_keyed), formats, ids)


def encode_rows(rows: pa.Table, envelope: Envelope) -> EncodedRows:
    """Messages of these rows; kinds that are not sent give none. Raises TS1715, TS1716, TS1765, FixRequest TS1773."""
    rows = _sent(rows, envelope)
    kinds = np.asarray(rows[ROW_KIND_COLUMN])
    is_put = (kinds == RowKind.INSERT) | (kinds == RowKind.UPDATE_AFTER)
    is_bare = envelope.formats.value is ValueFormat.JSON and envelope.mode is not ChangelogMode.UPSERT
    if is_bare and not is_put.all():
        raise _not_an_insert(int((~is_put).sum()))
    is_json = envelope.formats.value is not ValueFormat.AVRO
    texts = _texts(rows, envelope, of_values=is_json)
    values = _json_values(texts, is_put, envelope) if is_json else _avro_values(rows, is_put, envelope)
    return EncodedRows(_keys(rows, texts, envelope), values, kinds.tolist())


def _not_an_insert(count: int) -> FixRequest:
    """Writes of ours are refused before (TS1329); another engine's, or those of before the log, are not."""
    return FixRequest(
        "TS1773",
        f"{count} rows that were taken out of a table cannot be sent to its log",
        why="'log.format' = 'json' has the row alone, and a reader would take it for an insert",
        fix="state where the log resumes with `tablestore publish --reset N`; its readers read the table first",
    )


def _sent(rows: pa.Table, envelope: Envelope) -> pa.Table:
    kinds = np.asarray(rows[ROW_KIND_COLUMN])
    if envelope.formats.ignore_delete:
        kept = (kinds == RowKind.INSERT) | (kinds == RowKind.UPDATE_AFTER)
    elif envelope.mode is ChangelogMode.UPSERT:
        kept = kinds != RowKind.UPDATE_BEFORE
    else:
        return rows
    return rows if kept.all() else rows.filter(pa.array(kept))


def _texts(rows: pa.Table, envelope: Envelope, *, of_values: bool) -> Mapping[str, JsonColumn]:
    """JSON of the columns that are written as JSON, each once."""
    keys = envelope.keys if envelope.formats.key is KeyFormat.JSON else ()
    wanted = envelope.columns if of_values else keys
    return {field.name: json_column_of(rows[field.name]) for field in wanted}


def _json_values(texts: Mapping[str, JsonColumn], is_put: Mask, envelope: Envelope) -> list[bytes | None]:
    members = tuple((field.name, texts[field.name]) for field in envelope.columns)
    put, retraction = _AROUND[envelope.formats.value]
    values = object_texts(members, len(is_put), put)
    if not is_put.all():
        other = (
            None if envelope.mode is ChangelogMode.UPSERT else object_texts(members, len(is_put), retraction)
        )
        values = values.zip_with(pl.Series(is_put), other if other is not None else _no_texts(len(is_put)))
    return values.cast(pl.Binary).to_list()


def _no_texts(count: int) -> pl.Series:
    return pl.Series([None], dtype=pl.String).new_from_index(0, count)


def _avro_values(rows: pa.Table, is_put: Mask, envelope: Envelope) -> list[bytes | None]:
    """The row is the same in both branches; what stands before and behind it says which one it is."""
    head = _wire_head(envelope.ids.value)
    (put_begin, put_end), (begin, end) = _PUT_AVRO, _RETRACT_AVRO
    parts = [part for field in envelope.columns for part in column_parts(rows[field.name], field.type)]
    is_tombstone = None if envelope.mode is not ChangelogMode.UPSERT else ~is_put
    if is_tombstone is None and not is_put.all():
        before, after = _either(is_put, head + put_begin, head + begin), _either(is_put, put_end, end)
    else:
        before, after = head + put_begin, put_end
    values = join_parts([before, *parts, after], len(is_put))
    if is_tombstone is not None and is_tombstone.any():
        values = pc.if_else(pa.array(is_tombstone), None, values)
    return _as_list(values)


def _keys(rows: pa.Table, texts: Mapping[str, JsonColumn], envelope: Envelope) -> list[bytes] | None:
    if not envelope.keys:
        return None
    if envelope.formats.key is KeyFormat.JSON:
        members = tuple((field.name, texts[field.name]) for field in envelope.keys)
        return object_texts(members, rows.num_rows).cast(pl.Binary).to_list()
    parts = [part for field in envelope.keys for part in column_parts(rows[field.name], field.type)]
    return _as_list(join_parts([_wire_head(envelope.ids.key), *parts], rows.num_rows))


def _wire_head(number: int) -> bytes:
    """Confluent's wire format: a byte 0, then the number of the schema."""
    return b"\0" + number.to_bytes(4, "big")


def _either(condition: Mask, this: bytes, that: bytes) -> Part:
    binary = pa.large_binary()
    return pc.if_else(pa.array(condition), pa.scalar(this, binary), pa.scalar(that, binary))


def _as_list(values: pa.LargeBinaryArray) -> list[Any]:
    series = pl.from_arrow(values)
    assert isinstance(series, pl.Series)
    return series.to_list()
