"""Batches of a query that have no input, by metadata: neither a Spark job nor a plan of Spark is needed for them.

Steps      prove, once for all batches of a query: the condition on the rows of its tables → for each batch: names mean
           the same → no file of these tables has a value in the interval (store.read.value_intervals)
INVARIANT  what is not proven counts as input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from tablestore_engine.api.pinned_versions import to_overrides
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.catalog.resolved_names import (
    Meaning,
    Overrides,
    ResolvedSystemView,
    ResolvedTable,
)
from tablestore_engine.queryplan.empty_result import NoValues, holds, parse_bound
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.spark.empty_query import EmptyQuery, means_the_same, prove_empty
from tablestore_engine.sql.interval_bounds import HIGH, LOW, with_placeholders
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.files.comparable_values import is_comparable
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.value_intervals import ColumnIntervals, FileIntervals
from tablestore_engine.warehouse.warehouse import Warehouse

Found = Mapping[tuple[str, str], Meaning]
_ROOTS = {"date": "DATE", "timestamp": "TIMESTAMP_LTZ", "timestamp_ntz": "TIMESTAMP"}


class EmptyBatches:
    """Of one engine, for all threads. `running`: while a thread works, with Spark or without.

    It keeps where the values of the columns lie that it was asked for.
    """

    def __init__(self, warehouse: Warehouse, running: Callable[[bool], AbstractContextManager[None]]) -> None:
        self._warehouse, self._running = warehouse, running
        self._files = FileIntervals()
        self._columns: dict[
            tuple[str, str], tuple[str, ColumnIntervals]
        ] = {}  # (table, column) → state, values
        self._lock = OrderedLock("columns of empty batches", Rank.PROCESS)

    def general_text(self, sql: str, start: str, end: str) -> str | None:
        """The query of every batch that differs from this one in the interval alone; None: it filters by none."""
        return with_placeholders(sql, start, end)

    def prove(self, general: str, *, versions: Mapping[str, TableVersion]) -> EmptyQuery | None:
        """When the batches of a general text have no rows; None: nothing is proven. Raises what the analysis raises."""
        with self._running(True):
            return prove_empty(self._warehouse.resolver, general, to_overrides(versions))

    def is_empty(
        self, query: EmptyQuery, start: str, end: str, *, versions: Mapping[str, TableVersion], reads: ReadLog
    ) -> bool:
        """Whether the batch has no rows now; the tables that this depends on are added to `reads`."""
        with self._running(False):
            found = self._look_up(query, to_overrides(versions, reads))
            if found is None:
                return False
            texts = {LOW: start, HIGH: end}
            return holds(query.condition, lambda asked: self._has_none(asked, texts, found))

    def _look_up(self, query: EmptyQuery, overrides: Overrides) -> Found | None:
        """What the names mean now; None when one means something else."""
        found: dict[tuple[str, str], Meaning] = {}
        for (database, name), before in query.meanings.items():
            now = self._meaning(database, name, overrides)
            if now is None or not means_the_same(before, now):
                return None
            found[database, name] = now
        return found

    def _meaning(self, database: str, name: str, overrides: Overrides) -> Meaning | None:
        names = self._warehouse.relations.names
        if name.endswith("()"):
            return names.find_function(database, name.removesuffix("()"))
        found = names.lookup(database, name, overrides.version(database, name))
        if isinstance(found, ResolvedSystemView):
            return None
        if found is not None:
            overrides.note(database, name, found)
        return found

    def _has_none(self, asked: NoValues, texts: Mapping[str, str], found: Found) -> bool:
        database, _, name = asked.table.lower().partition(".")
        table = found.get((database, name))
        low = parse_bound(texts.get(asked.low, asked.low), asked.type)
        high = parse_bound(texts.get(asked.high, asked.high), asked.type)
        if not isinstance(table, ResolvedTable) or low is None or high is None:
            return False
        root = next((one.type.root for one in table.schema.fields if one.name == asked.column), None)
        if root != _ROOTS[asked.type]:
            return False
        values = self._values(asked.table, table, asked.column)
        return values is not None and not values.may_have(low, high)

    def _values(self, name: str, table: ResolvedTable, column: str) -> ColumnIntervals | None:
        """Where the values of a column of a state lie; the newest state of each table is kept."""
        with self._lock:
            state, known = self._columns.get((name, column), ("", None))
        if known is not None and state == table.key:
            return known
        plan = table.load_plan()
        if not is_comparable(table.schema.field(column).type) or not isinstance(plan, ScanPlan):
            return None
        fileio = self._warehouse.stores.open(Identifier.parse(name)).fileio
        made = ColumnIntervals(fileio, plan.schema, plan.files, column, self._files)
        with self._lock:
            self._columns[name, column] = table.key, made
        return made
