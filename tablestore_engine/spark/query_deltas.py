"""Rows of a query that follow from changes of its tables: put, deleted, or evaluated by their key.

CHANGE     what a `changed_keys` run does with merged rows and state
INVARIANT  what Spark or Arrow cannot compute is a clause, and affected keys are followed.
CRASH      nothing is written; a temporary view ends with the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tablestore_engine.format.group_state_file import GroupState
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.queryplan.group_state import StateRoot
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids
from tablestore_engine.queryplan.trace_steps import Step
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.delta_query import DeltaQuery, find_root, plan_deltas
from tablestore_engine.spark.evaluated_keys import KeyedQuery, RowsOfKeys, read_rows_of_keys
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.incoming_frame import struct_fields
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.local_steps import LocalInputs
from tablestore_engine.spark.merged_rows import MergedRows
from tablestore_engine.spark.plain_rows import as_collected, make_view
from tablestore_engine.spark.plan_builder import ChangesOf
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.run_time_plan import Elapsed
from tablestore_engine.spark.state_query import MergedGroups, StateQuery
from tablestore_engine.spark.traced_answers import GROUPS_MAX, AffectedKeys, Before, Deltas
from tablestore_engine.spark.traced_plan import TracedPlan

DELTAS_MAX = 1_000_000  # more rows are not collected: the keys are
TOO_MANY_GROUPS = f"more than {GROUPS_MAX:,} groups, of which no state is kept"


@dataclass(frozen=True)
class ChangedOccurrences:
    """`occurrences`, with their rows from `changes`. `elapsed`: since the last run, if the query uses the time.
    `local`: rows that the driver has.
    """

    occurrences: Sequence[Occurrence]
    changes: ChangesOf | None = None
    elapsed: Elapsed | None = None
    local: LocalInputs | None = None


@dataclass(frozen=True)
class PlannedDeltas:
    """`clause`: why there are none. `reads`: tables of which a run reads all rows, besides the changes, as often as it
    does so.
    """

    clause: str = ""
    reads: tuple[str, ...] = ()
    act: Callable[[Before], Deltas] | None = None

    def follow(self, before: Before) -> Deltas:
        """Rows and state behind the changes, or a clause."""
        act = self.act
        return Deltas(clause=self.clause) if act is None else or_clause(lambda: act(before))


@dataclass(frozen=True)
class QueryState:
    """How a query keeps the state of its groups. `text`: what its columns mean."""

    text: str
    deltas: QueryDeltas
    root: StateRoot

    def read_all(self, view: str) -> tuple[GroupState | None, str]:
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
        made = None if state is None else GroupState(state)
        if rows is None:
            return made, ""
        self.deltas.rows_view(rows, view)
        return made, view

    def evaluate(self, keys: pa.Table, before: Before) -> Deltas:
        """Of the groups of these keys, whatever changed in them."""
        query = self.deltas.state_query(self.root)

        def found() -> MergedGroups:
            assert before.state is not None
            return query.evaluate(keys, before.state, before.find_rows)

        return or_clause(lambda: self.deltas.viewed_groups(found(), before))


@dataclass(frozen=True)
class QueryDeltas:
    """`known_of`: columns, if these occurrences changed. `volatile`: what in the query differs between runs. `fields`:
    of the result, `key`: names of some of them in any case. `frame`: makes that of the query. `reads`: rows by values.
    """

    resolver: Resolver
    plan: TracedPlan
    known_of: Callable[[TracedPlan, Sequence[Occurrence]], KnownColumns]
    volatile: str
    fields: StructType
    key: Sequence[str]
    frame: Callable[[], DataFrame]
    reads: LocalInputs

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

    def planned(
        self, inputs: ChangedOccurrences, read_by: Callable[[Step], Iterable[str]], *, has_state: bool
    ) -> PlannedDeltas:
        """`read_by`: tables of which a step reads all rows."""
        if not inputs.occurrences:
            return PlannedDeltas(act=lambda _: Deltas())
        try:
            query = self.query(inputs)
        except NoDelta as unknown:
            return PlannedDeltas(unknown.clause)
        if query.state is not None and not has_state:
            return PlannedDeltas(TOO_MANY_GROUPS)
        reads = [name for part in query.parts for name in read_by(part.step)]
        local = inputs.local
        if local is not None and local.has_changes() and query.looked_up(local.occurrences) is not None:
            reads = []
        return PlannedDeltas("", tuple(sorted(reads)), partial(self._follow, query, inputs))

    def _follow(self, query: DeltaQuery, inputs: ChangedOccurrences, before: Before) -> Deltas:
        assert inputs.changes is not None
        found = query.found(inputs.changes, inputs.local, self._run, DELTAS_MAX + 1)
        if found.num_rows > DELTAS_MAX:
            raise NoDelta(f"more than {DELTAS_MAX:,} changed rows of the result")
        if query.state is not None and before.state is not None:
            groups = self.state_query(query.state).follow(found, before.state, before.find_rows)
            return self.viewed_groups(groups, before)
        merged = query.merged(found, self.names, self._key_names, before.find_rows)
        return self._viewed(merged, before, is_merged=query.groups is not None)

    def evaluate(self, keys: pa.Table, before: Before) -> Deltas:
        """The rows of these keys, whatever changed in them; with a clause where a statement has to evaluate them."""
        found = self._keyed.evaluate(keys, before.find_rows)
        if found is None:
            return Deltas(clause="keys that a statement evaluates")
        made = or_clause(lambda: self._viewed(found, before, is_merged=_has_deletes(found)))
        return replace(made, keys=keys.num_rows, evaluated=keys.num_rows)

    @property
    def _keyed(self) -> KeyedQuery:
        return KeyedQuery(self.frame, self.resolver.prune, self.names, self._key_names, self._over_rows_of)

    def _over_rows_of(self, keys: pa.Table) -> RowsOfKeys | None:
        if self.volatile:
            return None
        known = self.known_of(self.plan, ())
        return read_rows_of_keys(self.plan, known, self.reads, self._ids, keys)

    def _run(self, frame: DataFrame) -> pa.Table:
        return collect_arrow(self.resolver.prune(frame))

    def state_query(self, root: StateRoot) -> StateQuery:
        """Of the groups at the root."""
        known = self.known_of(self.plan, ())
        session = self.resolver.session
        return StateQuery(session, self.resolver.prune, self.plan, known, root, self.names, self._key_names)

    def viewed_groups(self, found: MergedGroups, before: Before) -> Deltas:
        """The rows as views, and the state."""
        return replace(self._viewed(found.merged, before, is_merged=True), state=found.state)

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

    def _viewed(self, merged: MergedRows, before: Before, *, is_merged: bool) -> Deltas:
        """Few keys among those to evaluate are evaluated here."""
        again, rows = merged.again.rename_columns(list(self.key)), merged.rows
        evaluated = again.num_rows
        keys = rows.num_rows + evaluated
        found = self._keyed.evaluate(again, before.find_rows) if evaluated else None
        if found is not None:
            try:
                rows = pa.concat_tables([rows, found.rows.cast(rows.schema)])
                again, is_merged = again.slice(0, 0), is_merged or _has_deletes(found)
            except pa.ArrowException:  # their statement says it
                pass
        made = self._as_views(rows, again, before.views)
        return replace(made, is_merged=is_merged, keys=keys, evaluated=evaluated)

    def _as_views(self, rows: pa.Table, again: pa.Table, views: tuple[str, str]) -> Deltas:
        rows_view, again_view = views
        session, fields = self.resolver.session, self.fields.fields
        table = as_collected(rows, self.fields) if rows.num_rows and not again.num_rows else None
        if table is not None:
            return Deltas(None, table.num_rows, table=table, fields=struct_fields(self.fields))
        if rows.num_rows:
            make_view(session, rows, self.fields, rows_view)
        view = rows_view if rows.num_rows else None
        if not again.num_rows:
            return Deltas(view, rows.num_rows)
        named = StructType([fields[self.names.index(one)] for one in self._key_names])
        return Deltas(view, rows.num_rows, keys_view(session, again, named, again_view))


def _has_deletes(merged: MergedRows) -> bool:
    """Which follow from stored rows."""
    return pc.any(pc.equal(merged.rows.column(ROW_KIND_COLUMN), RowKind.DELETE.value)).as_py() is True


def or_clause(act: Callable[[], Deltas]) -> Deltas:
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


def keys_view(session: SparkSession, keys: pa.Table, schema: StructType, view: str) -> AffectedKeys:
    """A temporary view of keys."""
    frame_of_rows(session, keys, schema).createOrReplaceTempView(view)
    return replace(affected(keys, schema), view=view)


def affected(keys: pa.Table, schema: StructType) -> AffectedKeys:
    """Of keys, each once."""
    nullable = frozenset(name for name in keys.column_names if keys.column(name).null_count)
    return AffectedKeys(None, keys.num_rows, nullable=nullable, rows=keys, schema=schema)
