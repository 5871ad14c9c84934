"""ANALYZE: count the rows of the newest snapshot and the values of its columns, and name the result in a snapshot.

CHANGE     what ANALYZE counts
Steps      read the columns → statistics file → a snapshot of kind ANALYZE with the rows of its base. Other commits
           meanwhile are no conflict: the file says which snapshot was counted
INVARIANT  no row changes: readers, streams, changed_keys models and logs pass such a snapshot by.
INVARIANT  memory is bounded: distinct values are counted by the smallest _HASHES of their hashes, so the number is
           exact below that, else it is off by 0.4 % in the mean.
CRASH      before the snapshot: the file is an orphan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.format.data_type import DataField, is_fine_timestamp
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.format.table_statistics import (
    ColumnStatistics,
    TableStatistics,
    encode_statistics,
    fixed_size,
    value_text,
)
from tablestore_engine.store.commit.commit import CommitIdentity, CommitReport
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.table_context import TableContext, committer_of
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits

_HASHES = 1 << 16
_TEXTS = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")


def analyze(
    store: TableStore, columns: Sequence[str] | None
) -> tuple[TableStatistics | None, CommitReport | None]:
    """Of all columns (None), or of these, maybe none; (None, None) for a table without a snapshot.

    Raises FixRequest TS1225, RetryError TS1226, and what a commit can.
    """
    context = store.context
    snapshot = context.snapshots.find_latest()
    if snapshot is None:
        return None, None
    schema = context.schema_at(snapshot)
    fields = _fields_of(store, schema, columns)
    found = _count(store, snapshot, schema, fields)
    name = f"stat-{context.runtime.new_uuid()}-0"
    context.guard.check()
    context.fileio.create_exclusive(context.layout.statistics_path(name), encode_statistics(found))
    return found, _commit(context, schema, name)


def _fields_of(
    store: TableStore, schema: TableSchema, columns: Sequence[str] | None
) -> tuple[DataField, ...]:
    known = {one.name.lower(): one for one in schema.fields}
    wanted = tuple(known) if columns is None else tuple(dict.fromkeys(name.lower() for name in columns))
    missing = [name for name in wanted if name not in known]
    if missing:
        raise FixRequest(
            "TS1225",
            f"{store.context.layout.name} has no column {', '.join(missing)} to analyze",
            why=f"its columns are {', '.join(schema.field_names)}",
            fix="correct the name",
        )
    return tuple(known[name] for name in wanted)


def _count(
    store: TableStore, snapshot: Snapshot, schema: TableSchema, fields: Sequence[DataField]
) -> TableStatistics:
    plan = store.plan_scan(snapshot, schema=schema)
    counts = {one.name: _ColumnCount(one) for one in fields}
    names = list(counts) or [schema.fields[0].name]
    rows = 0
    for batch in store.read_batches(plan, names):
        rows += batch.num_rows
        for name, count in counts.items():
            count.add(batch.column(name))
    stored = sum(file.meta.row_count for file in plan.files)
    size = sum(file.meta.file_size for file in plan.files)
    return TableStatistics(
        snapshot.id,
        schema.id,
        rows,
        size * rows // stored if stored else 0,
        {name: count.result() for name, count in counts.items()},
    )


def _commit(context: TableContext, schema: TableSchema, name: str) -> CommitReport:
    def plan(base: Snapshot | None) -> Planned:
        if base is None or context.schema_at(base).id != schema.id:
            raise RetryError(
                "TS1226",
                f"{context.layout.name} was altered while it was analyzed",
                why="the statistics are of columns and types that it no longer has",
                fix="run ANALYZE again",
            )
        return Planned(CommitKind.ANALYZE, schema, (), ConflictScope(), is_forced=True, statistics=name)

    identity = CommitIdentity.of(context.runtime, None, None)
    retries = TableTraits(schema).retries_max
    return committer_of(context).commit(plan, identity, retries_max=lambda: retries)


class _Distinct:
    """The smallest hashes of the values so far: of k hashes up to h (of 2^64), there are about (k - 1) / h values."""

    def __init__(self) -> None:
        self._smallest = np.array([], np.uint64)
        self._is_full = False

    def add(self, values: pa.Array) -> None:
        """Values without NULL."""
        hashes = np.unique(pl.Series(pl.from_arrow(values)).hash().to_numpy())
        merged = np.union1d(self._smallest, hashes)
        self._is_full |= len(merged) > _HASHES
        self._smallest = merged[:_HASHES]

    def estimate(self) -> int:
        """Exact up to _HASHES values."""
        if not self._is_full:
            return len(self._smallest)
        return round((_HASHES - 1) / (float(self._smallest[-1]) / 2.0**64))


@dataclass
class _ColumnCount:
    """Of one column, batch by batch."""

    column: DataField
    rows: int = 0
    nulls: int = 0
    low: object = None
    high: object = None
    length: int = 0
    longest: int = 0
    has_nan: bool = False
    distinct: _Distinct = field(default_factory=_Distinct)

    def add(self, values: pa.Array) -> None:
        self.rows += len(values)
        self.nulls += values.null_count
        root, given = self.column.type.root, values.drop_null()
        if not len(given):
            return
        if root in _TEXTS:
            is_text = pa.types.is_string(given.type) or pa.types.is_large_string(given.type)
            lengths = pc.utf8_length(given) if is_text else pc.binary_length(given)
            self.length += pc.sum(lengths).as_py()
            self.longest = max(self.longest, pc.max(lengths).as_py())
        elif fixed_size(self.column.type) is None:
            return
        else:
            self._widen(given)
        self.distinct.add(given)

    def _widen(self, given: pa.Array) -> None:
        if pa.types.is_floating(given.type):
            self.has_nan |= bool(pc.any(pc.is_nan(given)).as_py())
        if is_fine_timestamp(self.column.type):
            given = given.cast(pa.int64())
        bounds = pc.min_max(given).as_py()
        low, high = bounds["min"], bounds["max"]
        self.low = low if self.low is None or low < self.low else self.low
        self.high = high if self.high is None or high > self.high else self.high

    def result(self) -> ColumnStatistics:
        """Bounds of a column with NaN or infinity are left out: engines order NaN differently."""
        kind, given = self.column.type, self.rows - self.nulls
        size = fixed_size(kind)
        if size is None and kind.root not in _TEXTS:
            return ColumnStatistics(null_count=self.nulls)
        is_open = self.has_nan or any(
            isinstance(v, float) and not math.isfinite(v) for v in (self.low, self.high)
        )
        average = size if size is not None else math.ceil(self.length / given) if given else 0
        return ColumnStatistics(
            distinct_count=self.distinct.estimate(),
            min=None if is_open else value_text(self.low, kind),
            max=None if is_open else value_text(self.high, kind),
            null_count=self.nulls,
            avg_len=average,
            max_len=self.longest if size is None else size,
        )
