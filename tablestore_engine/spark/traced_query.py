"""A query whose inputs change: what it reads, what is proven of it, and the keys that changes affect.

CHANGE     the query for the affected keys
INVARIANT  `affected_keys` gives every key whose rows differ between two states of the inputs, or the clause for which
           that is not proven. It runs one Spark job and keeps the keys as a temporary view.
CRASH      nothing is written; a temporary view ends with the session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from tablestore_engine.catalog.resolved_names import (
    Overrides,
    ResolvedFunction,
    ResolvedTable,
    ResolvedView,
    stored_texts,
)
from tablestore_engine.queryplan.equal_values import is_exact
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, find_occurrences, find_untracked, output_ids
from tablestore_engine.queryplan.order_dependence import find_shared_order
from tablestore_engine.queryplan.plan_nodes import is_within
from tablestore_engine.queryplan.plan_rules import find_unknown
from tablestore_engine.queryplan.run_time import RUN_TIME, find_unsplit, is_time
from tablestore_engine.queryplan.stable_values import has_known_chance
from tablestore_engine.queryplan.trace_sources import find_sources
from tablestore_engine.queryplan.trace_steps import Step, read_paths
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.input_changes import InputChanges, Range, ranges_of, relation_of
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.local_query import LocalQuery, LocalRowsOfSteps
from tablestore_engine.spark.moving_times import find_moving_time, find_unknown_time
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.query_deltas import (
    ChangedOccurrences,
    PlannedDeltas,
    QueryDeltas,
    QueryState,
    affected,
    keys_view,
)
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.result_settings import read_result_settings
from tablestore_engine.spark.run_time_plan import Elapsed, frame_at_moment, number_of
from tablestore_engine.spark.session_definitions import SessionDefinitions, read_definitions, read_path
from tablestore_engine.spark.session_functions import expanded
from tablestore_engine.spark.traced_answers import AffectedKeys, Before, Deltas, FollowedDeltas, FollowedInput
from tablestore_engine.spark.traced_plan import TracedPlan
from tablestore_engine.sql.scanner import quote_name
from tablestore_engine.sql.table_version import MOMENT, TableVersion, split_database

KEYS_MAX = 5_000_000  # more are not collected: all rows are compared


class TracedQuery:
    """REQUIRES Resolver.in_use() as long as it is used."""

    def __init__(self, resolver: Resolver, sql: str, overrides: Overrides) -> None:
        self._resolver, self._overrides = resolver, overrides
        frame, self._names = resolver.whole_query(sql, overrides)
        self._frame = frame = expanded(frame, resolver.session)  # temporary functions too
        self._columns = [name.lower() for name in frame.columns]
        self._types = [field.dataType.jsonValue() for field in frame.schema.fields]
        fields = (StructField(field.name, field.dataType) for field in frame.schema.fields)
        self._fields = StructType(list(fields))  # all of them may be NULL
        self.volatile: str | None = None
        self._moving: str | None = None
        self.occurrences: tuple[Occurrence, ...] = ()
        self._plan: TracedPlan | None = None
        self._definitions = SessionDefinitions()
        try:
            inner = PlanBuilderNodes.of(resolver.session)
            plan = TracedPlan(inner, frame, self._names, overrides.moment_ms)
            unknown = find_unknown_time(inner, frame._jdf.queryExecution().analyzed())
        except (PySparkException, Py4JError, LookupError, TypeError, RecursionError):
            check_connected()
            return  # another Spark has other rules or another JSON: nothing is proven, all rows are compared
        self._plan = plan
        session, analyzed = resolver.session, frame._jdf.queryExecution().analyzed()
        self.occurrences = find_occurrences(plan.root, plan.tables)
        self._definitions = self._read_definitions(plan, sql)
        self._moving = find_moving_time(session, analyzed, (sql, *stored_texts(self._names))) or unknown
        self.volatile = plan.find_volatile() or self._moving or self._declared_volatile()
        if not self.volatile and not plan.is_deterministic and not has_known_chance(plan.root):
            self.volatile = "a function that is not deterministic"

    @property
    def follows_time(self) -> bool:
        """Whether the query uses the time of the run, which is that of the overrides."""
        return self._plan is not None and self._plan.times is not None and bool(self._plan.times.functions)

    def _read_definitions(self, plan: TracedPlan, sql: str) -> SessionDefinitions:
        known = {name for name, found in self._names.items() if found is not None}
        return read_definitions(self._resolver.session, plan.root, (sql, *stored_texts(self._names)), known)

    def _declared_volatile(self) -> str | None:
        """A function of the warehouse that is declared NOT DETERMINISTIC, whatever its body says."""
        found = sorted(self._names.items(), key=lambda one: one[0])
        return next(
            (".".join(name) for name, one in found if isinstance(one, ResolvedFunction) and one.is_volatile),
            None,
        )

    @property
    def tables(self) -> tuple[str, ...]:
        """What it reads whose rows can change, as schema.table."""
        found = {one.table for one in self.occurrences if not one.source.is_fixed and not is_time(one)}
        return tuple(sorted(found))

    @property
    def columns(self) -> tuple[str, ...]:
        """Of its result, in lower case."""
        return tuple(self._columns)

    def context(self) -> str:
        """A digest of all that its result depends on besides its text and the rows of its tables: texts of views, ids
        of columns that it uses, fixed states that it names, settings and definitions of the session.
        """
        parts = [read_result_settings(self._resolver.session), *self.definitions()]
        used: dict[str, set[str]] = {}
        for one in self.occurrences:
            used.setdefault(one.table.lower(), set()).update(map(str.lower, one.columns.values()))
        for (database, name), found in sorted(self._names.items()):
            if isinstance(found, ResolvedTable) and (found.is_clause or split_database(database)[1]):
                parts.append(f"state {database}.{name}: {found.key}")
            elif isinstance(found, ResolvedTable):
                columns = used.get(f"{database}.{name}", set())
                is_whole = self._plan is None
                fields = (one for one in found.schema.fields if is_whole or one.name.lower() in columns)
                parts += [
                    f"column {database}.{name}: {field.name} {field.id} {field.type}" for field in fields
                ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def definitions(self) -> tuple[str, ...]:
        """What its names mean besides tables, by content: views, functions and variables of the warehouse and of the
        session, and the path by which Spark finds them.
        """
        stored = [
            f"{'view' if isinstance(found, ResolvedView) else 'function'} {database}.{name}: {found.sql}"
            for (database, name), found in sorted(self._names.items())
            if isinstance(found, ResolvedView | ResolvedFunction)
        ]
        return (*read_path(self._resolver.session), *self._definitions.texts, *stored)

    def general_clause(self, key: Sequence[str], primary_key: Sequence[str] = ()) -> str | None:
        """Why no run of the query can be restricted to keys, whatever changed. `primary_key`: of the result's table, if
        that is not `key`.
        """
        if self._plan is None:
            return "a plan that cannot be read (it is too large, or of a Spark that is not known)"
        unknown = find_unknown(self._plan.root)
        if unknown is not None:
            return f"{unknown} in Spark's plan"
        untracked = find_untracked(self._plan.root, self._plan.tables)
        unsplit = None if self._plan.times is None else find_unsplit(self._plan.root)
        if unsplit is not None:
            return unsplit
        if untracked is not None:
            return f"rows from outside of the warehouse ({untracked}), whose changes are not recorded"
        if self._definitions.clause is not None:
            return self._definitions.clause
        for name in (*key, *primary_key):  # SQL joins them by equality, the table stores them by value
            if not is_exact(self._types[self._columns.index(name.lower())]):
                return f"a key whose equal values can differ ({name})"
        return find_shared_order(self._plan.root, self.occurrences, self._ids(key), self._plan.grouping_types)

    def followed_inputs(self, key: Sequence[str]) -> tuple[FollowedInput, ...]:
        """Of each table, and of the time of the run if the query uses it, if all of them change; sorted."""
        if self._plan is None:
            return ()
        changed = [one for one in self.occurrences if not one.source.is_fixed]
        known = self._known(self._plan, changed)
        joined: dict[str, set[str]] = {one.table: set() for one in changed}
        clauses: dict[str, str] = {}
        for source in find_sources(known, self.occurrences, self._ids(key)).all:
            for one in source.occurrences:
                if source.step is None:
                    clauses.setdefault(one.table, source.clause)
                else:
                    joined[one.table] |= self._read_by(source.step)
        return tuple(
            FollowedInput(table, tuple(sorted(joined[table])), clauses.get(table)) for table in sorted(joined)
        )

    def affected_keys(
        self,
        key: Sequence[str],
        changes: Mapping[str, TableVersion],
        affected_by: Mapping[str, Sequence[str]],
        most: int | None = None,
    ) -> AffectedKeys:
        """`changes`: of each table that changed, the range. `affected_by`: expressions over a table's columns, which
        count where nothing is proven. `most`: more keys are not collected.
        """
        plan = self._plan
        if plan is None:
            return AffectedKeys(None, 0, self.general_clause(key) or "")
        inputs, elapsed = self._inputs(changes), plan.since(changes.get(MOMENT))
        stated = {table.lower(): expressions for table, expressions in affected_by.items()}
        changed = self._changed(inputs.ranges, elapsed)
        known = self._known(plan, changed)
        builder = plan.builder(known, inputs.plan, elapsed, self._rows_of)
        local = LocalQuery(builder, known, inputs.local_inputs(self.occurrences))
        try:
            frames, asserted, keys = list[DataFrame](), set[str](), list[LocalRowsOfSteps]()
            is_local = True  # keys of changed rows that the driver has, which are few
            found = find_sources(known, self.occurrences, self._ids(key))
            if clause := found.unproven(stated):
                return AffectedKeys(None, 0, clause)
            ties = [builder.ties(one.window, one.rows) for one in found.ties]
            if ties and self._rows_of(reduce(DataFrame.union, ties)).num_rows:
                return AffectedKeys(None, 0, "a window with rows that are equal in ORDER BY")
            for one in found.all:
                if one.step is None:
                    asserted.add(one.occurrences[0].table.lower())
                    continue
                known_keys = local.rows([one.step], key)
                if known_keys is not None:
                    keys.append(known_keys)
                    continue
                frames.append(builder.frame(one.step).toDF(*key))
                is_local &= not self._read_by(one.step)
            frames += [
                self._asserted(relation_of(*inputs.ranges[one]), stated[one], key) for one in sorted(asserted)
            ]
            is_local &= not asserted and elapsed is None and inputs.are_few
            return self._collect(frames, keys, most, is_local=is_local)
        except NoDelta as unknown:
            return AffectedKeys(None, 0, unknown.clause)
        except (PySparkException, Py4JError) as error:
            check_connected()
            told = spark_errors.translate(error)
            return AffectedKeys(None, 0, f"affected keys that Spark cannot compute: {told.what}: {told.why}")

    def plan_keys(
        self, key: Sequence[str], changes: Mapping[str, TableVersion], affected_by: Collection[str]
    ) -> tuple[str, tuple[str, ...]]:
        """(why no keys are known that these changes affect, or empty; tables of the parts that are evaluated for them,
        as often as they are there). `affected_by`: tables.
        """
        if self._plan is None:
            return self.general_clause(key) or "", ()
        changed = self._changed(ranges_of(changes), self._plan.since(changes.get(MOMENT)))
        found = find_sources(self._known(self._plan, changed), self.occurrences, self._ids(key))
        read = (
            one.table
            for path in found.parts
            for one in self.occurrences
            if not one.in_subquery and is_within(one.path, path)
        )
        return found.unproven({table.lower() for table in affected_by}), tuple(read)

    def plan_deltas(
        self, key: Sequence[str], changes: Mapping[str, TableVersion], *, has_state: bool
    ) -> PlannedDeltas:
        """How rows of the result follow from the changes and the stored rows; `key`: the primary key of the result.

        `changes`: of each table that changed, the range. `has_state`: the state of all groups is known.
        REQUIRES that `general_clause` has nothing to say, and that the stored rows are those of the query before.
        """
        assert self._plan is not None
        inputs, elapsed = self._inputs(changes), self._plan.since(changes.get(MOMENT))
        changed = self._changed(inputs.ranges, elapsed)
        asked = ChangedOccurrences(changed, inputs.plan, elapsed, inputs.local_inputs(self.occurrences))
        return self._deltas(key).planned(asked, self._read_by, has_state=has_state)

    def evaluate_groups(self, key: Sequence[str], keys: pa.Table, before: Before) -> Deltas:
        """As followed deltas, of all groups with these keys, whose state is computed over all their rows."""
        found = self.state(key)
        return Deltas(clause="no state of its groups") if found is None else found.evaluate(keys, before)

    def followed_deltas(self, key: Sequence[str]) -> Mapping[str, FollowedDeltas]:
        """Of each table, and of the time of the run if the query uses it, if it alone changes."""
        found = dict[str, FollowedDeltas]()
        for table in (*self.tables, *([RUN_TIME] if self.follows_time else [])):
            changed = [one for one in self.occurrences if one.table == table]
            try:
                query = self._deltas(key).query(ChangedOccurrences(changed))
            except NoDelta as unknown:
                found[table] = FollowedDeltas(unknown.clause)
                continue
            by_key = query.looked_up(self.occurrences)
            joined = {name for part in query.parts for name in self._read_by(part.step) if by_key is None}
            found[table] = FollowedDeltas(
                "", tuple(sorted(joined)), query.lacks_count, tuple(sorted(by_key or ()))
            )
        return found

    def _read_by(self, step: Step) -> set[str]:
        """Tables of which a step reads all rows, besides changes."""
        paths = read_paths(step)
        return {
            one.table
            for one in self.occurrences
            if not one.in_subquery and not is_time(one) and any(is_within(one.path, path) for path in paths)
        }

    def state(self, key: Sequence[str]) -> QueryState | None:
        """Of its groups, if its rows follow from a state and not from stored rows."""
        if self._plan is None or self.general_clause(key) is not None:
            return None
        return self._deltas(key).state(self.tables, self.occurrences)

    def _deltas(self, key: Sequence[str]) -> QueryDeltas:
        assert self._plan is not None
        chance = "" if self._plan.is_deterministic else "a function that is not deterministic"
        volatile = self.volatile or chance
        reads, frame = self._inputs({}).local_inputs(self.occurrences), self._whole_frame
        return QueryDeltas(self._resolver, self._plan, self._known, volatile, self._fields, key, frame, reads)

    def _whole_frame(self) -> DataFrame:
        """The query, at the moment of the run."""
        moment_ms = self._overrides.moment_ms
        return self._frame if moment_ms is None else frame_at_moment(self._frame, moment_ms)

    def _inputs(self, changes: Mapping[str, TableVersion]) -> InputChanges:
        return InputChanges(self._resolver, self._overrides, self._names, ranges_of(changes))

    def _changed(self, ranges: Mapping[str, Range], elapsed: Elapsed | None) -> list[Occurrence]:
        moved = frozenset[int]() if elapsed is None else elapsed.moved
        return [
            one
            for one in self.occurrences
            if (is_time(one) and moved & set(map(number_of, one.columns.values())))
            or (one.table.lower() in ranges and not one.source.is_fixed)
        ]

    def _known(self, plan: TracedPlan, changed: Sequence[Occurrence]) -> KnownColumns:
        return KnownColumns(plan.root, changed, plan.grouping_types, has_moving_time=self._moving is not None)

    def _ids(self, key: Sequence[str]) -> list[int]:
        ids = () if self._plan is None else output_ids(self._plan.root)
        return [ids[self._columns.index(name.lower())] for name in key]

    def _rows_of(self, frame: DataFrame) -> pa.Table:
        return collect_arrow(self._resolver.prune(frame))

    def _asserted(self, source: str, expressions: Sequence[str], key: Sequence[str]) -> DataFrame:
        items = ", ".join(
            f"({expression}) as {quote_name(name)}" for name, expression in zip(key, expressions, strict=True)
        )
        text = f"select {items} from {source}"
        return self._resolver.whole_query(text, self._overrides)[0]

    def _collect(
        self, frames: list[DataFrame], known: Sequence[LocalRowsOfSteps], most: int | None, *, is_local: bool
    ) -> AffectedKeys:
        """`known`: keys that the driver has."""
        if not frames and not known:
            return AffectedKeys(None, 0, "")
        limit = KEYS_MAX if most is None else min(most, KEYS_MAX)
        if not frames and all(one.schema == known[0].schema for one in known):
            schema = known[0].schema
            keys = pa.concat_tables([one.rows for one in known]).group_by(schema.names).aggregate([])
        elif is_local and not known and all(one.schema == frames[0].schema for one in frames):
            schema = frames[0].schema  # each once without a shuffle
            parts = [self._rows_of(one.limit(KEYS_MAX + 1)) for one in frames]
            keys = pa.concat_tables(parts).group_by(schema.names).aggregate([])
        else:
            frames = [
                *frames,
                *(frame_of_rows(self._resolver.session, one.rows, one.schema) for one in known),
            ]
            found = reduce(DataFrame.union, frames).distinct().limit(limit + 1)
            keys, schema = self._rows_of(found), found.schema
        if keys.num_rows > KEYS_MAX:
            return AffectedKeys(None, keys.num_rows, f"changes that affect more than {KEYS_MAX:,} keys")
        return (
            affected(keys, schema) if keys.num_rows <= limit else AffectedKeys(None, limit + 1, is_cut=True)
        )

    def viewed(self, keys: AffectedKeys, view: str) -> AffectedKeys:
        """With a temporary view of this name."""
        assert keys.rows is not None
        assert keys.schema is not None
        return keys_view(self._resolver.session, keys.rows, keys.schema, view)

    def evaluate(self, key: Sequence[str], keys: pa.Table, before: Before) -> Deltas:
        """As followed deltas, of these keys, whatever changed; a clause where a statement has to evaluate them."""
        return self._deltas(key).evaluate(keys, before)
