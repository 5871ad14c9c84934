"""The table that an ingest writes to: its state, its position, and one commit of rows and position.

CHANGE     the commit of ingested rows, offsets and dead letters
Order      dead letters are committed before the rows and the position behind them. Their table has a key, the place of
           the message: who dies between the two reads the messages again and writes the same dead letters again, which
           changes nothing
INVARIANT  rows and position are one claim (store/metadata/source_positions.py): of two who ingest from one position one
           is refused, and nothing comes twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.format.data_type import BIGINT, BYTES, STRING, DataField, DataType
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import field_to_arrow
from tablestore_engine.ingest.batch_checks import no_target
from tablestore_engine.ingest.decoded_messages import UnreadableMessage
from tablestore_engine.ingest.ingest_spec import IngestSpec
from tablestore_engine.log.message_source import MessageSource, RawMessages
from tablestore_engine.store.metadata.source_positions import PositionStep
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.arrow_rows import ArrowRows
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport

_SEQUENCE = "sequence.field"
_LETTER_KEY = ("source", "part", "place")
_LETTER: Mapping[str, DataType] = {
    "source": STRING,
    "part": STRING,
    "place": BIGINT,
    "reason": STRING,
    "key": BYTES,
    "value": BYTES,
}


@dataclass(frozen=True)
class SinkState:
    """`schema` None: the table is still to be made. `position` None: nothing of the source is in it."""

    schema: TableSchema | None
    position: str | None

    @property
    def fields(self) -> Sequence[DataField]:
        return () if self.schema is None else self.schema.fields

    @property
    def key(self) -> tuple[str, ...]:
        return () if self.schema is None else tuple(self.schema.primary_keys)

    @property
    def required(self) -> frozenset[str]:
        """Columns that may not be NULL, in lower case."""
        return frozenset(one.name.lower() for one in self.fields if not one.type.nullable)


@dataclass(frozen=True)
class SinkBatch:
    """`rows` in the columns `fields`, one per key; `empties`: the table has only these afterwards."""

    fields: Sequence[DataField]
    key: tuple[str, ...]
    rows: pa.Table
    is_put: np.ndarray[tuple[int], np.dtype[np.bool_]]
    step: PositionStep
    empties: bool = False


@dataclass(frozen=True)
class TableSink:
    warehouse: Warehouse
    spec: IngestSpec

    @property
    def identifier(self) -> Identifier:
        return Identifier.parse(self.spec.into)

    def look(self, source_id: str) -> SinkState:
        """Raises FixRequest TS1420 for a table that changes cannot go into, TS1470."""
        schema = self.warehouse.catalog.find_schema(self.identifier)
        if schema is None:
            return SinkState(None, None)
        _check_takes_changes(schema, self.spec)
        return SinkState(schema, self.warehouse.stores.get(self.identifier).positions().get(source_id))

    def commit(self, source_id: str, state: SinkState, batch: SinkBatch) -> WriteReport:
        """Rows and position, at once. Raises RetryError TS1471 when another run was quicker, PublishPending TS1070."""
        changes_columns = [one.type for one in batch.fields] != [one.type for one in state.fields]
        mode = WriteMode.OVERWRITE_TABLE if batch.empties else WriteMode.UPSERT
        new = state.schema is None
        # no column is ever left out of the rows, so that following all columns drops none
        follows = OnSchemaChange.SYNC_ALL_COLUMNS if changes_columns else OnSchemaChange.SAME_COLUMNS
        spec = WriteSpec(
            table=TableSpec(
                primary_key=batch.key if new else (),
                partition_by=self.spec.partition_by if new else (),
                options=self.spec.options if new else {},
            ),
            mode=mode,
            on_schema_change=OnSchemaChange.SAME_COLUMNS if new else follows,
            duplicates="last",
            positions={source_id: batch.step},
        )
        kinds = np.where(batch.is_put, int(RowKind.INSERT), int(RowKind.DELETE)).astype(np.int8)
        return self.warehouse.write_incoming(
            self.identifier, _incoming(batch.fields, batch.rows, kinds), spec
        )

    def commit_dead_letters(
        self, source: MessageSource, raw: RawMessages, dead: Sequence[UnreadableMessage]
    ) -> None:
        """Each once, by its place in that very source; those that are there already are left out."""
        fields = [DataField(0, name, kind) for name, kind in _LETTER.items()]
        rows = pa.table(
            {
                "source": [f"{source.source_id}@{source.incarnation}"] * len(dead),
                "part": [raw.partition_name(one.number) for one in dead],
                "place": pa.array([int(raw.offsets[one.number]) for one in dead], pa.int64()),
                "reason": [one.reason for one in dead],
                "key": pa.array([raw.keys[one.number] for one in dead], pa.binary()),
                "value": pa.array([raw.values[one.number] for one in dead], pa.binary()),
            }
        )
        identifier = Identifier.parse(self.spec.dead_letters)
        rows = self._not_there(identifier, rows)
        if not rows.num_rows:
            return
        spec = WriteSpec(table=TableSpec(primary_key=_LETTER_KEY), duplicates="last")
        kinds = np.full(rows.num_rows, int(RowKind.INSERT), np.int8)
        self.warehouse.write_incoming(identifier, _incoming(fields, rows, kinds), spec)

    def _not_there(self, identifier: Identifier, letters: pa.Table) -> pa.Table:
        store = self.warehouse.stores.find(identifier)
        newest = None if store is None else store.snapshots.find_latest()
        if store is None or newest is None or tuple(store.schema.primary_keys) != _LETTER_KEY:
            return letters
        have = store.find_rows(newest, letters.select(_LETTER_KEY)).select(_LETTER_KEY).to_pylist()
        known = {tuple(one.values()) for one in have}
        new = [tuple(one.values()) not in known for one in letters.select(_LETTER_KEY).to_pylist()]
        return letters.filter(pa.array(new, pa.bool_()))


def _incoming(
    fields: Sequence[DataField], rows: pa.Table, kinds: np.ndarray[tuple[int], np.dtype[np.int8]]
) -> ArrowRows:
    """Types as they are said: Arrow has no lengths of texts."""
    typed = pa.table(
        [rows.column(one.name).cast(field_to_arrow(one).type) for one in fields],
        names=[one.name for one in fields],
    )
    table = typed.append_column(ROW_KIND_COLUMN, pa.array(kinds))
    return ArrowRows(tuple(fields), table)


def _check_takes_changes(schema: TableSchema, spec: IngestSpec) -> None:
    """Raises FixRequest TS1420."""
    if not schema.is_keyed:
        why = "it has no primary key: nothing says which row an update or a delete means"
    elif schema.options.get(_SEQUENCE):
        why = f"its {_SEQUENCE} is {schema.options[_SEQUENCE]}: the order of changes is that of the source alone"
    elif spec.key and [one.lower() for one in spec.key] != [one.lower() for one in schema.primary_keys]:
        why = f"its primary key is {', '.join(schema.primary_keys)}, and {', '.join(spec.key)} was asked for"
    else:
        return
    raise no_target(spec.into, why)
