"""`$audit_log` and `$binlog`: rows of a table, or its changes, with the kind of each.

CHANGE     the columns of $audit_log and $binlog
Rows       of a state: each row of it is +I, as a batch reader of Paimon sees it. Of a range of changes: every change
$binlog    each column is an array: the value, or those before and after an update in one row of kind +U
INVARIANT  -U and +U become one row only where they follow each other in one snapshot; else each stays a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.catalog.system_tables.known_tables import AUDIT_LOG, BINLOG
from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import STRING, DataField, DataType
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.sql.scanner import quote_name, quote_string
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID

KIND = "rowkind"
_SEQUENCE_OPTION = "table-read.sequence-number.enabled"


def row_table_schema(name: str, schema: TableSchema) -> TableSchema:
    """The columns of `$audit_log` or `$binlog` of a table. Raises FixRequest TS1349, Unsupported TS1348."""
    if KIND in (column.lower() for column in schema.field_names):
        raise FixRequest(
            "TS1349",
            f"${name} cannot be read of a table with a column {KIND!r}",
            why=f"{KIND} is the column that ${name} adds",
            fix="rename the column, or read the changes with Table.changes",
        )
    if schema.options.get(_SEQUENCE_OPTION, "false").strip().lower() == "true":
        raise Unsupported(
            "TS1348",
            f"${name} cannot be read while {_SEQUENCE_OPTION} is true",
            why="the column _SEQUENCE_NUMBER that the option asks for is not supported",
            fix=f"set {_SEQUENCE_OPTION} to false",
        )
    kind = DataField(schema.highest_field_id + 1, KIND, STRING.with_nullable(False))
    fields = schema.fields
    if name == BINLOG:
        fields = tuple(
            DataField(one.id, one.name, DataType("ARRAY", element=one.type.with_nullable(True)))
            for one in fields
        )
    return TableSchema(schema.id, (kind, *fields), schema.highest_field_id + 1)


def state_rows(name: str, schema: TableSchema, rows: pa.Table) -> pa.Table:
    """Rows of a state in the form of the system table; `schema`: of row_table_schema."""
    kinds = pa.array(np.full(rows.num_rows, RowKind.INSERT.short_string), pa.string())
    return _shaped(name, schema, kinds, rows)


def changed_rows(name: str, schema: TableSchema, changes: pa.Table) -> pa.Table:
    """Rows of Table.changes in the form of the system table."""
    kinds = changes.column(ROW_KIND).combine_chunks()
    return _shaped(name, schema, kinds, changes.drop_columns([ROW_KIND]))


def _shaped(name: str, schema: TableSchema, kinds: pa.Array, rows: pa.Table) -> pa.Table:
    target = schema.arrow_schema()
    if name == AUDIT_LOG:
        columns: Sequence[pa.Array | pa.ChunkedArray] = [rows.column(one) for one in target.names[1:]]
    else:
        starts = _starts(kinds, rows)
        ends = np.append(starts[1:], rows.num_rows)
        kinds = kinds.take(pa.array(ends - 1))
        offsets = pa.array(np.append(starts, rows.num_rows), pa.int32())
        columns = [
            pa.ListArray.from_arrays(
                offsets, pa.concat_arrays(rows.column(one).chunks or [_empty(rows, one)])
            )
            for one in target.names[1:]
        ]
    shaped = pa.table([kinds, *columns], names=target.names)
    return shaped.cast(target)


def _empty(rows: pa.Table, name: str) -> pa.Array:
    return pa.array([], rows.schema.field(name).type)


def _starts(kinds: pa.Array, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where a row of the binlog begins: everywhere but at the +U of a pair."""
    if rows.num_rows == 0:
        return np.zeros(0, np.int64)
    before = np.asarray(pc.equal(kinds, RowKind.UPDATE_BEFORE.short_string))
    after = np.asarray(pc.equal(kinds, RowKind.UPDATE_AFTER.short_string))
    second = np.zeros(rows.num_rows, np.bool_)
    second[1:] = before[:-1] & after[1:]
    if SNAPSHOT_ID in rows.column_names:
        snapshots = np.asarray(rows.column(SNAPSHOT_ID))
        second[1:] &= snapshots[:-1] == snapshots[1:]
    return np.flatnonzero(~second)


def row_table_sql(name: str, schema: TableSchema, source: str, *, is_changes: bool) -> str:
    """The query of `$audit_log` or `$binlog`; `source`: the table, or its changes, as SQL writes its name.

    Raises Unsupported TS2171 for the binlog of changes, and what row_table_schema raises.
    """
    if name == BINLOG and is_changes:
        raise Unsupported(
            "TS2171",
            "the binlog of a range of changes cannot be read in SQL",
            why="a row of it joins two changes that follow each other, and rows have no order in SQL",
            fix="read $audit_log there, or Table.system_table('binlog', since=…) in Python",
        )
    names = row_table_schema(name, schema).field_names[1:]
    kind = quote_name(ROW_KIND) if is_changes else quote_string(RowKind.INSERT.short_string)
    columns = [quote_name(one) if name == AUDIT_LOG else f"array({quote_name(one)})" for one in names]
    listed = ", ".join(f"{text} as {quote_name(one)}" for text, one in zip(columns, names, strict=True))
    return f"select {kind} as {KIND}, {listed} from {source}"
