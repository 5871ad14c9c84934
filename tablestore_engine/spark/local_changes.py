"""Few changed rows as values of a plan: read in the driver, once for all queries that follow the same range.

CHANGE     up to how many changed rows a `changed_keys` run reads in the driver, and plans with the rows themselves
WHY        Spark's optimizer knows the rows of a LocalRelation: it evaluates filters and projections over them without
           a job, removes a join with none of them, and broadcasts the others. Changelog files are a scan, a shuffle
           and two views for each place where a query reads the table.
INVARIANT  the rows are those of `Table.changes`; a range of snapshots is the same rows for ever. Rows that are equal in
           all asked columns before and after a range are left out, where Arrow's equality is at least as fine as
           Spark's; elsewhere they stay, which costs time only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import ResolvedTable
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.collected_rows import nullable_inside
from tablestore_engine.spark.spark_types import arrow_type, as_spark_has_it, spark_type
from tablestore_engine.spark.type_ddl import has_spark_type
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.stream.changes_plan import ChangesPlan

ROWS_MAX, BYTES_MAX = 1_000_000, 32 << 20  # of one range, and of its files; more are read by Spark
FEW = 20_000  # more are no values of a plan: Spark would evaluate it slower than files
CACHE_BYTES = 64 << 20
_ADDED = [RowKind.INSERT.value, RowKind.UPDATE_AFTER.value]
_SIGN = "__ts_sign"
_NET = f"{_SIGN}_sum"
_SIGN_FIELD = StructField(_SIGN, IntegerType(), False)
# types of which Arrow groups values that are equal to the bit, and no others: -0.0 is not 0.0, NaN is NaN
_GROUPED = frozenset({
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "DATE", "CHAR", "VARCHAR", "BINARY", "VARBINARY",
    "TIMESTAMP", "TIMESTAMP_LTZ", "FLOAT", "DOUBLE",
})  # fmt: skip


@dataclass(frozen=True)
class LocalRows:
    """Changed rows with the columns of the table, as Spark has their values, and `_ROW_KIND`."""

    fields: tuple[DataField, ...]
    rows: pa.Table

    @property
    def is_few(self) -> bool:
        """Whether they are values of a plan."""
        return bool(self.rows.num_rows <= FEW)

    def frame(self, session: SparkSession, names: Sequence[str], kind: ChangedKind) -> DataFrame:
        """These columns of changed rows; none: a constant column, or the sign alone."""
        rows = self.table(names, kind)
        if not rows.num_columns:
            return session.range(rows.num_rows).selectExpr("1 as one")
        signs = [_SIGN_FIELD] if kind in (ChangedKind.SIGNED, ChangedKind.OPPOSITE) else []
        return frame_of_rows(session, rows, StructType([*_fields(self._chosen(names)), *signs]))

    def table(self, names: Sequence[str], kind: ChangedKind) -> pa.Table:
        """The same in Arrow."""
        chosen = self._chosen(names)
        added = pc.is_in(self.rows.column(ROW_KIND_COLUMN), value_set=pa.array(_ADDED, pa.int8()))
        if kind in (ChangedKind.SIGNED, ChangedKind.OPPOSITE):
            return _signed(self.rows, chosen, added, 1 if kind is ChangedKind.SIGNED else -1)
        is_past = kind is ChangedKind.PAST
        rows = self.rows.filter(pc.invert(added)) if is_past else self.rows
        rows = rows.select([one.name for one in chosen])
        if chosen and not is_past and _is_grouped(chosen):
            rows = _net(rows, added).select(rows.column_names)
        return rows

    def _chosen(self, names: Sequence[str]) -> list[DataField]:
        return [next(one for one in self.fields if one.name.lower() == name.lower()) for name in names]


class LocalChanges:
    """Of one session's names; safe for threads. `None` in the cache: too many rows, or rows that Spark has to read."""

    def __init__(self, names: NameLookup) -> None:
        self._names = names
        self._cache: OrderedDict[str, LocalRows | None] = OrderedDict()
        self._lock = OrderedLock("changed rows", Rank.PROCESS)

    def find(self, table: str, version: TableVersion, seen: SeenStates | None = None) -> LocalRows | None:
        """The rows of a range (schema.table); None: Spark has to read them. Raises what resolving the range raises."""
        database, _, name = table.partition(".")
        found = self._names.lookup(database, name, version, seen)
        if not isinstance(found, ResolvedTable) or not all(
            has_spark_type(one.type) for one in found.schema.fields
        ):
            return None
        with self._lock:
            if found.version in self._cache:
                self._cache.move_to_end(found.version)
                return self._cache[found.version]
        plan = found.load_plan(is_native=True)
        rows = _read(plan) if isinstance(plan, ChangesPlan) else None
        with self._lock:
            self._cache[found.version] = rows
            self._shrink()
        return rows

    def _shrink(self) -> None:
        sizes = {key: 1 if one is None else one.rows.nbytes for key, one in self._cache.items()}
        while sum(sizes.values()) > CACHE_BYTES or len(sizes) > 1_000:
            oldest, _ = self._cache.popitem(last=False)
            del sizes[oldest]


def _read(plan: ChangesPlan) -> LocalRows | None:
    if plan.base is not None or any(step.files is None for step in plan.steps):
        return None
    files = [file.meta for step in plan.steps for file in step.files or ()]
    if sum(one.row_count for one in files) > ROWS_MAX or sum(one.file_size for one in files) > BYTES_MAX:
        return None
    fields = tuple(plan.schema.fields)
    kind = pa.field(ROW_KIND_COLUMN, pa.int8())
    schema = pa.schema([*(pa.field(one.name, arrow_type(spark_type(one.type))) for one in fields), kind])
    parts = [
        pa.table([*_values(batch.rows, fields, schema), _kinds(batch.rows)], schema=schema)
        for step in plan.steps
        for batch in step.read(plan.schema)
    ]
    return LocalRows(fields, pa.concat_tables([schema.empty_table(), *parts]))


def _values(rows: pa.Table, fields: Sequence[DataField], schema: pa.Schema) -> list[pa.ChunkedArray]:
    return [as_spark_has_it(rows.column(one.name), schema.field(one.name).type) for one in fields]


def _kinds(rows: pa.Table) -> pa.ChunkedArray:
    return rows.column(ROW_KIND_COLUMN).cast(pa.int8())


def _fields(chosen: Sequence[DataField]) -> list[StructField]:
    return [StructField(one.name, nullable_inside(spark_type(one.type)), True) for one in chosen]


def _is_grouped(chosen: Sequence[DataField]) -> bool:
    return all(one.type.root in _GROUPED for one in chosen)


def _net(rows: pa.Table, added: pa.ChunkedArray) -> pa.Table:
    """Each row once, with how often it was added more than removed, never 0: a row that is removed and added again
    with the same values changes nothing.
    """
    signs = pc.if_else(added, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    groups = rows.append_column(_SIGN, signs).group_by(rows.column_names).aggregate([(_SIGN, "sum")])
    return groups.filter(pc.not_equal(groups.column(_NET), 0))


def _signed(rows: pa.Table, chosen: Sequence[DataField], added: pa.ChunkedArray, factor: int) -> pa.Table:
    """A row for each that was added or removed, with its sign times `factor`."""
    names = [one.name for one in chosen]
    signs = np.where(np.asarray(added), factor, -factor)
    if chosen and _is_grouped(chosen):
        groups = _net(rows.select(names), added)
        net = np.asarray(groups.column(_NET))
        index = np.repeat(np.arange(len(net)), np.abs(net))
        rows, signs = groups.take(pa.array(index)), np.sign(net[index]) * factor
    columns = {name: rows.column(name) for name in names}
    return pa.table({**columns, _SIGN: pa.array(signs, pa.int32())})
