"""Rows of a query that follow from changes of its tables: put, deleted, or evaluated by their key.

CHANGE     what a `changed_keys` run does with merged rows and state
INVARIANT  what Spark or Arrow cannot compute is a clause, and affected keys are followed.
CRASH      nothing is written; a temporary view ends with the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tablestore_engine.queryplan.group_state import StateRoot
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.delta_query import DeltaQuery, find_root, plan_deltas
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.incoming_frame import struct_fields
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.merged_rows import FindRows, MergedRows
from tablestore_engine.spark.plain_rows import as_collected, make_view
from tablestore_engine.spark.plan_builder import ChangesOf
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.run_time_plan import Elapsed
from tablestore_engine.spark.state_query import GROUPS_MAX, MergedGroups, StateQuery
from tablestore_engine.spark.traced_answers import AffectedKeys, Deltas
from tablestore_engine.spark.traced_plan import TracedPlan

DELTAS_MAX = 1_000_000  # more rows are not collected: the keys are
TOO_MANY_GROUPS = f"more than {GROUPS_MAX:,} groups, of which no state is kept"


@dataclass(frozen=True)
class ChangedOccurrences:
    """`occurrences`, with their rows from `changes`. `elapsed`: since the last run, if the query uses the time."""

    occurrences: Sequence[Occurrence]
    changes: ChangesOf | None = None
    elapsed: Elapsed | None = None


@dataclass(frozen=True)
class Before:
    """`find_rows`: stored rows of the result. `views`: names of views for rows and for keys to evaluate. `state`: of
    all groups, if the query has one.
    """

    find_rows: FindRows
    views: tuple[str, str]
    state: pa.Table | None = None


@dataclass(frozen=True)
class QueryState:
    """How a query keeps the state of its groups. `text`: what its columns mean."""

    text: str
    deltas: QueryDeltas
    root: StateRoot

    def read_all(self, view: str) -> tuple[pa.Table | None, str]:
        """(the state of all groups, or None: too many; a view of the rows of the query, if they follow from it).

        Both None and empty where Spark cannot compute it, or the query itself has to say which error there is.
        """
        query = self.deltas.state_query(self.root)
        try:
            state = query.read_all()
            rows = None if state is None else query.all_rows(state)
        except (PySparkException, Py4JError, pa.ArrowException, NoDelta):
            check_connected()
            return None, ""
        if rows is None:
            return state, ""
        self.deltas.rows_view(rows, view)
        return state, view

    def evaluate(self, keys_view: str, before: Before) -> Deltas:
        """Of the groups of these keys, whatever changed in them."""
        query = self.deltas.state_query(self.root)

        def found() -> MergedGroups:
            assert before.state is not None
            keys = collect_arrow(self.deltas.resolver.session.table(keys_view))
            return query.evaluate(keys, before.state, before.find_rows)

        return self.deltas.or_clause(lambda: self.deltas.viewed_groups(found(), before.views))


@dataclass(frozen=True)
class QueryDeltas:
    """`known_of`: columns, if these occurrences changed. `volatile`: what in the query differs between runs. `fields`:
    of the result, `key`: names of some of them in any case.
    """

    resolver: Resolver
    plan: TracedPlan
    known_of: Callable[[TracedPlan, Sequence[Occurrence]], KnownColumns]
    volatile: str
    fields: StructType
    key: Sequence[str]

    def query(self, inputs: ChangedOccurrences) -> DeltaQuery:
        """Raises NoDelta."""
        if self.volatile:
            raise NoDelta(self.volatile)
        return plan_deltas(self.plan, self.known_of(self.plan, inputs.occurrences), self._ids, inputs.elapsed)

    def state(self, tables: Iterable[str], occurrences: Sequence[Occurrence]) -> QueryState | None:
        """None: no change of a table is followed by it."""
        with suppress(NoDelta):
            root = find_root(self.plan, self.known_of(self.plan, occurrences), self._ids)
            if isinstance(root, StateRoot) and not self.volatile:
                for table in tables:
                    with suppress(NoDelta):
                        self.query(ChangedOccurrences([one for one in occurrences if one.table == table]))
                        return QueryState(root.text(), self, root)
        return None

    def follow(self, inputs: ChangedOccurrences, before: Before) -> Deltas:
        """Rows and state behind the changes."""
        return self.or_clause(lambda: self._follow(inputs, before))

    def or_clause(self, act: Callable[[], Deltas]) -> Deltas:
        """With a clause where it fails."""
        try:
            return act()
        except NoDelta as unknown:
            return Deltas(clause=unknown.clause)
        except pa.ArrowException as error:
            return Deltas(clause=f"values that the stored columns do not have: {error}")
        except (PySparkException, Py4JError) as error:
            check_connected()
            failure = spark_errors.translate(error)
            return Deltas(clause=f"deltas that Spark cannot compute: {failure.what}: {failure.why}")

    def _follow(self, inputs: ChangedOccurrences, before: Before) -> Deltas:
        query = self.query(inputs)
        if query.state is not None and before.state is None:
            raise NoDelta(TOO_MANY_GROUPS)
        assert inputs.changes is not None
        frame = query.frame(inputs.changes, self._run)
        found = self._run(frame.limit(DELTAS_MAX + 1))
        if found.num_rows > DELTAS_MAX:
            raise NoDelta(f"more than {DELTAS_MAX:,} changed rows of the result")
        if query.state is not None and before.state is not None:
            groups = self.state_query(query.state).follow(found, before.state, before.find_rows)
            return self.viewed_groups(groups, before.views)
        merged = query.merged(found, self.names, self._key_names, before.find_rows)
        return self._viewed(merged, before.views, is_merged=query.groups is not None)

    def _run(self, frame: DataFrame) -> pa.Table:
        return collect_arrow(self.resolver.prune(frame))

    def state_query(self, root: StateRoot) -> StateQuery:
        """Of the groups at the root."""
        known = self.known_of(self.plan, ())
        session = self.resolver.session
        return StateQuery(session, self.resolver.prune, self.plan, known, root, self.names, self._key_names)

    def viewed_groups(self, found: MergedGroups, views: tuple[str, str]) -> Deltas:
        """The rows as views, and the state."""
        return replace(self._viewed(found.merged, views, is_merged=True), state=found.state)

    def rows_view(self, rows: pa.Table, view: str) -> None:
        """All rows of the result."""
        session, schema = self.resolver.session, self.fields
        frame_of_rows(session, rows.rename_columns(schema.names), schema).createOrReplaceTempView(view)

    @property
    def names(self) -> list[str]:
        """Of the result's columns, in lower case."""
        return [name.lower() for name in self.fields.names]

    @property
    def _key_names(self) -> list[str]:
        return [one.lower() for one in self.key]

    @property
    def _ids(self) -> list[int]:
        ids = output_ids(self.plan.root)
        return [ids[self.names.index(one)] for one in self._key_names]

    def _viewed(self, merged: MergedRows, views: tuple[str, str], *, is_merged: bool) -> Deltas:
        rows_view, again_view = views
        session, fields = self.resolver.session, self.fields.fields
        again, has_rows = merged.again.rename_columns(list(self.key)), merged.rows.num_rows > 0
        table = as_collected(merged.rows, self.fields) if has_rows and not again.num_rows else None
        if table is not None:
            return Deltas(
                None, table.num_rows, is_merged=is_merged, table=table, fields=struct_fields(self.fields)
            )
        if has_rows:
            make_view(session, merged.rows, self.fields, rows_view)
        view = rows_view if has_rows else None
        if not again.num_rows:
            return Deltas(view, merged.rows.num_rows, is_merged=is_merged)
        named = StructType([fields[self.names.index(one)] for one in self._key_names])
        keys = keys_view(session, again, named, again_view)
        return Deltas(view, merged.rows.num_rows, keys, is_merged)


def keys_view(session: SparkSession, keys: pa.Table, schema: StructType, view: str) -> AffectedKeys:
    """A temporary view of keys."""
    frame_of_rows(session, keys, schema).createOrReplaceTempView(view)
    nullable = frozenset(name for name in keys.column_names if keys.column(name).null_count)
    return AffectedKeys(view, keys.num_rows, nullable=nullable)
