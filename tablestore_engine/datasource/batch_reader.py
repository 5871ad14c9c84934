"""A batch query of Spark: the rows of a table at one state, or what some snapshots changed.

Columns    today's, found by field id, also of a past state: Spark asks for columns before it says for what.
INVARIANT  the state is chosen once, when the query is planned; tasks read that very snapshot.
INVARIANT  no condition is kept from Spark: it checks every row again, and only files are left out.
WHY        two classes: a reader that takes conditions fails where spark.sql.python.filterPushdown.enabled is not set,
           and it cannot ask. So who sets that says it by an option. Scan.to_spark is the faster way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from tablestore_engine.catalog.name_lookup import find_snapshot
from tablestore_engine.datasource.asked_columns import find_columns
from tablestore_engine.datasource.open_table import open_store
from tablestore_engine.datasource.slices import FileSlice, Slice, group_files, group_places
from tablestore_engine.datasource.source_options import ReadOptions, TableAddress
from tablestore_engine.datasource.stream_reader import SlicePartition, SliceRows
from tablestore_engine.datasource.stream_walk import StreamWalk
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.files.comparable_values import comparable
from tablestore_engine.store.read.file_pruning import prune
from tablestore_engine.store.read.predicate import (
    ANYTHING,
    And,
    Compare,
    Missing,
    OneOf,
    Operator,
    Predicate,
    Prefix,
)
from tablestore_engine.store.read.scan import is_merged
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.position import Part, Position, Seen

_OPERATORS: dict[type[ds.Filter], Operator] = {
    ds.EqualTo: "=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
}


class TablestoreReader(ds.DataSourceReader):
    """Of one table; made again in each process that needs it."""

    def __init__(self, address: TableAddress, options: ReadOptions, wanted: StructType) -> None:
        """Raises FixRequest TS1445, NotFound TS1414."""
        self._address, self._options, self._wanted = address, options, wanted
        self._where: Predicate = ANYTHING
        find_columns(wanted, open_store(address).schema)

    def partitions(self) -> list[ds.InputPartition]:
        """Slices of about one size. Raises NotFound TS13xx for a state that is gone."""
        store = open_store(self._address)
        slices = self._changes(store) if self._options.between is not None else self._rows(store)
        return [SlicePartition(one) for one in slices]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice; Spark makes an empty one of none."""
        if partition.value is None:
            return
        yield from SliceRows(self._address, self._wanted).read(partition.value)

    def _rows(self, store: TableStore) -> list[Slice]:
        snapshot, context = find_snapshot(store, self._options.version), store.context
        if snapshot is None:
            return []
        schema = context.latest_schema()
        at = Position(context.guard.identity or "", snapshot.id, Part.FULL, seen=Seen.of(snapshot))
        return [
            FileSlice(at, schema.id, group, is_told=False)
            for group in _groups(context, snapshot, schema, self._where)
        ]

    def _changes(self, store: TableStore) -> list[Slice]:
        assert self._options.between is not None  # asked for
        first, last = self._options.between
        context, end = store.context, store.snapshots.get(last)
        before = None if first == 0 else context.snapshots.find(first)
        begin = Position(
            context.guard.identity or "", first + 1, seen=None if before is None else Seen.of(before)
        )
        if first == last:
            return []
        schema = context.latest_schema()
        return StreamWalk(context, schema, find_columns(self._wanted, schema)).slices(begin, begin.after(end))


class FilteringReader(TablestoreReader):
    """Chosen by the option pushFilters."""

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802 - pyspark's name
        """What is understood leaves out files; all of it stays Spark's to check."""
        schema = open_store(self._address).schema
        self._where = And(tuple(predicate_of(one, schema) for one in filters))
        return filters


def predicate_of(one: ds.Filter, schema: TableSchema) -> Predicate:
    """ANYTHING for what is not understood. Times are not: which zone their values are in is Spark's to know. Pure."""
    path: Sequence[str] = getattr(one, "attribute", ())
    field = next((field for field in schema.fields if path and field.name.lower() == path[0].lower()), None)
    if field is None or len(path) != 1 or field.type.root in TIMESTAMP_ROOTS:
        return ANYTHING
    if isinstance(one, ds.IsNull | ds.IsNotNull):
        return Missing(field.name, negated=isinstance(one, ds.IsNotNull))
    if isinstance(one, ds.In):
        values = [comparable(value, field.type) for value in one.value if value is not None]
        known = frozenset(value for value in values if value is not None)
        return OneOf(field.name, known) if len(known) == len(set(values)) else ANYTHING
    if isinstance(one, ds.StringStartsWith) and field.type.root == "VARCHAR":
        return Prefix(field.name, one.value)
    operator = _OPERATORS.get(type(one))
    value = None if operator is None else comparable(one.value, field.type)  # type: ignore[attr-defined]
    return ANYTHING if operator is None or value is None else Compare(field.name, operator, value)


def _groups(
    context: TableContext, snapshot: Snapshot, schema: TableSchema, where: Predicate
) -> list[tuple[tuple[bytes, int, str], ...]]:
    """Files that can match, by size; of a table that is merged when it is read, whole buckets."""
    if is_merged(schema):
        return group_files(context.scanner.live_entries(snapshot), by_bucket=True)
    plan = context.scanner.plan_scan(snapshot, schema=schema)
    files = plan.files if where == ANYTHING else prune(plan.files, where, schema)
    return group_places(
        ((one.partition_bytes, one.bucket, one.meta.file_name), one.meta.file_size) for one in files
    )
