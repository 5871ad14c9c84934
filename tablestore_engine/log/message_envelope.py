"""Changelog rows → Kafka messages: key bytes, value bytes, row kind; Flink's debezium-json.

Names      ChangelogMode     auto, upsert, all; `resolve_mode` decides what auto means
           Envelope          how the rows of one table schema become messages
           EncodedRows       messages of one batch, still without topic, partition and headers
           encode_rows()     the only way in, by whole columns
Messages   mode      +I, +U                                    -U                               -D
           upsert    {"before":null,"after":row,"op":"c"}      not sent                         null (tombstone)
           all       the same                                  {"before":row,"after":null,"op":"d"} for both
           The key is the JSON object of the FULL primary key, in its order; null without a primary key.
DECISION   auto = upsert for a table with a key, all for one without. So a snapshot that inserts i, updates u and
           deletes d rows makes the topic grow by exactly i + u + d messages, one per changed key.
INVARIANT  the order of rows is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.json_values import json_texts, object_texts

_AFTER = ('{"before":null,"after":', ',"op":"c"}')
_BEFORE = ('{"before":', ',"after":null,"op":"d"}')


class ChangelogMode(StrEnum):
    """Option log.changelog-mode."""

    AUTO = "auto"
    UPSERT = "upsert"
    ALL = "all"


@dataclass(frozen=True)
class Envelope:
    """Column and key names of one schema, and UPSERT or ALL."""

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    mode: ChangelogMode


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


def plan_envelope(schema: TableSchema, mode: ChangelogMode) -> Envelope:
    """The envelope of a table."""
    return Envelope(schema.field_names, schema.primary_keys, resolve_mode(mode, is_keyed=schema.is_keyed))


def encode_rows(rows: pa.Table, envelope: Envelope) -> EncodedRows:
    """Messages of these rows; -U rows give none in mode upsert. Raises TS1715, TS1716."""
    if envelope.mode is ChangelogMode.UPSERT:
        kept = np.asarray(rows[ROW_KIND_COLUMN]) != RowKind.UPDATE_BEFORE
        rows = rows if kept.all() else rows.filter(pa.array(kept))
    texts = {name: json_texts(rows[name]) for name in envelope.columns}
    row = object_texts(tuple(texts.items()), rows.num_rows)
    kinds = pl.Series("kind", np.asarray(rows[ROW_KIND_COLUMN]), dtype=pl.Int8)
    is_add = (kinds == RowKind.INSERT) | (kinds == RowKind.UPDATE_AFTER)
    frame = pl.DataFrame({"row": row, "add": is_add})
    after = pl.concat_str([pl.lit(_AFTER[0]), "row", pl.lit(_AFTER[1])])
    if is_add.all():
        value: pl.Expr = after
    elif envelope.mode is ChangelogMode.UPSERT:
        value = pl.when("add").then(after)
    else:
        value = (
            pl.when("add")
            .then(after)
            .otherwise(pl.concat_str([pl.lit(_BEFORE[0]), "row", pl.lit(_BEFORE[1])]))
        )
    values = frame.select(value).to_series()
    keys = object_texts(tuple((name, texts[name]) for name in envelope.keys), rows.num_rows)
    return EncodedRows(
        keys.cast(pl.Binary).to_list() if envelope.keys else None,
        values.cast(pl.Binary).to_list(),
        kinds.to_list(),
    )
