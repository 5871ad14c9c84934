"""Look-ups by key in a query: the rows that a filter over a table can keep become values of the plan.

CHANGE     which queries are answered by a look-up of keys, without a Spark job
Steps      the plan as one text: filters directly over a table that name its key → their condition, with constants as
           Spark folds them → the keys that it allows (plan_conditions) → rows with these keys (store.read) → a
           LocalRelation in place of the table, below its filter
INVARIANT  Spark evaluates the whole statement, this filter too: the relation has every row with these keys, whatever
           else the condition asks. So values, types and errors are Spark's own, in any plan around it.
INVARIANT  what depends on how rows are spread or read (rand, input_file_name) is left to files; what depends on the
           current time too, since a frame may run later.
WHY        Spark's optimizer evaluates filters and projections over a LocalRelation without a job. A job over the files
           of one key takes 60 ms and more. Whatever the look-up cannot read, Spark reads, and says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from tablestore_engine.catalog.resolved_names import Meaning, ResolvedTable
from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_type import INTEGER_ROOTS, DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.collected_rows import nullable_inside
from tablestore_engine.spark.hidden_tables import HiddenTables
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.plan_conditions import condition_over
from tablestore_engine.spark.session_names import Name
from tablestore_engine.spark.spark_internals import Jvm, SparkInner
from tablestore_engine.spark.spark_types import arrow_type, as_spark_has_it, spark_type
from tablestore_engine.spark.type_ddl import has_spark_type
from tablestore_engine.store.files.comparable_values import comparable_column
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.filtered_read import read_few, read_keys
from tablestore_engine.store.read.key_lookup import find_rows, is_looked_up
from tablestore_engine.store.read.predicate import And, OneOf
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.text_condition import PredicateCondition

KEYS_MAX = 1_000
READ_MAX = (
    50_000_000  # rows of a table that the driver filters by values; more are Spark's, on all of its cores
)
_LISTED = (*INTEGER_ROOTS, "VARCHAR", "DATE")  # types of which Spark has each value as it is stored
_LINE = re.compile(r"(\d+) ((?:[: ]  )*(?:[:+]- )?)(.*)")
_VIEW = re.compile(r"View \(`spark_catalog`\.`([^`]+)`\.`([^`]+)`,")
_EQUALITY = re.compile(r" = | <=> | IN \(")
_FOLDING = ("ConstantFolding", "UnwrapCastInBinaryComparison")
Meanings = Mapping[Name, Meaning | None]


@dataclass(frozen=True)
class _FilteredTable:
    """`filter`: the number of its node; `aliases`: nodes between it and the view. `is_once`: no other node of the plan
    is equal to the view.
    """

    filter: int
    text: str
    aliases: int
    table: ResolvedTable
    is_once: bool


class KeyReads:
    """Of one session and warehouse. REQUIRES callers hold the resolver's lock."""

    def __init__(self, session: SparkSession, fileio: FileIO, tables: HiddenTables) -> None:
        self._session, self._fileio, self._tables = session, fileio, tables
        self._inner = SparkInner.of(session)

    def find(
        self, table: ResolvedTable, keys: Mapping[str, pa.ChunkedArray], columns: Sequence[str]
    ) -> pa.Table | None:
        """Columns of the rows with these keys, in Spark's types; None: Spark has to read them. `keys`: values of the
        primary key, by its names in lower case, NULL and repeated ones too. Safe without the lock.
        """
        schema, files = table.schema, self._files(table, columns)
        if files is None or not is_looked_up(schema, files):
            return None
        names = schema.primary_keys
        types = schema.arrow_schema()
        try:
            asked = pa.table(
                [keys[one.lower()].cast(types.field(one).type) for one in names], names=list(names)
            )
            asked = asked.group_by(list(names), use_threads=False).aggregate([])  # a look-up sorts them
            plan, stored = ScanPlan(None, schema, files), [schema.field(one).name for one in columns]
            rows = find_rows(self._fileio, plan, asked.drop_null(), stored, cache=table.cache)
        except (pa.ArrowException, TablestoreError):  # Spark reads the same files, and says so
            return None
        return _in_spark_types(rows, schema, columns)

    def find_listed(
        self,
        table: ResolvedTable,
        values: Mapping[str, pa.ChunkedArray],
        columns: Sequence[str],
        rows_max: int,
    ) -> pa.Table | None:
        """Columns of the rows whose other columns have one of these values, and of more rows, in Spark's types; None:
        Spark has to read them, or they are more than `rows_max`. Safe without the lock.
        """
        schema, files = table.schema, self._files(table, columns)
        if files is None or self._fileio.folders is None or sum(one.visible_rows for one in files) > READ_MAX:
            return None
        listed = {name: one for name, one in values.items() if schema.field(name).type.root in _LISTED}
        if not listed:
            return None
        try:
            parts = [_one_of(schema.field(name), one) for name, one in listed.items()]
            wanted = PredicateCondition(And(tuple(parts)), schema)
            stored = [schema.field(one).name for one in columns]
            plan = ScanPlan(None, schema, files)
            rows = read_few(self._fileio, plan, wanted, stored, rows_max, cache=table.cache)
        except (pa.ArrowException, TablestoreError):  # Spark reads the same files, and says so
            return None
        return None if rows is None else _in_spark_types(rows, schema, columns)

    def _files(self, table: ResolvedTable, columns: Sequence[str]) -> tuple[StoredFile, ...] | None:
        """Those of a state of which the driver may read columns."""
        with self._tables.lock:
            files = self._tables.files_of(table)
        return files if all(has_spark_type(table.schema.field(one).type) for one in columns) else None

    def answered(self, frame: DataFrame, meanings: Meanings) -> DataFrame:
        """The same rows, with those that are found by their keys as values; the very frame without such."""
        try:
            return self._answered(frame, meanings)
        except (PySparkException, Py4JError):
            check_connected()
        except TablestoreError:  # Spark reads the same files, and says so
            pass
        return frame

    def _answered(self, frame: DataFrame, meanings: Meanings) -> DataFrame:
        analyzed = frame._jdf.queryExecution().analyzed()
        found = list(_filtered_tables(str(analyzed.numberedTreeString()), meanings))
        if not found or not analyzed.deterministic():
            return frame
        nodes = [pair for one in found if (pair := self._with_rows(analyzed, one)) is not None]
        return self._inner.frame(self._inner.replaced(analyzed, nodes)) if nodes else frame

    def _with_rows(self, analyzed: Jvm, found: _FilteredTable) -> tuple[Jvm, Jvm] | None:
        """The filter over the table, and over the rows in its place; None: no look-up."""
        files, schema = self._tables.files_of(found.table), found.table.schema
        if files is None or not all(has_spark_type(field.type) for field in schema.fields):
            return None
        above = analyzed.p(found.filter)
        if above is None or not str(above.toString()).startswith(f"{found.text}\n"):
            return None  # a line break in a literal moved the numbers
        view = above.child()
        for _ in range(found.aliases):
            view = view.child()
        output = view.output()
        nothing = self._inner.placeholder(output)
        probe = self._inner.filter(above.condition(), nothing)
        if self._inner.with_fixed_time(probe) is not None:
            return None
        for rule in _FOLDING:
            probe = self._inner.rule(rule).apply(probe)
        wanted = PredicateCondition(condition_over(probe.condition(), schema.field_names), schema)
        footers = None if found.table.cache is None else found.table.cache.footers
        rows = read_keys(FileReader(self._fileio, schema, footers), files, wanted, KEYS_MAX)
        if rows is None:
            return None
        local = self._inner.local(output, self._rows(rows, schema)) if rows.num_rows else nothing
        if found.is_once:
            return view, local
        return above, self._inner.replaced(above, [(view, local)])

    def _rows(self, rows: pa.Table, schema: TableSchema) -> Jvm:
        """In Spark's own form."""
        fields = [StructField(one.name, nullable_inside(spark_type(one.type)), True) for one in schema.fields]
        columns = [
            as_spark_has_it(rows.column(at), arrow_type(field.dataType)) for at, field in enumerate(fields)
        ]
        made = pa.table(columns, names=schema.field_names)
        frame = frame_of_rows(self._session, made, StructType(fields))
        return frame._jdf.queryExecution().analyzed().data()


def _one_of(field: DataField, values: pa.ChunkedArray) -> OneOf:
    stored = comparable_column(values.cast(type_to_arrow(field.type)), field.type)
    return OneOf(field.name, frozenset(pc.unique(stored).drop_null().to_pylist()))


def _in_spark_types(rows: pa.Table, schema: TableSchema, columns: Sequence[str]) -> pa.Table:
    """Columns by their names of a query."""
    fields = [schema.field(one) for one in columns]
    made = [as_spark_has_it(rows.column(one.name), arrow_type(spark_type(one.type))) for one in fields]
    return pa.table(made, names=list(columns))


def _filtered_tables(numbered: str, meanings: Meanings) -> Iterator[_FilteredTable]:
    """Of `numberedTreeString`: filters that may ask for keys, each directly over the view of a table with a key."""
    lines = [found for line in numbered.split("\n") if (found := _LINE.fullmatch(line)) is not None]
    for at, line in enumerate(lines):
        if not line[3].startswith("Filter ") or _EQUALITY.search(line[3]) is None:
            continue
        below = at + 1
        while below < len(lines) and lines[below][3].startswith("SubqueryAlias "):
            below += 1
        view = _VIEW.match(lines[below][3]) if below < len(lines) else None
        table = None if view is None else meanings.get((view[1].lower(), view[2].lower()))
        is_chain = below < len(lines) and _depth(lines[below]) == _depth(line) + below - at
        if not is_chain or not isinstance(table, ResolvedTable) or not table.schema.is_keyed:
            continue
        if all(f"{name}#" in line[3] for name in table.schema.trimmed_primary_keys):
            texts = [one[3] for one in lines]
            is_once = texts.count(lines[below][3]) == 1
            yield _FilteredTable(int(line[1]), line[3], below - at - 1, table, is_once)


def _depth(line: re.Match[str]) -> int:
    return len(line[2]) // 3
